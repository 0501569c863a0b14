"""xxHash32, the checksum inside LZ4 frames.

Only frame headers (2 to 10 bytes) are hashed for every frame; block checksums are optional, no
known Kafka client writes them, and so this plain form is fast enough for them.
"""

from __future__ import annotations

import struct

from engine.host.ports import Buffer

_PRIME_1, _PRIME_2, _PRIME_3, _PRIME_4, _PRIME_5 = (
    0x9E3779B1,
    0x85EBCA77,
    0xC2B2AE3D,
    0x27D4EB2F,
    0x165667B1,
)
_MASK = 0xFFFFFFFF
_STRIPE = struct.Struct("<4I")
_WORD = struct.Struct("<I")


def xxh32(data: Buffer, seed: int = 0) -> int:
    """Return the 32-bit xxHash of `data`."""
    size = len(data)
    stripes_end = size - size % _STRIPE.size
    if stripes_end:
        accumulator = _hash_stripes(memoryview(data)[:stripes_end], seed)
    else:
        accumulator = seed + _PRIME_5
    accumulator = accumulator + size & _MASK
    position = stripes_end
    while position + _WORD.size <= size:
        (word,) = _WORD.unpack_from(data, position)
        accumulator = _rotate(accumulator + word * _PRIME_3 & _MASK, 17) * _PRIME_4 & _MASK
        position += _WORD.size
    for byte in bytes(data[position:]):
        accumulator = _rotate(accumulator + byte * _PRIME_5 & _MASK, 11) * _PRIME_1 & _MASK
    return _avalanche(accumulator)


def _hash_stripes(stripes: memoryview, seed: int) -> int:
    a, b, c, d = (
        seed + _PRIME_1 + _PRIME_2 & _MASK,
        seed + _PRIME_2 & _MASK,
        seed,
        seed - _PRIME_1 & _MASK,
    )
    for w, x, y, z in _STRIPE.iter_unpack(stripes):
        a = _rotate(a + w * _PRIME_2 & _MASK, 13) * _PRIME_1 & _MASK
        b = _rotate(b + x * _PRIME_2 & _MASK, 13) * _PRIME_1 & _MASK
        c = _rotate(c + y * _PRIME_2 & _MASK, 13) * _PRIME_1 & _MASK
        d = _rotate(d + z * _PRIME_2 & _MASK, 13) * _PRIME_1 & _MASK
    return _rotate(a, 1) + _rotate(b, 7) + _rotate(c, 12) + _rotate(d, 18)


def _rotate(word: int, bits: int) -> int:
    return (word << bits | word >> 32 - bits) & _MASK


def _avalanche(word: int) -> int:
    word = (word ^ word >> 15) * _PRIME_2 & _MASK
    word = (word ^ word >> 13) * _PRIME_3 & _MASK
    return word ^ word >> 16
