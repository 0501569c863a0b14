"""Read the planner's model of a live cluster: brokers, racks, partitions, sizes, directories.

A broker with replicas that is not in the metadata counts as dead. The replicas of a broker that
does not return its directories have the size of the leader, with a warning.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.cluster_admin import LogDirView, describe_log_dirs
from engine.client.metadata import ClusterView, PartitionView
from engine.client.reassignments import list_reassignments
from engine.errors import EngineError
from engine.model import TopicPartition
from engine.planner.cluster_model import BrokerModel, ClusterModel, LogDirModel, PartitionModel


class ReassignmentInProgress(EngineError):
    """Reassignments are running: a plan made now would not fit the cluster later."""

    def __init__(self, partitions: Iterable[TopicPartition]) -> None:
        self.partitions = sorted(partitions)
        self.hint = "`kctl reassign status` shows them; wait, or `kctl reassign cancel --all`"
        more = f" and {len(self.partitions) - 1} more" if len(self.partitions) > 1 else ""
        super().__init__(f"{self.partitions[0]}{more} moves already")


class ReadCluster(NamedTuple):
    """The state of a cluster from which a plan starts."""

    cluster_id: str | None
    model: ClusterModel
    warnings: list[str]


class _Copy(NamedTuple):
    """The size and the log directory of a replica."""

    size_bytes: int
    path: str


def read_cluster(client: KafkaClient) -> ReadCluster:
    """Return the model of a cluster for the planner, and warnings about missing responses.

    Raises ReassignmentInProgress and the errors of requests.
    """
    view = client.view(None)
    ongoing = list_reassignments(client)
    if ongoing:
        raise ReassignmentInProgress(ongoing)
    dirs = describe_log_dirs(client, view.brokers)
    warnings = [
        f"broker {broker_id} does not return its log directories: {answer}"
        for broker_id, answer in dirs.items()
        if isinstance(answer, EngineError)
    ]
    log_dirs = {id_: found for id_, found in dirs.items() if not isinstance(found, EngineError)}
    copies = _replica_copies(log_dirs)
    partitions = [
        _partition_model(TopicPartition(topic.name, partition.partition), partition, copies)
        for topic in view.topics.values()
        for partition in topic.partitions
    ]
    brokers = _broker_models(view, log_dirs, {id_ for p in partitions for id_ in p.replicas})
    return ReadCluster(view.cluster_id, ClusterModel(brokers, partitions), warnings)


def _replica_copies(
    log_dirs: dict[int, list[LogDirView]],
) -> dict[tuple[TopicPartition, int], _Copy]:
    """Return the size and directory of each replica by partition and broker, not of future ones."""
    return {
        (replica.partition, broker_id): _Copy(replica.size_bytes, log_dir.path)
        for broker_id, dirs in log_dirs.items()
        for log_dir in dirs
        for replica in log_dir.replicas
        if not replica.is_future
    }


def _partition_model(
    key: TopicPartition,
    partition: PartitionView,
    copies: dict[tuple[TopicPartition, int], _Copy],
) -> PartitionModel:
    """Return the planner's model of a partition.

    A replica of unknown size gets the leader's size.
    """
    there = [copies.get((key, broker_id)) for broker_id in partition.replicas]
    leader = copies.get((key, partition.leader))
    sizes = [copy.size_bytes for copy in there if copy is not None]
    size_bytes = leader.size_bytes if leader is not None else max(sizes, default=0)
    return PartitionModel(
        key.topic,
        key.partition,
        partition.replicas,
        partition.leader if partition.has_leader else None,
        size_bytes,
        tuple(size_bytes if copy is None else copy.size_bytes for copy in there),
        tuple("any" if copy is None else copy.path for copy in there),
        partition.isr,
        partition.offline_replicas,
    )


def _broker_models(
    view: ClusterView, log_dirs: dict[int, list[LogDirView]], holding: set[int]
) -> list[BrokerModel]:
    """Return the planner's model of each broker that is alive or in `holding`.

    The capacity is the sum of its directories' sizes, less the bytes of other files; None unless
    all sizes are known.
    """
    brokers = []
    for broker_id in sorted({*view.brokers, *holding}):
        known = view.brokers.get(broker_id)
        dirs = tuple(
            _log_dir_model(log_dir)
            for log_dir in log_dirs.get(broker_id, ())
            if log_dir.error is None
        )
        capacities = [d.capacity_bytes - d.foreign_bytes for d in dirs if d.capacity_bytes]
        is_bounded = bool(dirs) and len(capacities) == len(dirs)
        brokers.append(
            BrokerModel(
                broker_id,
                None if known is None else known.rack,
                sum(capacities) if is_bounded else None,
                dirs,
                is_alive=known is not None,
            )
        )
    return brokers


def _log_dir_model(log_dir: LogDirView) -> LogDirModel:
    """Return the planner's model of a directory: its capacity and the bytes of other files.

    Both are left out if the broker did not return them.
    """
    if log_dir.total_bytes is None or log_dir.usable_bytes is None:
        return LogDirModel(log_dir.path)
    ours = sum(replica.size_bytes for replica in log_dir.replicas)
    foreign = max(0, log_dir.total_bytes - log_dir.usable_bytes - ours)
    return LogDirModel(log_dir.path, log_dir.total_bytes, foreign)
