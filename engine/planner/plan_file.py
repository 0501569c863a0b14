"""Plans as JSON that Kafka's own tool reads: its fields, and ours beside them.

```
{"version": 1,
 "partitions": [{"topic": "t", "partition": 0, "replicas": [3, 2], "log_dirs": ["any", "any"]}],
 "kctl": {"format": 1, "verb": "drain", "seed": 0, "batches": [[0], [1]],
          "partitions": [{"old_replicas": [1, 2], "old_leader": 1, "size_bytes": 1024, ...}], ...}}
```

Kafka's tool takes `version` and `partitions` and passes over `kctl`; rows of both lists go along
with each other. A file without `kctl` is one of Kafka's: what it starts from is looked up in the
cluster by `changes_from_targets`.

Source: ReassignPartitionsCommand.parsePartitionReassignmentData of 3.9.1.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from engine.errors import EngineError
from engine.model import TopicPartition
from engine.planner.cluster_model import ClusterModel
from engine.planner.plan import (
    BrokerFigures,
    LevelFigures,
    LoadFigures,
    PartitionChange,
    ReassignmentPlan,
    UnmetGoal,
)

_KAFKA_VERSION = 1
_FORMAT = 1
_ANY = "any"


class BadPlanFile(EngineError):
    """A file is no plan; `place` says where in it, `reason` what is wrong."""

    def __init__(self, place: str, reason: str) -> None:
        self.place = place
        self.reason = reason
        super().__init__(f"{place}: {reason}" if place else reason)


class TargetRow(NamedTuple):
    """One row of Kafka's part of a file: where replicas should be."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    #: A path for each replica, or "any"; empty for any.
    log_dirs: tuple[str, ...] = ()

    @property
    def name(self) -> TopicPartition:
        """Return topic and number."""
        return TopicPartition(self.topic, self.partition)


class PlanFile(NamedTuple):
    """What a file holds: Kafka's rows, and the whole plan where kctl wrote it.

    `cluster_id` is of the cluster that the plan was made for, None if the file does not say.
    """

    rows: Sequence[TargetRow]
    plan: ReassignmentPlan | None
    cluster_id: str | None = None


def plan_to_json(plan: ReassignmentPlan, cluster_id: str | None = None) -> str:
    """Return a plan as a file's text, a line for each partition."""
    rows = [json.dumps(_kafka_row(change)) for change in plan.changes]
    ours = [json.dumps(_own_row(change)) for change in plan.changes]
    rest = {
        "format": _FORMAT,
        "cluster_id": cluster_id,
        "verb": plan.verb,
        "seed": plan.seed,
        "moves": plan.moves,
        "bytes_moved": plan.bytes_moved,
        "log_dir_moves": plan.log_dir_moves,
        "leader_changes": plan.leader_changes,
        "bound_moves": plan.bound_moves,
        "warnings": list(plan.warnings),
        "unmet": [unmet._asdict() for unmet in plan.unmet],
        "before": plan.before._asdict(),
        "after": plan.after._asdict(),
        "brokers": [_broker_row(broker) for broker in plan.brokers],
        "batches": [list(batch) for batch in plan.batches],
    }
    fields = json.dumps(rest)[1:-1]
    return (
        f'{{"version": {_KAFKA_VERSION},\n "partitions": [\n  {_lines(rows)}],\n'
        f' "kctl": {{{fields},\n  "partitions": [\n   {_lines(ours)}]}}}}\n'
    )


def targets_to_json(targets: Mapping[TopicPartition, Sequence[int]]) -> str:
    """Return assignments as Kafka's tool prints them: one line, by topic and partition."""
    rows = [
        {
            "topic": name.topic,
            "partition": name.partition,
            "replicas": list(targets[name]),
            "log_dirs": [_ANY] * len(targets[name]),
        }
        for name in sorted(targets)
    ]
    document = {"version": _KAFKA_VERSION, "partitions": rows}
    return json.dumps(document, separators=(",", ":"))


