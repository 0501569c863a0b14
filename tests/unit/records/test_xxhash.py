"""xxHash32: published values, and agreement with frames that the LZ4 library writes."""

from __future__ import annotations

import cramjam
import pytest

from engine.records.xxhash import xxh32

PRIME = 2654435761


def sanity_bytes(count: int) -> bytes:
    """Return the test bytes of the xxHash distribution."""
    state, out = PRIME, bytearray()
    for _ in range(count):
        out.append(state >> 24)
        state = state * state & 0xFFFFFFFF
    return bytes(out)


@pytest.mark.parametrize(
    ("count", "seed", "expected"),
    [
        (0, 0, 0x02CC5D05),
        (0, PRIME, 0x36B78AE7),
        (1, 0, 0xB85CBEE5),
        (1, PRIME, 0xD5845D64),
        (14, 0, 0xE5AA0AB4),
        (14, PRIME, 0x4481951D),
        (101, 0, 0x1F1AA412),
        (101, PRIME, 0x498EC8E2),
    ],
)
def test_the_distributions_own_values_come_out(count: int, seed: int, expected: int) -> None:
    assert xxh32(sanity_bytes(count), seed) == expected


def test_a_known_text_hashes_as_published() -> None:
    assert xxh32(b"Nobody inspects the spammish repetition") == 0xE2293B2F


def test_the_lz4_librarys_content_checksum_is_the_same() -> None:
    for size in (1, 15, 16, 17, 1000):
        content = sanity_bytes(size)
        compressor = cramjam.lz4.Compressor(content_checksum=True)
        compressor.compress(content)
        frame = bytes(compressor.finish())
        assert int.from_bytes(frame[-4:], "little") == xxh32(content)
