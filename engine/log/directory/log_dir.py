"""The content of a log directory: its identity, its checkpoints, its partitions, other files.

```
meta.properties  .kafka_cleanshutdown  .lock  *-offset-checkpoint  bootstrap.checkpoint
<topic>-<partition>/ …                  partitions, also -delete, -future, -stray
remote-log-index-cache/                 tiered storage's cache, skipped
any other name                          unknown: reported, never changed
```

A damaged file here is listed in `problems`; the rest is read nevertheless.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from engine.errors import StorageError
from engine.host.ports import Files
from engine.host.replace import TEMPORARY_SUFFIX
from engine.log.directory import clean_shutdown, meta_properties, offset_checkpoint
from engine.log.directory.clean_shutdown import CleanShutdown
from engine.log.directory.meta_properties import MetaProperties
from engine.log.segment_files import PartitionFiles, list_partition_files
from engine.model import TopicPartition
from engine.naming import (
    COMPACTED_TOPICS,
    DirectoryKind,
    FileKind,
    PartitionDirectory,
    UnknownDirectoryName,
    UnknownFileName,
    parse_partition_directory,
    parse_segment_file,
)

#: Name of the lock file, which a killed process leaves.
LOCK_FILE = ".lock"
#: Name of the file with the first metadata of a KRaft cluster.
BOOTSTRAP_FILE = "bootstrap.checkpoint"
_REMOTE_CACHE = "remote-log-index-cache"
_USAGE_EXIT = 2
#: Largest number of names in an error message.
_SHOWN_NAMES_MAX = 10

_KNOWN = frozenset(
    (
        meta_properties.FILE_NAME,
        clean_shutdown.FILE_NAME,
        LOCK_FILE,
        BOOTSTRAP_FILE,
        _REMOTE_CACHE,
        *offset_checkpoint.FILE_NAMES,
    )
)


class NoLogDirectory(StorageError):
    """A path is neither a log directory nor a partition directory."""

    hint = "give a directory with meta.properties or <topic>-<partition> folders, or one of those"

    def __init__(self, path: str, *, log_dirs: Sequence[str] = (), is_file: bool = False) -> None:
        """Build message and hint; `log_dirs` are names of log directories found in `path`."""
        what = "is a file, not a directory" if is_file else "no Kafka data here"
        super().__init__(f"{path}: {what}")
        self.path = path
        #: Names of log directories in the path.
        self.log_dirs = log_dirs
        if log_dirs:
            self.hint = f"the log directories in it: {_list_first_names(log_dirs)}"


class HoldsPartitions(StorageError):
    """A log directory is given where one partition's directory is expected."""

    exit_code = _USAGE_EXIT

    def __init__(self, path: str, partitions: Sequence[str]) -> None:
        count = len(partitions)
        super().__init__(
            f"{path}: holds {count} partitions, expected one: {_list_first_names(partitions)}"
        )
        self.path = path
        self.partitions = partitions
        self.hint = f"name one, such as {path.rstrip('/')}/{partitions[0]}"


class PartitionFolder(NamedTuple):
    """A partition directory.

    Its parsed name (None for a name that is no partition's), its files.
    """

    directory: PartitionDirectory | None
    files: PartitionFiles

    @property
    def name(self) -> str:
        """Return the directory's name."""
        return self.directory.name if self.directory else posixpath.basename(self.files.path)

    @property
    def is_kept(self) -> bool:
        """Return False for a `-delete` folder, which a broker is about to remove."""
        return self.directory is None or self.directory.kind is not DirectoryKind.DELETE

    @property
    def topic_partition(self) -> TopicPartition | None:
        """Return the partition in the directory's name, None for any other name."""
        return self.directory.topic_partition if self.directory else None


class LogDirState(NamedTuple):
    """The content of the files next to the partitions.

    `checkpoints` has the offsets of each existing checkpoint file, by its name.
    """

    meta: MetaProperties | None
    clean_shutdown: CleanShutdown | None
    is_locked: bool
    checkpoints: Mapping[str, Mapping[TopicPartition, int]]
    problems: tuple[StorageError, ...]

    def offset(self, checkpoint: str, partition: TopicPartition | None) -> int | None:
        """Return a partition's offset in the named checkpoint file, None without a line for it."""
        return self.checkpoints.get(checkpoint, {}).get(partition) if partition else None

    def reached_offset(self, partition: TopicPartition) -> int | None:
        """Return an offset that a log certainly reached, by its checkpoints; None without any.

        A lower bound of the log end offset: the larger of recovery point and high watermark.
        """
        marks = (offset_checkpoint.RECOVERY_POINTS, offset_checkpoint.HIGH_WATERMARKS)
        return max(
            (at for m in marks if (at := self.offset(m, partition)) is not None), default=None
        )

    def is_compacted(self, partition: TopicPartition) -> bool:
        """Return True for an internal compacted topic, and for a log in the cleaner checkpoint."""
        if partition.topic in COMPACTED_TOPICS:
            return True
        return self.offset(offset_checkpoint.CLEANER_POINTS, partition) is not None


