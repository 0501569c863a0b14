"""Executes a repair plan, in the directory itself or into a copy of it.

After a crash during a repair in place, the files are in this state:

```
leftovers, removed files   removed one by one, later segments first: a complete beginning is left
.log before it is cut      the old log, and maybe a part of its backup under a .tmp name
.log after it is cut       a log that ends where the plan says; indexes may point after its end
index, epochs              replaced atomically: the old file or the new one
checkpoints                last: until then they say that the logs went further
```

From each of these states, planning and repairing again leads to the same result. No records are
removed before their backup is durable (`<name>.before-repair`), unless no backup was requested.

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

#: Suffix of the backups of records that a repair removes.
BACKUP_SUFFIX = ".before-repair"


class OutputExists(StorageError):
    """The directory for a repaired copy is not empty."""

    hint = "name a directory that does not exist"

    def __init__(self, path: str) -> None:
        super().__init__(f"{path}: is not empty")
        self.path = path


def repair_in_place(files: Files, plan: RepairPlan, *, backup: bool = True) -> list[str]:
    """Execute the plan in its own directory; return the names of the backup files.

    With `backup` a file is copied before it is truncated, and renamed instead of removed if its
    action requires it. No broker may be using the directory.
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
            # Later segments must be removed durably before this one is truncated.
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
    """Write a repaired copy of the partition directory to `target`, without changing the original.

    Only files that belong to the partition are copied. Raises OutputExists if `target` is not
    empty.
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
    """Copy `meta.properties` and the checkpoint files of a log directory to another directory.

    The clean shutdown marker is not copied, so that a broker checks the copy at its start. Raises
    OutputExists if `target` has one of the files.
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
    """Lower recovery points and high watermarks in a log directory to the end of truncated logs.

    `end_offsets` are the new log end offsets. Returns the changes as text. An unreadable checkpoint
    is left unchanged.
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
    """Copy a file within its directory `path`, completely or not at all; return the copy's name."""
    backup = _free_name(files, path, name)
    temporary = f"{path}/{backup}{TEMPORARY_SUFFIX}"
    copy_file(files, f"{path}/{name}", temporary)
    files.rename(temporary, f"{path}/{backup}")
    return backup


def _free_name(files: Files, path: str, name: str) -> str:
    """Return a name for a backup of the file `name` that does not exist yet in `path`."""
    backup = name + BACKUP_SUFFIX
    number = 1
    while files.exists(f"{path}/{backup}"):
        backup = f"{name}{BACKUP_SUFFIX}.{number}"
        number += 1
    return backup


def _truncate(files: Files, path: str, size_bytes: int) -> None:
    """Truncate a file and sync it."""
    handle = files.open(path, write=True)
    try:
        handle.truncate(size_bytes)
        handle.sync()
    finally:
        handle.close()
