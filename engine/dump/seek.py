"""Where a dump with bounds starts: by the indexes if they are valid, else at the beginning.

An index that is missing, wrong or does not point to a batch makes the dump slower, but loses no
records.
"""

from __future__ import annotations

from engine.dump.filters import Filters
from engine.errors import StorageError
from engine.host.ports import File, Files
from engine.log.offset_index import read_offset_index
from engine.log.time_index import read_time_index
from engine.naming import FileKind, FileState, UnknownFileName, parse_segment_file
from engine.records.batch_header import LENGTH_OVERHEAD_BYTES, read_offset_and_length


def find_start(files: Files, file: File, filters: Filters) -> int:
    """Return the position of a batch before which the filters exclude all records.

    It is 0 if the indexes are unusable or nothing is excluded.
    """
    offset = _find_first_wanted(files, file.path, filters)
    if offset is None:
        return 0
    stem = file.path.removesuffix(FileKind.LOG.value)
    try:
        base = _base_offset(file.path)
        index = read_offset_index(files, f"{stem}{FileKind.INDEX.value}", base)
    except StorageError:
        return 0
    if index.find_problem() is not None:
        return 0
    position = index.lookup(offset).position
    return position if _is_batch_before(file, position, base, offset) else 0


def _find_first_wanted(files: Files, path: str, filters: Filters) -> int | None:
    """Return an offset below which the filters exclude all records, None if there is none."""
    wanted = [] if filters.from_offset is None else [filters.from_offset]
    if filters.from_timestamp_ms is not None:
        stem = path.removesuffix(FileKind.LOG.value)
        try:
            index = read_time_index(files, f"{stem}{FileKind.TIMEINDEX.value}", _base_offset(path))
        except StorageError:
            return max(wanted, default=None)
        if index.find_problem() is None:
            # An entry has the largest timestamp up to its offset: all records below are too early.
            wanted.append(index.lookup(filters.from_timestamp_ms - 1).offset)
    return max(wanted, default=None)


def _is_batch_before(file: File, position: int, base_offset: int, offset: int) -> bool:
    """Return True if a complete batch starts at `position` with a base offset up to `offset`."""
    header = file.read_at(position, LENGTH_OVERHEAD_BYTES)
    if len(header) < LENGTH_OVERHEAD_BYTES:
        return False
    batch_offset, size = read_offset_and_length(header)
    return bool(
        base_offset <= batch_offset <= offset and 14 <= size <= file.size_bytes() - position
    )


def _base_offset(path: str) -> int:
    """Return the base offset in the name of a segment's file."""
    return parse_segment_file(path.rpartition("/")[2]).base_offset


def list_segments(files: Files, folder: str, filters: Filters) -> list[str]:
    """Return the paths of a partition's segments that may have wanted offsets, in offset order.

    Only live segments count, not those being deleted or swapped.
    """
    logs = []
    for name in files.list_dir(folder):
        try:
            parsed = parse_segment_file(name)
        except UnknownFileName:
            continue
        if parsed.kind is FileKind.LOG and parsed.state is FileState.LIVE:
            logs.append((parsed.base_offset, f"{folder}/{name}"))
    logs.sort()
    following: list[int | None] = [*(base for base, _ in logs[1:]), None][: len(logs)]
    first, end = filters.from_offset, filters.to_offset
    return [
        path
        for (base, path), after in zip(logs, following, strict=True)
        if not (first is not None and after is not None and after <= first)
        and not (end is not None and base >= end)
    ]
