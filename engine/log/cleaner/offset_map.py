"""The last offset of each key in the dirty part of a log, in memory of a fixed size.

```
slot (24 bytes)   MD5 of the key, 16 bytes │ int64 offset + 1, 0 for an empty slot
```

A key is stored in the slot of its digest, or in the next free slot. The map is full at its load
factor: cleaning then ends at the map's latest offset, and the next cleaning continues from there.
Two keys with equal digests count as one, as in Kafka.

Source: Kafka's SkimpyOffsetMap; log.cleaner.dedupe.buffer.size, log.cleaner.io.buffer.load.factor.
Differs: no more slots are allocated than the dirty part can have keys.
"""

from __future__ import annotations

from hashlib import md5

from engine.limits import CLEANER_MAP_BYTES_MAX
from engine.native.clean_records import MapMemory

#: Bytes of the slot of one key.
SLOT_BYTES = 24
NO_OFFSET = -1

_DIGEST_BYTES = 16
# Above this share of used slots a search takes long, even if the load factor allows more.
_SPARSE_FACTOR = 2


def entries_max(memory_bytes: int, load_factor: float) -> int:
    """Return the number of keys at which a map of `memory_bytes` is full."""
    slots = min(memory_bytes, CLEANER_MAP_BYTES_MAX) // SLOT_BYTES
    return min(int(slots * load_factor), slots)


class OffsetMap:
    """The last offset of each key; for one thread."""

    __slots__ = (
        "_digests",
        "_offsets",
        "_slot_count",
        "_slots_allowed",
        "latest_offset",
        "limit",
        "size",
    )

    def __init__(
        self, memory_bytes: int, load_factor: float, *, keys_max: int | None = None
    ) -> None:
        """Allocate slots for as many keys as the memory and the load factor allow.

        `keys_max` is the largest possible number of keys, None if unknown.
        """
        slots = min(memory_bytes, CLEANER_MAP_BYTES_MAX) // SLOT_BYTES
        #: Slots that the memory would have. Utilization refers to them, although fewer are
        #: allocated if the log has few records.
        self._slots_allowed = slots
        #: Number of keys at which the map is full; the next cleaning continues after it.
        self.limit = entries_max(memory_bytes, load_factor)
        if keys_max is not None:
            slots = min(slots, _SPARSE_FACTOR * keys_max)
            # A batch may contain more records than offsets.
            self.limit = min(self.limit, slots)
        # One more, so that the search for a missing key ends.
        self._slot_count = slots + 1
        #: Digest of the key in each slot. Memory of the zeros that no key has replaced is not used.
        self._digests = bytearray(_DIGEST_BYTES * self._slot_count)
        #: The offset after the last record of each slot's key; 0 marks a free slot.
        self._offsets = memoryview(bytearray(8 * self._slot_count)).cast("q")
        #: How many keys the map has.
        self.size = 0
        #: The last offset that the map knows of (inclusive), −1 before the first.
        self.latest_offset = NO_OFFSET

    @property
    def memory(self) -> MapMemory:
        """Return the map's arrays for compiled code, which adds keys there; then `size` is set."""
        return MapMemory(self._digests, self._offsets, self._slot_count)

    @property
    def is_full(self) -> bool:
        """Return True if no further key may be added."""
        return self.size >= self.limit

    @property
    def utilization(self) -> float:
        """Return the share of slots in use, 0.0 to 1.0, of all slots that the memory has."""
        return self.size / max(self._slots_allowed, 1)

    def put(self, key: bytes, offset: int) -> None:
        """Set a key's offset to `offset`, which must be above those of all earlier calls.

        The map must not be full.
        """
        digest = md5(key, usedforsecurity=False).digest()
        slot = int.from_bytes(digest[:8], "little") % self._slot_count
        at, stored = slot * _DIGEST_BYTES, self._offsets[slot]
        if stored and self._digests[at : at + _DIGEST_BYTES] != digest:
            slot = self._next_slot_of(slot, digest)
            at, stored = slot * _DIGEST_BYTES, self._offsets[slot]
        if not stored:
            self.size += 1
            self._digests[at : at + _DIGEST_BYTES] = digest
        self._offsets[slot] = offset + 1
        self.latest_offset = offset

    def get(self, key: bytes) -> int:
        """Return the last offset of a key in the dirty segments, −1 for an unknown key."""
        digest = md5(key, usedforsecurity=False).digest()
        slot = int.from_bytes(digest[:8], "little") % self._slot_count
        at, stored = slot * _DIGEST_BYTES, self._offsets[slot]
        if stored and self._digests[at : at + _DIGEST_BYTES] != digest:
            stored = self._offsets[self._next_slot_of(slot, digest)]
        return stored - 1

    def end_batch(self, last_offset: int) -> None:
        """Lower the latest offset to a batch's last offset (inclusive), once its records are added.

        An uncompressed record may have any offset delta, because brokers accept it unchecked.
        """
        self.latest_offset = min(self.latest_offset, last_offset)

    def note_offset(self, offset: int) -> None:
        """Raise the latest offset, after all records up to `offset` (inclusive) were added."""
        self.latest_offset = max(self.latest_offset, offset)

    def _next_slot_of(self, slot: int, digest: bytes) -> int:
        """Return the first slot after `slot` that is free or holds the same digest.

        `slot` holds the digest of another key: the map probes linearly.
        """
        digests, offsets, count = self._digests, self._offsets, self._slot_count
        while True:
            slot = slot + 1 if slot + 1 < count else 0
            at = slot * _DIGEST_BYTES
            if not offsets[slot] or digests[at : at + _DIGEST_BYTES] == digest:
                return slot
