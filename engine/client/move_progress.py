"""Progress of a reassignment, from the log sizes that brokers report. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from engine.client.cluster_admin import LogDirView
from engine.client.metadata import PartitionView
from engine.client.reassignments import OngoingReassignment
from engine.errors import EngineError
from engine.model import TopicPartition

LogDirsByBroker = Mapping[int, "list[LogDirView] | EngineError"]


class MoveFigures(NamedTuple):
    """Copied and total bytes of a reassignment, its rate and remaining time; None is unknown.

    `left_s` is None, too, while no bytes are copied.
    """

    original: Sequence[int]
    target: Sequence[int]
    copied_bytes: int
    total_bytes: int | None
    bytes_per_s: float | None
    left_s: float | None


def move_figures(
    key: TopicPartition,
    partition: PartitionView,
    move: OngoingReassignment,
    log_dirs: LogDirsByBroker,
    bytes_per_s: float | None,
) -> MoveFigures:
    """Return the progress of a reassignment: bytes copied of the total, and seconds left.

    `bytes_per_s` is its rate, None if unknown. A copy that is in sync counts as complete; one on a
    broker without a response as empty.
    """
    whole = replica_size_bytes(key, partition.leader, log_dirs)
    copied = 0
    for broker_id in move.adding:
        there = replica_size_bytes(key, broker_id, log_dirs) or 0
        if whole is not None:
            there = whole if broker_id in partition.isr else min(there, whole)
        copied += there
    total = None if whole is None else whole * len(move.adding)
    rate = None if bytes_per_s is None else max(bytes_per_s, 0.0)
    left_s = None
    if total is not None and (total == copied or rate):
        left_s = (total - copied) / rate if rate else 0.0
    return MoveFigures(move.original, move.target, copied, total, rate, left_s)


def added_replicas_bytes(
    key: TopicPartition, move: OngoingReassignment, log_dirs: LogDirsByBroker
) -> int:
    """Return the total size of the replicas that a reassignment adds; unknown sizes count as 0."""
    return sum(replica_size_bytes(key, broker_id, log_dirs) or 0 for broker_id in move.adding)


def replica_size_bytes(
    key: TopicPartition, broker_id: int, log_dirs: LogDirsByBroker
) -> int | None:
    """Return the size of a replica on a broker, None if the broker does not report it.

    The size is that of the current replica, not of a future one.
    """
    dirs = log_dirs.get(broker_id)
    if dirs is None or isinstance(dirs, EngineError):
        return None
    sizes = [
        replica.size_bytes
        for log_dir in dirs
        for replica in log_dir.replicas
        if replica.partition == key and not replica.is_future
    ]
    return sizes[0] if sizes else None
