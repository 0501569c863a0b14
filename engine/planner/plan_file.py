"""Plans as JSON that kafka-reassign-partitions can read: its fields, and an object `kctl` for ours.

```
{"version": 1,
 "partitions": [{"topic": "t", "partition": 0, "replicas": [3, 2], "log_dirs": ["any", "any"]}],
 "kctl": {"format": 1, "verb": "drain", "seed": 0, "batches": [[0], [1]],
          "partitions": [{"old_replicas": [1, 2], "old_leader": 1, "size_bytes": 1024, ...}], ...}}
```

Kafka's tool reads `version` and `partitions` and ignores `kctl`; the two lists of partitions are
parallel. A file without `kctl` was written by Kafka's tool: `changes_from_targets` adds the present
replicas from the cluster.

Source: ReassignPartitionsCommand.parsePartitionReassignmentData of 3.9.1.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

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
from engine.planner.plan_fields import BadPlanFile, PlanFields, parse_plan_json
from engine.planner.sampled_rates import SampledRates, rates_from_fields, rates_to_fields

_KAFKA_VERSION = 1
_FORMAT = 1
_ANY = "any"


class TargetRow(NamedTuple):
    """One row of the part of a file that Kafka reads: the target replicas of a partition."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    #: A path or "any" for each replica; empty if all are "any".
    log_dirs: tuple[str, ...] = ()

    @property
    def name(self) -> TopicPartition:
        """The topic and partition number."""
        return TopicPartition(self.topic, self.partition)


class PlanFile(NamedTuple):
    """The content of a plan file: the rows for Kafka, and the whole plan if kctl wrote the file.

    `cluster_id` is the cluster that the plan was made for, `rates` the samples that were used for
    it; None if the file has none.
    """

    rows: Sequence[TargetRow]
    plan: ReassignmentPlan | None
    cluster_id: str | None = None
    rates: SampledRates | None = None


def plan_to_json(
    plan: ReassignmentPlan, cluster_id: str | None = None, rates: SampledRates | None = None
) -> str:
    """Return the text of a plan file, which kctl and Kafka's tool read.

    It has a line for each partition.
    """
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
    if rates is not None:
        rest["rates"] = rates_to_fields(rates)
    fields = json.dumps(rest)[1:-1]
    return (
        f'{{"version": {_KAFKA_VERSION},\n "partitions": [\n  {_join_rows(rows)}],\n'
        f' "kctl": {{{fields},\n  "partitions": [\n   {_join_rows(ours)}]}}}}\n'
    )


def targets_to_json(targets: Mapping[TopicPartition, Sequence[int]]) -> str:
    """Return target assignments in one line as Kafka's tool prints them, sorted by partition."""
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
    """Return the plan in a file of kctl or Kafka's tool.

    Raises BadPlanFile with the position of an error.
    """
    document = parse_plan_json(text)
    if document.has("version"):
        version = document.whole("version")
        if version != _KAFKA_VERSION:
            raise BadPlanFile("version", f"is {version}, not {_KAFKA_VERSION}")
    rows = [_target_row(row) for row in document.rows("partitions")]
    seen: set[TopicPartition] = set()
    for number, row in enumerate(rows):
        if row.name in seen:
            raise BadPlanFile(f"partitions[{number}]", f"{row.name} is there twice")
        seen.add(row.name)
    if not document.has("kctl"):
        return PlanFile(rows, None)
    ours = document.fields("kctl")
    rates = rates_from_fields(ours.fields("rates")) if ours.has("rates") else None
    return PlanFile(rows, _parse_plan(rows, ours), _cluster_id(ours), rates)


def _cluster_id(ours: PlanFields) -> str | None:
    """Return the id of the cluster for which a plan was made, None if the file has none."""
    return ours.text("cluster_id") if ours.has("cluster_id") else None


def changes_from_targets(model: ClusterModel, rows: Sequence[TargetRow]) -> list[PartitionChange]:
    """Return the changes from the present assignment to the rows of a file of Kafka's tool.

    Rows that equal the present replicas, order and directories are left out. Raises BadPlanFile
    for an unknown partition.
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


def _join_rows(rows: Sequence[str]) -> str:
    """Return rows of JSON as list items, one per line."""
    return ",\n   ".join(rows)


def _kafka_row(change: PartitionChange) -> dict[str, object]:
    """Return a change as a row that Kafka's tool reads; directories are "any" unless chosen."""
    return {
        "topic": change.topic,
        "partition": change.partition,
        "replicas": list(change.new_replicas),
        "log_dirs": list(change.new_log_dirs or (_ANY,) * len(change.new_replicas)),
    }


def _own_row(change: PartitionChange) -> dict[str, object]:
    """Return the fields of a change that only kctl reads."""
    return {
        "old_replicas": change.old_replicas,
        "old_leader": change.old_leader,
        "new_leader": change.new_leader,
        "size_bytes": change.size_bytes,
        "old_sizes": change.old_sizes,
        "old_log_dirs": change.old_log_dirs,
        "is_mandatory": change.is_mandatory,
    }


def _broker_row(broker: BrokerFigures) -> dict[str, object]:
    """Return a broker's figures before and after the plan as JSON values."""
    return broker._asdict() | {
        "before": broker.before._asdict(),
        "after": broker.after._asdict(),
    }


