"""Control records: markers as Kafka writes them, types, malformed keys and values."""

from __future__ import annotations

import pytest

from engine.errors import CorruptRecord
from engine.records.builder import BatchRefused
from engine.records.control import (
    ControlType,
    EndTransactionMarker,
    build_control_batch,
    build_marker,
    control_key,
    control_type,
    control_type_id,
    parse_marker,
    read_marker,
)
from engine.records.record import Record, TimestampType
from tests.unit.records.samples import NOW, view_of

COMMIT = EndTransactionMarker(ControlType.COMMIT, 12)


def control(key: bytes | None, value: bytes | None = None) -> Record:
    return Record(0, NOW, TimestampType.CREATE_TIME, key, value)


def test_a_marker_is_a_batch_of_78_bytes_with_the_given_fields() -> None:
    data = build_marker(
        COMMIT,
        producer_id=7000,
        producer_epoch=3,
        timestamp_ms=NOW,
        base_offset=44,
        leader_epoch=2,
    )
    # Printed by Kafka 3.9.1's MemoryRecords.withEndTransactionMarker for the same values.
    assert data.hex(" ", 2) == (
        "0000 0000 0000 002c 0000 0042 0000 0002 02c9 fb49 3400 3000 0000 0000 0001 8bcf e568 "
        "0000 0001 8bcf e568 0000 0000 0000 001b 5800 03ff ffff ff00 0000 0120 0000 0008 0000 "
        "0001 0c00 0000 0000 0c00"
    )
    batch = view_of(data)
    assert (len(data), batch.is_crc_valid()) == (78, True)
    assert (batch.base_offset, batch.last_offset, batch.leader_epoch) == (44, 44, 2)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (7000, 3, -1)
    assert (batch.is_transactional, batch.is_control) == (True, True)
    (record,) = batch.records()
    assert (record.key, record.value) == (bytes((0, 0, 0, 1)), bytes((0, 0, 0, 0, 0, 12)))
    assert parse_marker(record) == COMMIT


@pytest.mark.parametrize("kind", [ControlType.ABORT, ControlType.COMMIT])
def test_a_marker_is_read_from_its_batch_in_the_form_that_all_have(kind: ControlType) -> None:
    marker = EndTransactionMarker(kind, 9)
    data = build_marker(marker, producer_id=5, producer_epoch=1, timestamp_ms=NOW)
    assert marker == read_marker(memoryview(data))
    for at in (*range(61, 66), 66, 69, 70, 71, 77):
        changed = bytearray(data)
        changed[at] += 2
        assert read_marker(memoryview(changed)) is None, at
    other = build_control_batch(ControlType.LEADER_CHANGE, bytes(6), timestamp_ms=NOW)
    assert [None, None] == [read_marker(memoryview(each)) for each in (other, data[:-1])]


def test_other_control_records_hand_out_their_value_as_it_is() -> None:
    batch = view_of(build_control_batch(ControlType.KRAFT_VERSION, b"raw", timestamp_ms=NOW))
    assert (batch.is_transactional, batch.is_control, batch.producer_id) == (False, True, -1)
    (record,) = batch.records()
    assert (control_type(record), record.value) == (ControlType.KRAFT_VERSION, b"raw")


@pytest.mark.parametrize("kind", [kind for kind in ControlType if kind >= 0])
def test_types_have_kafkas_numbers(kind: ControlType) -> None:
    key = control_key(kind)
    assert key == bytes((0, 0, 0, kind))
    assert control_type(control(key)) is kind


def test_types_of_a_later_kafka_are_unknown_but_keep_their_number() -> None:
    record = control(b"\x00\x00\x00\x63")
    assert (control_type(record), control_type_id(record)) == (ControlType.UNKNOWN, 99)


def test_later_versions_are_read_as_the_first() -> None:
    record = control(b"\x00\x05\x00\x00more", b"\x00\x05\x00\x00\x00\x07more")
    assert parse_marker(record) == EndTransactionMarker(ControlType.ABORT, 7)


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        (None, None, "a control record key of 4 bytes, got 0 bytes"),
        (b"\x00\x00\x00", None, "got 3 bytes"),
        (b"\xff\xff\x00\x00", None, "a control record version from 0, got -1"),
        (b"\x00\x00\x00\x02", b"", "an ABORT or COMMIT record, got LEADER_CHANGE"),
        (b"\x00\x00\x00\x01", None, "a marker of 6 bytes, got 0 bytes"),
        (b"\x00\x00\x00\x01", b"\x00\x00\x00\x00\x00", "got 5 bytes"),
        (b"\x00\x00\x00\x01", b"\xff\xff\x00\x00\x00\x00", "a marker version from 0, got -1"),
    ],
)
def test_malformed_markers_are_corrupt(
    key: bytes | None, value: bytes | None, expected: str
) -> None:
    with pytest.raises(CorruptRecord, match=expected):
        parse_marker(control(key, value))


def test_only_known_types_are_written() -> None:
    with pytest.raises(BatchRefused):
        control_key(ControlType.UNKNOWN)
    with pytest.raises(BatchRefused):
        build_marker(
            EndTransactionMarker(ControlType.LEADER_CHANGE, 1),
            producer_id=1,
            producer_epoch=0,
            timestamp_ms=NOW,
        )
