"""Throttled replication: the bytes per second for replicas that lag.

```
 leader    a follower out of sync fetches a throttled partition, and the rate is above its
           bound: the answer has no records of it
 follower  a throttled partition that lags is left out of the fetch while the rate is above
```

In-sync replicas continue as ever, and count: the bound is on all throttled partitions together.
One response may exceed a bound, then nothing is sent until the rate is below it again.

Source: REPL-17, KIP-73; Kafka's ReplicationQuotaManager.
Differs: records are counted, Kafka's leader counts the rest of the response too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from engine.host.ports import Clock
from engine.model import TopicPartition
from engine.timing.sampled_rate import SimpleRate

#: The bound that is none.
UNBOUNDED: Final = (1 << 63) - 1
_ALL: Final = "*"


class ReplicationQuota:
    """One direction of one broker."""

    def __init__(
        self,
        clock: Clock,
        is_throttled: Callable[[TopicPartition], bool],
        *,
        window_count: int,
        window_ms: int,
    ) -> None:
        """`is_throttled` returns whether a partition is in the list of its topic."""
        self.is_throttled = is_throttled
        #: Bytes per second; UNBOUNDED until `reconfigure` sets the broker's setting.
        self.bound_per_s = UNBOUNDED
        self._clock = clock
        #: Rate of the throttled bytes.
        self._rate = SimpleRate(window_count, window_ms)

    @property
    def is_exceeded(self) -> bool:
        """Return whether the rate is above its bound."""
        return self._rate.rate_per_s(self._clock.monotonic_ms()) > self.bound_per_s

    def record(self, topic_partition: TopicPartition, size_bytes: int) -> None:
        """Count bytes of a partition, if it is throttled."""
        if size_bytes and self.is_throttled(topic_partition):
            self._rate.record(self._clock.monotonic_ms(), size_bytes)

    def should_throttle(self, topic_partition: TopicPartition) -> bool:
        """Return whether a replica that lags is throttled now."""
        return self.is_throttled(topic_partition) and self.is_exceeded


def is_listed(replicas: Sequence[str], partition: int, broker_id: int) -> bool:
    """Return whether a topic's list of partition:broker, or *, has a replica."""
    return bool(replicas) and (_ALL in replicas or f"{partition}:{broker_id}" in replicas)
