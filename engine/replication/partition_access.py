"""The parts of a replica manager that appends, fetches and DeleteRecords share.

Source: LOG-10; Kafka's ReplicaManager.
"""

from __future__ import annotations

from typing import NamedTuple

from engine.host.ports import Clock
from engine.replication.delayed_operations import DelayedOperations
from engine.replication.effect_performer import EffectPerformer
from engine.replication.hosted_partitions import HostedPartitions


class PartitionAccess(NamedTuple):
    """A broker's partitions, its purgatories and the performer of effects."""

    clock: Clock
    hosted: HostedPartitions
    delayed: DelayedOperations
    performer: EffectPerformer
