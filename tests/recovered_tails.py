"""What our start and our repair make of the recipes, in the form of a real broker's answers."""

from __future__ import annotations

import hashlib
from typing import Any

from engine.errors import StorageError
from engine.host.memory import MemoryFiles
from engine.inspection.repair import repair_in_place
from engine.inspection.repair_actions import RepairOptions
from engine.inspection.repair_plan import plan_repair
from engine.log.directory.log_dir import find_log_dir
from engine.log.log_config import LogConfig
from engine.log.recovery.loader import LoadRequest, load_log
from engine.log.tasks import InlineTasks
from engine.model import TopicPartition
from tests.recovery_tails import TIME_MS, LogRecipe, files_of
from tests.unit.log.hooks import hooks_of


def disk_of(recipe: LogRecipe) -> tuple[MemoryFiles, str]:
    """Return a disk with the recipe's partition directory, and its path."""
    files = MemoryFiles()
    path = f"/d/{recipe.name}-0"
    files.make_dir(path)
    for name, content in files_of(recipe).items():
        handle = files.open(f"{path}/{name}", write=True, create=True)
        handle.append([content])
        handle.close()
    files.sync_all()
    return files, path


def request_of(recipe: LogRecipe, path: str) -> LoadRequest:
    """Return the request of a start after a crash."""
    return LoadRequest(
        path,
        TopicPartition(recipe.name, 0),
        LogConfig(index_interval_bytes=recipe.interval_bytes, segment_index_bytes=65536),
        TIME_MS,
        recovery_point=recipe.recovery_point,
    )


def start_and_stop(recipe: LogRecipe) -> dict[str, Any]:
    """Return what our broker's start and clean stop leave of a recipe."""
    files, path = disk_of(recipe)
    tasks = InlineTasks()
    try:
        log, _ = load_log(files, request_of(recipe, path), hooks_of(tasks))
    except StorageError as error:
        return {"fatal": True, "error": error}
    tasks.run_waiting()
    log.close(TIME_MS)
    return {
        "log_end_offset": log.log_end_offset,
        "log_start_offset": log.log_start_offset,
        "files": listing(files, path),
    }


def repaired(recipe: LogRecipe) -> tuple[MemoryFiles, str]:
    """Return the disk after a repair that looks where a broker would."""
    files, path = disk_of(recipe)
    options = RepairOptions(recipe.interval_bytes, recipe.recovery_point)
    plan = plan_repair(files, find_log_dir(files, path).partitions[0], options)
    repair_in_place(files, plan, backup=False)
    return files, path


def listing(files: MemoryFiles, path: str) -> dict[str, list[Any]]:
    """Return sizes and digests of the files of a directory."""
    found = {}
    for name in sorted(files.list_dir(path)):
        content = files.read_bytes(f"{path}/{name}")
        found[name] = [len(content), digest(content)]
    return found


def digest(content: bytes) -> str:
    """Return what stands for a file's bytes."""
    return hashlib.sha256(content).hexdigest()[:16]
