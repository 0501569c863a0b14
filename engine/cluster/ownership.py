"""Files of a data directory that belong to the cluster: only these are reused or removed.

| in the directory | a first start | `destroy` |
|---|---|---|
| files of `DataDirectory` | continues: an earlier start left them | removes them |
| a store or `broker-<id>/`, no cluster.json | fails: it was lost, `repair` helps | – |
| log directories in the plan, lost+found | continues | keeps them |
| any other file | fails | keeps and reports it |

In a log directory of the cluster, files with a broker's names are removed: checkpoints, partitions
and the files of segments in them. Links are kept, regardless of their target.
"""

from __future__ import annotations

import re

from engine.cluster.data_directory import ClusterState, DataDirectory
from engine.cluster.plan import ClusterPlan
from engine.errors import StorageError
from engine.host.ports import FileMissing, Files
from engine.log.directory.log_dir import is_side_file, read_log_dir
from engine.log.directory.meta_properties import FILE_NAME as META_FILE
from engine.log.segment_files import list_partition_files
from engine.naming import STORE_FILE

#: Entries at the root of a file system.
_HARMLESS = frozenset(("lost+found",))
_BROKER_DIRECTORY = re.compile(r"broker-([0-9]{1,10})(?:-([0-9]{1,4}))?")
_SHOWN = 3
#: Files that a repair has set aside, or that an interrupted repair has left.
_SET_ASIDE = re.compile(
    r"(znodes\.sqlite|cluster\.json)\.(new|damaged-[0-9]+)(-wal|-shm|-journal)?"
)


class FolderInUse(StorageError):
    """A folder has files that do not belong to a cluster."""

    hint = "give --data a folder that is empty or not there yet"

    def __init__(self, path: str, names: list[str]) -> None:
        shown = ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
        super().__init__(f"{path} has other files ({shown}) and no cluster")
        self.path = path
        self.names = names


class MetadataLost(StorageError):
    """A cluster has logs, but a file with its metadata is missing."""

    def __init__(self, path: str, name: str, beside: str) -> None:
        super().__init__(f"the cluster in {path} has lost its {name}: {beside} is there")
        self.hint = f"`kctl cluster repair --data {path}` shows what can be written again"
        self.path = path
        self.name = name


def broker_directories(data: DataDirectory, files: Files) -> dict[int, list[str]]:
    """Return the log directories in a data directory, by the broker id in their name."""
    if not files.is_dir(data.path):
        return {}
    matches = map(_BROKER_DIRECTORY.fullmatch, files.list_dir(data.path))
    found = sorted(
        (int(match[1]), int(match[2] or 1), f"{data.path}/{match[0]}")
        for match in matches
        if match is not None
    )
    directories: dict[int, list[str]] = {}
    for broker_id, _, path in found:
        if files.is_dir(path):
            directories.setdefault(broker_id, []).append(path)
    return directories


def check_start(data: DataDirectory, files: Files, plan: ClusterPlan) -> None:
    """Raise FolderInUse or MetadataLost if a start would use foreign or damaged files."""
    if data.state() is ClusterState.ABSENT:
        _check_first_start(data, files, plan)
        return
    if has_store(data, files):
        return
    for path in data.log_dirs(plan):
        if files.exists(f"{path}/{META_FILE}"):
            raise MetadataLost(data.path, STORE_FILE, path)


def has_store(data: DataDirectory, files: Files) -> bool:
    """Return True if a metadata store exists and it or its write-ahead log is not empty."""
    if not files.exists(data.store_path):
        return False
    beside = [path for path in data.store_files() if files.exists(path)]
    return any(files.size_bytes(path) > 0 for path in beside)


def _check_first_start(data: DataDirectory, files: Files, plan: ClusterPlan) -> None:
    """Reject a directory with parts of a cluster or with foreign files.

    Raises MetadataLost or FolderInUse. A directory that an interrupted first start left is
    accepted.
    """
    if not files.exists(data.path):
        return
    known = {*data.own_files(), *data.log_dirs(plan), data.security_path}
    names = files.list_dir(data.path)
    parts = [name for name in names if name == STORE_FILE or _BROKER_DIRECTORY.fullmatch(name)]
    if parts:
        raise MetadataLost(data.path, "cluster.json", parts[0])
    foreign = [n for n in names if f"{data.path}/{n}" not in known and n not in _HARMLESS]
    if foreign:
        raise FolderInUse(data.path, foreign)


def remove_log_dir(files: Files, path: str) -> list[str]:
    """Remove the files that brokers created in a log directory; return the paths that remain."""
    if not files.exists(path) and not files.is_link(path):
        return []
    if files.is_link(path):
        return [path]
    left = []
    partitions = {partition.files.path for partition in read_log_dir(files, path).partitions}
    for name in files.list_dir(path):
        whole = f"{path}/{name}"
        if whole in partitions and not files.is_link(whole):
            left += _remove_partition(files, whole)
        elif is_side_file(name) and not files.is_dir(whole):
            remove_file(files, whole)
        else:
            left.append(whole)
    _remove_empty(files, path)
    return left


def _remove_partition(files: Files, path: str) -> list[str]:
    """Remove a partition's log files; return the paths of unknown files and links, which remain."""
    unknown = list_partition_files(files, path).unknown
    for name in files.list_dir(path):
        if name not in unknown and not files.is_link(f"{path}/{name}"):
            remove_file(files, f"{path}/{name}")
    left = [f"{path}/{name}" for name in files.list_dir(path)]
    _remove_empty(files, path)
    return left


def _remove_empty(files: Files, path: str) -> None:
    """Remove a directory if it is empty."""
    if not files.list_dir(path):
        files.remove(path)


def set_aside(data: DataDirectory, files: Files) -> list[str]:
    """Return the paths of the files that repairs have kept or left in a data directory."""
    return [f"{data.path}/{n}" for n in files.list_dir(data.path) if _SET_ASIDE.fullmatch(n)]


def remove_file(files: Files, path: str) -> None:
    """Remove a file if it exists."""
    try:
        files.remove(path)
    except FileMissing:
        return
