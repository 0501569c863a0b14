"""The replication throttle: limits the bytes per second for replicas that lag.

```
 leader    while the rate exceeds its limit, the response to a follower out of sync has no
           records of throttled partitions
 follower  while the rate exceeds its limit, throttled partitions that lag are left out of fetches
```

In-sync replicas are not throttled, but their bytes count: the limit is for all throttled partitions
together. One response may exceed the limit; then no records are sent until the rate is below it.

Source: REPL-17, KIP-73; Kafka's ReplicationQuotaManager.
Differs: only records are counted; Kafka's leader counts the rest of the response too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from engine.host.ports import Clock
from engine.model import TopicPartition
from engine.timing.sampled_rate import SimpleRate

#: No limit.
UNBOUNDED: Final = (1 << 63) - 1
_ALL: Final = "*"


class ReplicationQuota:
    """The throttle of one broker as a leader or as a follower."""

    def __init__(
        self,
        clock: Clock,
        is_throttled: Callable[[TopicPartition], bool],
        *,
        window_count: int,
        window_ms: int,
    ) -> None:
        """Create a replication throttle without a limit yet; rates are measured over the windows.

        `is_throttled` returns True if its topic's list has a partition.
        """
        self.is_throttled = is_throttled
        #: Limit in bytes per second; UNBOUNDED until it is set from the broker's settings.
        self.bound_per_s = UNBOUNDED
        self._clock = clock
        #: Rate of the throttled bytes.
        self._rate = SimpleRate(window_count, window_ms)

    @property
    def is_exceeded(self) -> bool:
        """True if the rate of throttled bytes is above the limit."""
        return self._rate.rate_per_s(self._clock.monotonic_ms()) > self.bound_per_s

    def record(self, topic_partition: TopicPartition, size_bytes: int) -> None:
        """Count bytes of a partition, if the throttle applies to it."""
        if size_bytes and self.is_throttled(topic_partition):
            self._rate.record(self._clock.monotonic_ms(), size_bytes)

    def should_throttle(self, topic_partition: TopicPartition) -> bool:
        """True if a lagging replica of the partition is throttled now.

        That is so if it is listed, and the rate is exceeded.
        """
        return self.is_throttled(topic_partition) and self.is_exceeded


def is_listed(replicas: Sequence[str], partition: int, broker_id: int) -> bool:
    """True if a topic's throttle list has a broker's replica of a partition.

    The list has entries `partition:broker`, or `*` for all.
    """
    return bool(replicas) and (_ALL in replicas or f"{partition}:{broker_id}" in replicas)
