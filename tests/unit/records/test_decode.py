"""Decoding records: one quick and one strict reader, and exactly when each error comes."""

from __future__ import annotations

import pytest

from engine.errors import CorruptRecord
from engine.records.builder import write_record
from engine.records.decode import (
    Origin,
    RecordsEndEarly,
    decode_header_key,
    decode_records,
    int64,
    read_record,
)
from engine.records.record import Record, TimestampType
from engine.records.varint import write_varint

INT64_MAX = (1 << 63) - 1


def origin(count: int = 1, **changes: object) -> Origin:
    plain = Origin(
        record_count=count,
        base_offset=100,
        base_timestamp_ms=1000,
        base_sequence=-1,
        append_time_ms=None,
        place=61,
        is_decompressed=False,
    )
    return plain._replace(**changes)


def records_of(data: bytes, *, count: int = 1, **changes: object) -> list[Record]:
    return list(decode_records(data, origin(count, **changes)))


def plain(*rows: tuple[object, ...]) -> bytes:
    out = bytearray()
    for row in rows:
        write_record(out, *row)  # type: ignore[arg-type]
    return bytes(out)


def body(*parts: int | bytes) -> bytes:
    """Return a record made of varints (numbers) and bytes, its length in front."""
    content = bytearray(1)
    for part in parts:
        if isinstance(part, int):
            write_varint(content, part)
        else:
            content += part
    out = bytearray()
    write_varint(out, len(content))
    return bytes(out + content)


def both(data: bytes, start_origin: Origin) -> Record:
    """Return the record that both readers find."""
    (quick,) = decode_records(data, start_origin)
    strict, end = read_record(data, 0, start_origin)
    assert end == len(data)
    assert quick == strict
    assert type(quick) is type(strict) is Record
    return quick


@pytest.mark.parametrize("size", [0, 1, 63, 64, 8191, 8192, 1 << 20])
def test_both_readers_agree_on_every_width_of_length(size: int) -> None:
    record = both(plain((0, 0, b"k" * size, b"v" * size, (("h" * size, b"x" * size),))), origin())
    assert (record.key_size, record.value_size) == (size, size)
    assert record.headers == (("h" * size, b"x" * size),)


@pytest.mark.parametrize("delta", [0, 63, 64, -64, -65, 1 << 30, -(1 << 40), 1 << 55, -(1 << 61)])
def test_both_readers_agree_on_every_width_of_time(delta: int) -> None:
    assert both(plain((delta, 0, None, None)), origin()).timestamp_ms == 1000 + delta


def test_null_and_empty_are_distinguished() -> None:
    record = both(plain((0, 0, None, b"", (("", None), ("a", b"")))), origin())
    assert (record.key, record.value) == (None, b"")
    assert record.headers == (("", None), ("a", b""))


def test_more_headers_than_a_byte_counts_are_read() -> None:
    headers = tuple((f"h{i}", b"%d" % i) for i in range(200))
    assert both(plain((0, 0, b"k", b"v", headers)), origin()).headers == headers


def test_append_time_replaces_every_time() -> None:
    record = both(plain((7, 0, b"k", b"v")), origin(append_time_ms=5555))
    assert (record.timestamp_type, record.timestamp_ms) == (TimestampType.LOG_APPEND_TIME, 5555)


def test_sequences_count_from_the_batchs_and_wrap() -> None:
    last = 2_147_483_647
    data = plain((0, 0, b"a", None), (0, 1, b"b", None))
    found = records_of(data, count=2, base_sequence=last)
    assert [record.sequence for record in found] == [last, 0]


def test_a_size_of_any_sign_below_zero_is_null() -> None:
    record = both(body(0, 0, -5, -9, 0), origin())
    assert (record.key, record.value) == (None, None)


def test_sums_wrap_as_javas_do() -> None:
    record = both(plain((5, 3, None, None)), origin(base_offset=INT64_MAX, base_timestamp_ms=1000))
    assert record.offset == -INT64_MAX + 1
    record = both(plain((5, 0, None, None)), origin(base_timestamp_ms=INT64_MAX))
    assert record.timestamp_ms == -INT64_MAX + 3
    assert int64(INT64_MAX) == INT64_MAX


def test_a_negative_offset_delta_is_shown_as_it_is() -> None:
    record = both(plain((0, -3, None, None)), origin(base_sequence=10))
    assert (record.offset, record.sequence) == (97, -2147483641)


