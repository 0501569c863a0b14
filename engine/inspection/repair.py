"""Carry out a repair plan: on the directory itself, or on a copy of it.

State after a crash in between, in place:

```
leftovers, removed files   removed one by one, later segments first: a whole beginning is left
.log before its cut        the old log, and maybe a part of its backup under a .tmp name
a cut .log                 a log that ends where the plan says; indexes may point behind it
index, epochs              replaced as a whole: the old file or the new one
checkpoints                last: until then they say that the logs went further
```

After any of these a repair planned again comes to the same end. Records are not lost before their
backup is durable (`<name>.before-repair`), unless no backup was asked for.

Source: invariants L2, L8.
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.errors import CorruptFile, StorageError
from engine.host.ports import Files
from engine.host.replace import TEMPORARY_SUFFIX
from engine.inspection.repair_actions import CutFile, RenameFile, RepairPlan, WriteFile
from engine.log.directory import meta_properties, offset_checkpoint
from engine.log.directory.file_copy import copy_file, store_file
from engine.model import TopicPartition

#: The end of the name under which records are kept that a repair removes.
BACKUP_SUFFIX = ".before-repair"


class OutputExists(StorageError):
    """The directory that a repaired copy should go to has something in it already."""

    hint = "name a directory that does not exist"

    def __init__(self, path: str) -> None:
        super().__init__(f"{path}: is not empty")
        self.path = path


def repair_in_place(files: Files, plan: RepairPlan, *, backup: bool = True) -> list[str]:
    """Carry out the plan in its own directory; return the names of the backups.

    No broker may have the directory open.
    """
    backups = []
    for action in plan.actions:
        path = f"{plan.path}/{action.name}"
        if isinstance(action, RenameFile):
            files.rename(path, f"{plan.path}/{action.target}")
        elif isinstance(action, WriteFile):
            files.replace_file(path, action.content)
        elif isinstance(action, CutFile):
            if backup:
                backups.append(_back_up(files, plan.path, action.name))
            # Later segments must be gone for good before this one ends early.
            files.sync_dir(plan.path)
            _truncate(files, path, action.size_bytes)
        elif backup and action.keep_backup:
            backups.append(_free_name(files, plan.path, action.name))
            files.rename(path, f"{plan.path}/{backups[-1]}")
        else:
            files.remove(path)
    if plan.actions:
        files.sync_dir(plan.path)
    return backups


def repair_into(files: Files, plan: RepairPlan, target: str) -> None:
    """Write a repaired copy of the partition directory to `target`; the original stays as it is.

    Only files that belong to the partition are copied. Raises OutputExists.
    """
    if files.exists(target) and (not files.is_dir(target) or files.list_dir(target)):
        raise OutputExists(target)
    files.make_dir(target)
    cuts = {a.name: a.size_bytes for a in plan.actions if isinstance(a, CutFile)}
    written = {a.name: a.content for a in plan.actions if isinstance(a, WriteFile)}
    for name, final in plan.carried:
        if final not in written:
            size = cuts.get(final)
            copy_file(files, f"{plan.path}/{name}", f"{target}/{final}", size)
    for name, content in written.items():
        store_file(files, f"{target}/{name}", (content,))
    files.sync_dir(target)


def copy_state_files(files: Files, source: str, target: str) -> None:
    """Copy meta.properties and the checkpoints of a log directory.

    The clean shutdown marker is left out: a broker that starts on the copy looks for damage itself.
    """
    files.make_dir(target)
    for name in (meta_properties.FILE_NAME, *offset_checkpoint.FILE_NAMES):
        if files.exists(f"{source}/{name}"):
            if files.exists(f"{target}/{name}"):
                raise OutputExists(target)
            copy_file(files, f"{source}/{name}", f"{target}/{name}")
    files.sync_dir(target)


def lower_checkpoints(
    files: Files, path: str, end_offsets: Mapping[TopicPartition, int]
) -> list[str]:
    """Lower recovery points and high watermarks to the end of truncated logs.

    Returns the changes as text. A checkpoint that cannot be read stays unchanged.
    """
    changes: list[str] = []
    for name in (offset_checkpoint.RECOVERY_POINTS, offset_checkpoint.HIGH_WATERMARKS):
        if not files.exists(f"{path}/{name}"):
            continue
        try:
            offsets = offset_checkpoint.read_offsets(files, f"{path}/{name}")
        except CorruptFile:
            continue
        lowered = {key: min(at, end_offsets.get(key, at)) for key, at in offsets.items()}
        if lowered != offsets:
            files.replace_file(f"{path}/{name}", offset_checkpoint.encode_offsets(lowered))
        changes += [
            f"{name}: {key} from {at} to {lowered[key]}, the end of its log"
            for key, at in offsets.items()
            if lowered[key] != at
        ]
    return changes


def _back_up(files: Files, path: str, name: str) -> str:
    """Copy a file beside itself, whole or not at all; returns the copy's name."""
    backup = _free_name(files, path, name)
    temporary = f"{path}/{backup}{TEMPORARY_SUFFIX}"
    copy_file(files, f"{path}/{name}", temporary)
    files.rename(temporary, f"{path}/{backup}")
    return backup


def _free_name(files: Files, path: str, name: str) -> str:
    """Return a name for a backup that no earlier repair has taken."""
    backup = name + BACKUP_SUFFIX
    number = 1
    while files.exists(f"{path}/{backup}"):
        backup = f"{name}{BACKUP_SUFFIX}.{number}"
        number += 1
    return backup


def _truncate(files: Files, path: str, size_bytes: int) -> None:
    """Truncate a file, and flush it to disk."""
    handle = files.open(path, write=True)
    try:
        handle.truncate(size_bytes)
        handle.sync()
    finally:
        handle.close()
