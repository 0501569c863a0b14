"""A broker's gauges, by Kafka's JMX object names.

| domain and type | gauges |
|---|---|
| `kafka.server` ReplicaManager, KafkaServer | partitions, leaders, ISR; state |
| `kafka.cluster` Partition | for each partition that this broker leads or follows |
| `kafka.log` Log, LogManager, LogCleaner, LogCleanerManager | sizes and offsets; directories; cleaning |
| `kafka.controller` KafkaController | the cluster; 0 on a broker that is not the controller |
| `kafka.coordinator.group` GroupMetadataManager | groups by state, offsets |

Gauges are computed from the broker's state when they are read; requests do no work for them.

Source: ReplicaManager, Partition, UnifiedLog, LogManager, LogCleanerManager, KafkaController,
GroupMetadataManager of 3.9.1; those of fetchers are in `fetcher_metrics.py`, meters in `meters.py`.
Differs: max-clean-time-secs is of the last cleaning, in Kafka the longest among the threads' last
ones. OfflineReplicaCount counts; 3.9.1 compares with a class that no partition has and returns 0.
"""  # noqa: E501 - a table

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from engine.broker.metric_text import BrokerMetric
from engine.broker.storage import Storage
from engine.controller.context import ControllerContext
from engine.groups.registry import GroupRegistry
from engine.groups.states import GroupState
from engine.log.cleaner.compaction_state import CompactionPhase, LogCompaction
from engine.log.directory.log_directory import LogDirectory
from engine.log.local_log import LocalLog
from engine.model import TopicPartition
from engine.replication.partition import Partition
from engine.znode.values import PartitionAssignment, PartitionStateNode

#: The number of BrokerState.RUNNING.
_RUNNING: Final = 3
_PER_CENT: Final = 100
_MS_PER_S: Final = 1_000
_GROUP_STATES: Final = {
    GroupState.PREPARING_REBALANCE: "PreparingRebalance",
    GroupState.COMPLETING_REBALANCE: "CompletingRebalance",
    GroupState.STABLE: "Stable",
    GroupState.DEAD: "Dead",
    GroupState.EMPTY: "Empty",
}


def storage_metrics(storage: Storage, compacted: Iterable[LogCompaction]) -> Iterator[BrokerMetric]:
    """Yield the gauges of partitions, logs, cleaner and log directories.

    `compacted` has the cleaner's state of each compacted log.
    """
    replicas, logs = storage.replica_manager, storage.logs
    partitions = [partition for _, partition in sorted(replicas.partitions.items())]
    compacted = list(compacted)
    with_paths = [
        (logs.directory_of(log), state)
        for state in compacted
        if (log := logs.logs.get(TopicPartition(state.topic, state.partition))) is not None
    ]
    yield from server_metrics(partitions, logs.logs.values(), replicas.offline_count)
    yield from cleaner_metrics(compacted)
    yield from directory_metrics(logs.directories, with_paths)
    yield from partition_metrics(partitions)
    yield from log_metrics([log for _, log in sorted(logs.logs.items())])


def server_metrics(
    partitions: Iterable[Partition],
    logs: Iterable[LocalLog],
    offline_count: int,
) -> Iterator[BrokerMetric]:
    """Yield the gauges of the replica manager, and the broker's state."""
    here = list(partitions)
    led = [partition for partition in here if partition.is_leader]
    counts = {
        "AtMinIsrPartitionCount": sum(map(_is_at_min_isr, led)),
        "LeaderCount": len(led),
        "OfflineReplicaCount": offline_count,
        "PartitionCount": len(here) + offline_count,
        "ProducerIdCount": sum(len(log.producers) for log in logs),
        "ReassigningPartitions": sum(map(_is_reassigning, led)),
        "UnderMinIsrPartitionCount": sum(partition.is_under_min_isr for partition in led),
        "UnderReplicatedPartitions": sum(map(_is_under_replicated, led)),
    }
    for name, value in counts.items():
        yield BrokerMetric(f"kafka.server:type=ReplicaManager,name={name}", value)
    yield BrokerMetric("kafka.server:type=KafkaServer,name=BrokerState", _RUNNING)