def test_records_come_before_the_one_at_fault() -> None:
    data = plain((0, 0, b"a", b"x"), (0, 1, b"b", b"x")) + b"\x7f"
    reader = decode_records(data, origin(3))
    assert [next(reader).key, next(reader).key] == [b"a", b"b"]
    with pytest.raises(CorruptRecord):
        next(reader)


def test_the_last_record_is_kept_back_if_bytes_are_left() -> None:
    data = plain((0, 0, b"a", b"x"), (0, 1, b"b", b"x")) + b"\x00"
    reader = decode_records(data, origin(2))
    assert next(reader).key == b"a"
    with pytest.raises(CorruptRecord, match="the end after 2 records, got 1 bytes") as error:
        next(reader)
    assert error.value.position == 61 + len(data) - 1


def test_fewer_records_than_counted_end_early() -> None:
    data = plain((0, 0, b"a", b"x"))
    reader = decode_records(data, origin(2))
    next(reader)
    with pytest.raises(RecordsEndEarly, match="another record") as error:
        next(reader)
    assert error.value.position == 61 + len(data)


def test_a_record_longer_than_the_data_ends_early() -> None:
    data = plain((0, 0, b"a", b"x"))
    with pytest.raises(RecordsEndEarly, match=r"a record of 8 bytes, got 7 bytes"):
        records_of(data[:-1])


MALFORMED = {
    "empty": (b"\x00", "the attributes of a record"),
    "negative length": (b"\x01\x00\x00\x00\x01\x01\x00", "the attributes"),
    "length too long": (b"\x80\x80\x80\x80\x80\x00", "at most 5 bytes"),
    "ends in the time": (b"\x04\x00\x80", "a variable-length integer"),
    "time too long": (body(b"\x80" * 10, 0), "at most 10 bytes"),
    "key too large": (body(0, 0, 9, b"abc"), "at most 3 bytes, got 9"),
    "value too large": (body(0, 0, -1, 9, b"abc"), "at most 3 bytes, got 9"),
    "length too small": (body(0, 0, -1, 1, b"v", 0, b"xy"), "a record of 9 bytes, got 7 bytes"),
    "headers negative": (body(0, 0, -1, -1, -1), "headers up to 0, got -1"),
    "headers beyond": (body(0, 0, -1, -1, 3, b"ab"), "headers up to 2, got 3"),
    "header key null": (body(0, 0, -1, -1, 1, -1, -1), "a header key, got null"),
    "header value beyond": (body(0, 0, -1, -1, 1, 0, 5), "at most 0 bytes, got 5"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_records_are_refused(name: str) -> None:
    data, message = MALFORMED[name]
    with pytest.raises(CorruptRecord, match=message) as error:
        records_of(data)
    assert 61 <= (error.value.position or 0) <= 61 + len(data)
    with pytest.raises(CorruptRecord):
        read_record(data, 0, origin())


def test_positions_in_decompressed_records_are_reported_beside_the_blocks() -> None:
    with pytest.raises(CorruptRecord, match="at byte 4 of the decompressed records") as error:
        records_of(MALFORMED["key too large"][0], is_decompressed=True)
    assert error.value.position == 61


def test_a_fault_stands_in_for_an_early_end() -> None:
    fault = CorruptRecord("more", "less")
    data = plain((0, 0, b"a", b"x"))
    reader = decode_records(data + b"\x70", origin(2), fault)
    assert next(reader).key == b"a"
    with pytest.raises(CorruptRecord) as error:
        next(reader)
    assert error.value is fault


def test_a_fault_after_the_records_still_holds_the_last_back() -> None:
    fault = CorruptRecord("more", "less")
    reader = decode_records(plain((0, 0, b"a", b"x"), (0, 1, b"b", b"x")), origin(2), fault)
    assert next(reader).key == b"a"
    with pytest.raises(CorruptRecord) as error:
        next(reader)
    assert error.value is fault


def test_a_malformed_record_before_a_fault_speaks_for_itself() -> None:
    fault = CorruptRecord("more", "less")
    with pytest.raises(CorruptRecord, match="at most 3 bytes, got 9"):
        list(decode_records(MALFORMED["key too large"][0], origin(2), fault))


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("日本".encode(), "日本"),
        (b"\xff", "�"),
        (b"a\xed\xa0\x80b", "a�b"),
        (b"\xf4\x90\x80\x80", "����"),
        (b"\xe2\x82", "�"),
        (b"\xed\xa0", "�"),
        (b"\xc0\xaf", "��"),
        (b"\xf0\x80\x80A", "���A"),
    ],
)
def test_header_keys_are_repaired_as_in_java(key: bytes, text: str) -> None:
    assert decode_header_key(key) == text
