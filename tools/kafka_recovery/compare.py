"""Compares our recovery of logs whose offsets go wrong with that of a real broker.

    python -m tools.kafka_recovery.compare --libs DIR [--count 400] [--lost 20] [--seed 1]

`--libs` holds the jars of a Kafka 3.x release with a logging library. `--record FILE` keeps what
the broker made of the logs, for the tests. Prints each difference; exits with 4 if there is one.
"""

from __future__ import annotations

import argparse
import gzip
import json
import logging
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.recovered_tails import start_and_stop
from tests.recovery_tails import LogRecipe, make_recipes
from tools.kafka_recovery.ask import ask_all, ask_one
from tools.kafka_recovery.real_broker import RealBroker

_DIFFERENT = 4


def differences(ours: dict[str, Any], real: dict[str, Any]) -> list[str]:
    """Return what differs between two answers, a line each."""
    if ours.get("fatal") or real.get("fatal"):
        if bool(ours.get("fatal")) == bool(real.get("fatal")):
            return []
        return [f"ours: {ours.get('error', 'starts')}; the broker: {real['lines']}"]
    found = [
        f"{name}: ours {ours[name]}, the broker's {real[name]}"
        for name in ("log_end_offset", "log_start_offset")
        if ours[name] != real[name]
    ]
    for name in sorted({*ours["files"], *real["files"]}):
        ours_file, real_file = ours["files"].get(name), real["files"].get(name)
        if ours_file != real_file:
            found.append(f"{name}: ours {ours_file}, the broker's {real_file}")
    return found


def main() -> int:
    """Ask, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--libs", type=Path, required=True)
    parser.add_argument("--port", type=int, default=19092)
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--lost", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--record", type=Path)
    requested = parser.parse_args()
    logging.disable(logging.CRITICAL)
    recipes = list(make_recipes(requested.count, requested.seed))
    lost = list(make_recipes(requested.lost, requested.seed + 1, lost_indexes=True))
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        with RealBroker(requested.libs, root / "work", requested.port) as broker:
            answers = ask_all(broker, recipes, root)
            answers |= {recipe.name: ask_one(broker, recipe, root) for recipe in lost}
    if requested.record is not None:
        _record(requested.record, [*recipes, *lost], answers)
    different = 0
    for recipe in (*recipes, *lost):
        for line in differences(start_and_stop(recipe), answers[recipe.name]):
            different += 1
            print(f"{recipe.name} ({recipe.kind}, every {recipe.interval_bytes} bytes): {line}")
    print(f"{len(answers)} logs, {different} differences")
    return _DIFFERENT if different else 0


def _record(path: Path, recipes: list[LogRecipe], answers: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"recipes": recipes, "answers": answers}, separators=(",", ":"))
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


if __name__ == "__main__":
    sys.exit(main())
