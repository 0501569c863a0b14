"""The `.snapshot` files of one partition directory: write, load, sync, remove.

```
at a segment's base offset   written when the segment starts, removed with it
at the log end offset        written when the log is closed
```

A damaged snapshot is removed and the next older one is loaded: the log has the later records.
Source: Kafka's ProducerStateManager; `formats.md` of the directory layout.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from engine.errors import CorruptFile
from engine.host.ports import FileMissing, Files
from engine.log.producer_snapshot import (
    ProducerEntry,
    encode_producer_snapshot,
    read_producer_snapshot,
)
from engine.log.producer_state import ProducerState
from engine.naming import FileKind, FileState, SegmentFileName


class ProducerSnapshots:
    """The snapshots of one log, by offset (the exclusive end of the records that they cover)."""

    def __init__(self, files: Files, directory: str, offsets: Iterable[int] = ()) -> None:
        """Manage the snapshots of one folder; `offsets` are those of the snapshots on disk."""
        self._files = files
        self.directory = directory
        #: Offsets of the snapshots, ascending.
        self.offsets = sorted(offsets)
        #: Offsets of snapshots that are not synced, each with the number of the write that made it:
        #: a sync of an earlier write does not cover a later one.
        self._unsynced: dict[int, int] = {}
        self._write_count = 0

    def path(self, offset: int, state: FileState = FileState.LIVE) -> str:
        """Return the path of the snapshot file at an offset, which need not exist."""
        return f"{self.directory}/{SegmentFileName(offset, FileKind.SNAPSHOT, state).name}"

    def write_snapshot(self, offset: int, entries: Sequence[ProducerEntry]) -> None:
        """Write the snapshot file of an offset. It is durable only after `sync_snapshots`.

        `entries` are the producers after all batches below `offset`.
        """
        handle = self._files.open(self.path(offset), write=True, create=True)
        try:
            handle.truncate(0)
            handle.append((encode_producer_snapshot(entries),))
        finally:
            handle.close()
        if offset not in self.offsets:
            insort(self.offsets, offset)
        self._write_count += 1
        self._unsynced[offset] = self._write_count

    def take_snapshot(
        self, offset: int, log_start_offset: int, producers: ProducerState
    ) -> int | None:
        """Write a snapshot of the producers at `offset`; return `offset`, None if none is needed.

        None is needed if a snapshot at or above `offset` exists, or if `offset` is the log start
        offset.
        """
        latest = self.latest_offset()
        if offset <= (log_start_offset if latest is None else latest):
            return None
        self.write_snapshot(offset, producers.to_entries())
        return offset

    @property
    def unsynced(self) -> Mapping[int, int]:
        """Return the snapshots to sync: their offsets, each with the number of its last write.

        `sync_snapshots` and `note_synced` take this mapping.
        """
        return dict(self._unsynced)

    def note_synced(self, synced: Mapping[int, int]) -> None:
        """Mark snapshots as synced, unless they were written again since."""
        for offset, write in synced.items():
            if self._unsynced.get(offset) == write:
                del self._unsynced[offset]

    def sync_snapshots(self, offsets: Iterable[int]) -> None:
        """Flush snapshots to disk; a snapshot that was removed meanwhile is skipped.

        May run on a worker thread; `note_synced` follows on the loop.
        """
        for offset in offsets:
            try:
                handle = self._files.open(self.path(offset), write=True)
            except FileMissing:
                continue
            try:
                handle.sync()
            finally:
                handle.close()

    def load_newest(
        self, log_start_offset: int, end_offset: int
    ) -> tuple[int, Sequence[ProducerEntry]] | None:
        """Return the newest valid snapshot above the start and up to the end, None without one.

        The result is (offset, producers). Snapshots outside of these bounds, and damaged ones, are
        removed.
        """
        for offset in [o for o in self.offsets if o > end_offset or o <= log_start_offset]:
            self.remove(offset)
        while self.offsets:
            newest = self.offsets[-1]
            try:
                return newest, read_producer_snapshot(self._files, self.path(newest))
            except (CorruptFile, FileMissing):
                self.remove(newest)
        return None

    def remove(self, offset: int) -> None:
        """Remove the snapshot of an offset if there is one."""
        self._forget_offset(offset)
        with suppress(FileMissing):
            self._files.remove(self.path(offset))

    def mark_deleted(self, offset: int) -> bool:
        """Rename a snapshot to `.deleted`, for delayed removal; return False without one."""
        if offset not in self.offsets:
            return False
        self._forget_offset(offset)
        try:
            self._files.rename(self.path(offset), self.path(offset, FileState.DELETED))
        except FileMissing:
            return False
        return True

    def remove_strays(self, segment_bases: Sequence[int]) -> None:
        """Remove snapshots that are not at a segment's base offset, as a log is loaded.

        The newest snapshot is kept if it is above all base offsets: a shutdown has written it.
        """
        bases = set(segment_bases)
        strays = [offset for offset in self.offsets if offset not in bases]
        if strays and strays[-1] >= max(segment_bases, default=0):
            strays.pop()
        for offset in strays:
            self.remove(offset)

    def remove_all(self) -> None:
        """Remove every snapshot, as the log restarts without records."""
        for offset in list(self.offsets):
            self.remove(offset)

    def latest_offset(self) -> int | None:
        """Return the newest snapshot's offset, None without one."""
        return self.offsets[-1] if self.offsets else None

    def _forget_offset(self, offset: int) -> None:
        """Drop an offset from memory; the caller removes the file."""
        number = bisect_right(self.offsets, offset) - 1
        if number >= 0 and self.offsets[number] == offset:
            del self.offsets[number]
        self._unsynced.pop(offset, None)
