"""Output of --verify on moves: partitions between brokers, replicas between log directories.

Source: partitionReassignmentStatesToString, replicaMoveStatesToString, LogDirMoveState of 3.9.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from engine.model import TopicPartition
from kctl.compat.plan_json import Replica


class LogDirMove(NamedTuple):
    """The target, the current and the future log directory of a replica."""

    target: str
    current: str | None = None
    future: str | None = None

    @property
    def is_over(self) -> bool:
        """Return True if no copy of the replica to another log directory is in progress.

        False if the replica was not found, as its directory may be offline.
        """
        return self.current is not None and self.future is None


def reassignment_state_line(
    key: TopicPartition, target: Sequence[int], current: Sequence[int] | None
) -> str:
    """Return the line of kafka-reassign-partitions --verify on a partition.

    `current` are its replicas; None means that it is being reassigned.
    """
    if current is None:
        return f"Reassignment of partition {key} is still in progress."
    if tuple(current) == tuple(target):
        return f"Reassignment of partition {key} is completed."
    return (
        f"There is no active reassignment of partition {key}, but replica set is "
        f"{_joined(current)} rather than {_joined(target)}."
    )


def log_dir_move_line(replica: Replica, move: LogDirMove) -> str:
    """Return the line of kafka-reassign-partitions --verify on a replica's log directory."""
    where = f"Partition {replica.partition} on broker {replica.broker_id}"
    if move.current is None:
        return (
            f"Partition {replica.partition} is not found in any live log dir on broker "
            f"{replica.broker_id}. There is likely an offline log directory on the broker."
        )
    if move.future == move.target:
        return f"Reassignment of replica {replica} is still in progress."
    if move.future is not None:
        return f"{where} is being moved to log dir {move.future} instead of {move.target}."
    if move.current == move.target:
        return f"Reassignment of replica {replica} completed successfully."
    return f"{where} is not being moved from log dir {move.current} to {move.target}."


def _joined(ids: Sequence[int]) -> str:
    """Return broker ids as text, such as `1,2,3`."""
    return ",".join(map(str, ids))
