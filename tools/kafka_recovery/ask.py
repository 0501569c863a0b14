"""What a real broker's recovery makes of recipes: ends, files and their bytes.

All logs of one interval between index entries are recovered by one start; logs that may stop the
broker get a start each.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from engine.log.directory.offset_checkpoint import (
    LOG_STARTS,
    RECOVERY_POINTS,
    encode_offsets,
    parse_offsets,
)
from engine.model import TopicPartition
from tests.recovered_tails import digest
from tests.recovery_tails import LogRecipe, files_of
from tools.kafka_recovery.real_broker import RealBroker

_SETTINGS = {
    "log.cleaner.enable": "false",
    "log.retention.ms": "-1",
    "log.segment.delete.delay.ms": "0",
    "log.index.size.max.bytes": "65536",
    "num.recovery.threads.per.data.dir": "2",
    "offsets.topic.replication.factor": "1",
    "controlled.shutdown.enable": "false",
}
_TOLD = ("Found invalid", "Corruption found", "There was an error", "fatal error")


def ask_all(broker: RealBroker, recipes: Iterable[LogRecipe], folder: Path) -> dict[str, Any]:
    """Return what becomes of logs that no broker stops over, by name."""
    answers: dict[str, Any] = {}
    intervals: dict[int, list[LogRecipe]] = {}
    for recipe in recipes:
        intervals.setdefault(recipe.interval_bytes, []).append(recipe)
    for interval_bytes, group in intervals.items():
        log_dir = folder / f"every-{interval_bytes}"
        write_log_dir(log_dir, group)
        settings = {**_SETTINGS, "log.index.interval.bytes": str(interval_bytes)}
        if not broker.start_and_stop(log_dir, settings, 300):
            raise RuntimeError("the broker stopped:\n" + broker.log_text()[-4000:])
        lines = _lines_by_log(broker.log_text(), log_dir)
        for recipe in group:
            answers[recipe.name] = {
                **_state(log_dir, recipe.name), "lines": lines.get(recipe.name, [])
            }  # fmt: skip
    return answers


def ask_one(broker: RealBroker, recipe: LogRecipe, folder: Path) -> dict[str, Any]:
    """Return what becomes of one log, which may stop the broker."""
    log_dir = folder / recipe.name
    write_log_dir(log_dir, [recipe])
    settings = {**_SETTINGS, "log.index.interval.bytes": str(recipe.interval_bytes)}
    is_up = broker.start_and_stop(log_dir, settings, 120)
    lines = [line for line in broker.log_text().splitlines() if any(t in line for t in _TOLD)]
    lines = [line.replace(str(log_dir), "<dir>")[:400] for line in lines]
    if not is_up:
        return {"fatal": True, "lines": lines}
    return {**_state(log_dir, recipe.name), "lines": lines}


def write_log_dir(log_dir: Path, recipes: Iterable[LogRecipe]) -> None:
    """Write a log directory as a kill leaves it."""
    shutil.rmtree(log_dir, ignore_errors=True)
    points = {}
    for recipe in recipes:
        partition = log_dir / f"{recipe.name}-0"
        partition.mkdir(parents=True)
        for name, content in files_of(recipe).items():
            (partition / name).write_bytes(content)
        points[TopicPartition(recipe.name, 0)] = recipe.recovery_point
    (log_dir / RECOVERY_POINTS).write_bytes(encode_offsets(points))


def _state(log_dir: Path, name: str) -> dict[str, Any]:
    key = TopicPartition(name, 0)
    files = sorted((log_dir / f"{name}-0").iterdir())
    first = min(int(path.stem) for path in files if path.suffix == ".log")
    return {
        "log_end_offset": _offset(log_dir, RECOVERY_POINTS, key),
        "log_start_offset": max(first, _offset(log_dir, LOG_STARTS, key)),
        "files": {
            path.name: [path.stat().st_size, digest(path.read_bytes())]
            for path in files
            if not path.name.endswith(".deleted")
        },
    }


def _offset(log_dir: Path, checkpoint: str, key: TopicPartition) -> int:
    return parse_offsets((log_dir / checkpoint).read_bytes(), checkpoint).get(key, 0)


def _lines_by_log(text: str, log_dir: Path) -> dict[str, list[str]]:
    """Return the broker's lines of what it cut, by the log they are about."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        about = re.search(r"partition=(\w+)-0", line) or re.search(r"/(\w+)-0/", line)
        if about and any(word in line for word in _TOLD):
            found.setdefault(about[1], []).append(line.replace(str(log_dir), "<dir>")[:300])
    return found
