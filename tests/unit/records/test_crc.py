"""CRC-32C: check values of RFC 3720 ."""

from __future__ import annotations

import pytest

from engine.records.crc import crc32c

RFC_3720_VALUES = [
    (bytes(32), 0x8A9136AA),
    (b"\xff" * 32, 0x62A8AB43),
    (bytes(range(32)), 0x46DD794E),
    (bytes(range(31, -1, -1)), 0x113FDB5C),
    (b"123456789", 0xE3069283),
]


@pytest.mark.parametrize(("payload", "expected"), RFC_3720_VALUES)
def test_check_values_of_rfc_3720_come_out(payload: bytes, expected: int) -> None:
    assert crc32c(payload) == expected


def test_any_buffer_is_taken_without_copying() -> None:
    assert crc32c(bytearray(b"123456789")) == 0xE3069283
    assert crc32c(memoryview(b"0123456789")[1:]) == 0xE3069283


def test_a_checksum_continues_from_the_bytes_before() -> None:
    assert crc32c(b"456789", crc32c(b"123")) == 0xE3069283
