"""List the files of one partition directory, sorted by their purpose.

```
segments      a .log and the side files with its base offset
snapshots     .snapshot by offset: at a segment's base offset, or at the log end offset
checkpoints   KRaft snapshots
orphans       an index whose .log is missing
leftovers     .deleted .cleaned .swap, and .tmp of an interrupted replacement
side files    leader-epoch-checkpoint, partition.metadata, quorum-state
unknown       any other name; never changed
```

No file is opened: names and sizes are enough. A file that is removed meanwhile is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from engine.host.ports import FileMissing, Files
from engine.host.replace import TEMPORARY_SUFFIX
from engine.log.directory import leader_epoch_checkpoint, partition_metadata, quorum_state
from engine.naming import (
    FileKind,
    FileState,
    SegmentFileName,
    UnknownFileName,
    parse_segment_file,
)

#: Files of a partition directory that belong to no segment.
SIDE_FILES = (
    leader_epoch_checkpoint.FILE_NAME,
    partition_metadata.FILE_NAME,
    quorum_state.FILE_NAME,
)
#: The kinds of files that need a .log with the same base offset.
INDEX_KINDS = (FileKind.INDEX, FileKind.TIMEINDEX, FileKind.TXNINDEX)


class SegmentFiles(NamedTuple):
    """The sizes of one segment's live files by kind; LOG is always present."""

    base_offset: int
    sizes: Mapping[FileKind, int]

    @property
    def log_bytes(self) -> int:
        """Return the size of the segment's .log."""
        return self.sizes[FileKind.LOG]

    def name(self, kind: FileKind) -> str:
        """Return the name of the segment's file of this kind, which need not exist."""
        return SegmentFileName(self.base_offset, kind).name


class Leftover(NamedTuple):
    """A file of an interrupted change; `parsed` is None for a .tmp."""

    name: str
    size_bytes: int
    parsed: SegmentFileName | None


class PartitionFiles(NamedTuple):
    """The content of one partition directory; sizes in bytes."""

    path: str
    segments: tuple[SegmentFiles, ...]
    snapshots: Mapping[int, int]
    checkpoints: tuple[SegmentFileName, ...]
    orphans: tuple[SegmentFileName, ...]
    leftovers: tuple[Leftover, ...]
    side_files: Mapping[str, int]
    unknown: tuple[str, ...]

    @property
    def log_bytes(self) -> int:
        """Return the summed size of the partition's live .log files."""
        return sum(segment.log_bytes for segment in self.segments)

    def file_path(self, name: str) -> str:
        """Return the path of a file in the partition directory; the file need not exist."""
        return f"{self.path}/{name}"

    def segment_path(self, segment: SegmentFiles, kind: FileKind) -> str:
        """Return the path of a segment's file, whether it exists or not."""
        return self.file_path(segment.name(kind))


def list_partition_files(files: Files, path: str) -> PartitionFiles:
    """Return the files of a partition directory, sorted by purpose.

    Segments need a .log; index files without one are orphans. Files of renames in progress are
    leftovers.
    """
    live: dict[int, dict[FileKind, int]] = {}
    snapshots: dict[int, int] = {}
    checkpoints: list[SegmentFileName] = []
    leftovers: list[Leftover] = []
    side_files: dict[str, int] = {}
    unknown: list[str] = []
    for name, size in _list_names_and_sizes(files, path, unknown):
        parsed = _parse_name(name)
        if name in SIDE_FILES:
            side_files[name] = size
        elif parsed is None and _is_temporary(name):
            leftovers.append(Leftover(name, size, None))
        elif parsed is None:
            unknown.append(name)
        elif parsed.state is not FileState.LIVE:
            leftovers.append(Leftover(name, size, parsed))
        elif parsed.kind is FileKind.SNAPSHOT:
            snapshots[parsed.base_offset] = size
        elif parsed.kind is FileKind.CHECKPOINT:
            checkpoints.append(parsed)
        else:
            live.setdefault(parsed.base_offset, {})[parsed.kind] = size
    whole = {base: sizes for base, sizes in sorted(live.items()) if FileKind.LOG in sizes}
    orphans = [
        SegmentFileName(base, kind)
        for base, sizes in sorted(live.items())
        if base not in whole
        for kind in sizes
    ]
    return PartitionFiles(
        path,
        tuple(SegmentFiles(base, sizes) for base, sizes in whole.items()),
        dict(sorted(snapshots.items())),
        tuple(checkpoints),
        tuple(orphans),
        tuple(leftovers),
        side_files,
        tuple(sorted(unknown)),
    )


def _list_names_and_sizes(files: Files, path: str, unknown: list[str]) -> list[tuple[str, int]]:
    """Return (name, size in bytes) of each file in a directory; add subdirectories to `unknown`."""
    names_and_sizes = []
    for name in files.list_dir(path):
        whole = f"{path}/{name}"
        if files.is_dir(whole):
            unknown.append(name)
            continue
        try:
            names_and_sizes.append((name, files.size_bytes(whole)))
        except FileMissing:
            continue  # a running broker removed it, or it is a link to nowhere
    return names_and_sizes


def _is_temporary(name: str) -> bool:
    """Return True for the `.tmp` file of an unfinished replacement of a known file."""
    final = name.removesuffix(TEMPORARY_SUFFIX)
    return final != name and (final in SIDE_FILES or _parse_name(final) is not None)


def _parse_name(name: str) -> SegmentFileName | None:
    """Return the parsed name of a segment's file, None for any other name."""
    try:
        return parse_segment_file(name)
    except UnknownFileName:
        return None
