"""A sample of a cluster with its time, and write rates between two samples.

A partition whose leader changed between the samples has no rate, because replicas differ in size.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.move_progress import added_replicas_bytes
from engine.client.rates import LogSample, PartitionRate, rate_between
from engine.exporter.cluster_sample import ClusterSample
from engine.exporter.gathering import gather_sample
from engine.exporter.request_pace import RequestPace
from engine.model import TopicPartition

_MS_PER_S = 1000


class TimedSample(NamedTuple):
    """A sample and the start of its requests, by the monotonic and the wall clock."""

    sample: ClusterSample
    at_ms: int
    wall_ms: int


class RateSum(NamedTuple):
    """The total write rates of several partitions; None if none of them has a rate."""

    bytes_per_s: int | None
    records_per_s: float | None


def take_sample(
    client: KafkaClient,
    timeout_ms: int,
    *,
    with_groups: bool = True,
    with_policies: bool = True,
    pace: RequestPace | None = None,
) -> TimedSample:
    """Request and return a sample of a cluster; raises the errors of `gather_sample`."""
    at_ms, wall_ms = client.clock.monotonic_ms(), client.clock.wall_ms()
    sample = gather_sample(
        client, timeout_ms, with_policies=with_policies, with_groups=with_groups, pace=pace
    )
    return TimedSample(sample, at_ms, wall_ms)


def sample_rates(before: TimedSample, after: TimedSample) -> dict[TopicPartition, PartitionRate]:
    """Return the write rates of the partitions that have the same leader in both samples."""
    first, second = _log_samples(before), _log_samples(after)
    return {
        key: rate_between(log_sample, second[key])
        for key, log_sample in first.items()
        if key in second and second[key].leader == log_sample.leader
    }


def move_rates(before: TimedSample, after: TimedSample) -> dict[TopicPartition, float]:
    """Return the bytes per second that each reassignment copies, if it is in both samples."""
    elapsed_s = max(after.at_ms - before.at_ms, 1) / _MS_PER_S
    first, second = before.sample, after.sample
    rates = {}
    for key, move in (second.moves or {}).items():
        seen = first.log_dirs.keys() & second.log_dirs.keys()
        if key in (first.moves or {}) and seen.issuperset(move.adding):
            copied = added_replicas_bytes(key, move, second.log_dirs)
            rates[key] = (copied - added_replicas_bytes(key, move, first.log_dirs)) / elapsed_s
    return rates


def rate_sum(
    rates: Mapping[TopicPartition, PartitionRate], keys: Iterable[TopicPartition]
) -> RateSum:
    """Return the total write rates of some partitions; None if none of them is known."""
    found = [rates[key] for key in keys if key in rates]
    if not found:
        return RateSum(None, None)
    records_per_s = round(sum(rate.records_per_s for rate in found), 1)
    return RateSum(sum(rate.bytes_per_s for rate in found), records_per_s)


def leader_sizes(sample: ClusterSample) -> dict[TopicPartition, int]:
    """Return the bytes of each partition's leader replica, if its broker reports them."""
    sizes = {}
    for broker_id, log_dirs in sample.log_dirs.items():
        for log_dir in log_dirs:
            for replica in log_dir.replicas:
                row = sample.view.partition(replica.partition)
                if row is not None and row.leader == broker_id and not replica.is_future:
                    sizes[replica.partition] = replica.size_bytes
    return sizes


def _log_samples(timed: TimedSample) -> dict[TopicPartition, LogSample]:
    """Return each leader's log start, high watermark and bytes, if all of them are known."""
    sample = timed.sample
    log_samples = {}
    for key, size_bytes in leader_sizes(sample).items():
        row = sample.view.partition(key)
        if row is None or key not in sample.low_watermarks or key not in sample.high_watermarks:
            continue
        start, end = sample.low_watermarks[key], sample.high_watermarks[key]
        log_samples[key] = LogSample(row.leader, start, end, size_bytes, timed.at_ms)
    return log_samples
