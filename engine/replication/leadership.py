"""Apply LeaderAndIsr and StopReplica of the controller, one request at a time (PART-4).

```
LeaderAndIsr   controller epoch older than the last one ───────> StaleControllerEpoch for all
               each partition: open or create its log ── leader? ─> become_leader / become_follower
StopReplica    each partition: stop fetching, complete delayed operations ── delete? ─> delete log
```

Only the partitions with an older leader epoch than ours are skipped. A failed log directory is an
error of its partitions only.

Source: PART-2 … PART-4, PART-7; Kafka's ReplicaManager.becomeLeaderOrFollower, stopReplicas.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import NamedTuple, TypeAlias

from engine.errors import ApiError, FencedError, StorageError
from engine.host.ports import Clock
from engine.kafka_errors import STALE_CONTROLLER_EPOCH
from engine.log.directory.log_directory import LogDirectory
from engine.log.directory.log_manager import LogManager
from engine.log.tasks import Steps, take_all
from engine.model import TopicPartition
from engine.replication.errors import (
    FencedLeaderEpoch,
    InconsistentTopicId,
    ReplicaStorageFailed,
)
from engine.replication.partition import Partition
from engine.replication.partition_types import PartitionState, ReplicationConfig
from engine.replication.replica_manager import ReplicaManager
from engine.replication.role_log_messages import log_role

#: Values in place of a leader epoch in StopReplica: no epoch, and a topic being deleted.
NO_EPOCH = -1
EPOCH_DURING_DELETE = -2


class StaleControllerEpoch(FencedError):
    """The request comes from a controller with an older epoch than the last one."""

    code = 11

    def __init__(self, epoch: int, latest_epoch: int) -> None:
        super().__init__(f"controller epoch {epoch}, the latest is {latest_epoch}")
        self.epoch = epoch
        self.latest_epoch = latest_epoch


class StaleLeaderOrder(ApiError):
    """A LeaderAndIsr whose leader epoch is not newer than the partition's."""

    def __init__(self, topic_partition: TopicPartition, requested: int, current: int) -> None:
        """Create the error; `requested` is the epoch in the request, `current` the partition's."""
        super().__init__(
            STALE_CONTROLLER_EPOCH,
            f"{topic_partition}: the order is of leader epoch {requested}, the latest is {current}",
        )
        self.topic_partition = topic_partition
        self.requested = requested
        self.current = current


class StopOrder(NamedTuple):
    """The StopReplica for one partition."""

    leader_epoch: int
    is_deleted: bool


#: The partitions whose logs were deleted, by their log directories.
DeletedIn: TypeAlias = dict[LogDirectory, set[TopicPartition]]


