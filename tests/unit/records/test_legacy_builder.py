"""Building messages of magic 0 and 1: bytes, wrappers, refusals."""

from __future__ import annotations

import pytest

from engine.records.builder import BatchRefused
from engine.records.codec import Codec
from engine.records.legacy import LegacyBatch
from engine.records.legacy_builder import LegacySettings, build_messages
from engine.records.record import TimestampType
from engine.records.view import batches_in
from tests.unit.records.samples import NOW, simple_records


def built(settings: LegacySettings, base_offset: int = 0) -> list[LegacyBatch]:
    records = simple_records(3, magic=settings.magic, base_offset=base_offset)
    data = memoryview(build_messages(records, settings))
    return [b for b in batches_in(data, allow_partial_tail=False) if isinstance(b, LegacyBatch)]


def test_a_plain_message_has_these_bytes() -> None:
    (record,) = simple_records(1)
    data = build_messages([record._replace(value=None)], LegacySettings())
    # Printed by Kafka 3.9.1's MemoryRecordsBuilder for the same calls.
    assert data.hex(" ", 2) == (
        "0000 0000 0000 0000 0000 0018 d729 eb83 0100 0000 018b cfe5 6800 0000 0002 6b30 ffff ffff"
    )


def test_plain_messages_keep_their_offsets_and_times() -> None:
    found = built(LegacySettings(), 50)
    assert [(m.offset, m.timestamp_ms) for m in found] == [(50, NOW), (51, NOW + 1), (52, NOW + 2)]


def test_append_time_is_written_into_every_message() -> None:
    settings = LegacySettings(timestamp_type=TimestampType.LOG_APPEND_TIME, append_time_ms=77)
    for codec in (Codec.NONE, Codec.GZIP):
        for found in built(settings._replace(codec=codec)):
            assert (found.timestamp_type.label, found.timestamp_ms) == ("LogAppendTime", 77)


def test_a_wrapper_carries_the_last_offset_and_the_largest_time() -> None:
    (found,) = built(LegacySettings(codec=Codec.SNAPPY, base_offset=50), 50)
    assert (found.offset, found.timestamp_ms, found.key) == (52, NOW + 2, None)


def test_magic_0_writes_the_wrong_lz4_header_checksum() -> None:
    (old,) = built(LegacySettings(magic=0, codec=Codec.LZ4))
    (new,) = built(LegacySettings(magic=1, codec=Codec.LZ4))
    assert ((old.value or b"")[6], (new.value or b"")[6]) == (0x1A, 0x82)


def test_levels_reach_the_codec() -> None:
    records = [r._replace(value=bytes(range(256)) * 20) for r in simple_records(50)]
    low = build_messages(records, LegacySettings(codec=Codec.GZIP, level=1))
    high = build_messages(records, LegacySettings(codec=Codec.GZIP, level=9))
    assert len(low) > len(high)


def test_no_records_make_no_bytes() -> None:
    assert build_messages([], LegacySettings(codec=Codec.GZIP)) == b""


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        (LegacySettings(magic=2), "magic 0 or 1"),
        (LegacySettings(codec=Codec.ZSTD), "a codec of magic 0 and 1"),
        (LegacySettings(timestamp_type=TimestampType.NONE), "create or append time"),
    ],
)
def test_settings_no_old_format_has_are_refused(settings: LegacySettings, rule: str) -> None:
    with pytest.raises(BatchRefused, match=rule):
        build_messages(simple_records(), settings)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"headers": (("h", b"v"),)}, "no headers"),
        ({"offset": -1}, "an offset from 0"),
        ({"offset": 1 << 63}, "within their widths"),
        ({"timestamp_ms": -2}, "a time from 0"),
        ({"timestamp_ms": 1 << 63}, "within their widths"),
    ],
)
def test_records_that_do_not_fit_are_refused(change: dict[str, object], rule: str) -> None:
    (record,) = simple_records(1)
    with pytest.raises(BatchRefused, match=rule):
        build_messages([record._replace(**change)], LegacySettings())
