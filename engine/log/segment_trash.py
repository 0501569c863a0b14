"""Segments that left their log: renamed to `.deleted`, removed after file.delete.delay.ms (RET-8).

Readers that still send from a segment's file keep it open; files that a crash leaves are removed at
the next start. If the log's folder is renamed meanwhile, its `.deleted` files are found there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from engine.host.ports import Files
from engine.log.producer_snapshots import ProducerSnapshots
from engine.log.segment import Segment
from engine.log.tasks import LogTasks
from engine.naming import FileState


def discard_segments(
    files: Files,
    segments: Iterable[Segment],
    snapshots: ProducerSnapshots,
    tasks: LogTasks,
    *,
    delay_ms: int,
) -> None:
    """Rename segments and their snapshots to `.deleted` in the given order; remove them later.

    `delay_ms` is file.delete.delay.ms.
    """
    gone = list(segments)
    offsets: list[int] = []
    for segment in gone:
        segment.change_state(FileState.DELETED)
        if snapshots.mark_deleted(segment.base_offset):
            offsets.append(segment.base_offset)
        segment.close_file()
    _Trash(files, gone, snapshots, offsets).remove_later(tasks, delay_ms)


def discard_replaced(
    files: Files,
    segments: Iterable[Segment],
    new: Segment,
    snapshots: ProducerSnapshots,
    tasks: LogTasks,
    *,
    delay_ms: int,
) -> None:
    """Rename replaced segments to `.deleted`, the new one to live names, then drop snapshots.

    The snapshot at the new segment's base offset is kept. The order of renames determines the state
    after a crash.
    """
    gone = list(segments)
    for segment in gone:
        segment.change_state(FileState.DELETED)
        segment.close_file()
    new.change_state(FileState.LIVE)
    between = [segment.base_offset for segment in gone if segment.base_offset != new.base_offset]
    offsets = [base for base in between if snapshots.mark_deleted(base)]
    _Trash(files, gone, snapshots, offsets).remove_later(tasks, delay_ms)


class _Trash(NamedTuple):
    """Renamed segments and snapshots; `snapshots` knows the log's current folder."""

    files: Files
    segments: Sequence[Segment]
    snapshots: ProducerSnapshots
    snapshot_offsets: Sequence[int]

    def remove_later(self, tasks: LogTasks, delay_ms: int) -> None:
        """Schedule the removal of the files after `delay_ms`, if there are any."""
        if self.segments:
            tasks.once("delete-file", delay_ms, self._remove_files)

    def _remove_files(self) -> None:
        """Remove the `.deleted` files from the log's current folder."""
        for segment in self.segments:
            segment.directory = self.snapshots.directory
            segment.remove_files()
        for offset in self.snapshot_offsets:
            path = self.snapshots.path(offset, FileState.DELETED)
            if self.files.exists(path):
                self.files.remove(path)
