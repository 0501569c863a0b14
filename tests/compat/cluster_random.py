"""Draw operations on three brokers of Kafka and on three of ours; print where they come to differ.

    python -m tests.compat.cluster_random LIBS [--seed N] [--sequences N] [--operations N]

LIBS are the jars of Kafka 3.9.1. Both clusters must answer each operation alike and come to equal
znodes after it; after every third one, and when a sequence has ended, also to the same files in the
log directories, and show clients the same. A difference is printed once, when it is first seen.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any, Final

from tests.compat.cluster import admin_operations, topic_operations
from tests.compat.cluster.processes import BROKER_IDS, Cluster, OwnStore, Zookeeper
from tests.compat.cluster.stage import Stage
from tests.compat.cluster.topic_operations import (
    create_coordinators_topic,
    delete_all,
    place_automatically,
)

_ALWAYS: Final = ("create_topic", "produce", "start_broker")


def main() -> int:
    """Run; returns 1 where something differs."""
    given = _arguments()
    folder = Path(given.folder).absolute()
    shutil.rmtree(folder, ignore_errors=True)
    zookeeper = Zookeeper(folder / "zookeeper", given.libs, given.port)
    store = OwnStore(folder / "store") if given.own_store else zookeeper
    clusters = [
        Cluster(
            name,
            folder / name,
            znodes.port,
            {id_: given.port + first + id_ for id_ in BROKER_IDS},
            libs,
        )
        for name, first, znodes, libs in (
            ("real", 10, zookeeper, given.libs),
            ("ours", 20, store, None),
        )
    ]
    stage = Stage(zookeeper, store, clusters[0], clusters[1])
    found: Counter[str] = Counter()
    try:
        for broker_id in BROKER_IDS:
            stage.start(broker_id)
        stage.align_controllers()
        create_coordinators_topic(stage)
        _check(stage, "start", found, given.width, is_thorough=True)
        for seed in range(given.seed, given.seed + given.sequences):
            print(f"-- sequence {seed}", flush=True)
            _sequence(stage, random.Random(seed), given, found)
    finally:
        for cluster in clusters:
            cluster.stop()
        if store is not zookeeper:
            store.stop()
        zookeeper.stop()
    print(f"compared {stage.counts}; differences {sum(found.values())}: {dict(found)}")
    return int(bool(found))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("libs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sequences", type=int, default=3)
    parser.add_argument("--operations", type=int, default=30, help="of a sequence")
    parser.add_argument("--folder", default="/tmp/kctl-cluster-random")
    parser.add_argument("--port", type=int, default=46100, help="of ZooKeeper, with 23 above it")
    parser.add_argument("--own-store", action="store_true", help="for our brokers")
    parser.add_argument("--only", default="", help="operations to draw, behind commas")
    parser.add_argument("--width", type=int, default=600, help="characters of a difference")
    return parser.parse_args()


def _sequence(
    stage: Stage, rng: random.Random, given: argparse.Namespace, found: Counter[str]
) -> None:
    table = [*topic_operations.OPERATIONS, *admin_operations.OPERATIONS]
    if given.only:
        table = [one for one in table if one[0].__name__ in given.only.split(",")]
    # Some operations at a time: what is rare among all of them meets what else is rare.
    drawn = [one for one in table if one[0].__name__ in _ALWAYS or rng.random() < 0.5]
    operations, weights = zip(*(table if given.only else drawn), strict=True)
    checked = 0
    for at in range(given.operations):
        operation = rng.choices(operations, weights)[0]
        label = operation(stage, rng)
        if label is not None:
            checked += 1
            _check(stage, f"{at} {label}", found, given.width, is_thorough=checked % 3 == 0)
    for broker_id in BROKER_IDS:
        if broker_id in stage.hurt:
            stage.end(broker_id, is_clean=True)
            stage.align_controllers()
            _check(stage, f"stop {broker_id}", found, given.width, is_thorough=False)
        if broker_id not in stage.up:
            stage.start(broker_id)
            stage.settle()
            # A controller of Kafka that got stuck would be all that later sequences show.
            stage.remove_controllers()
            stage.align_controllers()
            _check(stage, f"start {broker_id}", found, given.width, is_thorough=True)
    _check(stage, place_automatically(stage, rng), found, given.width, is_thorough=False)
    _check(stage, delete_all(stage), found, given.width, is_thorough=True)


def _check(stage: Stage, label: str, found: Counter[str], width: int, *, is_thorough: bool) -> None:
    """Print what differs since the last time, under the operation that came before."""
    started_s = time.monotonic()
    kinds = [("answer", dict(stage.differences())), ("znode", stage.settle())]
    if is_thorough:
        kinds += [("file", stage.files()), ("view", stage.answers())]
    print(f"{label} ({time.monotonic() - started_s:.1f} s)", flush=True)
    seen = set()
    for kind, differences in kinds:
        for key, values in differences.items():
            if kind != "answer":
                seen.add(key)
                if key in stage.seen:
                    continue
            found[kind] += 1
            print(f"   {kind} {key}\n      real {_short(values[0], width)}")
            print(f"      ours {_short(values[1], width)}", flush=True)
    stage.seen = seen if is_thorough else stage.seen | seen


def _short(value: Any, width: int) -> str:
    text = repr(value)
    return text if len(text) <= width else f"{text[:width]}…"


if __name__ == "__main__":
    sys.exit(main())