class Leadership:
    """Applies the controller's requests to the partitions of one broker. Source: PART-2."""

    def __init__(
        self,
        broker_id: int,
        clock: Clock,
        replicas: ReplicaManager,
        logs: LogManager,
        *,
        config_of: Callable[[str], ReplicationConfig],
        is_alive: Callable[[int], bool],
    ) -> None:
        """Create the part that applies the controller's roles to this broker's partitions.

        `config_of` returns a topic's settings for replication, `is_alive` True if a broker is up.
        """
        self.broker_id = broker_id
        self._clock = clock
        self._replicas = replicas
        self._logs = logs
        self._config_of = config_of
        self._is_alive = is_alive
        #: Highest controller epoch of a request: requests with an older epoch are refused.
        self.controller_epoch = 0
        #: Whether the first LeaderAndIsr was applied: all partitions are known, and high watermarks
        #: may be checkpointed (PART-13).
        self.is_informed = False
        #: Called after a partition took a role in a new leader epoch, and after the end of a role.
        self._role_listeners: list[Callable[[Partition], None]] = []
        self._stop_listeners: list[Callable[[TopicPartition], None]] = []

    def on_role(
        self, took: Callable[[Partition], None], stopped: Callable[[TopicPartition], None]
    ) -> None:
        """Register listeners: `took` for a role in a new leader epoch, `stopped` for its end.

        `stopped` may be called for a partition that had no role.
        """
        self._role_listeners.append(took)
        self._stop_listeners.append(stopped)

    def admit(self, controller_epoch: int) -> None:
        """Note the controller epoch of a request; raises StaleControllerEpoch for an older one.

        Source: CTL-3, C2.
        """
        if controller_epoch < self.controller_epoch:
            raise StaleControllerEpoch(controller_epoch, self.controller_epoch)
        self.controller_epoch = controller_epoch

    def hosts_online(self, topic_partition: TopicPartition) -> bool:
        """True if this broker has an online replica of the partition, as leader or as follower."""
        return topic_partition in self._replicas.partitions

    def apply_states(
        self,
        states: Mapping[TopicPartition, PartitionState],
        new: frozenset[TopicPartition] = frozenset(),
        topic_ids: Mapping[str, str] | None = None,
    ) -> dict[TopicPartition, ApiError | None]:
        """Apply LeaderAndIsr to partitions; return the error of each, None for success.

        Partitions in `new` have no log on any broker yet. A log with another id than its topic
        belongs to a deleted topic: it is set aside as stray, and the partition begins with an empty
        log. While that log is in use, the result is InconsistentTopicId. A log without an id gets
        its topic's. StaleLeaderOrder means that the leader epoch is not newer: an older one changed
        nothing.

        Differs: a repeated request's newer ISR is applied; Kafka ignores it.
        """
        ids = topic_ids or {}
        results = {
            key: self.apply_state(key, state, is_new=key in new, topic_id=ids.get(key.topic))
            for key, state in states.items()
        }
        self.is_informed = True
        return results

    def apply_state(
        self,
        topic_partition: TopicPartition,
        state: PartitionState,
        *,
        is_new: bool,
        topic_id: str | None,
    ) -> ApiError | None:
        """Apply the state of one partition; see `apply_states`.

        The caller sets `is_informed` at the end.
        """
        try:
            self._check_online(topic_partition)
            if topic_id is not None and not self.hosts_online(topic_partition):
                self._set_stray_aside(topic_partition, topic_id)
            partition = self._find_or_open(topic_partition, state, is_new=is_new, topic_id=topic_id)
            _check_topic_id(partition, topic_id)
            former_epoch = partition.leader_epoch
            self._change_role(partition, state)
            return _stale_order(topic_partition, state, former_epoch)
        except (ApiError, StorageError) as failure:
            return self._failed(topic_partition, failure)

    def _find_or_open(
        self,
        topic_partition: TopicPartition,
        state: PartitionState,
        *,
        is_new: bool,
        topic_id: str | None,
    ) -> Partition:
        """Return the partition; its log is opened, or created, if it is not hosted yet.

        Raises StaleLeaderOrder for an older leader epoch.
        """
        partition = self._replicas.partitions.get(topic_partition)
        if partition is None:
            return self._open_partition(topic_partition, is_new=is_new, topic_id=topic_id)
        if state.leader_epoch < partition.leader_epoch:
            raise StaleLeaderOrder(topic_partition, state.leader_epoch, partition.leader_epoch)
        return partition

    def _check_online(self, topic_partition: TopicPartition) -> None:
        """Raise ReplicaStorageFailed for a replica that went offline since the broker started.

        Its files are still in the failed directory, and return with that directory. An empty log in
        another directory would then count as the same replica, with its records missing; also if
        the controller calls the replica new.

        Source: HostedPartition.Offline in ReplicaManager.becomeLeaderOrFollower and stopReplicas.
        """
        if self._replicas.is_offline(topic_partition):
            raise ReplicaStorageFailed(topic_partition, "its log directory is offline")

    def _set_stray_aside(self, topic_partition: TopicPartition, topic_id: str) -> None:
        """Mark a log of a deleted topic of the same name as stray, and create an empty log.

        Without this the records of the deleted topic would appear in the new topic.

        Source: LogManager.asyncDelete with isStray; the rule is that of its isStrayKraftReplica.
        Differs: Kafka 3.9 with ZooKeeper refuses the partition until an operator moves the folder.
        """
        log = self._logs.get(topic_partition)
        if log is None or log.topic_id is None or log.topic_id == topic_id:
            return
        reason = f"its topic id is {log.topic_id}, and {topic_id} that of the topic"
        directory = self._logs.directory_of(log)
        self._logs.mark_stray(topic_partition, reason)
        self._logs.get_or_create(topic_partition, is_new=True, directory=directory)

    def _change_role(self, partition: Partition, state: PartitionState) -> None:
        """Make the replica leader or follower, perform the effects, and notify the listeners."""
        former_leader_id, former_leader_epoch = partition.leader_id, partition.leader_epoch
        if state.leader_id == self.broker_id:
            change = partition.become_leader(state)
        else:
            change = partition.become_follower(state)
        if change.is_new_leader_epoch:
            log_role(partition, former_leader_id, former_leader_epoch)
        self._replicas.add(partition)
        self._replicas.perform(change.effects)
        if change.is_new_leader_epoch:
            for took in self._role_listeners:
                took(partition)

    def _open_partition(
        self, topic_partition: TopicPartition, *, is_new: bool, topic_id: str | None
    ) -> Partition:
        """Open the log of a partition, created if missing; return the partition.

        Its high watermark is the checkpointed one.
        """
        log = self._logs.get_or_create(topic_partition, is_new=is_new, topic_id=topic_id)
        return Partition(
            self.broker_id,
            log,
            self._clock,
            config=self._config_of(topic_partition.topic),
            high_watermark=self._logs.checkpointed_high_watermark(topic_partition),
            is_alive=self._is_alive,
        )

    def stop_replicas(
        self, orders: Mapping[TopicPartition, StopOrder]
    ) -> dict[TopicPartition, ApiError | None]:
        """Stop replicas, and delete those with `is_deleted`, in one turn of the loop.

        Returns the error of each partition, None for success. Source: PART-7.
        """
        deleted: DeletedIn = {}
        results = {key: self.stop_replica(key, order, deleted) for key, order in orders.items()}
        take_all(self.note_deletions(deleted))
        return results | self.failed_deletions(deleted)

    def stop_replica(
        self, topic_partition: TopicPartition, order: StopOrder, deleted: DeletedIn
    ) -> ApiError | None:
        """Stop a replica, and delete it if the order requires that.

        Returns the error, None for success. The caller must run the steps of `note_deletions` after
        the last one, before the next request.
        """
        try:
            self._stop_hosting(topic_partition, order)
            if order.is_deleted:
                self._logs.delete_one(topic_partition, deleted)
        except (ApiError, StorageError) as failure:
            return self._failed(topic_partition, failure)
        return None

    def note_deletions(self, deleted: DeletedIn) -> Steps:
        """Return the steps that make the deletions of `stop_replica` durable."""
        return self._logs.sync_deletions(deleted)

    def failed_deletions(self, deleted: DeletedIn) -> dict[TopicPartition, ApiError | None]:
        """Return the errors of replicas whose log directory failed during their deletion.

        Their files may return with the disk. Source: Utils.atomicMoveWithFallback in
        LocalLog.renameDir, which syncs the directory.
        """
        return {
            key: self._failed(key, ReplicaStorageFailed(key, f"{home.path} is offline"))
            for home, keys in deleted.items()
            if not home.is_online
            for key in sorted(keys)
        }

    def _stop_hosting(self, topic_partition: TopicPartition, order: StopOrder) -> None:
        """Stop using a replica, as leader or follower.

        Raises FencedLeaderEpoch for an old order, and ReplicaStorageFailed.
        """
        if not (order.is_deleted and self._logs.failed.is_damaged(topic_partition)):
            self._check_online(topic_partition)
        partition = self._replicas.partitions.get(topic_partition)
        has_epoch = order.leader_epoch not in (NO_EPOCH, EPOCH_DURING_DELETE)
        if partition is not None and has_epoch and order.leader_epoch < partition.leader_epoch:
            raise FencedLeaderEpoch(topic_partition, order.leader_epoch, partition.leader_epoch)
        self._replicas.remove(topic_partition)
        if partition is not None and not order.is_deleted:
            # In Kafka the replica is still hosted, and its high watermark checkpointed.
            self._logs.keep_high_watermark(topic_partition, partition.high_watermark)
        self._notify_stopped(topic_partition)

    def mark_offline(self, *topic_partitions: TopicPartition) -> None:
        """Set replicas of a failed log directory offline, and notify the listeners of their end.

        Differs: Kafka keeps the groups and transactional ids of such a partition until another
        request, and refuses each write of them with NOT_COORDINATOR (16).
        """
        self._replicas.mark_offline(*topic_partitions)
        for topic_partition in topic_partitions:
            self._notify_stopped(topic_partition)

    def _notify_stopped(self, topic_partition: TopicPartition) -> None:
        """Notify the listeners that this broker has no role in the partition any more."""
        for stopped in self._stop_listeners:
            stopped(topic_partition)

    def _failed(
        self, topic_partition: TopicPartition, failure: ApiError | StorageError
    ) -> ApiError:
        """Return the error to send; mark the partition offline unless the request was refused."""
        if not isinstance(failure, FencedLeaderEpoch | StaleLeaderOrder | InconsistentTopicId):
            self.mark_offline(topic_partition)
        return self._replicas.answer_to(topic_partition, failure)

    def reconfigure(self, topic: str | None = None) -> None:
        """Apply new settings to the partitions of a topic, or to all partitions."""
        config_of = cache(self._config_of)
        for topic_partition, partition in self._replicas.partitions.items():
            if topic is None or topic_partition.topic == topic:
                partition.config = config_of(topic_partition.topic)


def _stale_order(
    topic_partition: TopicPartition, state: PartitionState, former_epoch: int
) -> StaleLeaderOrder | None:
    """Return StaleLeaderOrder if the order does not raise the leader epoch, else None."""
    if state.leader_epoch > former_epoch:
        return None
    return StaleLeaderOrder(topic_partition, state.leader_epoch, former_epoch)


def _check_topic_id(partition: Partition, topic_id: str | None) -> None:
    """Raise InconsistentTopicId if the log has another topic id.

    A log without an id gets this one.
    """
    log = partition.log
    if topic_id is None or log.topic_id == topic_id:
        return
    if log.topic_id is not None:
        raise InconsistentTopicId(partition.topic_partition, log.topic_id, topic_id)
    log.assign_topic_id(topic_id)
