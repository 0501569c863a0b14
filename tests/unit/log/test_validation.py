"""What a leader takes, what it sets in it, and with which error it refuses the rest."""

from __future__ import annotations

import zlib
from typing import Any

import pytest

from engine.errors import ApiError
from engine.log.checked_batch import CheckedBatch
from engine.log.log_config import LogConfig
from engine.log.producer_state import AppendOrigin
from engine.log.record_errors import RecordError
from engine.log.validation import LeaderBatch, LeaderRules, RecordsRefused
from engine.model import TopicPartition
from engine.records.batch import BatchView
from engine.records.batch_header import read_header, write_header
from engine.records.builder import BatchBuilder, BatchSettings
from engine.records.codec import Codec
from engine.records.compression import compress
from engine.records.crc import crc32c
from engine.records.legacy_builder import LegacySettings, build_messages
from engine.records.record import Record, TimestampType
from engine.records.varint import write_varint
from tests.unit.log.writing import NOW_MS, end_of_transaction, sent, sent_by

UNREADABLE, CORRUPT, TOO_LARGE, INVALID_TIME, INVALID = -1, 2, 10, 32, 87
T0 = TopicPartition("t", 0)
APPEND_TIME = LogConfig(message_timestamp_type=TimestampType.LOG_APPEND_TIME)


def accept(data: memoryview, config: LogConfig | None = None, **more: Any) -> LeaderBatch:
    rules = LeaderRules(config or LogConfig(), T0)
    return rules.prepare_batch(
        CheckedBatch(data), base_offset=40, leader_epoch=7, now_ms=NOW_MS, **more
    )


def refused(data: memoryview, config: LogConfig | None = None, **more: Any) -> ApiError:
    with pytest.raises(ApiError) as caught:
        accept(data, config, **more)
    return caught.value


def refused_rows(error: ApiError) -> tuple[RecordError, ...]:
    assert isinstance(error, RecordsRefused)
    return error.record_errors


def with_field(batch: memoryview, field: int, value: int) -> memoryview:
    """Return a batch with one header field changed, its checksum right."""
    changed = bytearray(batch)
    fields = list(read_header(changed))
    fields[field] = value
    write_header(changed, 0, *fields)
    fields[4] = crc32c(memoryview(changed)[21:])
    write_header(changed, 0, *fields)
    return memoryview(changed)


def old(
    count: int = 1, *, magic: int = 1, codec: Codec = Codec.NONE, at_ms: int = NOW_MS
) -> memoryview:
    settings = LegacySettings(magic=magic, codec=codec)
    kind = TimestampType.CREATE_TIME
    records = [Record(n, at_ms + n, kind, b"k%d" % n, b"v%d" % n) for n in range(count)]
    return memoryview(build_messages(records, settings))


def test_offset_and_epoch_are_set_in_place() -> None:
    data = sent(3, codec=Codec.LZ4)
    payload = bytes(data[61:])
    taken = accept(data)
    assert not taken.is_rewritten
    found = BatchView(data)
    assert (40, 42, 7) == (found.base_offset, found.last_offset, found.leader_epoch)
    assert found.is_crc_valid()
    assert payload == data[61:]


def test_append_time_is_set_in_place() -> None:
    data = sent(3, at_ms=5)
    taken = accept(data, APPEND_TIME)
    assert (NOW_MS, False) == (taken.log_append_time_ms, taken.is_rewritten)
    found = BatchView(data)
    assert found.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert found.is_crc_valid()
    assert {NOW_MS} == {record.timestamp_ms for record in found.records()}


@pytest.mark.parametrize("target", [codec for codec in Codec if codec is not Codec.GZIP])
def test_another_codec_compresses_the_same_records_again(target: Codec) -> None:
    data = sent_by(5, 8, 3, codec=Codec.GZIP, is_transactional=True)
    taken = accept(data, LogConfig(compression_type=target))
    found = taken.batch
    assert taken.is_rewritten
    assert (target, 40, 42, 7) == (
        found.codec, found.base_offset, found.last_offset, found.leader_epoch
    )  # fmt: skip
    assert (5, 0, 8, True) == (
        found.producer_id, found.producer_epoch, found.base_sequence, found.is_transactional
    )  # fmt: skip
    assert found.is_crc_valid()
    assert [b"k0", b"k1", b"k2"] == [record.key for record in found.records()]


