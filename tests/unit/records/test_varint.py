"""Zig-zag integers: known bytes, bounds, and Kafka's tolerance of wide ones."""

from __future__ import annotations

import pytest

from engine.records.varint import (
    VarintTooLong,
    VarintTruncated,
    read_varint,
    read_varlong,
    size_of_varint,
    write_varint,
)

KNOWN = [
    (0, "00"),
    (-1, "01"),
    (1, "02"),
    (63, "7e"),
    (-64, "7f"),
    (64, "8001"),
    (-65, "8101"),
    (8191, "fe7f"),
    (8192, "808001"),
    (2_147_483_647, "feffffff0f"),
    (-2_147_483_648, "ffffffff0f"),
]
KNOWN_LONG = [
    (1 << 40, "808080808080 01".replace(" ", "")),
    ((1 << 63) - 1, "feffffffffffffffff01"),
    (-(1 << 63), "ffffffffffffffffff01"),
]


def written(value: int) -> bytes:
    out = bytearray()
    write_varint(out, value)
    return bytes(out)


@pytest.mark.parametrize(("value", "text"), KNOWN)
def test_varints_have_kafkas_bytes(value: int, text: str) -> None:
    assert written(value).hex() == text
    assert read_varint(bytes.fromhex(text), 0) == (value, len(text) // 2)


@pytest.mark.parametrize(("value", "text"), KNOWN + KNOWN_LONG[1:])
def test_varlongs_have_kafkas_bytes(value: int, text: str) -> None:
    assert written(value).hex() == text
    assert read_varlong(bytes.fromhex(text), 0) == (value, len(text) // 2)


@pytest.mark.parametrize("value", [value for value, _ in KNOWN + KNOWN_LONG])
def test_sizes_are_those_of_the_bytes(value: int) -> None:
    assert size_of_varint(value) == len(written(value))


def test_reading_starts_at_the_position_and_returns_the_next() -> None:
    assert read_varint(memoryview(b"\xff\x80\x01\x05"), 1) == (64, 3)


def test_an_integer_cut_short_is_an_error() -> None:
    for data in (b"", b"\x80", b"\x80\x80"):
        with pytest.raises(VarintTruncated) as error:
            read_varint(data, 0)
        assert error.value.position == len(data)


def test_an_int32_takes_at_most_five_bytes() -> None:
    assert read_varint(b"\x80\x80\x80\x80\x00", 0) == (0, 5)
    with pytest.raises(VarintTooLong):
        read_varint(b"\x80\x80\x80\x80\x80\x00", 0)


def test_an_int64_takes_at_most_ten_bytes() -> None:
    assert read_varlong(b"\x80" * 9 + b"\x00", 0) == (0, 10)
    with pytest.raises(VarintTooLong):
        read_varlong(b"\x80" * 10 + b"\x00", 0)


def test_bits_above_the_width_are_dropped() -> None:
    assert read_varint(b"\xfe\xff\xff\xff\x7f", 0) == (2_147_483_647, 5)
    assert read_varlong(b"\xfe" + b"\xff" * 8 + b"\x7f", 0) == ((1 << 63) - 1, 10)
