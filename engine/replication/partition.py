"""A partition on this broker: its role, its ISR and its high watermark.

```
           become_leader                        become_follower
 new ───────────────────> leader <────────────────────────────────> follower <─── new
                          append, read,                             append_as_follower,
                          record_follower_fetch                     truncate_to, read (KIP-392)
```

A state with an older partition or leader epoch changes nothing. This module does not wait and sends
nothing: requests to other parts of the broker are returned as effects.

Source: HW-1 … HW-18, ISR-1 … ISR-10, PART-1 … PART-6, REPL-3, REPL-4; Kafka's Partition.
Differs: lag is measured on the monotonic clock.
"""

from __future__ import annotations

from collections.abc import Callable, Container

from engine.host.ports import Clock
from engine.kafka_errors import NONE
from engine.limits import NEWEST_BATCH_BYTES_MAX
from engine.log.fast_log_reader import has_aborted_after, read_slice_fast
from engine.log.local_log import CODECS_ALONE, LocalLog
from engine.log.log_messages import LogStartReason
from engine.log.log_reader import EARLIEST, EARLIEST_LOCAL, LATEST
from engine.log.log_types import AppendInfo, FetchSlice, OffsetAndTimestamp, OffsetOutOfRange
from engine.log.producer_state import AppendOrigin
from engine.log.transaction_verifications import Verification
from engine.model import new_tuple
from engine.records.record import NO_TIMESTAMP
from engine.replication.effects import (
    Effect,
    FetchFrom,
    HighWatermarkMoved,
    LogEndMoved,
    LogStartMoved,
    ProposeIsr,
    RoleChanged,
    StopFetching,
)
from engine.replication.errors import (
    FencedLeaderEpoch,
    NotEnoughReplicas,
    NotLeaderOrFollower,
    OffsetNotAvailable,
    PolicyViolation,
    ReadOnlyLog,
    UnknownLeaderEpoch,
    not_assigned,
)
from engine.replication.fetched_append import append_fetched
from engine.replication.isr import (
    AfterRefusal,
    FollowerProgress,
    InSyncSet,
    after_refusal,
    counted_log_ends,
    followers_of,
    is_watermark_held,
    may_join,
    out_of_sync_replicas,
)
from engine.replication.partition_types import (
    DeletedRecords,
    EnoughReplicas,
    EpochEnd,
    FastRead,
    FetchParams,
    FetchSpec,
    IsrDecision,
    LeaderAppend,
    NewestBatch,
    PartitionRead,
    PartitionState,
    ReplicationConfig,
    RoleChange,
)
from engine.replication.topic_counts import TopicCounts
from engine.replication.watermark import (
    Isolation,
    follower_high_watermark,
    leader_high_watermark,
    readable_end,
)

#: The offset in DeleteRecords that stands for the high watermark.
DELETE_TO_HIGH_WATERMARK = -1
ACKS_ALL = -1
ACKS_LEADER = 1
_NO_EPOCH = -1
_NO_LEADER = -1
_COMMITTED = Isolation.COMMITTED
_NOT_APPLIED = RoleChange(is_applied=False)
_DEFAULTS = ReplicationConfig()