def test_the_topic_s_own_codec_is_left_alone() -> None:
    assert not accept(sent(codec=Codec.ZSTD), LogConfig(compression_type=Codec.ZSTD)).is_rewritten


def test_markers_are_never_compressed() -> None:
    config = LogConfig(compression_type=Codec.LZ4)
    taken = accept(end_of_transaction(1), config, origin=AppendOrigin.COORDINATOR)
    assert taken.batch.codec is Codec.NONE
    assert not taken.is_rewritten


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
def test_old_messages_become_one_batch(magic: int, codec: Codec) -> None:
    taken = accept(old(3, magic=magic, codec=codec))
    found = taken.batch
    assert taken.is_rewritten
    assert (2, 40, 42, codec) == (found.magic, found.base_offset, found.last_offset, found.codec)
    records = list(found.records())
    assert [b"v0", b"v1", b"v2"] == [record.value for record in records]
    times = [-1, -1, -1] if magic == 0 else [NOW_MS, NOW_MS + 1, NOW_MS + 2]
    assert times == [record.timestamp_ms for record in records]


def test_a_batch_cut_short_is_left_out() -> None:
    data = memoryview(bytearray(bytes(old(2)) + bytes(old())[:20]))
    assert accept(data).batch.record_count == 2


def bad_crc() -> memoryview:
    data = sent()
    data[-1] ^= 1
    return data


def two_batches() -> memoryview:
    return memoryview(bytearray(bytes(sent()) + bytes(sent())))


def bad_magic() -> memoryview:
    data = sent()
    data[16] = 3
    return data


def bad_inner_crc() -> memoryview:
    # A snappy literal shows the value as it is: hurt it, then make the wrapper's checksum right.
    import struct
    import zlib

    from engine.records import snappy

    inner = bytearray(old(2))
    inner[-1] ^= 1
    checked = struct.pack(">bbqi", 1, 2, NOW_MS, -1)
    value = snappy.compress(inner)
    checked += struct.pack(">i", len(value)) + value
    return memoryview(
        bytearray(struct.pack(">qiI", 1, len(checked) + 4, zlib.crc32(checked)) + checked)
    )


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (bad_crc(), CORRUPT),
        (bad_magic(), CORRUPT),
        (bad_inner_crc(), CORRUPT),
        (memoryview(bytearray(b"\0" * 61)), CORRUPT),
        (memoryview(bytearray()), INVALID),
        (sent()[:60], INVALID),
        (two_batches(), INVALID),
        (sent(base_offset=3), INVALID),
        (with_field(sent(3), 6, 1), INVALID),
        (with_field(sent(3), 6, -1), INVALID),
        (with_field(sent(3), 12, 0), INVALID),
        (with_field(sent(3), 12, 2), INVALID),
        (with_field(sent_by(1, 0), 11, -1), INVALID),
        (with_field(sent(), 5, 7), UNREADABLE),
        (end_of_transaction(1), INVALID),
        (memoryview(bytearray(bytes(old(2, codec=Codec.GZIP)) * 2)), INVALID),
        (memoryview(bytearray(bytes(old()) + bytes(old(magic=0)))), INVALID),
    ],
)
def test_what_no_client_may_send_is_refused(data: memoryview, code: int) -> None:
    assert code == refused(data).code


@pytest.mark.parametrize("distance", [-1, 0, 1])
def test_the_size_of_a_batch_is_bounded(distance: int) -> None:
    data = sent()
    config = LogConfig(max_message_bytes=len(data) + distance)
    if distance >= 0:
        accept(data, config)
    else:
        assert refused(data, config).code == TOO_LARGE


def test_a_batch_that_grows_beyond_the_bound_is_refused() -> None:
    data = sent(1, value=bytes(5000), codec=Codec.GZIP)
    config = LogConfig(max_message_bytes=1000, compression_type=Codec.NONE)
    assert refused(data, config).code == TOO_LARGE


def test_a_time_below_none_counts_as_none() -> None:
    data = with_field(sent(2, at_ms=0), 7, -2)
    taken = accept(data)
    assert taken.batch.max_timestamp_ms == -1


def test_zstd_is_no_codec_of_old_messages() -> None:
    data = bytearray(old(2, codec=Codec.GZIP))
    data[17] = Codec.ZSTD
    data[12:16] = zlib.crc32(data[16:]).to_bytes(4, "big")
    assert refused(memoryview(data)).code == INVALID


