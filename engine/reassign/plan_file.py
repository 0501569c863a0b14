"""A plan as a file: JSON that kafka-reassign-partitions reads too, and back.

```
{"version":1,
 "partitions":[{"topic":"t","partition":0,"replicas":[3,2],"log_dirs":["any","any"]}, …],
 "kctl":{"verb":"drain","cluster_id":"…","batches":[5,5,2],"has_barriers":false,
         "old_replicas":[[1,2], …]}}
```

Kafka's tool passes over what it does not know. The partitions stand in the order of the batches.

Source: Kafka's ReassignPartitionsCommand.parsePartitionReassignmentData.
Differs: a file of ours says from where a plan goes, so one of another time is noticed.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from engine.errors import EngineError
from engine.model import TopicPartition
from engine.planner.plan import ReassignmentPlan
from engine.reassign.plan_reading import PlanTarget, order_of

_VERSION = 1


class BadPlanFile(EngineError):
    """A file is no plan."""

    def __init__(self, path: str, rule: str) -> None:
        self.path = path
        self.rule = rule
        self.hint = "`kctl reassign plan --out FILE` writes one"
        super().__init__(f"{path} is no plan: {rule}")


class PlanFile(NamedTuple):
    """What a file says; what only ours say is empty or None for others.

    `old_replicas` go along with `targets`, `batch_sizes` sum up to their number.
    """

    targets: list[PlanTarget]
    old_replicas: list[tuple[int, ...]] | None = None
    cluster_id: str | None = None
    verb: str | None = None
    batch_sizes: tuple[int, ...] = ()
    has_barriers: bool = False


def encode_plan(plan: ReassignmentPlan, cluster_id: str | None) -> bytes:
    """Return the file of a plan."""
    changes = [plan.changes[position] for batch in plan.batches for position in batch]
    partitions = [
        {
            "topic": change.topic,
            "partition": change.partition,
            "replicas": list(change.new_replicas),
            "log_dirs": list(change.new_log_dirs) or ["any"] * len(change.new_replicas),
        }
        for change in changes
    ]
    ours = {
        "verb": plan.verb,
        "cluster_id": cluster_id,
        "batches": [len(batch) for batch in plan.batches],
        "has_barriers": order_of(plan).has_barriers,
        "old_replicas": [list(change.old_replicas) for change in changes],
    }
    document = {"version": _VERSION, "partitions": partitions, "kctl": ours}
    return json.dumps(document, indent=1).encode() + b"\n"


def decode_plan(content: bytes, path: str) -> PlanFile:
    """Return what a file says, of ours or of Kafka's tool; raises BadPlanFile."""
    try:
        document = json.loads(content)
    except ValueError as error:
        raise BadPlanFile(path, f"it is no JSON ({error})") from error
    if not isinstance(document, dict):
        raise BadPlanFile(path, "it is no JSON object")
    version = document.get("version", _VERSION)
    if version != _VERSION:
        raise BadPlanFile(path, f"its version is {version!r}; known is {_VERSION}")
    rows = document.get("partitions")
    if not isinstance(rows, list) or not rows:
        raise BadPlanFile(path, "it names no partitions")
    targets = [_target(row, number, path) for number, row in enumerate(rows)]
    _require_once([target.name for target in targets], path)
    ours = document.get("kctl")
    if ours is None:
        return PlanFile(targets)
    try:
        return _ours(ours, targets)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadPlanFile(path, f"what it says of itself is wrong ({error})") from error


def _ours(ours: dict[str, Any], targets: list[PlanTarget]) -> PlanFile:
    old = [tuple(int(id_) for id_ in replicas) for replicas in ours["old_replicas"]]
    sizes = tuple(int(size) for size in ours["batches"])
    if len(old) != len(targets) or sum(sizes) != len(targets):
        raise ValueError("other numbers of partitions")
    return PlanFile(
        targets, old, ours["cluster_id"], ours["verb"], sizes, bool(ours["has_barriers"])
    )


def _target(row: Any, number: int, path: str) -> PlanTarget:
    try:
        topic, partition, replicas = row["topic"], row["partition"], row["replicas"]
        log_dirs = row.get("log_dirs") or []
        target = PlanTarget(
            str(topic), int(partition), tuple(map(int, replicas)), tuple(map(str, log_dirs))
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadPlanFile(path, f"its partition {number} is not readable ({error})") from error
    name = target.name
    if not target.replicas:
        raise BadPlanFile(path, f"{name} has no replicas")
    if len(set(target.replicas)) < len(target.replicas):
        raise BadPlanFile(path, f"{name} has two replicas on one broker")
    if min(target.replicas) < 0:
        raise BadPlanFile(path, f"{name} has a replica on broker {min(target.replicas)}")
    if log_dirs and len(log_dirs) != len(target.replicas):
        raise BadPlanFile(path, f"{name} has another number of log_dirs than of replicas")
    return target


def _require_once(names: list[TopicPartition], path: str) -> None:
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise BadPlanFile(path, f"{twice} is in it twice")
