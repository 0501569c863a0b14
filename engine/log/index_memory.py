"""The indexes of closed segments that are in memory: bounded in bytes, for all logs of a process.

```
a look-up loads an index whole     noted here; beyond the bound the least recently used are dropped
a segment is closed                the same: its files are read again when needed
```

A look-up keeps the index while it needs it. Where there is no room, a look-up by offset searches
the file instead (`index_search.py`), until the segment has had many of them. Kafka maps the files
and leaves that to the page cache.
"""

from __future__ import annotations

from functools import partial
from threading import RLock
from typing import Protocol
from weakref import ReferenceType, ref

from engine.limits import LOADED_INDEXES_BYTES_MAX

#: The memory of the smallest indexes, with their row here.
_OBJECT_BYTES = 1024


class IndexedSegment(Protocol):
    """A segment whose indexes may be dropped from memory."""

    def drop_indexes(self) -> None:
        """Drop the indexes if its files have the same entries."""


class IndexMemory:
    """Bounds the memory of indexes, least recently used first; may be called from any thread."""

    def __init__(self, bytes_max: int = LOADED_INDEXES_BYTES_MAX) -> None:
        """Bound the indexes in memory.

        Those of the segments used least recently are dropped first.
        """
        self._bytes_max = bytes_max
        # Entered again where a segment is collected while it is held.
        self._lock = RLock()
        #: Noted segments by their identity, with the bytes of their indexes; the least recently
        #: used first.
        self._loaded: dict[int, tuple[ReferenceType[IndexedSegment], int]] = {}
        #: Bytes of all noted segments.
        self.size_bytes = 0

    def note(self, segment: IndexedSegment, size_bytes: int) -> None:
        """Count the memory of a segment's indexes.

        Evict indexes of other segments above the bound.
        """
        with self._lock:
            self._forget(id(segment))
            reference = ref(segment, partial(self._collected, id(segment)))
            self._loaded[id(segment)] = (reference, size_bytes + _OBJECT_BYTES)
            self.size_bytes += size_bytes + _OBJECT_BYTES
            dropped = []
            while self.size_bytes > self._bytes_max and len(self._loaded) > 1:
                dropped.append(self._forget(next(iter(self._loaded))))
        for older in dropped:
            if older is not None:
                older.drop_indexes()

    def has_room(self, size_bytes: int) -> bool:
        """Return whether indexes of `size_bytes` can be loaded without an eviction."""
        return self.size_bytes + size_bytes + _OBJECT_BYTES <= self._bytes_max

    def note_use(self, segment: IndexedSegment) -> None:
        """Mark the indexes of a segment as the most recently used: they are evicted last."""
        with self._lock:
            noted = self._loaded.pop(id(segment), None)
            if noted is not None:
                self._loaded[id(segment)] = noted

    def forget(self, segment: IndexedSegment) -> None:
        """Remove a segment that is deleted."""
        with self._lock:
            self._forget(id(segment))

    def _collected(self, key: int, reference: ReferenceType[IndexedSegment]) -> None:
        """Remove a garbage-collected segment, unless its id() already belongs to a new segment."""
        with self._lock:
            noted, _ = self._loaded.get(key, (None, 0))
            if noted is reference:
                self._forget(key)

    def _forget(self, key: int) -> IndexedSegment | None:
        """Remove a segment's indexes from the sum; return the segment, None if it is gone."""
        reference, size_bytes = self._loaded.pop(key, (None, 0))
        self.size_bytes -= size_bytes
        return None if reference is None else reference()


#: The one of this process.
LOADED_INDEXES = IndexMemory()
