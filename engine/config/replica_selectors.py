"""The values of replica.selector.class: the two classes that are part of Kafka."""

from __future__ import annotations

from typing import Final

#: Whether a class selects replicas by rack, by class name.
REPLICA_SELECTORS: Final = {
    "org.apache.kafka.common.replica.LeaderSelector": False,
    "org.apache.kafka.common.replica.RackAwareReplicaSelector": True,
}
