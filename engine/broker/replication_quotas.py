"""The replication throttles of a broker, from the present settings of broker and topics.

| throttle | rate (broker setting) | replicas (topic setting) |
|---|---|---|
| leader | leader.replication.throttled.rate | leader.replication.throttled.replicas |
| follower | follower.replication.throttled.rate | follower.replication.throttled.replicas |
| moves | replica.alter.log.dirs.io.max.bytes.per.second | all |

Source: REPL-17, KIP-73, KIP-113; Kafka's QuotaFactory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.broker.dynamic_config import LiveConfig
from engine.config.topic_config import TopicConfig
from engine.host.ports import Clock
from engine.model import TopicPartition
from engine.replication.replication_quota import ReplicationQuota, is_listed


class ReplicationQuotas:
    """The throttles of a broker as leader, as follower, and of directory moves."""

    def __init__(self, live: LiveConfig, clock: Clock) -> None:
        """Create the throttles with rates and windows from the settings."""
        self._live = live
        config = live.config
        windows = {
            "window_count": config.replication_quota_window_num,
            "window_ms": config.replication_quota_window_size_seconds * 1000,
        }
        #: `leader` limits records sent to throttled followers, `follower` fetches of throttled
        #: replicas, `moves` copies between log directories.
        self.leader = ReplicationQuota(
            clock,
            self._listed_by(lambda topic: topic.leader_replication_throttled_replicas),
            **windows,
        )
        self.follower = ReplicationQuota(
            clock,
            self._listed_by(lambda topic: topic.follower_replication_throttled_replicas),
            **windows,
        )
        self.moves = ReplicationQuota(
            clock,
            lambda _key: True,
            window_count=config.alter_log_dirs_replication_quota_window_num,
            window_ms=config.alter_log_dirs_replication_quota_window_size_seconds * 1000,
        )
        self.reconfigure()

    def _listed_by(
        self, replicas_of: Callable[[TopicConfig], Sequence[str]]
    ) -> Callable[[TopicPartition], bool]:
        """Return a predicate of partitions.

        It is True if the topic's setting lists this broker's replica. `replicas_of` returns the
        setting's list.
        """
        live, broker_id = self._live, self._live.config.broker_id

        def is_throttled(key: TopicPartition) -> bool:
            """Return True if the topic's setting lists this replica of a partition, or all."""
            replicas = replicas_of(live.topic_config(key.topic))
            return is_listed(replicas, key.partition, broker_id)

        return is_throttled

    def reconfigure(self) -> None:
        """Set the throttled rates (bytes/s) from the present settings."""
        for quota, name in (
            (self.leader, "leader.replication.throttled.rate"),
            (self.follower, "follower.replication.throttled.rate"),
            (self.moves, "replica.alter.log.dirs.io.max.bytes.per.second"),
        ):
            bound = self._live.settings.value(name)
            assert isinstance(bound, int)
            quota.bound_per_s = bound
