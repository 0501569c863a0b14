"""The phases of partitions and replicas, and the valid previous phases of each.

| partition | from |
|---|---|
| NON_EXISTENT | OFFLINE |
| NEW | NON_EXISTENT |
| ONLINE | NEW, ONLINE, OFFLINE |
| OFFLINE | NEW, ONLINE, OFFLINE |

| replica | from |
|---|---|
| NEW | NON_EXISTENT |
| ONLINE | NEW, ONLINE, OFFLINE, DELETION_INELIGIBLE |
| OFFLINE | NEW, ONLINE, OFFLINE, DELETION_INELIGIBLE |
| DELETION_STARTED | OFFLINE |
| DELETION_SUCCESSFUL | DELETION_STARTED |
| DELETION_INELIGIBLE | OFFLINE, DELETION_STARTED |
| NON_EXISTENT | DELETION_SUCCESSFUL |

Source: CTL-9, CTL-10; Kafka's PartitionStateMachine and ReplicaStateMachine.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from engine.model import TopicPartition


class PartitionPhase(Enum):
    """The phase of a partition."""

    NON_EXISTENT = "non-existent"
    NEW = "new"
    ONLINE = "online"
    OFFLINE = "offline"


class ReplicaPhase(Enum):
    """The phase of a replica."""

    NON_EXISTENT = "non-existent"
    NEW = "new"
    ONLINE = "online"
    OFFLINE = "offline"
    DELETION_STARTED = "deletion started"
    DELETION_SUCCESSFUL = "deletion successful"
    DELETION_INELIGIBLE = "deletion ineligible"


class Replica(NamedTuple):
    """One replica: a partition on a broker."""

    partition: TopicPartition
    broker_id: int

    def __str__(self) -> str:
        """Return the replica as text for the log."""
        return f"{self.partition} on broker {self.broker_id}"


_RUNNING_PARTITION = frozenset(
    (PartitionPhase.NEW, PartitionPhase.ONLINE, PartitionPhase.OFFLINE),
)
PARTITION_COMES_FROM: Mapping[PartitionPhase, frozenset[PartitionPhase]] = {
    PartitionPhase.NON_EXISTENT: frozenset((PartitionPhase.OFFLINE,)),
    PartitionPhase.NEW: frozenset((PartitionPhase.NON_EXISTENT,)),
    PartitionPhase.ONLINE: _RUNNING_PARTITION,
    PartitionPhase.OFFLINE: _RUNNING_PARTITION,
}

_RUNNING_REPLICA = frozenset(
    (
        ReplicaPhase.NEW,
        ReplicaPhase.ONLINE,
        ReplicaPhase.OFFLINE,
        ReplicaPhase.DELETION_INELIGIBLE,
    )
)
REPLICA_COMES_FROM: Mapping[ReplicaPhase, frozenset[ReplicaPhase]] = {
    ReplicaPhase.NON_EXISTENT: frozenset((ReplicaPhase.DELETION_SUCCESSFUL,)),
    ReplicaPhase.NEW: frozenset((ReplicaPhase.NON_EXISTENT,)),
    ReplicaPhase.ONLINE: _RUNNING_REPLICA,
    ReplicaPhase.OFFLINE: _RUNNING_REPLICA,
    ReplicaPhase.DELETION_STARTED: frozenset((ReplicaPhase.OFFLINE,)),
    ReplicaPhase.DELETION_SUCCESSFUL: frozenset((ReplicaPhase.DELETION_STARTED,)),
    ReplicaPhase.DELETION_INELIGIBLE: frozenset(
        (ReplicaPhase.OFFLINE, ReplicaPhase.DELETION_STARTED)
    ),
}
