"""Segments that left their log: renamed to `.deleted`, removed after file.delete.delay.ms (RET-8).

Readers that still send from a segment's file keep it open; names that a crash leaves are removed
at the next start.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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
    """Rename segments and their snapshots in the order given, and plan their removal."""
    gone = list(segments)
    paths: list[str] = []
    for segment in gone:
        segment.change_state(FileState.DELETED)
        path = snapshots.mark_deleted(segment.base_offset)
        if path is not None:
            paths.append(path)
        segment.close_file()
    _remove_later(files, gone, paths, tasks, delay_ms)


def discard_replaced(
    files: Files,
    segments: Iterable[Segment],
    new: Segment,
    snapshots: ProducerSnapshots,
    tasks: LogTasks,
    *,
    delay_ms: int,
) -> None:
    """Rename segments, then the one in `.swap` that replaces them, then the snapshots between.

    The snapshot at the new segment's base stays.
    """
    gone = list(segments)
    for segment in gone:
        segment.change_state(FileState.DELETED)
        segment.close_file()
    new.change_state(FileState.LIVE)
    between = [segment.base_offset for segment in gone if segment.base_offset != new.base_offset]
    paths = [path for base in between if (path := snapshots.mark_deleted(base)) is not None]
    _remove_later(files, gone, paths, tasks, delay_ms)


def _remove_later(
    files: Files, gone: Sequence[Segment], paths: Sequence[str], tasks: LogTasks, delay_ms: int
) -> None:

    def remove() -> None:
        for segment in gone:
            segment.remove_files()
        for path in paths:
            if files.exists(path):
                files.remove(path)

    if gone:
        tasks.once("delete-file", delay_ms, remove)