def cleaner_metrics(compacted: Sequence[LogCompaction]) -> Iterator[BrokerMetric]:
    """Yield the gauges of the cleaner: the highest dirty ratio, and the last cleaning."""
    ratios = [log.dirty_ratio for log in compacted if log.phase is not CompactionPhase.UNCLEANABLE]
    dirtiest = int(_PER_CENT * max(ratios, default=0.0))
    yield BrokerMetric("kafka.log:type=LogCleanerManager,name=max-dirty-percent", dirtiest)
    results = [log.last for log in compacted if log.last is not None]
    last = max(results, key=lambda result: result.ended_ms, default=None)
    took_s = kept = 0
    if last is not None:
        took_s = last.elapsed_ms // _MS_PER_S
        kept = _PER_CENT * last.after_bytes // max(last.before_bytes, 1)
    yield BrokerMetric("kafka.log:type=LogCleaner,name=max-clean-time-secs", took_s)
    yield BrokerMetric("kafka.log:type=LogCleaner,name=cleaner-recopy-percent", kept)


def partition_metrics(partitions: Iterable[Partition]) -> Iterator[BrokerMetric]:
    """Yield the gauges of each partition; those of the ISR are 0 unless this broker leads."""
    for partition in partitions:
        leads = partition.is_leader
        gauges = {
            "AtMinIsr": leads and _is_at_min_isr(partition),
            "InSyncReplicasCount": len(partition.in_sync.isr) if leads else 0,
            "LastStableOffsetLag": partition.high_watermark - partition.last_stable_offset,
            "ReplicasCount": _replication_factor(partition) if leads else 0,
            "UnderMinIsr": partition.is_under_min_isr,
            "UnderReplicated": leads and _is_under_replicated(partition),
        }
        for name, value in gauges.items():
            key = partition.topic_partition
            yield _of_partition("kafka.cluster:type=Partition", name, key, value)


def log_metrics(logs: Iterable[LocalLog]) -> Iterator[BrokerMetric]:
    """Yield the metrics of each log: size, offsets and segments."""
    for log in logs:
        gauges = {
            "LogEndOffset": log.log_end_offset,
            "LogStartOffset": log.log_start_offset,
            "NumLogSegments": len(log.segments),
            "Size": log.size_bytes,
        }
        for name, value in gauges.items():
            yield _of_partition("kafka.log:type=Log", name, log.topic_partition, value)


def directory_metrics(
    directories: Iterable[LogDirectory], compacted: Iterable[tuple[str, LogCompaction]]
) -> Iterator[BrokerMetric]:
    """Yield the gauges of log directories: offline state, and bytes in uncleanable logs.

    `compacted` has the compacted logs, each with the path of its log directory.
    """
    paths = {directory.path: directory.is_online for directory in directories}
    left_alone = [
        (path, log) for path, log in compacted if log.phase is CompactionPhase.UNCLEANABLE
    ]
    offline_count = sum(not is_online for is_online in paths.values())
    yield BrokerMetric("kafka.log:type=LogManager,name=OfflineLogDirectoryCount", offline_count)
    for path, is_online in sorted(paths.items()):
        place = f"logDirectory={_quote(path)}"
        sizes = [log.cleanable_bytes for where, log in left_alone if where == path]
        yield BrokerMetric(
            f"kafka.log:type=LogManager,name=LogDirectoryOffline,{place}", int(not is_online)
        )
        manager = "kafka.log:type=LogCleanerManager,name="
        yield BrokerMetric(f"{manager}uncleanable-bytes,{place}", sum(sizes))
        yield BrokerMetric(f"{manager}uncleanable-partitions-count,{place}", len(sizes))


