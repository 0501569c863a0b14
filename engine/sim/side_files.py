"""L8: a small file reads as before or as after it was replaced, whenever the power is cut.

| file | reads |
|---|---|
| `meta.properties`, `partition.metadata` | with what it must have |
| `leader-epoch-checkpoint`, `*-offset-checkpoint` | with as many lines as it says |

None of them is ever empty. Brokers mend what they can of others: that would hide who broke them.

Source: L8; the four steps of `engine/host/replace.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from engine.errors import CorruptFile
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


def unreadable_files(files: Files, log_dir: str) -> list[str]:
    """Return the small files of a log directory that are neither old nor new."""
    if not files.exists(log_dir):
        return []
    return [path for path in _paths(files, log_dir) if not _is_readable(files, path)]


def _paths(files: Files, folder: str) -> Iterator[str]:
    for name in files.list_dir(folder):
        path = f"{folder}/{name}"
        if files.is_dir(path):
            yield from _paths(files, path)
        elif name in _READERS or name.endswith(_OFFSETS_END):
            yield path


def _is_readable(files: Files, path: str) -> bool:
    read = _READERS.get(path.rpartition("/")[2], read_offsets)
    try:
        read(files, path)
    except CorruptFile:
        return False
    return files.size_bytes(path) > 0