def test_what_cannot_be_opened_has_no_code_of_its_own() -> None:
    data = bytearray(sent(3, codec=Codec.GZIP))
    data[61:] = bytes(len(data) - 61)
    damaged = with_field(memoryview(data), 2, -1)
    config = LogConfig(compression_type=Codec.NONE)
    assert refused(damaged, config).code == UNREADABLE


def test_a_bomb_is_refused_before_it_has_grown() -> None:
    config = LogConfig(max_message_bytes=20_000, compression_type=Codec.NONE)
    bomb = sent(1, value=bytes(config.opened_batch_bytes_max), codec=Codec.GZIP)
    assert refused(bomb, config).code == INVALID
    # Below that it is opened, and then too large for the topic.
    large = sent(1, value=bytes(config.opened_batch_bytes_max - 100), codec=Codec.GZIP)
    assert refused(large, config).code == TOO_LARGE


def test_compacted_topics_need_keys_and_say_which_records_lack_them() -> None:
    builder = BatchBuilder(BatchSettings())
    for key in (b"a", None, b"", None):
        builder.append(NOW_MS, key, b"v")
    error = refused(memoryview(builder.build()), LogConfig(is_compacted=True))
    assert error.code == INVALID
    assert [1, 3] == [row.batch_index for row in refused_rows(error)]


def test_records_are_refused_in_the_words_that_producers_print() -> None:
    builder = BatchBuilder(BatchSettings())
    for _ in range(4):
        builder.append(NOW_MS, None, b"v")
    error = refused(memoryview(builder.build()), LogConfig(is_compacted=True))
    text = "Compacted topic cannot accept message without key in topic partition t-0"
    assert [text] * 4 == [row.message for row in refused_rows(error)]
    named = ", ".join(f"RecordError(batchIndex={n}, message='{text}')" for n in range(3))
    assert error.detail == (
        "One or more records have been rejected due to 4 record errors in total, and only showing "
        f"the first three errors at most: [{named}]"
    )


def test_times_out_of_range_are_refused_with_the_range() -> None:
    config = LogConfig(message_timestamp_before_max_ms=100, message_timestamp_after_max_ms=50)
    error = refused(sent(2, at_ms=NOW_MS + 50), config)
    assert error.detail == "One or more records have been rejected due to invalid timestamp"
    range_ms = f"[{NOW_MS - 100}, {NOW_MS + 50}]"
    assert refused_rows(error) == (
        (
            1,
            f"Timestamp {NOW_MS + 51} of message with offset 1 is out of range. "
            f"The timestamp should be within {range_ms}",
        ),
    )
    # Without a bound the sum wraps, as Java's.
    error = refused(sent(at_ms=1), LogConfig(message_timestamp_before_max_ms=100))
    wrapped_ms = (1 << 63) - 1 + NOW_MS - (1 << 64)
    assert refused_rows(error)[0].message.endswith(f"within [{NOW_MS - 100}, {wrapped_ms}]")


@pytest.mark.parametrize(
    ("codec", "record"),
    [
        (Codec.NONE, f"DefaultRecord(offset=0, timestamp={NOW_MS}, key=2 bytes, value=10 bytes)"),
        (Codec.GZIP, f"PartialDefaultRecord(offset=0, timestamp={NOW_MS}, key=0 bytes, value=0 "),
    ],
)
def test_append_time_of_a_producer_is_refused_with_the_record(codec: Codec, record: str) -> None:
    kind = TimestampType.LOG_APPEND_TIME
    error = refused(sent(timestamp_type=kind, append_time_ms=NOW_MS, codec=codec), APPEND_TIME)
    message = refused_rows(error)[0].message
    assert message.startswith(f"Invalid timestamp type in message {record}")
    assert message.endswith("). Producer should not set timestamp type to LogAppendTime.")


@pytest.mark.parametrize(
    ("at_ms", "is_taken"),
    [(-100, True), (-101, False), (50, True), (51, False)],
)
def test_times_are_held_to_the_topic_s_bounds(at_ms: int, is_taken: bool) -> None:
    config = LogConfig(message_timestamp_before_max_ms=100, message_timestamp_after_max_ms=50)
    data = sent(at_ms=NOW_MS + at_ms)
    if is_taken:
        accept(data, config)
    else:
        assert refused(data, config).code == INVALID_TIME


