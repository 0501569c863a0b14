"""A consumer: records of assigned partitions, or of the partitions that its group assigns.

| | partitions | start |
|---|---|---|
| `subscribe` | the group's assignment, of topics by name or pattern | committed, else reset |
| `assign` | the named ones | committed if there is a group, else reset |

Reset is the offset of `auto_offset_reset`.

One `poll`:

1. With a pattern: topics that match now are subscribed to; they are listed every
   `metadata_max_age_ms`.
2. All records of earlier polls count as processed: with `enable_auto_commit` the positions are
   committed once `auto_commit_interval_ms` has passed.
3. The member stays in its group, or rejoins it (`group_consumer.py`).
4. Up to `max_poll_records` records are returned; other fetched records wait for the next poll. The
   records of revoked partitions are dropped, those of paused ones wait without delaying others.

A partition that cannot be read keeps its position: later polls read the other partitions, and try
it again.

| error | a poll |
|---|---|
| retriable; brokers that cannot be reached | logs a warning, and retries within its timeout |
| any other: of the group, of a partition, of the listener | raises it |

A member that does not poll for `max_poll_interval_ms` leaves its group at the next `heartbeat`,
so that other members get its partitions; the next poll rejoins.

Source: GRP-14; KafkaConsumer, ConsumerCoordinator of 3.9.1.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from engine.client.auto_commit import commit_automatically, log_trouble
from engine.client.blocking import KafkaClient
from engine.client.buffered_records import BufferedRecords, ConsumerRecord
from engine.client.consumer_heartbeat import SubscriptionPattern
from engine.client.consumer_settings import CLOSE_TIMEOUT_MS, ConsumerSettings
from engine.client.errors import may_pass
from engine.client.fetching import ConsumedRecords, Fetcher
from engine.client.group_consumer import GroupConsumer
from engine.client.group_consumers import create_group_consumer
from engine.client.group_session import GroupSession
from engine.client.groups import committed_offsets
from engine.client.offsets import EARLIEST, LATEST
from engine.client.rebalance_listener import ListenerCalls, RebalanceListener
from engine.client.start_offsets import StartOffsets
from engine.client.truncation import LogTruncated
from engine.errors import ApiError, EngineError
from engine.kafka_errors import (
    CORRUPT_MESSAGE,
    OFFSET_OUT_OF_RANGE,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from engine.model import TopicPartition
from engine.records.record_run import NO_EPOCH


class NoGroup(EngineError):
    """The call needs a consumer of a group."""

    hint = "set group.id"

    def __init__(self, action: str) -> None:
        super().__init__(f"{action} needs a group id")


class NotAssigned(EngineError):
    """The partition is not assigned to this consumer."""

    def __init__(self, partition: TopicPartition) -> None:
        super().__init__(f"{partition.topic}-{partition.partition} is not assigned")
        self.partition = partition


def _is_cured_by_polling(failure: EngineError) -> bool:
    """True if a later poll may read the partition that has this error; else poll raises it.

    Source: FetchCollector.handleInitializeErrors of 3.9.1, where CORRUPT_MESSAGE is raised although
    it is retriable.
    """
    is_corrupt = isinstance(failure, ApiError) and failure.code == CORRUPT_MESSAGE
    return may_pass(failure) and not is_corrupt


def _is_of_unknown_topic(failure: EngineError) -> bool:
    """Return True for UNKNOWN_TOPIC_OR_PARTITION and UNKNOWN_TOPIC_ID."""
    return isinstance(failure, ApiError) and failure.code in (
        UNKNOWN_TOPIC_OR_PARTITION,
        UNKNOWN_TOPIC_ID,
    )


class Consumer:
    """Reads records, with a group or without. Not for use by several threads."""

    def __init__(self, client: KafkaClient, settings: ConsumerSettings | None = None) -> None:
        """Create a consumer without a subscription; the first `poll` sends the first request.

        Raises UnknownReset.
        """
        self._client = client
        self._settings = settings or ConsumerSettings()
        #: Finds the offsets where partitions begin: committed ones, or those of the reset policy.
        self._starts = StartOffsets(client, self._settings)
        # A commit does not wait behind a Fetch to the same broker.
        client.has_coordinators_apart = self._settings.member is not None
        #: The subscribed pattern, None for names or no subscription; and when topics are matched
        #: again (monotonic).
        self._pattern: re.Pattern[str] | None = None
        self._next_match_ms = 0
        #: Names of the subscribed topics, those that match the pattern included.
        self._topics: tuple[str, ...] = ()
        #: The membership after `subscribe`, and the fetcher after `assign`: at most one is not
        #: None.
        self._group: GroupConsumer | None = None
        self._fetcher: Fetcher | None = None
        self._listener = ListenerCalls(client)
        #: Records that were fetched and that no poll has returned yet.
        self._records = BufferedRecords()
        #: By fetched or sought partition, the leader epoch of the last record that was returned.
        self._epochs: dict[TopicPartition, int] = {}
        #: Partitions that are read now, assigned by the caller or by the group.
        self._assigned: frozenset[TopicPartition] = frozenset()
        #: When `poll` was last called (monotonic), for max.poll.interval.ms.
        self._polled_ms = client.clock.monotonic_ms()
        #: When offsets are next committed automatically (monotonic).
        self._next_commit_ms = 0

    # Partitions

    def subscribe(
        self,
        topics: Iterable[str] | re.Pattern[str] | SubscriptionPattern,
        listener: RebalanceListener | None = None,
    ) -> None:
        """Read topics as a member of the group: the named ones, or all that match a pattern.

        The pattern must match the whole name. A `SubscriptionPattern` is matched by the broker, in
        the consumer protocol. Internal topics match no pattern; an empty list is the same as
        `unsubscribe`. Raises NoGroup, NoConsumerProtocol, SettingOfOtherProtocol.
        """
        if self._settings.member is None:
            raise NoGroup("subscribe")
        if isinstance(topics, re.Pattern):
            self._listener.listener = listener
            self._pattern, self._next_match_ms = topics, 0
            self._subscribe_to(self._request_matching_topics(topics))
            return
        if isinstance(topics, SubscriptionPattern):
            self._listener.listener, self._pattern = listener, None
            self._subscribe_to(topics)
            return
        names = tuple(sorted(set(topics)))
        if not names:
            self.unsubscribe()
            return
        self._listener.listener = listener
        self._pattern = None
        self._subscribe_to(names)

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read the given partitions, without the group's assignment; a subscription ends.

        Partitions that were assigned before keep their positions. Raises the errors of the
        requests.
        """
        keys = tuple(dict.fromkeys(partitions))
        if self._fetcher is None:
            self.unsubscribe()
        self._commit_assigned()
        starts = self._starts.find([key for key in keys if key not in self._assigned])
        removed = self._assigned.difference(keys)
        if self._fetcher is None:
            self._fetcher = Fetcher(self._client, {}, self._settings.fetch)
        for key in removed:
            self._fetcher.stop(key)
        for key in keys:
            if key in starts:
                self._fetcher.seek(key, starts[key])
        self._drop(removed)
        self._assigned = frozenset(keys)

    def unsubscribe(self) -> None:
        """Commit, leave the group and stop reading.

        Raises the errors of the requests and of the listener; reading has stopped even then.
        """
        try:
            if self._group is not None:
                self._leave(self._group)
        finally:
            self._group = self._fetcher = self._pattern = None
            self._topics = ()
            self._drop(self._assigned)
            self._assigned = frozenset()

    def _leave(self, group: GroupConsumer) -> None:
        """Commit, call the listener for the revoked partitions, and leave the group.

        Offsets that the listener commits come after the automatic commit.
        Source: ConsumerCoordinator.close, AbstractCoordinator.close of 3.9.1.
        """
        try:
            group.commit_before_leaving()
        finally:
            try:
                self._revoke_by_group(tuple(self._assigned))
            finally:
                group.session.leave()

    @property
    def subscription(self) -> tuple[str, ...]:
        """Return the names of the topics that the consumer is subscribed to, sorted."""
        return self._topics

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """Return the partitions that are assigned to the consumer now, by hand or by the group."""
        return self._assigned

    def _request_matching_topics(self, pattern: re.Pattern[str]) -> tuple[str, ...]:
        """Return the sorted names of all topics that match a pattern now, without internal ones.

        The next check is due after metadata.max.age.ms.
        """
        topics = self._client.view(None).topics
        self._next_match_ms = self._now_ms() + self._settings.metadata_max_age_ms
        names = (name for name, topic in topics.items() if not topic.is_internal)
        return tuple(sorted(name for name in names if pattern.fullmatch(name)))

    def _subscribe_to(self, names: tuple[str, ...] | SubscriptionPattern) -> None:
        """Change the subscription of the group's member; create the member if there is none.

        A consumer with manually assigned partitions first commits their offsets and stops reading
        them.
        """
        self._topics = () if isinstance(names, SubscriptionPattern) else names
        if self._group is not None:
            self._group.session.subscribe(names)
            return
        assert self._settings.member is not None
        self._commit_assigned()
        self._fetcher = None
        self._drop(self._assigned)
        self._assigned = frozenset()
        self._group = create_group_consumer(
            self._client,
            self._settings.member,
            names,
            start_of=self._starts.find_by_reset,
            fetch=self._settings.fetch,
            auto_commit_interval_ms=self._settings.auto_commit_interval_ms,
            commits=self._settings.enable_auto_commit,
        )
        self._group.on_assigned = self._assign_by_group
        self._group.on_revoked = self._revoke_by_group

    def _assign_by_group(self, partitions: Sequence[TopicPartition]) -> None:
        """Take over the group's assignment, and call the listener for the added partitions.

        The group calls it after each rebalance with the whole assignment.
        """
        before, self._assigned = self._assigned, frozenset(partitions)
        self._drop(before - self._assigned)
        added = [key for key in partitions if key not in before]
        if partitions:
            self._listener.assigned(added)

    def _revoke_by_group(self, partitions: Sequence[TopicPartition]) -> None:
        """Call the listener for revoked partitions; then drop the partitions, even if it raises.

        The group calls this in a rebalance, `_leave` for all partitions.
        """
        try:
            self._listener.revoked(partitions)
        finally:
            self._drop(partitions)
            self._assigned = self._assigned.difference(partitions)

    def _drop(self, partitions: Collection[TopicPartition]) -> None:
        """Drop the buffered records and the noted leader epochs of partitions."""
        self._records.drop(partitions)
        for key in partitions:
            self._epochs.pop(key, None)

    # Reading

    def poll(self, timeout_ms: int) -> list[ConsumerRecord]:
        """Return records, after `timeout_ms` at the latest; join the group first if needed.

        Raises NoOffset, errors of the group, errors of a partition that no retry can resolve, and
        errors of the listener.
        """
        self._polled_ms = now_ms = self._now_ms()
        self._records.mark_processed()
        with self._client.bound_retries(now_ms + timeout_ms):
            self._receive_with_retries(now_ms + timeout_ms)
        records = self._records.take(self._settings.max_poll_records, self.paused)
        self._note_epochs()
        self._note_processed()
        return records

    def _receive_with_retries(self, until_ms: int) -> None:
        """Fetch records into the buffer; retry after retriable errors until `until_ms` (monotonic).

        Raises any other error, and every error of the listener.
        """
        attempt = 0
        while True:
            try:
                self._receive_once(max(until_ms - self._now_ms(), 0))
                return
            except EngineError as error:
                if not may_pass(error) or error is self._listener.failure:
                    raise
                if not attempt:
                    log_trouble("poll", error)
            pause_ms = min(self._client.backoff_ms(attempt), until_ms - self._now_ms())
            attempt += 1
            if pause_ms <= 0 or self._client.connections.is_interrupted:
                return
            self._client.connections.pause(pause_ms, may_be_interrupted=True)

    def _receive_once(self, timeout_ms: int) -> None:
        """Keep the group membership alive, or fetch records into the buffer for up to `timeout_ms`.

        It does not fetch while the buffer has records of partitions that are not paused. Without a
        group and an assignment it only waits. Raises the errors of `poll`, and retriable ones.
        """
        if self._pattern is not None and self._now_ms() >= self._next_match_ms:
            names = self._request_matching_topics(self._pattern)
            if names != self._topics or self._group is None:
                self._subscribe_to(names)
        if self._group is not None and self._records.has_other_than(self.paused):
            self._group.keep_membership()
        elif self._group is not None:
            self._append_records(self._group.poll(timeout_ms))
        elif self._fetcher is not None:
            self._commit_by_time()
            if not self._records.has_other_than(self.paused):
                self._append_records(self._fetcher.poll(timeout_ms))
        else:
            self._client.connections.pause(timeout_ms, may_be_interrupted=True)

    def _append_records(self, consumed: Sequence[ConsumedRecords]) -> None:
        """Buffer fetched records; raise the first error of a partition after all are buffered.

        An error that a later poll may resolve is logged instead.
        """
        for records in consumed:
            self._epochs.setdefault(records.partition, NO_EPOCH)
            self._records.append(
                [
                    ConsumerRecord(
                        *records.partition,
                        record.offset,
                        record.timestamp_ms,
                        record.timestamp_type,
                        record.key,
                        record.value,
                        record.headers,
                        leader_epoch,
                    )
                    for record, leader_epoch in records.records
                ]
            )
        failures = []
        for records in consumed:
            failure = self._continue_after_error(records)
            if failure is not None and _is_cured_by_polling(failure):
                log_trouble(f"{records.partition.topic}-{records.partition.partition}", failure)
                if self._group is not None and _is_of_unknown_topic(failure):
                    self._group.session.check_topics_next()
            elif failure is not None:
                failures.append(failure)
        if failures:
            self._note_processed()
            raise failures[0]

    def _continue_after_error(self, records: ConsumedRecords) -> EngineError | None:
        """Set the offset at which a partition continues after an error; return that error.

        The position becomes the reset offset, after LogTruncated the offset where the logs diverge,
        else it remains. None: there was no error, or the new position resolved it.
        """
        error, partition = records.error, records.partition
        if error is None:
            return None
        start: int | EngineError = error
        is_out_of_range = isinstance(error, ApiError) and error.code == OFFSET_OUT_OF_RANGE
        if isinstance(error, LogTruncated) and self._settings.auto_offset_reset != "none":
            # The position returns to where the logs diverge, if that is known.
            start = error.end_offset if error.end_offset is not None else error
            is_out_of_range = error.end_offset is None
        if is_out_of_range and self._settings.auto_offset_reset != "none":
            try:
                start = self._starts.find_by_reset([partition])[partition]
            except EngineError as refused:
                start = refused
        if isinstance(start, EngineError):
            self._current_fetcher().try_again(partition, records.next_offset)
            return start
        self._current_fetcher().seek(partition, start)
        return None

    def put_back(self, records: Collection[ConsumerRecord]) -> None:
        """Return records of the last poll to the buffer: its last ones that are among `records`.

        The next poll returns them again; they do not count as processed. Records of partitions that
        were revoked or sought since are left out.
        """
        for record in self._records.put_back(records):
            self._epochs[record.topic_partition] = NO_EPOCH
        self._note_epochs()
        self._note_processed()

    def _note_epochs(self) -> None:
        """Store the leader epoch of each partition's last returned record.

        A commit of the position includes that epoch.
        """
        for record in self._records.returned:
            self._epochs[record.topic_partition] = record.leader_epoch

    def _note_processed(self) -> None:
        """Report to the group the positions of returned records, which automatic commits use.

        Fetched records that no poll has returned yet are not processed.
        """
        if self._group is not None:
            for key, offset in self._read_positions().items():
                self._group.set_processed(key, offset, self._epochs[key])

    def _read_positions(self) -> dict[TopicPartition, int]:
        """Return the offset that `poll` returns next, by partition that was read or sought."""
        if not self._epochs:
            return {}
        fetcher = self._current_fetcher()
        positions = {key: fetcher.position(key) for key in self._epochs}
        return positions | self._records.next_offsets()

    # Positions

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Set the offset of the next record that `poll` returns of a partition.

        Raises NotAssigned.
        """
        fetcher = self._fetcher_of(partition)
        self._drop([partition])
        if self._group is not None:
            self._group.seek(partition, offset)
            self._group.set_processed(partition, offset)
        else:
            fetcher.seek(partition, offset)
        self._epochs[partition] = NO_EPOCH

    def seek_to_beginning(self, partitions: Collection[TopicPartition]) -> None:
        """Seek partitions to their log start offsets.

        Raises NotAssigned, and errors of the requests.
        """
        self._seek_to(partitions, EARLIEST)

    def seek_to_end(self, partitions: Collection[TopicPartition]) -> None:
        """Seek partitions to their log end offsets.

        Raises NotAssigned, and errors of the requests.
        """
        self._seek_to(partitions, LATEST)

    def _seek_to(self, partitions: Collection[TopicPartition], timestamp: int) -> None:
        """Seek each partition to the offset of a timestamp: EARLIEST or LATEST.

        Raises NotAssigned before any change, and the error of the first partition that has one.
        """
        for key in partitions:
            self._fetcher_of(key)
        for key, offset in self._starts.at(partitions, timestamp).items():
            if isinstance(offset, EngineError):
                raise offset
            self.seek(key, offset)

    def position(self, partition: TopicPartition) -> int:
        """Return the offset of the next record that `poll` returns.

        Raises NotAssigned, NoOffset, and the errors of the search for a new partition's start.
        """
        fetcher = self._fetcher_of(partition)
        if self._group is not None:
            self._group.find_start(partition)
        return self._read_positions().get(partition, fetcher.position(partition))

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Let polls return no records of these partitions until `resume`. Raises NotAssigned."""
        for key in partitions:
            self._fetcher_of(key).pause(key)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Let polls return records of these partitions again, after `pause`. Raises NotAssigned."""
        for key in partitions:
            self._fetcher_of(key).resume(key)

    @property
    def paused(self) -> frozenset[TopicPartition]:
        """Return the assigned partitions that `pause` has stopped."""
        fetcher = self._current_fetcher() if self._assigned else None
        return frozenset() if fetcher is None else fetcher.paused

    def _current_fetcher(self) -> Fetcher:
        """Return the group's fetcher, or the consumer's own if it has no group."""
        fetcher = self._fetcher if self._group is None else self._group.fetcher
        assert fetcher is not None
        return fetcher

    def _fetcher_of(self, partition: TopicPartition) -> Fetcher:
        """Return the current fetcher if `partition` is assigned; raise NotAssigned otherwise."""
        if partition not in self._assigned:
            raise NotAssigned(partition)
        return self._current_fetcher()

    # Offsets and the group

    def commit(self, offsets: Mapping[TopicPartition, int] | None = None) -> None:
        """Commit offsets, by default the positions after all records that polls have returned.

        The leader epochs of the last records are committed too; after a seek none is. Raises
        NoGroup, NotAMember if the group has continued without this member, and ApiError.
        """
        if self._settings.member is None:
            raise NoGroup("commit")
        wanted = self._read_positions() if offsets is None else dict(offsets)
        epochs = self._epochs if offsets is None else None
        if self._group is not None:
            self._group.session.commit(wanted, epochs)
        else:
            GroupSession(self._client, self._settings.member, ()).commit(wanted, epochs)

    def committed(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the group's committed offsets, by partition; partitions without one are left out.

        Raises NoGroup without a group id, and the errors of the request.
        """
        if self._settings.member is None:
            raise NoGroup("committed")
        if self._group is not None:
            found = self._group.session.committed(partitions)
        else:
            found = committed_offsets(self._client, self._settings.member.group_id, partitions)
        return {key: found[key] for key in partitions if key in found}

    def heartbeat(self) -> int | None:
        """Send a heartbeat if it is due; return the ms until the next one, None without a group.

        For an application with long pauses between polls. A member that exceeds
        max.poll.interval.ms leaves its group. Raises the errors of the request.
        """
        group, member = self._group, self._settings.member
        if group is None or member is None or not group.session.is_member:
            return None
        if self._now_ms() - self._polled_ms > member.max_poll_interval_ms:
            group.session.leave_until_polled()
            return None
        # If the group rebalances, the next poll joins again. After a retriable error the next call
        # retries, so that no poll waits for this one.
        with self._client.bound_retries(self._now_ms()):
            return group.session.keep_alive()

    def close(self, timeout_ms: int = CLOSE_TIMEOUT_MS) -> None:
        """Commit processed offsets if auto-commit is on, and leave the group, within `timeout_ms`.

        It does not wait for a rebalance: the member leaves while other members still join. Raises
        the errors of `unsubscribe`.
        """
        with self._client.bound_requests(timeout_ms):
            try:
                self._commit_assigned()
            finally:
                self.unsubscribe()

    def _commit_assigned(self) -> None:
        """Commit the positions of manually assigned partitions now, if auto-commit is on."""
        if self._fetcher is not None:
            self._next_commit_ms = 0
            self._commit_by_time()

    def _commit_by_time(self) -> None:
        """Commit the positions if auto-commit is on and its interval has passed.

        Used for manually assigned partitions; a group's member commits on its own.
        """
        settings = self._settings
        if settings.member is None or not settings.enable_auto_commit or not self._epochs:
            return
        now_ms = self._now_ms()
        if now_ms >= self._next_commit_ms:
            self._next_commit_ms = now_ms + settings.auto_commit_interval_ms
            commit_automatically(self.commit, settings.member.group_id, self._read_positions())

    def _now_ms(self) -> int:
        """Return the monotonic time in ms."""
        return self._client.clock.monotonic_ms()
