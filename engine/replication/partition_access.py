"""The parts that appends, fetches and deletions of one broker share: its partitions, its waits.

Source: LOG-10; Kafka's ReplicaManager, of which they are parts.
"""

from __future__ import annotations

from typing import NamedTuple

from engine.host.ports import Clock
from engine.replication.delayed_operations import DelayedOperations
from engine.replication.effect_performer import EffectPerformer
from engine.replication.hosted_partitions import HostedPartitions


class PartitionAccess(NamedTuple):
    """The partitions of a broker, its purgatories, and the performer of the effects."""

    clock: Clock
    hosted: HostedPartitions
    delayed: DelayedOperations
    performer: EffectPerformer