class Partition:
    """The only owner of a partition's high watermark and ISR.

    `is_alive` returns True if a broker is up; `high_watermark` is the checkpointed value, which is
    brought within the log (HW-2, PART-2).
    """

    def __init__(
        self,
        broker_id: int,
        log: LocalLog,
        clock: Clock,
        *,
        config: ReplicationConfig = _DEFAULTS,
        high_watermark: int = 0,
        is_alive: Callable[[int], bool],
    ) -> None:
        """Create a partition without a role: neither leader nor follower."""
        self.broker_id = broker_id
        self.topic_partition = log.topic_partition
        self.log = log
        self.config = config
        self._clock = clock
        self._is_alive = is_alive
        self.leader_id = _NO_LEADER
        self.leader_epoch = _NO_EPOCH
        self.partition_epoch = _NO_EPOCH
        self.assigned_replicas: tuple[int, ...] = ()
        #: The assigned replicas that a reassignment is adding, and those that it is removing.
        self.adding_replicas: tuple[int, ...] = ()
        self.removing_replicas: tuple[int, ...] = ()
        self.in_sync = InSyncSet(())
        #: Whether an ISR proposal is in flight: no other may be made.
        self._is_awaited = False
        #: Progress of the other replicas, see `followers_of`. Empty on a follower (HW-3).
        self.followers: dict[int, FollowerProgress] = {}
        #: Log end offset when this broker became leader in this epoch. None on a follower.
        self.epoch_start_offset: int | None = None
        #: Counts of the topic; those of the broker once the partition is hosted.
        self.counts = TopicCounts()
        #: The last batch appended by a leader with followers, kept if it is small: they read it
        #: next. None before.
        self.newest: NewestBatch | None = None
        self.high_watermark = follower_high_watermark(
            log.log_end_offset, high_watermark, log.log_start_offset
        )

    @property
    def is_leader(self) -> bool:
        """True if this broker leads the partition."""
        return self.leader_id == self.broker_id

    @property
    def last_stable_offset(self) -> int:
        """Return the last stable offset (exclusive end), the bound of read_committed."""
        return self.log.last_stable_offset(self.high_watermark)

    @property
    def min_isr_count(self) -> int:
        """Return how many replicas acks=-1 needs.

        That is min.insync.replicas, at most all assigned replicas.
        """
        return min(self.config.min_insync_replicas, max(len(self.assigned_replicas), 1))

    @property
    def is_under_min_isr(self) -> bool:
        """True if this broker leads the partition, and the ISR is below min.insync.replicas."""
        in_sync_count = len(self.in_sync.isr)
        # The setting comes first: for nearly every append this comparison decides.
        return (
            in_sync_count < self.config.min_insync_replicas
            and in_sync_count < self.min_isr_count
            and self.is_leader
        )

    # Roles

    def become_leader(self, state: PartitionState) -> RoleChange:
        """Become the leader in the state's leader epoch with its ISR; a stale state is not applied.

        The epoch is added to the epoch cache before it has a record: followers with entries of an
        epoch between must find where to truncate. Source: PART-3, REPL-1.

        Differs: a repeated LeaderAndIsr keeps the ISR of a pending AlterPartition, whose response
        has the new partition epoch. A leader that did not lead in the epoch just before resets the
        progress of its followers: another leader may have truncated them.
        """
        assert state.leader_id == self.broker_id
        if self._is_stale(state):
            return _NOT_APPLIED
        is_new_leader = not self.is_leader
        is_new_epoch = state.leader_epoch > self.leader_epoch
        knows_nobody = is_new_leader or state.leader_epoch > self.leader_epoch + 1
        followers = followers_of(self.broker_id, state.assigned_replicas, state.isr, self.followers)
        effects: list[Effect] = []
        if is_new_epoch:
            start, now_ms = self.log.log_end_offset, self._clock.monotonic_ms()
            self.log.epochs.assign(state.leader_epoch, start)
            followers = {
                id_: follower.at_new_epoch(
                    knows_nobody=knows_nobody,
                    is_in_sync=id_ in state.isr,
                    leader_log_end_offset=start,
                    now_ms=now_ms,
                )
                for id_, follower in followers.items()
            }
            self.epoch_start_offset = start
            effects.append(RoleChanged(self.topic_partition, state.leader_epoch))
        if is_new_leader:
            effects.append(StopFetching(self.topic_partition))
        self.followers = followers
        is_repeated = not is_new_epoch and state.partition_epoch == self.partition_epoch
        if not (is_repeated and self._is_awaited):
            self.in_sync, self._is_awaited = InSyncSet(state.isr), False
        self._set_leadership(state)
        # The set may be down to this replica alone.
        effects += self._maybe_move_high_watermark()
        return RoleChange(True, is_new_epoch, tuple(effects))

    def become_follower(self, state: PartitionState) -> RoleChange:
        """Follow another leader; each leader epoch starts fetching again (PART-3, R10)."""
        assert state.leader_id != self.broker_id
        if self._is_stale(state):
            return _NOT_APPLIED
        is_new_epoch = state.leader_epoch > self.leader_epoch
        was_leader = self.is_leader
        self.followers = {}
        self.in_sync, self._is_awaited = InSyncSet(()), False
        self.epoch_start_offset = None
        self._set_leadership(state)
        effects: list[Effect] = []
        if is_new_epoch or was_leader:
            effects.append(RoleChanged(self.topic_partition, state.leader_epoch))
        if is_new_epoch and state.leader_id == _NO_LEADER:
            effects.append(StopFetching(self.topic_partition))
        elif is_new_epoch:
            effects.append(FetchFrom(self.topic_partition, state.leader_id, state.leader_epoch))
        return RoleChange(True, is_new_epoch, tuple(effects))

    def _is_stale(self, state: PartitionState) -> bool:
        """Return True if the state has an older leader or partition epoch than this partition."""
        return (
            state.partition_epoch < self.partition_epoch or state.leader_epoch < self.leader_epoch
        )

    def _set_leadership(self, state: PartitionState) -> None:
        """Set leader, epochs and assigned replicas from the controller's state, but not the ISR."""
        self.leader_id, self.leader_epoch = state.leader_id, state.leader_epoch
        self.partition_epoch = state.partition_epoch
        self.assigned_replicas = state.assigned_replicas
        self.adding_replicas = state.adding_replicas
        self.removing_replicas = state.removing_replicas

    def serves(self, leader_epoch: int | None, *, is_leader_required: bool = True) -> bool:
        """True if a request with this leader epoch may read here (REPL-3).

        None means any epoch. With `is_leader_required` this broker must lead.
        """
        return (leader_epoch is None or leader_epoch == self.leader_epoch) and (
            self.leader_id == self.broker_id or not is_leader_required
        )

    def ensure_serves(self, current_leader_epoch: int | None, *, is_leader_required: bool) -> None:
        """Raise an error if `serves` is False for these arguments, as in Kafka.

        It is FencedLeaderEpoch, UnknownLeaderEpoch or NotLeaderOrFollower. Source: REPL-3.
        """
        if self.serves(current_leader_epoch, is_leader_required=is_leader_required):
            return
        if current_leader_epoch is not None and current_leader_epoch != self.leader_epoch:
            if current_leader_epoch < self.leader_epoch:
                raise FencedLeaderEpoch(
                    self.topic_partition, current_leader_epoch, self.leader_epoch
                )
            raise UnknownLeaderEpoch(self.topic_partition, current_leader_epoch, self.leader_epoch)
        raise NotLeaderOrFollower(
            self.topic_partition, f"broker {self.broker_id} is not the leader"
        )

    # Appending

    def append(
        self,
        batches: memoryview,
        required_acks: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
    ) -> LeaderAppend:
        """Append a producer's batches as the leader; return append info, end offset and effects.

        The high watermark is raised if the leader is the whole ISR. Raises NotLeaderOrFollower,
        ReadOnlyLog, NotEnoughReplicas for acks=-1, and the errors of the log, with nothing
        appended. Source: PART-5, ISR-9, PUR-12.
        """
        if self.leader_id != self.broker_id:
            self.ensure_serves(None, is_leader_required=True)
        if self.config.is_read_only:
            raise ReadOnlyLog(self.topic_partition)
        if required_acks == ACKS_ALL and len(self.in_sync.isr) < self.min_isr_count:
            raise NotEnoughReplicas(self.topic_partition, self.in_sync.isr, self.min_isr_count)
        log = self.log
        converted = log.conversion_count
        info = log.append_as_leader(batches, self.leader_epoch, self._clock.wall_ms(), origin)
        counts = self.counts
        counts.bytes_in += len(batches)
        counts.messages_in += info.last_offset - info.first_offset + 1
        counts.produce_conversions += log.conversion_count - converted
        end = info.last_offset + 1
        effects: tuple[Effect, ...] = ()
        if not info.is_duplicate:
            effects = self._maybe_move_high_watermark() or (
                LogEndMoved(self.topic_partition, log.log_end_offset),
            )
        return new_tuple(LeaderAppend, (info, end, effects))

    def begin_verification(
        self, producer_id: int, epoch: int, base_sequence: int
    ) -> Verification | None:
        """Return the verification that a transactional batch needs before its append.

        Returns None if the transaction is open in this log, so that none is needed. Raises
        NotLeaderOrFollower. Source: TXN-8; Partition.maybeStartTransactionVerification.
        """
        self.ensure_serves(None, is_leader_required=True)
        producers = self.log.producers
        if producers.has_open_transaction(producer_id, epoch):
            return None
        return producers.verifications.get_or_open(
            producer_id, epoch, base_sequence, now_ms=self._clock.wall_ms()
        )

    def append_fast(
        self,
        batches: memoryview,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        fast_attributes: Container[int] = CODECS_ALONE,
    ) -> AppendInfo | None:
        """Append batches as `append` does for acks=1; the caller completes delayed operations.

        Returns None, with nothing appended, if this broker does not lead, or if the bytes are not
        exactly one batch whose attributes are in `fast_attributes`, or a coordinator's marker. So a
        client's transactional batch that is not verified never takes this path. Raises the errors
        of the log, with nothing appended.
        """
        if self.leader_id != self.broker_id or self.config.is_read_only:
            return None
        log, epoch, now_ms = self.log, self.leader_epoch, self._clock.wall_ms()
        info, is_fast = log.append_fast(batches, epoch, now_ms, fast_attributes, origin), True
        if not isinstance(info, AppendInfo):
            if info is None:
                return None
            is_fast, converted = False, log.conversion_count
            info = log.append(info, epoch, now_ms, origin)
            self.counts.produce_conversions += log.conversion_count - converted
            # The caller counts the size in the log.
            self.counts.bytes_in += len(batches) - info.size_bytes
        first_offset, last_offset, _, _, _, _, _, is_duplicate = info
        if is_duplicate:
            if is_fast:
                self.counts.bytes_in += len(batches)
        elif self.followers:
            if is_fast and len(batches) <= NEWEST_BATCH_BYTES_MAX:
                newest = (first_offset, last_offset + 1, epoch, bytes(batches))
                self.newest = new_tuple(NewestBatch, newest)
            self._maybe_move_high_watermark()
        elif last_offset >= self.high_watermark:
            self.high_watermark = last_offset + 1
        return info

    def append_own_fast(self, record: bytes, now_ms: int) -> int | None:
        """Append one record, encoded by `one_record`, as `append_fast` does.

        Returns the record's offset. Returns None, with nothing appended, if this broker does not
        lead, or if the log's format or codec differs from the record's. Raises the errors of the
        log, with nothing appended.
        """
        if self.leader_id != self.broker_id or self.config.is_read_only:
            return None
        appended = self.log.append_own_fast(record, now_ms, self.leader_epoch, now_ms)
        if appended is None:
            return None
        offset, batch = appended
        if self.followers:
            if len(batch) <= NEWEST_BATCH_BYTES_MAX:
                newest = (offset, offset + 1, self.leader_epoch, batch)
                self.newest = new_tuple(NewestBatch, newest)
            self._maybe_move_high_watermark()
        elif offset >= self.high_watermark:
            self.high_watermark = offset + 1
        return offset

    def append_as_follower(
        self, batches: memoryview, leader_watermark: int, leader_log_start_offset: int
    ) -> tuple[AppendInfo, tuple[Effect, ...]]:
        """Append the leader's batches; apply its high watermark and log start offset (HW-6, HW-8).

        Returns the append info and the effects that the caller performs.
        """
        assert not self.is_leader
        log = self.log
        info = append_fetched(log, batches, self._clock.wall_ms(), self.leader_epoch)
        size = len(batches)
        self.counts.replication_bytes_in += size
        if self.broker_id in self.adding_replicas:
            self.counts.reassignment_bytes_in += size
        before = self.high_watermark
        self.high_watermark = follower_high_watermark(
            log.log_end_offset, leader_watermark, log.log_start_offset
        )
        effects: list[Effect] = []
        if self.high_watermark > before:
            effects.append(HighWatermarkMoved(self.topic_partition, self.high_watermark))
        start = min(leader_log_start_offset, self.high_watermark)
        reason = LogStartReason.LEADER_START
        if log.maybe_increment_log_start_offset(start, self.high_watermark, reason):
            effects.append(LogStartMoved(self.topic_partition, start))
        return info, tuple(effects)

    def truncate_to(self, offset: int) -> None:
        """Remove all records from `offset` on; the high watermark is at most the new log end."""
        self.log.truncate_to(offset, self._clock.wall_ms())
        self.high_watermark = min(self.high_watermark, self.log.log_end_offset)

    def restart_at(self, offset: int) -> None:
        """Remove all records; the empty log and the high watermark start at `offset` (PART-10)."""
        self.log.restart_at(offset, self._clock.wall_ms())
        self.high_watermark = offset

    def check_enough_replicas(self, required_offset: int) -> EnoughReplicas:
        """Return whether acks=-1 is complete up to an offset, and the present and needed counts.

        It is complete if the high watermark has reached `required_offset` (exclusive). Raises the
        errors of `ensure_serves` if this broker does not lead. Source: ISR-7, ISR-9, PART-6.
        """
        if self.leader_id != self.broker_id:
            self.ensure_serves(None, is_leader_required=True)
        is_reached = self.high_watermark >= required_offset
        isr_count = len(self.in_sync.maximal_isr)
        return new_tuple(EnoughReplicas, (is_reached, isr_count, self.min_isr_count))

    # Reading

    def read(
        self, params: FetchParams, spec: FetchSpec, max_bytes: int, *, at_least_one_batch: bool
    ) -> PartitionRead:
        """Return batches up to the reader's bound (high watermark, LSO or log end offset).

        A follower's progress is not recorded here. Raises the errors of `ensure_serves`,
        OffsetOutOfRange and CorruptRecord; for a follower that is not assigned UnknownLeaderEpoch,
        or NotLeaderOrFollower if the follower sent no epoch. Source: HW-13, FET-3, FET-5, FET-6,
        REPL-4, REPL-9.
        """
        self.ensure_serves(spec.current_leader_epoch, is_leader_required=params.is_leader_required)
        if params.is_from_follower and params.replica_id not in self.followers:
            requested = params.replica_id, spec.current_leader_epoch
            raise not_assigned(self.topic_partition, *requested, self.leader_epoch)
        log = self.log
        stable = self.last_stable_offset
        diverging = self.find_divergence(spec)
        records = None
        if diverging is None:
            records = log.read(
                spec.fetch_offset,
                min(max_bytes, spec.max_bytes),
                readable_end(params.isolation, log.log_end_offset, self.high_watermark, stable),
                at_least_one_batch=at_least_one_batch,
                with_aborted=params.isolation is Isolation.COMMITTED,
            )
        start, end = log.log_start_offset, log.log_end_offset
        found = (records, self.high_watermark, stable, start, end, diverging)
        return new_tuple(PartitionRead, found)

    def read_fast(self, spec: FetchSpec, max_bytes: int, isolation: Isolation) -> FastRead | None:
        """Return records for a consumer as `read` does; None if the general path has to read.

        That is so for an error, a diverging log and aborted transactions. Raises CorruptRecord.
        """
        offset, partition_max_bytes, leader_epoch, fetched_epoch, _ = spec
        if fetched_epoch is not None or not self.serves(leader_epoch):
            return None
        max_bytes = max_bytes if max_bytes <= partition_max_bytes else partition_max_bytes
        log = self.log
        watermark = self.high_watermark
        stable = log.last_stable_offset(watermark)
        end = readable_end(isolation, log.log_end_offset, watermark, stable)
        records: bytes | FetchSlice | None = None
        if offset < end:
            if isolation is not _COMMITTED or not has_aborted_after(log, offset):
                records = read_slice_fast(log, offset, max_bytes, end)
        elif offset == end >= log.log_start_offset:
            records = b""
        if records is None:
            return None
        start = log.log_start_offset
        return new_tuple(FastRead, (records, watermark, stable, start, self.counts))

    def note_sent_to_follower(self, replica_id: int, size_bytes: int) -> None:
        """Count the bytes of records that are sent to a follower, for the replication metrics."""
        self.counts.replication_bytes_out += size_bytes
        if replica_id in self.adding_replicas:
            self.counts.reassignment_bytes_out += size_bytes

    def find_divergence(self, spec: FetchSpec) -> EpochEnd | None:
        """Return the epoch and offset from which the reader's log diverges, None if it does not.

        None also for a reader that sent no last fetched epoch. Raises OffsetOutOfRange if this log
        does not know the reader's epoch. Source: REPL-4, KIP-595.
        """
        if spec.last_fetched_epoch is None:
            return None
        log = self.log
        last = log.end_offset_for_epoch(spec.last_fetched_epoch)
        if last is None or spec.fetch_offset < log.log_start_offset:
            raise OffsetOutOfRange(spec.fetch_offset, log.log_start_offset, log.log_end_offset)
        end = EpochEnd(*last)
        if end.leader_epoch < spec.last_fetched_epoch or end.end_offset < spec.fetch_offset:
            return end
        return None

    def end_offset_for_epoch(
        self, leader_epoch: int, current_leader_epoch: int | None
    ) -> EpochEnd | None:
        """Return the largest known epoch ≤ `leader_epoch` with its end offset (exclusive).

        None if none. Followers and consumers find by it where their log diverges. Raises the errors
        of `ensure_serves`. Source: Partition.lastOffsetForLeaderEpoch; KIP-320.
        """
        self.ensure_serves(current_leader_epoch, is_leader_required=True)
        last = self.log.end_offset_for_epoch(leader_epoch)
        return None if last is None else EpochEnd(*last)

    def find_offset(
        self,
        timestamp_ms: int,
        isolation: Isolation,
        *,
        current_leader_epoch: int | None = None,
        is_leader_required: bool = True,
    ) -> OffsetAndTimestamp | None:
        """Return the first visible record at or after a timestamp, None if there is none.

        Negative timestamps request ends, see `log_reader.find_offset_for_timestamp`. Raises
        OffsetNotAvailable to consumers while a new leader's high watermark is below the start of
        its epoch, since a result could go backwards. Source: HW-15, KIP-207.
        """
        self.ensure_serves(current_leader_epoch, is_leader_required=is_leader_required)
        log = self.log
        end = readable_end(
            isolation, log.log_end_offset, self.high_watermark, self.last_stable_offset
        )
        if timestamp_ms == LATEST:
            self._require_available(isolation)
            return OffsetAndTimestamp(NO_TIMESTAMP, end, self.leader_epoch)
        first = log.offset_for_timestamp(timestamp_ms)
        if timestamp_ms in (EARLIEST, EARLIEST_LOCAL) or (first is not None and first.offset < end):
            return first
        self._require_available(isolation)
        return None

    def _require_available(self, isolation: Isolation) -> None:
        """Raise OffsetNotAvailable to consumers until the high watermark reaches the epoch."""
        # Source: R6.
        start = self.epoch_start_offset
        if start is not None and isolation is not Isolation.LOG_END and start > self.high_watermark:
            raise OffsetNotAvailable(self.topic_partition, self.high_watermark, start)

    # Followers, the in-sync set and the watermark

    def record_follower_fetch(
        self, replica_id: int, spec: FetchSpec, leader_log_end_offset: int
    ) -> tuple[Effect, ...]:
        """Record a follower's progress: its fetch offset is its log end offset (HW-5, ISR-5, R6).

        `leader_log_end_offset` is the log end offset at the time of the read.
        """
        fetch_offset, _, leader_epoch, _, log_start_offset = spec
        before = self.followers.get(replica_id)
        if before is None:
            raise not_assigned(self.topic_partition, replica_id, leader_epoch, self.leader_epoch)
        progress = before.after_fetch(
            fetch_offset,
            log_start_offset,
            leader_log_end_offset=leader_log_end_offset,
            now_ms=self._clock.monotonic_ms(),
        )
        self.followers[replica_id] = progress
        if replica_id in self.in_sync.committed:
            return (
                self._maybe_move_high_watermark() if fetch_offset != before.log_end_offset else ()
            )
        effects: list[Effect] = []
        if may_join(
            self.in_sync,
            replica_id,
            progress,
            high_watermark=self.high_watermark,
            epoch_start_offset=self.epoch_start_offset or 0,
        ) and (replica_id in self.assigned_replicas and self._is_alive(replica_id)):
            effects.append(self._propose_isr(self.in_sync.growing(replica_id)))
        if fetch_offset != before.log_end_offset:
            effects += self._maybe_move_high_watermark()
        return tuple(effects)

    def maybe_shrink_isr(self) -> tuple[Effect, ...]:
        """Propose to remove replicas that lag or are not assigned from the ISR (ISR-3).

        Called every half replica.lag.time.max.ms.
        """
        if not self.is_leader:
            return ()
        gone = out_of_sync_replicas(
            self.in_sync,
            self.assigned_replicas,
            self.followers,
            self.log.log_end_offset,
            leader_id=self.broker_id,
            now_ms=self._clock.monotonic_ms(),
            lag_ms_max=self.config.replica_lag_time_max_ms,
        )
        return (self._propose_isr(self.in_sync.shrinking(gone)),) if gone else ()

    def _propose_isr(self, in_sync: InSyncSet) -> ProposeIsr:
        """Set the proposed ISR, and return the effect that sends it to the controller.

        No other ISR is proposed before the controller's response.
        """
        self.in_sync, self._is_awaited = in_sync, True
        assert in_sync.pending is not None
        return ProposeIsr(
            self.topic_partition,
            in_sync.pending,
            self.leader_epoch,
            self.partition_epoch,
            self.log.topic_uuid,
        )

    def on_isr_decided(self, proposal: ProposeIsr, decision: IsrDecision) -> tuple[Effect, ...]:
        """Apply the controller's response to an AlterPartition proposal, unless it is outdated.

        A smaller ISR may raise the high watermark at once (ISR-8). `after_refusal` decides what
        follows an error.
        """
        if not self.is_in_flight(proposal):
            return ()
        if decision.error_code == NONE:
            return self._commit_isr(decision)
        follows = after_refusal(decision.error_code)
        if follows is AfterRefusal.GO_BACK:
            self.in_sync = self.in_sync.rejected()
        self._is_awaited = follows is AfterRefusal.PROPOSE_AGAIN
        return (proposal,) if follows is AfterRefusal.PROPOSE_AGAIN else ()

    def is_in_flight(self, proposal: ProposeIsr) -> bool:
        """True if `proposal` is the ISR proposal that waits for the controller's response."""
        return (
            self.is_leader
            and proposal.topic_id in (None, self.log.topic_uuid)
            and self.in_sync.pending == proposal.isr
            and proposal.leader_epoch == self.leader_epoch
            and proposal.partition_epoch == self.partition_epoch
        )

    def _commit_isr(self, decision: IsrDecision) -> tuple[Effect, ...]:
        """Set the ISR that the controller stored, unless its leader or partition epoch is old.

        Returns the effects of a raised high watermark.
        """
        is_current = decision.leader_epoch == self.leader_epoch
        if not is_current or decision.partition_epoch < self.partition_epoch:
            return ()
        self.in_sync, self._is_awaited = InSyncSet(decision.isr), False
        self.partition_epoch = decision.partition_epoch
        return self._maybe_move_high_watermark()

    def _maybe_move_high_watermark(self) -> tuple[Effect, ...]:
        """Raise the high watermark to the lowest log end offset of the replicas that count.

        A live follower outside the ISR that is caught up counts too: otherwise the high watermark
        would pass a follower that is about to join. With fewer than min.insync.replicas in sync
        nothing is committed.

        Source: HW-7, REPL-19; Partition.maybeIncrementLeaderHW of 3.9.
        """
        end, current = self.log.log_end_offset, self.high_watermark
        followers = self.followers
        if followers:
            if is_watermark_held(self.in_sync, followers, current) or self.is_under_min_isr:
                return ()
            lag_ms_max, now_ms = self.config.replica_lag_time_max_ms, self._clock.monotonic_ms()
            ends = counted_log_ends(
                self.in_sync, followers, end, self._is_alive, now_ms=now_ms, lag_ms_max=lag_ms_max
            )
            moved = leader_high_watermark(current, end, ends)
        else:
            # The only replica is in sync, which is enough, and no other replica bounds the high
            # watermark.
            moved = max(current, end)
        if moved == current:
            return ()
        self.high_watermark = moved
        return (new_tuple(HighWatermarkMoved, (self.topic_partition, moved)),)

    # Deleting

    def low_watermark(self) -> int:
        """Return the lowest log start offset of this replica and the live followers (HW-18)."""
        live = (follower for id_, follower in self.followers.items() if self._is_alive(id_))
        return min((self.log.log_start_offset, *(it.log_start_offset for it in live)))

    def delete_records_before(self, offset: int) -> DeletedRecords:
        """Raise the log start offset to `offset`, to the high watermark for −1 (REPL-15).

        Raises NotLeaderOrFollower, PolicyViolation for a topic without `delete` in cleanup.policy,
        OffsetOutOfRange below 0 and above the high watermark.
        """
        self.ensure_serves(None, is_leader_required=True)
        log = self.log
        if not log.config.is_deleting:
            raise PolicyViolation(self.topic_partition)
        wanted = self.high_watermark if offset == DELETE_TO_HIGH_WATERMARK else offset
        if wanted < 0:
            raise OffsetOutOfRange(wanted, log.log_start_offset, self.high_watermark)
        effects: tuple[Effect, ...] = ()
        if log.maybe_increment_log_start_offset(
            wanted, self.high_watermark, LogStartReason.DELETE_RECORDS
        ):
            effects = (LogStartMoved(self.topic_partition, wanted),)
        return DeletedRecords(wanted, self.low_watermark(), effects)
