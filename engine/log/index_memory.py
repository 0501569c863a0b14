"""Limit the memory of closed segments' indexes, in bytes, for all logs of a process.

```
a lookup loads a whole index    counted here; above the limit the least recently used are dropped
a segment is closed             the same: its files are read again when needed
```

A running lookup keeps its index alive. Without room, a lookup by offset searches the file instead
(`index_search.py`), until the segment has had many of them. Kafka maps the files into memory, and
leaves this to the page cache.
"""

from __future__ import annotations

from functools import partial
from threading import RLock
from typing import Protocol
from weakref import ReferenceType, ref

from engine.limits import LOADED_INDEXES_BYTES_MAX

#: Bytes of the objects of two empty indexes, and of their entry here.
_OBJECT_BYTES = 1024


class IndexedSegment(Protocol):
    """A segment whose indexes may be dropped from memory."""

    def drop_indexes(self) -> None:
        """Drop the indexes from memory if the segment's files have the same entries."""


class IndexMemory:
    """Limits the memory of indexes, dropping the least recently used; for any thread."""

    def __init__(self, bytes_max: int = LOADED_INDEXES_BYTES_MAX) -> None:
        """Start with no indexes; `bytes_max` is the limit."""
        self._bytes_max = bytes_max
        # Reentrant: garbage collection may call `_on_collected` while the lock is held.
        self._lock = RLock()
        #: Counted segments by id(), with the bytes of their indexes; the least recently used first.
        self._loaded: dict[int, tuple[ReferenceType[IndexedSegment], int]] = {}
        #: Bytes of the indexes of all counted segments.
        self.size_bytes = 0

    def count_segment(self, segment: IndexedSegment, size_bytes: int) -> None:
        """Count the memory of a segment's indexes; drop those of other segments above the limit."""
        with self._lock:
            self._forget(id(segment))
            reference = ref(segment, partial(self._on_collected, id(segment)))
            self._loaded[id(segment)] = (reference, size_bytes + _OBJECT_BYTES)
            self.size_bytes += size_bytes + _OBJECT_BYTES
            dropped = []
            while self.size_bytes > self._bytes_max and len(self._loaded) > 1:
                dropped.append(self._forget(next(iter(self._loaded))))
        for older in dropped:
            if older is not None:
                older.drop_indexes()

    def has_room(self, size_bytes: int) -> bool:
        """Return True if indexes of `size_bytes` can be loaded without dropping others."""
        return self.size_bytes + size_bytes + _OBJECT_BYTES <= self._bytes_max

    def mark_used(self, segment: IndexedSegment) -> None:
        """Mark the indexes of a segment as the most recently used: they are evicted last."""
        with self._lock:
            noted = self._loaded.pop(id(segment), None)
            if noted is not None:
                self._loaded[id(segment)] = noted

    def forget(self, segment: IndexedSegment) -> None:
        """Remove the indexes of a deleted segment from the counted memory."""
        with self._lock:
            self._forget(id(segment))

    def _on_collected(self, key: int, reference: ReferenceType[IndexedSegment]) -> None:
        """Remove a garbage-collected segment, unless its id() already belongs to a new segment."""
        with self._lock:
            noted, _ = self._loaded.get(key, (None, 0))
            if noted is reference:
                self._forget(key)

    def _forget(self, key: int) -> IndexedSegment | None:
        """Remove a segment's indexes from the sum; return the segment, None if it was collected."""
        reference, size_bytes = self._loaded.pop(key, (None, 0))
        self.size_bytes -= size_bytes
        return None if reference is None else reference()


#: The limit for this process.
LOADED_INDEXES = IndexMemory()
