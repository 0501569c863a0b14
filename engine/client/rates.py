"""Write rates of partitions from outside a cluster: the difference of two samples.

Each cluster returns the size of each leader's log (DescribeLogDirs), and its first and last
offset (ListOffsets). Brokers do not return the read rates of consumers.

| between the samples | bytes written |
|---|---|
| the log start offset is the same, and the log has not shrunk | its growth |
| retention or the cleaner removed records | the added offsets, times the mean record size |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.cluster_admin import describe_log_dirs
from engine.client.metadata import ClusterView
from engine.client.offsets import EARLIEST, LATEST, list_offsets
from engine.errors import EngineError
from engine.model import TopicPartition


class LogSample(NamedTuple):
    """One partition's leader at one moment; `end_offset` is exclusive, `size_bytes` of its log."""

    leader: int
    start_offset: int
    end_offset: int
    size_bytes: int
    at_ms: int


class PartitionRate(NamedTuple):
    """The write rate of a partition over a window.

    `is_estimate`: records were also removed from its log, so that bytes are estimated.
    """

    bytes_per_s: int
    records_per_s: float
    is_estimate: bool = False


class Sampled(NamedTuple):
    """Rates by partition, and the errors of partitions and brokers without samples."""

    rates: dict[TopicPartition, PartitionRate]
    errors: dict[str, EngineError]


def sample_rates(client: KafkaClient, topics: Iterable[str] | None, window_ms: int) -> Sampled:
    """Return the write rate of each partition, from two samples of its leader `window_ms` apart.

    `topics` None means all. Partitions without both samples are left out; the errors are named.
    """
    view = client.view(topics)
    errors: dict[str, EngineError] = {}
    first = _sample_logs(client, view, errors)
    client.connections.pause(window_ms)
    second = _sample_logs(client, view, errors)
    rates = {
        partition: rate_between(sample, second[partition])
        for partition, sample in first.items()
        if partition in second
    }
    return Sampled(rates, errors)


def rate_between(first: LogSample, second: LogSample) -> PartitionRate:
    """Return bytes and records written per second between two samples of one partition's leader.

    If segments were deleted meanwhile, bytes are estimated from the mean size of a record.
    """
    elapsed_s = max(second.at_ms - first.at_ms, 1) / 1000
    records = max(second.end_offset - first.end_offset, 0)
    grown = second.size_bytes - first.size_bytes
    is_whole = second.start_offset == first.start_offset and grown >= 0
    written = grown if is_whole else records * _mean_record_bytes(first, second)
    return PartitionRate(round(written / elapsed_s), records / elapsed_s, not is_whole)


def _mean_record_bytes(first: LogSample, second: LogSample) -> float:
    """Return the mean size of a record, from the sample with more records."""
    sample = max(first, second, key=lambda one: one.end_offset - one.start_offset)
    return sample.size_bytes / max(sample.end_offset - sample.start_offset, 1)


def _sample_logs(
    client: KafkaClient, view: ClusterView, errors: dict[str, EngineError]
) -> dict[TopicPartition, LogSample]:
    """Request log start, log end and size of all partitions that have a live leader.

    Partitions with a failed request are left out; their errors go into `errors`.
    """
    leaders = {
        TopicPartition(topic.name, partition.partition): partition.leader
        for topic in view.topics.values()
        for partition in topic.partitions
        if partition.has_leader and partition.leader in view.brokers
    }
    starts = _request_offsets(client, leaders, EARLIEST, errors)
    ends = _request_offsets(client, leaders, LATEST, errors)
    at_ms = client.clock.monotonic_ms()
    sizes = _request_leader_sizes(client, leaders, errors)
    return {
        partition: LogSample(leader, starts[partition], ends[partition], sizes[partition], at_ms)
        for partition, leader in leaders.items()
        if partition in starts and partition in ends and partition in sizes
    }


def _request_offsets(
    client: KafkaClient,
    partitions: Iterable[TopicPartition],
    point: int,
    errors: dict[str, EngineError],
) -> dict[TopicPartition, int]:
    """Return the offset at `point` (EARLIEST or LATEST) by partition; failures go to `errors`."""
    offsets = {}
    for partition, result in list_offsets(client, dict.fromkeys(partitions, point)).items():
        if isinstance(result, EngineError):
            errors[str(partition)] = result
        else:
            offsets[partition] = result.offset
    return offsets


def _request_leader_sizes(
    client: KafkaClient,
    leaders: Mapping[TopicPartition, int],
    errors: dict[str, EngineError],
) -> dict[TopicPartition, int]:
    """Return the size in bytes of each partition's log at its leader, without future replicas.

    The error of a broker goes to `errors`.
    """
    sizes = {}
    for broker_id, dirs in describe_log_dirs(client, sorted(set(leaders.values()))).items():
        if isinstance(dirs, EngineError):
            errors[f"broker {broker_id}"] = dirs
            continue
        for log_dir in dirs:
            for replica in log_dir.replicas:
                if not replica.is_future and leaders.get(replica.partition) == broker_id:
                    sizes[replica.partition] = replica.size_bytes
    return sizes
