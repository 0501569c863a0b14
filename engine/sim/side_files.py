"""Rule L8: after a power cut a replaced small file has its old or its new content.

| file | counts as intact if |
|---|---|
| `meta.properties`, `partition.metadata` | it has the required fields |
| `leader-epoch-checkpoint`, `*-offset-checkpoint` | it has the number of lines in its header |

A checkpoint is empty until it is first replaced; the other files are never empty. Other small files
are not checked: brokers repair them, which would hide the cause of damage.

Source: L8; the four steps of `engine/host/replace.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from engine.errors import CorruptFile
from engine.host.memory import MemoryFiles
from engine.host.ports import Files
from engine.log.directory import leader_epoch_checkpoint, meta_properties, partition_metadata
from engine.log.directory.leader_epoch_checkpoint import read_leader_epochs
from engine.log.directory.meta_properties import read_meta_properties
from engine.log.directory.offset_checkpoint import read_offsets
from engine.log.directory.partition_metadata import read_partition_metadata

_READERS: dict[str, Callable[[Files, str], object]] = {
    meta_properties.FILE_NAME: read_meta_properties,
    partition_metadata.FILE_NAME: read_partition_metadata,
    leader_epoch_checkpoint.FILE_NAME: read_leader_epochs,
}
_OFFSETS_END = "-offset-checkpoint"


def filled_files(files: MemoryFiles, log_dirs: Sequence[str]) -> frozenset[str]:
    """Return the paths of small files with content, both now and with only synced writes.

    After a power cut, `unreadable_files` accepts none of them as empty.
    """
    durable = files.after_crash()
    return frozenset(
        path
        for log_dir in log_dirs
        if files.exists(log_dir)
        for path in _paths(files, log_dir)
        if files.size_bytes(path) and durable.exists(path) and durable.size_bytes(path)
    )


def unreadable_files(files: Files, log_dir: str, filled: frozenset[str]) -> list[str]:
    """Return the small files of a log directory that have neither their old nor new content.

    `filled` is the result of `filled_files` directly before the power cut.
    """
    if not files.exists(log_dir):
        return []
    return [path for path in _paths(files, log_dir) if not _is_readable(files, path, filled)]


def _paths(files: Files, folder: str) -> Iterator[str]:
    """Yield the small files (metadata and checkpoints) in a folder and its subfolders."""
    for name in files.list_dir(folder):
        path = f"{folder}/{name}"
        if files.is_dir(path):
            yield from _paths(files, path)
        elif name in _READERS or name.endswith(_OFFSETS_END):
            yield path


def _is_readable(files: Files, path: str, filled: frozenset[str]) -> bool:
    """Return True if a file can be parsed; an empty one only if it is a new checkpoint."""
    name = path.rpartition("/")[2]
    if not files.size_bytes(path):
        return name.endswith("-checkpoint") and path not in filled
    read = _READERS.get(name, read_offsets)
    try:
        read(files, path)
    except CorruptFile:
        return False
    return True
