"""Rule L7, checked after each log cleaning.

The cleaned log has every record that compaction must keep.

```
check    broker 2 has cleaned t-0 since the last check: its log up to its high watermark is compared
         with all records that were ever committed there
```

Only replicas in the ISR are checked, and only up to their high watermark: records beyond it may be
those of another leader, and will be truncated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from engine.log.cleaner.log_cleaner import LastCleaning
from engine.model import TopicPartition
from engine.replication.partition import Partition
from engine.sim.histories import History
from engine.sim.logs import content_batches
from engine.sim.node import SimulatedBroker
from engine.sim.topics import Topics

Broke = Callable[[str, str, TopicPartition], None]


class CleaningRules:
    """Checks the logs of replicas after cleanings."""

    def __init__(
        self,
        broke: Broke,
        histories: Mapping[TopicPartition, History],
        topics: Topics,
        nodes: Mapping[int, SimulatedBroker],
    ) -> None:
        """Create the rules; `broke` reports a violation by its rule, text and partition."""
        self._broke = broke
        self._histories = histories
        self._topics = topics
        self._nodes = nodes
        #: The last cleaning that was checked, by replica.
        self._seen: dict[tuple[int, TopicPartition], LastCleaning] = {}

    def check(self, now_ms: int) -> None:
        """Check each replica that was cleaned since the last call."""
        for broker_id, node in self._nodes.items():
            storage = None if node.broker is None else node.broker.storage
            if storage is None:
                continue
            for key, cleaning in storage.cleaner.last_cleanings.items():
                replica = storage.replica_manager.partitions.get(key)
                if replica is not None and self._seen.get((broker_id, key)) is not cleaning:
                    self._seen[broker_id, key] = cleaning
                    self._check(broker_id, replica, now_ms)
            for key, reason in storage.cleaner.uncleanable.items():
                self._broke("L7", f"{key}: {broker_id} cannot clean it, {reason}", key)

    def _check(self, broker_id: int, replica: Partition, now_ms: int) -> None:
        """Check L7 for a cleaned replica: its log has each record that a cleaning must keep.

        Only ISR members that have lost no writes in a power cut are checked, up to the high
        watermark.
        """
        key = replica.topic_partition
        history = self._histories.get(key)
        if history is None or not self._topics.is_of(key, replica.log.topic_id):
            return
        state = history.state
        if state is None or broker_id not in state.isr or broker_id in history.lossy:
            return
        end = min(replica.high_watermark, history.committed_end)
        fault = history.fault_of(content_batches(replica, None, end), end, now_ms)
        if fault:
            self._broke("L7", f"{key}: {broker_id} {fault}, cleaned up to {end}", key)
