"""The group coordinator in a broker: connects it to leadership, the broker's timer and tasks.

Source: KafkaServer.startup, RequestHandlerHelper.onLeadershipChange, SCH-11.
"""

from __future__ import annotations

from collections.abc import Iterable

from engine.broker.coordinator_topic import CoordinatorTopic
from engine.broker.deadlines import Deadlines
from engine.broker.host import BrokerHost
from engine.broker.offsets_topic import OffsetsTopic
from engine.broker.storage import Storage
from engine.broker.tasks import LoopTasks
from engine.config.broker_config import BrokerConfig
from engine.groups.coordinator import GroupCoordinator
from engine.groups.ports import GroupPorts, GroupSettings
from engine.host.turns import LoopTurns
from engine.model import TopicPartition
from engine.naming import CONSUMER_OFFSETS
from engine.replication.metadata_cache import MetadataCache
from engine.replication.partition import Partition
from engine.znode.values import TopicAssignment

_MS_PER_MINUTE = 60_000


def open_groups(
    host: BrokerHost,
    config: BrokerConfig,
    metadata_cache: MetadataCache,
    storage: Storage,
    tasks: LoopTasks,
    deadlines: Deadlines,
    stored: TopicAssignment | None,
) -> GroupCoordinator:
    """Create a broker's group coordinator, which follows the leadership of its topic.

    `stored` is that topic in the metadata store, None if it does not exist.
    """
    topic = CoordinatorTopic(
        CONSUMER_OFFSETS,
        storage.replica_manager,
        metadata_cache,
        host.clock,
        made_with=config.offsets_topic_num_partitions,
        stored=stored,
    )
    log = OffsetsTopic(topic, config)
    groups = GroupCoordinator(
        _group_settings(config),
        GroupPorts(host.clock, host.entropy, log, deadlines.note),
        LoopTurns(host.timers, host.clock, host.ends_early),
    )
    deadlines.add(groups.delays)

    def load_or_unload(partition: Partition) -> None:
        """Load or unload the groups of a `__consumer_offsets` partition by this broker's role.

        Called after each change of a partition's leader or epoch.
        """
        if partition.topic_partition.topic != CONSUMER_OFFSETS:
            return
        index = partition.topic_partition.partition
        if partition.is_leader:
            # A partition that stays leader in a new epoch keeps its groups and their waiting
            # members.
            groups.registry.elected(index, partition.leader_epoch)
        else:
            groups.registry.on_resigned(index)

    def stopped(key: TopicPartition) -> None:
        """Unload the groups of a `__consumer_offsets` partition whose replica was stopped here."""
        if key.topic == CONSUMER_OFFSETS:
            groups.registry.on_resigned(key.partition)

    def updated(topics: Iterable[str]) -> None:
        """Drop the committed offsets of topics that an UpdateMetadata has deleted."""
        if deleted := [topic for topic in topics if topic not in metadata_cache.topics]:
            groups.admin.forget_topics(deleted)

    storage.leadership.on_role(load_or_unload, stopped)
    metadata_cache.on_update(updated)
    period_ms = config.offsets_retention_check_interval_ms
    tasks.every_in_steps(
        "delete-expired-group-metadata",
        period_ms,
        groups.admin.expire_groups,
        first_after_ms=period_ms,
    )
    return groups


def _group_settings(config: BrokerConfig) -> GroupSettings:
    """Return the group settings of a broker; the offset retention is in ms."""
    return GroupSettings(
        config.group_min_session_timeout_ms,
        config.group_max_session_timeout_ms,
        config.group_initial_rebalance_delay_ms,
        config.group_max_size,
        config.offset_metadata_max_bytes,
        config.offsets_retention_minutes * _MS_PER_MINUTE,
    )
