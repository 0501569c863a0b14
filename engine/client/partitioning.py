"""Which partition a record goes to: by its key as Java's client does, or spread evenly."""

from __future__ import annotations

from typing import Final

from engine.limits import KEYS_PLACED_MAX

_SEED: Final = 0x9747B28C
_MIX: Final = 0x5BD1E995
_MASK: Final = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """Return the 32-bit hash that Kafka's clients place keys by. Source: Utils.murmur2."""
    length = len(data)
    mixed = _SEED ^ length
    whole = length & ~3
    for position in range(0, whole, 4):
        word = int.from_bytes(data[position : position + 4], "little") * _MIX & _MASK
        word = (word ^ word >> 24) * _MIX & _MASK
        mixed = (mixed * _MIX & _MASK) ^ word
    if length > whole:
        mixed ^= int.from_bytes(data[whole:], "little")
        mixed = mixed * _MIX & _MASK
    mixed = (mixed ^ mixed >> 13) * _MIX & _MASK
    return mixed ^ mixed >> 15


def partition_of_key(key: bytes, partition_count: int) -> int:
    """Return the partition of a key. Source: BuiltInPartitioner.partitionForKey."""
    return (murmur2(key) & 0x7FFFFFFF) % partition_count


class KeyPlaces(dict[bytes, int]):
    """Partitions by key, hashed when a key is first asked for; only so many are kept."""

    def __init__(self, partition_count: int) -> None:
        self._partition_count = partition_count

    def __missing__(self, key: bytes) -> int:
        partition = partition_of_key(key, self._partition_count)
        if len(self) >= KEYS_PLACED_MAX:
            self.clear()
        self[key] = partition
        return partition