def plan_from_json(text: str) -> PlanFile:
    """Read a file of ours or of Kafka's tool; raises BadPlanFile."""
    try:
        document = json.loads(text)
    except ValueError as error:
        raise BadPlanFile("", f"is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise BadPlanFile("", "is not a JSON object")
    version = document.get("version", _KAFKA_VERSION)
    if version != _KAFKA_VERSION:
        raise BadPlanFile("version", f"is {version}, not {_KAFKA_VERSION}")
    listed = document.get("partitions")
    if not isinstance(listed, list):
        raise BadPlanFile("partitions", "is not a list")
    rows = [_target_row(number, row) for number, row in enumerate(listed)]
    seen: set[TopicPartition] = set()
    for number, row in enumerate(rows):
        if row.name in seen:
            raise BadPlanFile(f"partitions[{number}]", f"{row.name} is there twice")
        seen.add(row.name)
    ours = document.get("kctl")
    if ours is None:
        return PlanFile(rows, None)
    return PlanFile(rows, _plan(rows, ours), ours.get("cluster_id"))


def changes_from_targets(model: ClusterModel, rows: Sequence[TargetRow]) -> list[PartitionChange]:
    """Return the changes of a file of Kafka's, from where the cluster is now.

    Rows whose replicas are there already, in order and directories, are left out. Raises
    BadPlanFile for a partition that the cluster does not have.
    """
    partitions = {partition.name: partition for partition in model.partitions}
    changes = []
    for row in rows:
        partition = partitions.get(row.name)
        if partition is None:
            raise BadPlanFile(str(row.name), "is not in the cluster")
        change = PartitionChange(
            topic=row.topic,
            partition=row.partition,
            old_replicas=partition.replicas,
            new_replicas=row.replicas,
            old_leader=partition.leader,
            new_leader=row.replicas[0],
            size_bytes=partition.size_bytes,
            old_sizes=partition.replica_sizes,
            old_log_dirs=partition.log_dirs,
            new_log_dirs=row.log_dirs,
        )
        is_unknown = bool(row.log_dirs) and not partition.log_dirs
        if change.new_replicas != change.old_replicas or change.log_dir_moves or is_unknown:
            changes.append(change)
    return changes


def _lines(rows: Sequence[str]) -> str:
    return ",\n   ".join(rows)


def _kafka_row(change: PartitionChange) -> dict[str, Any]:
    return {
        "topic": change.topic,
        "partition": change.partition,
        "replicas": list(change.new_replicas),
        "log_dirs": list(change.new_log_dirs or (_ANY,) * len(change.new_replicas)),
    }


def _own_row(change: PartitionChange) -> dict[str, Any]:
    return {
        "old_replicas": change.old_replicas,
        "old_leader": change.old_leader,
        "new_leader": change.new_leader,
        "size_bytes": change.size_bytes,
        "old_sizes": change.old_sizes,
        "old_log_dirs": change.old_log_dirs,
        "is_mandatory": change.is_mandatory,
    }


def _broker_row(broker: BrokerFigures) -> dict[str, Any]:
    return broker._asdict() | {
        "before": broker.before._asdict(),
        "after": broker.after._asdict(),
    }


def _target_row(number: int, row: object) -> TargetRow:
    place = f"partitions[{number}]"
    if not isinstance(row, dict):
        raise BadPlanFile(place, "is not an object")
    topic, partition = row.get("topic"), row.get("partition")
    replicas, log_dirs = row.get("replicas"), row.get("log_dirs", [])
    if not isinstance(topic, str) or not topic:
        raise BadPlanFile(place, "has no topic")
    if not _is_whole(partition):
        raise BadPlanFile(place, "has no partition")
    if not isinstance(replicas, list) or not replicas or not all(map(_is_whole, replicas)):
        raise BadPlanFile(place, "has no list of replicas")
    if len(set(replicas)) < len(replicas):
        raise BadPlanFile(place, f"has a broker twice in replicas {replicas}")
    if not isinstance(log_dirs, list) or not all(isinstance(path, str) for path in log_dirs):
        raise BadPlanFile(place, "has log_dirs that are no list of paths")
    if log_dirs and len(log_dirs) != len(replicas):
        raise BadPlanFile(place, f"has {len(log_dirs)} log_dirs for {len(replicas)} replicas")
    dirs = () if all(path == _ANY for path in log_dirs) else tuple(log_dirs)
    return TargetRow(topic, int(str(partition)), tuple(replicas), dirs)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _plan(rows: Sequence[TargetRow], ours: Any) -> ReassignmentPlan:
    """Return the plan of a file of ours; whatever is missing or of another kind is said."""
    if not isinstance(ours, dict) or ours.get("format") != _FORMAT:
        raise BadPlanFile("kctl", "is of another format; a newer kctl may read it")
    try:
        changes = [_change(row, own) for row, own in zip(rows, ours["partitions"], strict=True)]
        plan = ReassignmentPlan(
            verb=ours["verb"],
            changes=changes,
            batches=[list(map(int, batch)) for batch in ours["batches"]],
            brokers=[_broker(row) for row in ours["brokers"]],
            before=LevelFigures(**ours["before"]),
            after=LevelFigures(**ours["after"]),
            moves=ours["moves"],
            bytes_moved=ours["bytes_moved"],
            log_dir_moves=ours["log_dir_moves"],
            leader_changes=ours["leader_changes"],
            bound_moves=ours["bound_moves"],
            warnings=list(ours["warnings"]),
            unmet=[UnmetGoal(**unmet) for unmet in ours["unmet"]],
            seed=ours["seed"],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise BadPlanFile("kctl", f"is damaged: {error}") from error
    positions = sorted(position for batch in plan.batches for position in batch)
    if positions != list(range(len(changes))):
        raise BadPlanFile("kctl.batches", "do not name each partition once")
    return plan


def _change(row: TargetRow, own: dict[str, Any]) -> PartitionChange:
    return PartitionChange(
        topic=row.topic,
        partition=row.partition,
        old_replicas=tuple(own["old_replicas"]),
        new_replicas=row.replicas,
        old_leader=own["old_leader"],
        new_leader=own["new_leader"],
        size_bytes=own["size_bytes"],
        old_sizes=tuple(own["old_sizes"]),
        old_log_dirs=tuple(own["old_log_dirs"]),
        new_log_dirs=row.log_dirs,
        is_mandatory=own["is_mandatory"],
    )


def _broker(row: dict[str, Any]) -> BrokerFigures:
    fields = dict(row)
    fields["before"] = LoadFigures(**fields["before"])
    fields["after"] = LoadFigures(**fields["after"])
    return BrokerFigures(**fields)