def controller_metrics(context: ControllerContext, *, is_active: bool) -> Iterator[BrokerMetric]:
    """Yield the gauges of the controller, all 0 on a broker that is not the controller."""
    gauges: dict[str, int] = {
        "ActiveBrokerCount": len(context.live_brokers),
        "ActiveControllerCount": 1,
        "GlobalPartitionCount": sum(map(len, context.topics.values())),
        "GlobalTopicCount": len(context.topics),
        "OfflinePartitionsCount": context.offline_partition_count(),
        "PreferredReplicaImbalanceCount": _imbalance_count(context),
        "TopicsIneligibleToDeleteCount": len(context.ineligible_for_deletion),
        "TopicsToDeleteCount": len(context.to_delete),
    }
    for name, value in gauges.items():
        object_name = f"kafka.controller:type=KafkaController,name={name}"
        yield BrokerMetric(object_name, value if is_active else 0)


def group_metrics(registry: GroupRegistry) -> Iterator[BrokerMetric]:
    """Yield the gauges of the groups that this broker coordinates."""
    groups = list(registry.groups.values())
    manager = "kafka.coordinator.group:type=GroupMetadataManager,name="
    yield BrokerMetric(f"{manager}NumGroups", len(groups))
    for state, word in _GROUP_STATES.items():
        count = sum(group.state is state for group in groups)
        yield BrokerMetric(f"{manager}NumGroups{word}", count)
    yield BrokerMetric(
        f"{manager}NumOffsets", sum(group.offsets.committed_count for group in groups)
    )


def _is_under_replicated(partition: Partition) -> bool:
    """Return True if the ISR of a led partition lacks a replica, without those being added."""
    return len(partition.in_sync.isr) < _replication_factor(partition)


def _replication_factor(partition: Partition) -> int:
    """Return the number of assigned replicas without those that a reassignment adds.

    Source: OngoingReassignmentState.replicationFactor.
    """
    return len(set(partition.assigned_replicas).difference(partition.adding_replicas))


def _is_reassigning(partition: Partition) -> bool:
    """Return True if a reassignment of the partition adds or removes replicas."""
    return bool(partition.adding_replicas or partition.removing_replicas)


def _is_at_min_isr(partition: Partition) -> bool:
    """Return True if the ISR has exactly min.insync.replicas: the loss of one stops acks=all."""
    return len(partition.in_sync.isr) == partition.min_isr_count


def _imbalance_count(context: ControllerContext) -> int:
    """Return the number of partitions that are not led by their preferred leader.

    Topics that are being deleted do not count.

    Source: ControllerContext.updatePreferredReplicaImbalanceMetric; topics that are being deleted
    do not count.
    """
    return sum(
        _is_imbalanced(context.assignment(partition), state)
        for partition, (state, _) in context.leaderships.items()
        if partition.topic not in context.to_delete
    )


def _is_imbalanced(assignment: PartitionAssignment, state: PartitionStateNode) -> bool:
    """True if the partition's leader is not the preferred one, its first replica.

    A preferred leader that a reassignment adds counts as imbalanced from its ISR membership on.

    Source: ControllerContext.hasPreferredLeader.
    """
    if not assignment.replicas:
        return False
    preferred = assignment.replicas[0]
    if preferred in assignment.adding_replicas:
        return preferred in state.isr
    return state.leader != preferred


def _quote(text: str) -> str:
    """Return a value quoted for a JMX object name.

    Source: javax.management.ObjectName.quote.
    """
    escaped = re.sub(r'[\\"*?]', r"\\\g<0>", text).replace("\n", r"\n")
    return f'"{escaped}"'


def _of_partition(kind: str, name: str, key: TopicPartition, value: int) -> BrokerMetric:
    """Return a gauge of one partition, by its JMX object name."""
    place = f"topic={key.topic},partition={key.partition}"
    return BrokerMetric(f"{kind},name={name},{place}", int(value))
