"""The values of replica.selector.class: the two classes that Kafka brings."""

from __future__ import annotations

from typing import Final

#: Whether racks count, by the class's name.
REPLICA_SELECTORS: Final = {
    "org.apache.kafka.common.replica.LeaderSelector": False,
    "org.apache.kafka.common.replica.RackAwareReplicaSelector": True,
}
