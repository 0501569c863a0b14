"""What appends, fetches and deletions of one broker share: its partitions, and what waits for them.

Source: LOG-10; Kafka's ReplicaManager, of which they are parts.
"""

from __future__ import annotations

from typing import NamedTuple

from engine.host.ports import Clock
from engine.replication.delayed_operations import DelayedOperations
from engine.replication.effect_performer import EffectPerformer
from engine.replication.hosted_partitions import HostedPartitions


class PartitionAccess(NamedTuple):
    """The partitions of a broker, where operations on them wait, and who performs the effects."""

    clock: Clock
    hosted: HostedPartitions
    delayed: DelayedOperations
    performer: EffectPerformer
