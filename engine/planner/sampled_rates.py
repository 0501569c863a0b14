"""Samples of the partitions' write rates; a plan file keeps them so that it can be repeated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from engine.model import TopicPartition
from engine.planner.cluster_model import ClusterModel
from engine.planner.plan_fields import BadPlanFile, PlanFields


class SampledRates(NamedTuple):
    """Bytes written per second by partition, and the duration over which they were sampled."""

    window_ms: int
    bytes_per_s: Mapping[TopicPartition, int]


def with_rates(model: ClusterModel, rates: SampledRates) -> ClusterModel:
    """Return the model with sampled write rates; None for a partition without a sample."""
    partitions = [
        partition._replace(write_bytes_per_s=rates.bytes_per_s.get(partition.name))
        for partition in model.partitions
    ]
    return ClusterModel(model.brokers, partitions)


def rates_to_fields(rates: SampledRates) -> dict[str, object]:
    """Return samples as JSON fields of a plan file, with a row for each topic."""
    by_topic: dict[str, list[tuple[int, int]]] = {}
    for name, rate in sorted(rates.bytes_per_s.items()):
        by_topic.setdefault(name.topic, []).append((name.partition, rate))
    return {
        "window_ms": rates.window_ms,
        "topics": [
            {
                "topic": topic,
                "partitions": [partition for partition, _ in rows],
                "bytes_per_s": [rate for _, rate in rows],
            }
            for topic, rows in by_topic.items()
        ],
    }


def rates_from_fields(fields: PlanFields) -> SampledRates:
    """Return the samples in a plan file; raises BadPlanFile with the position of an error."""
    found: dict[TopicPartition, int] = {}
    for row in fields.rows("topics"):
        topic = row.text("topic")
        numbers, rates = row.wholes("partitions"), row.wholes("bytes_per_s")
        if len(numbers) != len(rates):
            reason = f"has {len(rates)} entries for {len(numbers)} partitions"
            raise BadPlanFile(row.where("bytes_per_s"), reason)
        for number, rate in zip(numbers, rates, strict=True):
            name = TopicPartition(topic, number)
            if name in found:
                raise BadPlanFile(row.where("partitions"), f"{name} is there twice")
            found[name] = rate
    return SampledRates(fields.whole("window_ms"), found)
