"""Create the files of a new segment."""

from __future__ import annotations

from engine.host.ports import Files
from engine.log.log_config import LogConfig
from engine.log.segment import Segment
from engine.naming import FileKind, FileState, SegmentFileName


def create_segment(
    files: Files,
    directory: str,
    base_offset: int,
    config: LogConfig,
    *,
    now_ms: int,
    state: FileState = FileState.LIVE,
) -> Segment:
    """Create the files of a new segment and open it; leftover files of that name are emptied.

    With `preallocate` the disk space of a full segment is reserved. Source: LogSegment.open.
    """
    for kind in (FileKind.LOG, FileKind.INDEX, FileKind.TIMEINDEX):
        path = f"{directory}/{SegmentFileName(base_offset, kind, state).name}"
        handle = files.open(path, write=True, create=True)
        if handle.size_bytes():
            handle.truncate(0)
        handle.close()
    path = f"{directory}/{SegmentFileName(base_offset, FileKind.TXNINDEX, state).name}"
    if files.exists(path):
        files.remove(path)
    segment = Segment(files, directory, base_offset, config, now_ms=now_ms, state=state)
    if config.preallocate:
        segment.file.reserve(config.segment_bytes)
    return segment