def test_records_without_a_time_keep_every_bound() -> None:
    config = LogConfig(message_timestamp_before_max_ms=100)
    accept(sent(at_ms=-1), config)


def test_producers_do_not_set_append_time() -> None:
    data = sent(timestamp_type=TimestampType.LOG_APPEND_TIME, append_time_ms=5)
    assert refused(data, APPEND_TIME).code == INVALID_TIME


def test_the_largest_time_is_that_of_the_records_and_not_of_the_header() -> None:
    for codec in Codec:
        taken = accept(with_field(sent(2, codec=codec), 8, 12))
        assert taken.batch.max_timestamp_ms == NOW_MS + 1
        assert taken.batch.is_crc_valid()


def test_records_that_are_not_there_are_missed() -> None:
    for codec in Codec:
        broken = with_field(sent(3, codec=codec), 12, 4)
        assert refused(with_field(broken, 6, 3)).code == INVALID


def numbers(*values: int) -> bytes:
    out = bytearray()
    for value in values:
        write_varint(out, value)
    return bytes(out)


def one_record(
    offset: int = 0, *, key: bytes = b"\x02k", headers: bytes = b"\x00", **more: Any
) -> bytes:
    inner = b"\x00" + numbers(more.get("time", 0), offset) + key + b"\x02v" + headers
    return numbers(len(inner) + more.get("longer", 0)) + inner


def with_block(block: bytes, count: int, codec: Codec = Codec.NONE) -> memoryview:
    """Return a batch of given records, valid or not."""
    raw = bytes(sent()[:61]) + compress(codec, block)
    for field, value in ((1, len(raw) - 12), (5, codec), (6, count - 1), (12, count)):
        raw = bytes(with_field(memoryview(raw), field, value))
    return memoryview(bytearray(raw))


TWO = (one_record(), one_record(1))
# What is behind a good checksum, and what becomes of it: uncompressed, compressed and kept so,
# compressed and written again. None is taken.
RECORD_RULES = {
    "as they should be": (TWO, None, None, None),
    "offsets again": ((one_record(), one_record()), None, UNREADABLE, None),
    "an offset beyond the batch": (
        (one_record(), one_record(1_000_000)), None, UNREADABLE, None
    ),
    "offsets that fall": ((one_record(1), one_record()), None, UNREADABLE, None),
    "a length that is too large": ((one_record(longer=1), TWO[1]), INVALID, None, INVALID),
    "a length that is too small": ((one_record(longer=-1), TWO[1]), INVALID, None, INVALID),
    "a length below 0": ((b"\x01", TWO[0][1:], TWO[1]), INVALID, None, INVALID),
    "a length that goes on": ((b"\xff" * 5, *TWO), UNREADABLE, INVALID, INVALID),
    "a number that goes on": ((one_record(key=b"\xff" * 5), TWO[1]), INVALID, INVALID, INVALID),
    "a key of -2": ((one_record(key=b"\x03"), TWO[1]), None, None, None),
    "a key beyond all": ((one_record(key=numbers(99)), TWO[1]), INVALID, INVALID, INVALID),
    "headers below 0": ((one_record(headers=b"\x01"), TWO[1]), INVALID, INVALID, INVALID),
    "too many headers": ((one_record(headers=numbers(99)), TWO[1]), INVALID, INVALID, INVALID),
    "a header without a key": (
        (one_record(headers=numbers(1, -1, -1)), TWO[1]), INVALID, INVALID, INVALID
    ),
    "a record more": ((*TWO, one_record(2)), INVALID, INVALID, INVALID),
    "a byte more": ((*TWO, b"\x00"), INVALID, INVALID, INVALID),
    "a record less": (TWO[:1], INVALID, INVALID, INVALID),
    "nothing": ((), INVALID, INVALID, INVALID),
    "a cut record": ((TWO[0], TWO[1][:-2]), INVALID, INVALID, INVALID),
}  # fmt: skip


@pytest.mark.parametrize("what", list(RECORD_RULES))
@pytest.mark.parametrize("codec", list(Codec), ids=lambda c: c.label)
def test_records_behind_a_good_checksum(what: str, codec: Codec) -> None:
    parts, uncompressed, kept, rewritten = RECORD_RULES[what]
    block = b"".join(parts)
    other = LogConfig(compression_type=Codec.NONE if codec else Codec.ZSTD)
    for config, compressed in ((LogConfig(), kept), (other, rewritten)):
        wanted = compressed if codec else uncompressed
        data = with_block(block, 2, codec)
        if wanted is None:
            assert accept(data, config).batch.record_count == 2
        else:
            assert refused(data, config).code == wanted