class LogDir(NamedTuple):
    """The content of one log directory; `is_whole` is False if only one partition was read."""

    path: str
    state: LogDirState
    partitions: tuple[PartitionFolder, ...]
    unknown: tuple[str, ...]
    is_whole: bool = True


def read_log_dir(files: Files, path: str) -> LogDir:
    """Return the content of a log directory: partition folders, checkpoints and unknown names.

    The files are listed, and the checkpoints are read; segments are not opened. Raises the host's
    errors.
    """
    names = files.list_dir(path)
    partitions = []
    unknown = []
    for name in names:
        if is_side_file(name):
            continue
        directory = _parse_directory_name(name)
        if directory is None or not files.is_dir(f"{path}/{name}"):
            unknown.append(name)
        else:
            partitions.append(
                PartitionFolder(directory, list_partition_files(files, f"{path}/{name}"))
            )
    return LogDir(path, read_state(files, path, names), tuple(partitions), tuple(unknown))


def is_side_file(name: str) -> bool:
    """Return True for the name of a broker's file outside of the partition directories."""
    return name.removesuffix(TEMPORARY_SUFFIX) in _KNOWN


def read_state(files: Files, path: str, names: Iterable[str]) -> LogDirState:
    """Return meta.properties, checkpoints and clean-shutdown marker of a log directory.

    `names` are the names in the directory. Damaged files are listed as problems, so that one bad
    file does not hide the others.
    """
    problems: list[StorageError] = []
    meta = marker = None
    checkpoints: dict[str, Mapping[TopicPartition, int]] = {}
    present = set(names)
    for name in sorted(present & _KNOWN):
        whole = f"{path}/{name}"
        try:
            if name == meta_properties.FILE_NAME:
                meta = meta_properties.read_meta_properties(files, whole)
            elif name == clean_shutdown.FILE_NAME:
                # The file is the marker, with any content.
                marker = CleanShutdown()
                marker = clean_shutdown.read_clean_shutdown(files, whole)
            elif name in offset_checkpoint.FILE_NAMES:
                checkpoints[name] = offset_checkpoint.read_offsets(files, whole)
        except StorageError as error:
            problems.append(error)
    return LogDirState(meta, marker, LOCK_FILE in present, checkpoints, tuple(problems))


def find_log_dir(files: Files, path: str) -> LogDir:
    """Return the log directory at a path; for a partition's folder a LogDir with it alone.

    Raises NoLogDirectory if the path is neither.
    """
    path = posixpath.normpath(path)
    if files.exists(path) and not files.is_dir(path):
        raise NoLogDirectory(path, is_file=True)
    names = files.list_dir(path)
    if not any(_is_log_file_name(name) for name in names):
        log_dir = read_log_dir(files, path)
        # Other folders, too, may end in a dash and a number: require segment files.
        ours = [p for p in log_dir.partitions if p.files.segments or not p.files.unknown]
        if log_dir.state.meta is None and not ours:
            meta = meta_properties.FILE_NAME
            inner = [name for name in names if files.exists(f"{path}/{name}/{meta}")]
            raise NoLogDirectory(path, log_dirs=inner)
        return log_dir
    directory = _parse_directory_name(posixpath.basename(path))
    parent = posixpath.normpath(f"{path}/..") if directory is None else posixpath.dirname(path)
    partition = PartitionFolder(directory, list_partition_files(files, path))
    # A file next to other copies of a partition does not concern this one.
    is_live = directory is not None and directory.kind is DirectoryKind.LIVE
    beside = files.list_dir(parent or ".") if is_live else []
    state = read_state(files, parent or ".", beside)
    return LogDir(parent, state, (partition,), (), is_whole=False)


def duplicate_partitions(dirs: Iterable[LogDir]) -> dict[TopicPartition, list[str]]:
    """Return the partitions with more than one live copy, which stop a broker, and their paths."""
    paths: dict[TopicPartition, list[str]] = {}
    for log_dir in dirs:
        for partition in log_dir.partitions:
            if partition.directory and partition.directory.kind is DirectoryKind.LIVE:
                key = partition.directory.topic_partition
                paths.setdefault(key, []).append(partition.files.path)
    return {key: copies for key, copies in paths.items() if len(copies) > 1}


def _list_first_names(names: Sequence[str]) -> str:
    """Return the first names, comma-separated, and the number of the others, for a message."""
    more = len(names) - _SHOWN_NAMES_MAX
    shown = ", ".join(names[:_SHOWN_NAMES_MAX])
    return f"{shown} and {more} more" if more > 0 else shown


def _parse_directory_name(name: str) -> PartitionDirectory | None:
    """Return the parsed name of a partition directory, None for any other name."""
    try:
        return parse_partition_directory(name)
    except UnknownDirectoryName:
        return None


def _is_log_file_name(name: str) -> bool:
    """Return True for the name of a `.log` file, also with a suffix such as `.cleaned`."""
    try:
        return parse_segment_file(name).kind is FileKind.LOG
    except UnknownFileName:
        return False