def _target_row(row: PlanFields) -> TargetRow:
    """Return a row in Kafka's format; `log_dirs` are empty if all are "any".

    Raises BadPlanFile.
    """
    topic = row.text("topic")
    if not topic:
        raise BadPlanFile(row.where("topic"), "is empty")
    partition, replicas = row.broker_id("partition"), row.broker_ids("replicas")
    if not replicas:
        raise BadPlanFile(row.where("replicas"), "is empty")
    log_dirs = row.texts("log_dirs") if row.has("log_dirs") else ()
    if log_dirs and len(log_dirs) != len(replicas):
        reason = f"has {len(log_dirs)} paths for {len(replicas)} replicas"
        raise BadPlanFile(row.where("log_dirs"), reason)
    dirs = () if all(path == _ANY for path in log_dirs) else log_dirs
    return TargetRow(topic, partition, replicas, dirs)


def _parse_plan(rows: Sequence[TargetRow], ours: PlanFields) -> ReassignmentPlan:
    """Return the plan in a file that kctl wrote; raises BadPlanFile."""
    if ours.whole("format") != _FORMAT:
        raise BadPlanFile("kctl.format", "is not known here; a newer kctl may read it")
    own_rows = ours.rows("partitions")
    if len(own_rows) != len(rows):
        reason = f"has {len(own_rows)} rows, and partitions has {len(rows)}"
        raise BadPlanFile("kctl.partitions", reason)
    changes = [_parse_change(row, own) for row, own in zip(rows, own_rows, strict=True)]
    plan = ReassignmentPlan(
        verb=ours.text("verb"),
        changes=changes,
        batches=[list(batch) for batch in ours.lists("batches")],
        brokers=[_parse_broker(row) for row in ours.rows("brokers")],
        before=_parse_level(ours.fields("before")),
        after=_parse_level(ours.fields("after")),
        moves=ours.whole("moves"),
        bytes_moved=ours.whole("bytes_moved"),
        log_dir_moves=ours.whole("log_dir_moves"),
        leader_changes=ours.whole("leader_changes"),
        bound_moves=ours.whole("bound_moves"),
        warnings=list(ours.texts("warnings")),
        unmet=[
            UnmetGoal(row.text("goal"), row.text("subject"), row.text("reason"))
            for row in ours.rows("unmet")
        ],
        seed=ours.whole("seed"),
    )
    positions = sorted(position for batch in plan.batches for position in batch)
    if positions != list(range(len(changes))):
        raise BadPlanFile("kctl.batches", "do not name each partition once")
    return plan


def _parse_change(row: TargetRow, own: PlanFields) -> PartitionChange:
    """Return one change from Kafka's row and our row.

    Raises BadPlanFile if the new leader is no replica, or if lists differ in length.
    """
    old_replicas = own.broker_ids("old_replicas")
    change = PartitionChange(
        topic=row.topic,
        partition=row.partition,
        old_replicas=old_replicas,
        new_replicas=row.replicas,
        old_leader=own.broker_id("old_leader") if own.has("old_leader") else None,
        new_leader=own.broker_id("new_leader"),
        size_bytes=own.whole("size_bytes"),
        old_sizes=own.wholes("old_sizes"),
        old_log_dirs=own.texts("old_log_dirs"),
        new_log_dirs=row.log_dirs,
        is_mandatory=own.flag("is_mandatory"),
    )
    if change.new_leader not in change.new_replicas:
        reason = f"is {change.new_leader}, which is none of {list(change.new_replicas)}"
        raise BadPlanFile(own.where("new_leader"), reason)
    for name, values in (("old_sizes", change.old_sizes), ("old_log_dirs", change.old_log_dirs)):
        if values and len(values) != len(old_replicas):
            reason = f"has {len(values)} entries for {len(old_replicas)} replicas"
            raise BadPlanFile(own.where(name), reason)
    return change


def _parse_broker(row: PlanFields) -> BrokerFigures:
    """Return the figures of one broker; the rack and capacity may be missing."""
    return BrokerFigures(
        broker_id=row.broker_id("broker_id"),
        rack=row.text("rack") if row.has("rack") else None,
        before=_parse_load(row.fields("before")),
        after=_parse_load(row.fields("after")),
        capacity_bytes=row.whole("capacity_bytes") if row.has("capacity_bytes") else None,
        bytes_in=row.whole("bytes_in"),
        bytes_out=row.whole("bytes_out"),
        moves_in=row.whole("moves_in"),
        moves_out=row.whole("moves_out"),
    )


def _parse_load(row: PlanFields) -> LoadFigures:
    """Return a broker's load; rates are 0 in plans of earlier versions."""
    return LoadFigures(
        row.whole("replica_count"),
        row.whole("leader_count"),
        row.whole("size_bytes"),
        # Plans of earlier versions have no rates.
        row.whole("in_bytes_per_s") if row.has("in_bytes_per_s") else 0,
        row.whole("out_bytes_per_s") if row.has("out_bytes_per_s") else 0,
    )


def _parse_level(row: PlanFields) -> LevelFigures:
    """Return the figures of evenness; those of rates are 1.0 in plans of earlier versions."""
    return LevelFigures(
        count_spread_in_rack=row.whole("count_spread_in_rack"),
        count_spread=row.whole("count_spread"),
        leader_spread=row.whole("leader_spread"),
        bytes_max_over_mean=row.number("bytes_max_over_mean"),
        bytes_max_over_level=row.number("bytes_max_over_level"),
        rack_faults=row.whole("rack_faults"),
        offline_replicas=row.whole("offline_replicas"),
        in_max_over_mean=row.number("in_max_over_mean") if row.has("in_max_over_mean") else 1.0,
        out_max_over_mean=row.number("out_max_over_mean") if row.has("out_max_over_mean") else 1.0,
    )
