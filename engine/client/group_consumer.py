"""A consumer in a group: records of the partitions that the group gives it, with commits.

One `poll`:

1. Records of earlier polls count as processed: the positions of all partitions are committed, if
   `auto_commit_interval_ms` has passed since the last commit. A failed commit is logged, and tried
   again after that time.
2. A heartbeat is sent if it is due. If the group rebalances, the positions are committed if the
   coordinator still accepts them, and the member joins again.
3. Added partitions without a `seek` begin at their committed offsets, without a commit at the
   offset that `start_of` returns. If the offset cannot be found now, as for a deleted topic, it is
   looked up again later, and the other partitions are fetched meanwhile.
4. Fetched records are returned.

If a callback raises, the poll ends with its error after the step in which it was called. The next
poll continues with the following step, and does not call it again for the same partitions.

Without `commits` nothing is committed here; the caller may commit by the session.

Records are therefore processed at least once: a process that dies between two polls has not
committed the records that the first of them returned.

Source: KafkaConsumer.poll, ConsumerCoordinator.maybeAutoCommitOffsetsAsync of 3.9.1.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from engine.client.auto_commit import commit_automatically
from engine.client.blocking import KafkaClient
from engine.client.consumer_heartbeat import SubscriptionPattern
from engine.client.errors import may_pass
from engine.client.fetching import ConsumedRecords, Fetcher, FetchOptions
from engine.client.group_session import GroupSession
from engine.client.member_session import MemberSession, MemberSettings, NotAMember
from engine.errors import ApiError, EngineError
from engine.kafka_errors import UNKNOWN_TOPIC_OR_PARTITION
from engine.model import TopicPartition
from engine.records.record_run import NO_EPOCH

AUTO_COMMIT_INTERVAL_MS: Final = 5_000

#: Returns the start offset, or an error, of each partition without a committed offset.
StartOf = Callable[[Sequence[TopicPartition]], Mapping[TopicPartition, int | EngineError]]


class GroupConsumer:
    """A member of a group that fetches its assigned partitions."""

    def __init__(
        self,
        client: KafkaClient,
        settings: MemberSettings,
        topics: Sequence[str] | SubscriptionPattern,
        *,
        start_of: StartOf,
        fetch: FetchOptions | None = None,
        auto_commit_interval_ms: int = AUTO_COMMIT_INTERVAL_MS,
        commits: bool = True,
    ) -> None:
        """Create a member that has not joined yet.

        `start_of` returns the start offsets of partitions without a committed one. Raises
        SettingOfOtherProtocol.
        """
        self._client = client
        client.has_coordinators_apart = True
        self._commits = commits
        self._group_id = settings.group_id
        settings.check()
        self._settings = settings
        self.session: MemberSession = self._new_session(topics)
        self._start_of = start_of
        fetch = fetch or FetchOptions()
        self._fetch_options = fetch._replace(client_rack=fetch.client_rack or settings.client_rack)
        self._interval_ms = auto_commit_interval_ms
        self._fetcher = Fetcher(client, {}, self._fetch_options)
        #: Offset to commit for each partition: after the records that polls have returned.
        self._processed: dict[TopicPartition, int] = {}
        #: Leader epochs of the last records of completely processed polls, committed with offsets.
        self._epochs: dict[TopicPartition, int] = {}
        #: The last committed offsets: unchanged ones are not committed again.
        self._committed: dict[TopicPartition, int] = {}
        self._next_commit_ms = 0
        #: The partitions that the application has: those of the last `on_assigned`.
        self._given: tuple[TopicPartition, ...] = ()
        #: The assigned partitions whose start offset is not known yet, in order.
        self._unstarted: dict[TopicPartition, None] = {}
        #: The error of the last request for start offsets (None after a success), and when the next
        #: one may begin (monotonic).
        self._start_trouble: EngineError | None = None
        self._next_start_ms = 0
        #: Called with newly assigned partitions, and with none when all are revoked.
        self.on_assigned: Callable[[Sequence[TopicPartition]], None] = lambda _partitions: None
        #: Called after each join with the partitions of the member, also if there are none.
        self.on_joined: Callable[[Sequence[TopicPartition]], None] = lambda _partitions: None
        #: Called with partitions before they are revoked, and with those that were lost.
        self.on_revoked: Callable[[Sequence[TopicPartition]], None] = lambda _partitions: None

    @property
    def trouble(self) -> EngineError | None:
        """Return an error for which some partition cannot be read now; None if all can be read.

        It is of the request for start offsets, or of a Fetch.
        """
        return self._start_trouble or self._fetcher.trouble

    def poll(self, timeout_ms: int) -> list[ConsumedRecords]:
        """Return fetched records after at most `timeout_ms`, which does not bound a join.

        Raises errors of the group that another join cannot resolve.
        """
        self.keep_membership()
        wait_ms = min(timeout_ms, self.session.time_left_ms())
        if self._unstarted:
            now_ms = self._client.clock.monotonic_ms()
            wait_ms = min(wait_ms, max(self._next_start_ms - now_ms, 0))
        if not self._fetcher.partitions:
            # The member has no partitions to fetch: only wait, and stay in the group.
            self._client.connections.pause(wait_ms, may_be_interrupted=True)
            return []
        consumed = self._fetcher.poll(wait_ms)
        for records in consumed:
            if records.error is None:
                self._processed[records.partition] = records.next_offset
                if records.runs:
                    self._epochs[records.partition] = records.runs[-1].leader_epoch
        return consumed

    def keep_membership(self) -> None:
        """Commit processed offsets if due, stay in the group or join it, and find start offsets.

        A retriable error of the start offsets is kept as `trouble` while other partitions are read.
        """
        if self._client.clock.monotonic_ms() >= self._next_commit_ms:
            commit_automatically(self._commit_processed, self._group_id, self._processed)
        self._stay_in_group()
        now_ms = self._client.clock.monotonic_ms()
        if now_ms < self._next_start_ms:
            return
        try:
            self.find_starts()
        except EngineError as error:
            # Other partitions are read in the meantime.
            if not may_pass(error) or not self._fetcher.partitions:
                raise
            self._start_trouble = error
            self._next_start_ms = now_ms + self._client.settings.retry_backoff_ms_max

    def _stay_in_group(self) -> None:
        """Poll the group's session, which sends heartbeats; join again if the member has to."""
        if not self._classic.poll():
            self._join_again()

    def _new_session(self, topics: Sequence[str] | SubscriptionPattern) -> MemberSession:
        """Return a session of the classic protocol that has not joined yet."""
        assert not isinstance(topics, SubscriptionPattern)
        self._classic = GroupSession(self._client, self._settings, topics)
        return self._classic

    def find_starts(self) -> None:
        """Find the start offset of each partition without a position (3).

        Raises the first error of a partition, after the others have their start, and the errors of
        the request.
        """
        self._start_trouble, self._next_start_ms = None, 0
        if not self._unstarted:
            return
        failure: EngineError | None = None
        for key, start in self._find_start_offsets(tuple(self._unstarted)).items():
            if isinstance(start, EngineError):
                failure = failure or start
            else:
                self._fetcher.seek(key, start)
                # A position is committed even if the partition never has a record.
                self._processed.setdefault(key, start)
                del self._unstarted[key]
        if failure is not None:
            raise failure

    def find_start(self, partition: TopicPartition) -> None:
        """Find the start offset of a partition if it has no position yet.

        Raises the error of this partition, but not those of others.
        """
        try:
            if partition in self._unstarted:
                self.find_starts()
        except EngineError:
            if partition in self._unstarted:
                raise

    @property
    def fetcher(self) -> Fetcher:
        """Return the fetcher of the assigned partitions; do not keep it: a join may replace it."""
        return self._fetcher

    def set_processed(
        self, partition: TopicPartition, next_offset: int, leader_epoch: int = NO_EPOCH
    ) -> None:
        """Set the offset after the last processed record of a partition.

        The next commit includes it. `leader_epoch` is that of the last processed record; with
        NO_EPOCH the offset is committed without one, as by Java's consumer after a seek.
        """
        self._processed[partition] = next_offset
        if leader_epoch == NO_EPOCH:
            self._epochs.pop(partition, None)
        else:
            self._epochs[partition] = leader_epoch

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Fetch one of the member's partitions from `offset` on.

        Its start offset need not be found.
        """
        self._unstarted.pop(partition, None)
        self._fetcher.seek(partition, offset)

    def is_at(self, ends: Mapping[TopicPartition, int]) -> bool:
        """True if the member has read its partitions up to the end offsets `ends` (exclusive).

        False also without partitions, or while a start offset is missing.
        """
        if self._unstarted:
            return False
        return bool(ends) and all(
            self._fetcher.position(partition) >= end for partition, end in ends.items()
        )

    def close(self) -> None:
        """Commit processed offsets and leave the group. Raises the errors of the requests."""
        try:
            self.commit_before_leaving()
        finally:
            self.session.leave()

    def commit_before_leaving(self) -> None:
        """Commit processed offsets before the member leaves, even if the generation is ending.

        Raises the errors of the request.
        """
        if self.session.is_joined:
            self._commit_processed()
        elif not self.session.is_joining:
            self._commit_before_joining()

    def _commit_processed(self) -> None:
        """Commit changed offsets if the member is joined.

        Also sets the time of the next automatic commit.
        """
        self._next_commit_ms = self._client.clock.monotonic_ms() + self._interval_ms
        if self.session.is_joined:
            self._commit_changed()

    def _commit_before_joining(self) -> None:
        """Commit changed offsets before the member joins again, with the generation that ends.

        Until the join the coordinator still accepts that generation.
        """
        if self.session.generation_id >= 0:
            self._commit_changed()

    def _commit_changed(self) -> None:
        """Commit the processed offsets that differ from the last committed ones.

        Raises ApiError and errors of the request, but not NotAMember: after that another member
        reads the records again.
        """
        changed = {
            key: offset
            for key, offset in self._processed.items()
            if self._committed.get(key) != offset
        }
        if not self._commits or not changed:
            return
        try:
            self.session.commit(changed, self._epochs)
        except NotAMember:
            # The group has continued without this member: another member reads the records again.
            return
        except ApiError as error:
            # A topic was deleted: its offsets are useless, and all other offsets are committed.
            if error.code != UNKNOWN_TOPIC_OR_PARTITION:
                raise
        self._committed |= changed

    def _join_again(self) -> None:
        """Commit, revoke all partitions unless the protocol is cooperative, and join the group."""
        # The member joins even if the commit fails, but records are then read again: so the commit
        # may take longer than the poll.
        with self._client.bound_retries(None):
            commit_automatically(self._commit_before_joining, self._group_id, self._processed)
        if not self._classic.is_cooperative:
            self._revoke_all()
        elif not self._given:
            self.on_assigned(())
        partitions = self._classic.join()
        self._take_over(partitions)
        self.on_joined(partitions)

    def _revoke_all(self) -> None:
        """Revoke all partitions, and replace the fetcher even if the listener raises.

        Called before an eager join, and after the member has lost its partitions.
        """
        held, self._given = self._given, ()
        try:
            if held:
                self.on_revoked(held)
        finally:
            self._fetcher = Fetcher(self._client, {}, self._fetch_options)
            self._unstarted.clear()
            self.on_assigned(())

    def _take_over(self, partitions: tuple[TopicPartition, ...]) -> None:
        """Apply a new assignment: keep retained partitions, revoke others, start added ones.

        A partition that was lost since the last assignment is stopped first, even if it is assigned
        again.
        """
        kept = self.session.kept_partitions.intersection(self._given)
        given_up = [key for key in self._given if key not in kept]
        try:
            if given_up:
                self.on_revoked(given_up)
        finally:
            for key in given_up:
                self._fetcher.stop(key)
                self._unstarted.pop(key, None)
            self._given = partitions
            self._forget_all_but(kept)
            self._next_start_ms = 0
            self._unstarted |= dict.fromkeys(key for key in partitions if key not in kept)
            self.on_assigned(partitions)

    def _forget_all_but(self, kept: Collection[TopicPartition]) -> None:
        """Drop processed and committed offsets and leader epochs of all partitions but `kept`."""
        for of_partitions in (self._processed, self._epochs, self._committed):
            for key in [key for key in of_partitions if key not in kept]:
                del of_partitions[key]

    def rewind(self) -> None:
        """Return to the committed offsets, so that the records after them are read again.

        Called after an abort of a transaction that would have committed later offsets. If the
        committed offsets cannot be fetched, that error is raised, and the next poll retries.
        """
        self._fetcher = Fetcher(self._client, {}, self._fetch_options)
        self._forget_all_but(())
        self._unstarted = dict.fromkeys(self.session.partitions)
        self.find_starts()
        self.on_assigned(self.session.partitions)

    def _find_start_offsets(
        self, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, int | EngineError]:
        """Return each partition's committed offset, else that of `start_of`, or an error.

        OffsetFetch waits for transactions that are about to commit.
        """
        committed = self.session.committed(partitions)
        found = {key: committed[key] for key in partitions if key in committed}
        self._committed |= found
        left = [key for key in partitions if key not in committed]
        return {**found, **(self._start_of(left) if left else {})}