def test_the_first_of_two_faults_counts_but_not_in_deflated_data() -> None:
    block = bytes(with_block(one_record(headers=b"\x01") + bytes(50), 9, Codec.GZIP))
    cut = memoryview(bytearray(block[:-8]))
    assert refused(with_field(cut, 1, len(cut) - 12)).code == INVALID
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    start = packer.compress(one_record(headers=b"\x01")) + packer.flush(zlib.Z_FULL_FLUSH)
    # A block of the reserved kind 3 cannot be deflated data, wherever it stands.
    broken = memoryview(bytearray(block[:71] + start + b"\x07" + bytes(50)))
    assert refused(with_field(broken, 1, len(broken) - 12)).code == UNREADABLE


@pytest.mark.parametrize("codec", list(Codec), ids=lambda c: c.label)
def test_times_that_wrap_round_have_no_bounds_by_default(codec: Codec) -> None:
    block = one_record() + one_record(1, time=(1 << 63) - 1)
    taken = accept(with_block(block, 2, codec))
    assert taken.batch.max_timestamp_ms == NOW_MS


@pytest.mark.parametrize("codec", list(Codec), ids=lambda c: c.label)
def test_fast_batches_are_distinguished_from_those_that_break_a_rule(codec: Codec) -> None:
    bounds = LogConfig(message_timestamp_before_max_ms=5, message_timestamp_after_max_ms=5)
    keyless = with_block(one_record() + one_record(1, key=b"\x01"), 2, codec)
    for config, data, is_fast_path in (
        (LogConfig(), keyless, True),
        (LogConfig(is_compacted=True), keyless, False),
        (LogConfig(is_compacted=True), sent(2, codec=codec), True),
        (bounds, sent(5, codec=codec), True),
        (bounds, sent(7, codec=codec), False),
        (bounds, sent(1, codec=codec, at_ms=NOW_MS - 6), False),
        (bounds, sent(1, codec=codec, at_ms=-1), False),
        (LogConfig(), sent(1, codec=codec, at_ms=-1), True),
        (LogConfig(), with_field(sent(2, codec=codec), 8, NOW_MS), False),
    ):
        view, rules = BatchView(data), LeaderRules(config, T0)
        walked = CheckedBatch(data).walk(rules.limit_bytes)
        largest_ms = rules.largest_time_fast(walked, view.base_timestamp_ms, NOW_MS)
        assert (largest_ms == view.max_timestamp_ms) is is_fast_path


def inner_message(size: int | None = None, key_size: int = -1) -> bytes:
    checked = b"\x01\x00" + NOW_MS.to_bytes(8, "big")
    checked += key_size.to_bytes(4, "big", signed=True) + (1).to_bytes(4, "big") + b"v"
    whole = zlib.crc32(checked).to_bytes(4, "big") + checked
    return bytes(8) + (len(whole) if size is None else size).to_bytes(4, "big") + whole


def wrapper(inner: bytes) -> memoryview:
    packed = compress(Codec.GZIP, inner, None, 1)
    checked = b"\x01\x01" + NOW_MS.to_bytes(8, "big") + b"\xff" * 4
    checked += len(packed).to_bytes(4, "big") + packed
    whole = zlib.crc32(checked).to_bytes(4, "big") + checked
    return memoryview(bytearray(bytes(8) + len(whole).to_bytes(4, "big") + whole))


def test_messages_inside_of_another_have_errors_of_their_own() -> None:
    assert accept(wrapper(inner_message())).batch.record_count == 1
    assert refused(wrapper(inner_message(size=5))).code == CORRUPT
    assert refused(wrapper(inner_message(key_size=900))).code == UNREADABLE
    # What breaks a rule of the topic comes before what cannot be read.
    compacted = LogConfig(is_compacted=True)
    both = inner_message() + inner_message(key_size=900)
    assert refused(wrapper(both), compacted).code == INVALID


def test_messages_are_measured_before_they_are_checked() -> None:
    data = memoryview(bytearray(inner_message() + inner_message(key_size=900)))
    assert refused(data, LogConfig(is_compacted=True)).code == UNREADABLE
