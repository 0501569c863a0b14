"""The partitions of one broker: appends and fetches over many, and the delayed ones.

```
append_records ─ each partition appends ─┬─ all complete at once ──────────────────> results
                                         └─ acks=-1: DelayedProduce ── watermark, deadline ─> kept
fetch ─ each partition is read ─┬─ enough bytes, an error, no wait ───────────────> results
                                └─ DelayedFetch ── append, watermark, deadline ─> read again ─> kept
delete_records ─ each log start rises ─┬─ on all live replicas ───────────────────> results
                                       └─ DelayedDeleteRecords ── fetches, deadline ─> kept
```

What is there at once is returned as it is, what is not as a promise. One is kept on the thread of
the loop, possibly before the call returns; what watches it must not raise, for it runs during what
others asked. One partition's failure is an error in its own
result and never fails the request (PUR-4). Effects are performed in the order they came,
those of nested calls behind those before.

Source: PART-5, FET-2, FET-3, HW-14, PUR-4 … PUR-12, REPL-17; Kafka's ReplicaManager.
Differs: nothing is read from tiered storage.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar, assert_never

from engine.errors import ApiError, StorageError
from engine.host.ports import Clock, LogDirOffline
from engine.host.promise import Promise
from engine.log.producer_state import AppendOrigin
from engine.model import TopicPartition, new_tuple
from engine.naming import INTERNAL_TOPICS
from engine.replication.awaited_append import AwaitedAppend, ProduceSide
from engine.replication.delayed_delete_records import (
    DelayedDeleteRecords,
    DeleteRecordsResult,
    DeleteRecordsResults,
)
from engine.replication.delayed_fetch import (
    DelayedFetch,
    FastDelayedFetch,
    FetchResults,
    WaitingPartition,
    release_results,
)
from engine.replication.delayed_operations import DelayedOperations
from engine.replication.delayed_produce import DelayedProduce, ProduceResult, ProduceResults
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
    InvalidRequiredAcks,
    InvalidTopic,
    NotLeaderOrFollower,
    ReplicaStorageFailed,
    UnknownTopicOrPartition,
    answer_to,
)
from engine.replication.large_append import VALID_ACKS, Appended, LargeAppends, LargeAppendSide
from engine.replication.large_fetch import LargeDelayedFetch, LargeFetches, LargeFetchSide
from engine.replication.parked_fetch import LeaderSide, Park, ParkedFetch
from engine.replication.partition import ACKS_ALL, ACKS_LEADER, Partition
from engine.replication.partition_reader import PartitionReader
from engine.replication.partition_types import FetchParams, FetchSpec, IsrDecision
from engine.replication.ports import ReplicaManagerConfig, ReplicaManagerPorts
from engine.replication.role_log_messages import log_isr, log_isr_proposal
from engine.replication.unchanged import Told

#: Refusals of an append after which Kafka does not tell where the log starts: corrupt, unknown,
#: not leader, too large (a batch, an append), no topic to write to, storage.
_ERRORS_WITHOUT_LOG_START = frozenset((2, 3, 6, 10, 17, 18, 56))

T = TypeVar("T")


class ReplicaManager:
    """All partitions that have a replica on this broker. Source: LOG-10."""

    def __init__(
        self,
        clock: Clock,
        ports: ReplicaManagerPorts,
        config: ReplicaManagerConfig | None = None,
    ) -> None:
        self._clock = clock
        self._ports = ports
        config = config or ReplicaManagerConfig()
        now_ms = clock.monotonic_ms()
        self._partitions: dict[TopicPartition, Partition] = {}
        self._offline: set[TopicPartition] = set()
        self._delayed = DelayedOperations(config, now_ms, self._read_now)
        self._produces, self._fetches = self._delayed.produces, self._delayed.fetches
        self._deletes = self._delayed.deletes
        self._check_deletes = self._delayed.check_deletes
        # What is watched, for a look before each of the very many events that nobody waits for.
        self._produce_keys = self._produces.watched_keys
        self._delete_keys = self._deletes.watched_keys
        self._fetch_keys = self._fetches.watched_keys
        self._reader = PartitionReader(self._partitions, self.find, self.answer_to, ports)
        self._leader_side = LeaderSide(
            self._partitions,
            self._reader.is_throttled,
            ports.leader_quota.record,
            self._taken_by,
            self._end,
        )
        self.awaited_append = AwaitedAppend(
            ProduceSide(
                clock,
                self._partitions,
                self.find,
                self._watch_produce,
                self._failed_append,
                self._complete_behind,
            )
        )
        append_side = LargeAppendSide(
            clock, self._append_some, self.find, self.perform, self._watch_produce
        )
        fetch_side = LargeFetchSide(
            clock, self._reader, self.find, self.perform, self._watch_fetch, self._check_deletes
        )
        #: Produces to very many partitions, and fetches of them.
        self.large_appends, self.large_fetches = LargeAppends(append_side), LargeFetches(fetch_side)
        self._effects: deque[Effect] = deque()
        self._is_performing = False

    # Partitions

    @property
    def partitions(self) -> Mapping[TopicPartition, Partition]:
        """Return the partitions that can be used."""
        return self._partitions

    @property
    def delayed_produce_count(self) -> int:
        """Count the produces that wait."""
        return self._produces.delayed_count

    @property
    def delayed_fetch_count(self) -> int:
        """Count the fetches that wait."""
        return self._fetches.delayed_count

    @property
    def delayed_delete_count(self) -> int:
        """Count the deletions of records that wait."""
        return self._deletes.delayed_count

    @property
    def sends_elsewhere(self) -> bool:
        """Return whether a consumer may be sent to a replica that is nearer to it."""
        return self._ports.nearest is not None

    def add(self, partition: Partition) -> None:
        """Take a partition; one that was offline is back."""
        self._offline.discard(partition.topic_partition)
        self._partitions[partition.topic_partition] = partition

    def remove(self, topic_partition: TopicPartition) -> Partition | None:
        """Let a partition go; its delayed operations complete."""
        self._offline.discard(topic_partition)
        partition = self._partitions.pop(topic_partition, None)
        self._ports.fetching.stop(topic_partition)
        self._ports.moving.stop(topic_partition)
        self._delayed.check_all(topic_partition)
        return partition

    def mark_offline(self, topic_partition: TopicPartition) -> None:
        """Respond KAFKA_STORAGE_ERROR for a partition whose directory has failed, until `add`."""
        self._partitions.pop(topic_partition, None)
        self._offline.add(topic_partition)
        self._ports.fetching.stop(topic_partition)
        self._ports.moving.stop(topic_partition)
        self._delayed.check_all(topic_partition)

    def is_offline(self, topic_partition: TopicPartition) -> bool:
        """Return whether the directory of a replica has failed."""
        return topic_partition in self._offline

    def find(self, topic_partition: TopicPartition) -> Partition:
        """Return a partition.

        Errors: ReplicaStorageFailed; NotLeaderOrFollower if others have it, so that the client
        looks for them; UnknownTopicOrPartition. Source: ReplicaManager.getPartitionOrError.
        """
        partition = self._partitions.get(topic_partition)
        if partition is not None:
            return partition
        if topic_partition in self._offline:
            raise ReplicaStorageFailed(topic_partition, "its log directory is offline")
        if self._ports.is_known(topic_partition):
            raise NotLeaderOrFollower(topic_partition, "no replica of it is here")
        raise UnknownTopicOrPartition(topic_partition)

    # Appending

    def append_records(
        self,
        entries: Mapping[TopicPartition, memoryview],
        required_acks: int,
        timeout_ms: int,
        *,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        is_internal_allowed: bool = False,
    ) -> ProduceResults | Promise[ProduceResults]:
        """Append to each partition; complete when `required_acks` are there (PUR-10).

        acks −1 waits for the in-sync sets, at most `timeout_ms`; 0 and 1 for this broker alone.
        Clients do not write to internal topics, but for Kafka's admin tools.
        """
        if required_acks not in VALID_ACKS:
            refused = InvalidRequiredAcks(required_acks)
            return dict.fromkeys(entries, ProduceResult(refused))
        must_spare_internal = origin is AppendOrigin.CLIENT and not is_internal_allowed
        appended = Appended({}, {}, required_acks, must_spare_internal)
        effects = self._append_some(entries.items(), appended, origin)
        results, required = appended.results, appended.required
        if not required:
            self.perform(effects)
            return results
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        produce = DelayedProduce(deadline_ms, results, required, self.find)
        # Each has just been looked at, and nothing has happened since.
        promise = produce.promise
        self._watch_produce(produce, required)
        self.perform(effects)
        return promise

    def _append_some(
        self,
        entries: Iterable[tuple[TopicPartition, memoryview]],
        appended: Appended,
        origin: AppendOrigin,
    ) -> list[Effect]:
        """Append to some partitions of a request; returns what is to be performed."""
        results, required, required_acks, must_spare_internal = appended
        effects: list[Effect] = []
        partitions = self._partitions
        for topic_partition, batches in entries:
            try:
                if must_spare_internal and topic_partition.topic in INTERNAL_TOPICS:
                    raise InvalidTopic(topic_partition.topic)
                partition = partitions.get(topic_partition) or self.find(topic_partition)
                info, required_offset, moved = partition.append(batches, required_acks, origin)
                if required_acks == ACKS_ALL:
                    enough = partition.enough_replicas_reached(required_offset)
                    # With one replica in sync nothing is left to wait for.
                    if not enough.is_reached:
                        required[topic_partition] = required_offset
            except (ApiError, StorageError) as failure:
                results[topic_partition] = self._failed_append(topic_partition, failure)
                continue
            first_offset, _, _, log_append_time_ms, log_start_offset, _, _, _ = info
            results[topic_partition] = new_tuple(
                ProduceResult, (None, first_offset, log_append_time_ms, log_start_offset)
            )
            effects += moved
        return effects

    def _watch_produce(
        self, produce: DelayedProduce, required: Mapping[TopicPartition, int]
    ) -> None:
        """Let a produce wait that cannot complete yet."""
        self._produces.watch(produce, required)
        self._ports.on_waiting(produce.deadline_ms)

    def append_records_fast(
        self,
        topic_partition: TopicPartition,
        batches: memoryview,
        required_acks: int,
        *,
        is_internal_allowed: bool = False,
    ) -> ProduceResult | None:
        """Append what a client sent to one partition and return its result, without a wait.

        None when nothing has been done: the partition is not here or not led, the result may have
        to wait, or it is not one batch in no transaction. `append_records` is then the way.
        """
        partition = self._partitions.get(topic_partition)
        if (
            partition is None
            or (required_acks != ACKS_LEADER and not _is_leader_enough(partition, required_acks))
            or (topic_partition.topic in INTERNAL_TOPICS and not is_internal_allowed)
        ):
            return None
        watermark = partition.high_watermark
        try:
            info = partition.append_fast(batches)
        except (ApiError, StorageError) as failure:
            return self._failed_append(topic_partition, failure)
        if info is None:
            return None
        first_offset, _, _, append_time_ms, log_start_offset, _, _, is_duplicate = info
        if (self._fetch_keys or self._produce_keys or self._delete_keys) and not is_duplicate:
            self._complete_behind(partition, watermark)
        return new_tuple(ProduceResult, (None, first_offset, append_time_ms, log_start_offset))

    def _complete_behind(self, partition: Partition, earlier_watermark: int) -> None:
        """Complete delayed operations that wait for records which have just been appended."""
        topic_partition, watermark = partition.topic_partition, partition.high_watermark
        if (
            topic_partition in self._fetch_keys
            or topic_partition in self._produce_keys
            or topic_partition in self._delete_keys
        ):
            if watermark > earlier_watermark:
                self.perform((HighWatermarkMoved(topic_partition, watermark),))
            else:
                self.perform((LogEndMoved(topic_partition, partition.log.log_end_offset),))

    def _failed_append(
        self, topic_partition: TopicPartition, failure: ApiError | StorageError
    ) -> ProduceResult:
        error = self.answer_to(topic_partition, failure)
        partition = self._partitions.get(topic_partition)
        if partition is None or error.code in _ERRORS_WITHOUT_LOG_START:
            return ProduceResult(error)
        return ProduceResult(error, log_start_offset=partition.log.log_start_offset)

    # Fetching

    def fetch(
        self,
        params: FetchParams,
        specs: Sequence[tuple[TopicPartition, FetchSpec]],
        park: Park | None = None,
        told: Mapping[TopicPartition, Told] | None = None,
    ) -> FetchResults | Promise[FetchResults]:
        """Read partitions in this order; complete with at least `min_bytes`, or after the wait.

        At once for an error, a diverging log or no partition at all (PUR-9). A follower's fetch
        is noted, and may complete produces (PUR-7). With `park` it is parked if it has to wait.
        What is as the session of such a fetch was `told` is left out of what is returned at once.
        """
        effects: list[Effect] = []
        results = self._reader.read(params, specs, effects, told=told)
        is_over = params.max_wait_ms <= 0 or not specs
        total_bytes = 0
        for _, result in results:
            if result.error is not None or result.records is None:
                is_over = True
            else:
                total_bytes += result.records.size_bytes
        fetched: FetchResults | Promise[FetchResults] = results
        if not is_over and total_bytes < params.min_bytes:
            operation = self._delayed_fetch(params, specs, results, park)
            release_results(results)
            fetched = operation.promise
            # Looked at a single time: nothing runs beside this, and a look leads to nothing.
            if (
                operation.has_news_of(key for key, _ in results)
                if told is not None and isinstance(operation, ParkedFetch)
                else operation.can_complete()
            ):
                operation.force_complete()
                operation.keep(self._read_now)
            else:
                self._fetches.watch(operation, [topic_partition for topic_partition, _ in specs])
                self._ports.on_waiting(operation.deadline_ms)
        self.perform(effects)
        if params.is_from_follower and self._deletes.delayed_count:
            # Its fetch says where its log starts.
            for topic_partition, _ in specs:
                self._check_deletes(topic_partition)
        return fetched

    def _delayed_fetch(
        self,
        params: FetchParams,
        specs: Sequence[tuple[TopicPartition, FetchSpec]],
        results: FetchResults,
        park: Park | None,
    ) -> DelayedFetch | ParkedFetch:
        deadline_ms = self._clock.monotonic_ms() + params.max_wait_ms
        if park is not None:
            return park(deadline_ms, params, dict(specs), self._leader_side)
        waiting = [
            WaitingPartition(topic_partition, spec, result.records.start)
            for (topic_partition, spec), (_, result) in zip(specs, results, strict=True)
            if result.records is not None
        ]
        return DelayedFetch(deadline_ms, params, waiting, self.find, self._reader.is_throttled)

    def _watch_fetch(self, fetch: LargeDelayedFetch, keys: Iterable[TopicPartition]) -> None:
        self._fetches.watch(fetch, keys)
        self._ports.on_waiting(fetch.deadline_ms)

    def _taken_by(
        self, fetch: ParkedFetch, topic_partition: TopicPartition, spec: FetchSpec
    ) -> None:
        """Note how far a follower with a parked fetch is."""
        effects = self._reader.note_position(fetch.params.replica_id, topic_partition, spec)
        if effects is None:
            # The answer to all says why.
            self._end(fetch)
            return
        self.perform(effects)
        if self._delete_keys:
            self._check_deletes(topic_partition)

    def _end(self, fetch: ParkedFetch) -> None:
        if fetch.force_complete():
            fetch.keep(self._read_now)

    def wait_fast(
        self,
        deadline_ms: int,
        params: FetchParams,
        waiting: WaitingPartition,
        read: Callable[[], T],
    ) -> Promise[T]:
        """Let a consumer wait that has just read one partition to its end.

        The promise is kept with what `read` finds when the wait is over.
        """
        operation = FastDelayedFetch(deadline_ms, params, waiting, self._partitions, read)
        self._fetches.watch(operation, (waiting.topic_partition,))
        self._ports.on_waiting(deadline_ms)
        return operation.promise

    def _read_now(
        self, params: FetchParams, specs: Iterable[tuple[TopicPartition, FetchSpec]]
    ) -> FetchResults:
        return self._reader.read(params, specs, None)

    def answer_to(
        self, topic_partition: TopicPartition, failure: ApiError | StorageError
    ) -> ApiError:
        """Return what a client is told of a failure; a directory's is told to the broker, too."""
        if isinstance(failure, LogDirOffline):
            self._ports.on_log_dir_offline(failure)
        return answer_to(topic_partition, failure)

    # Deleting

    def delete_records(
        self, offsets: Mapping[TopicPartition, int], timeout_ms: int
    ) -> DeleteRecordsResults | Promise[DeleteRecordsResults]:
        """Delete records below offsets; complete when no live replica has them (HW-18).

        Waits at most `timeout_ms`; internal topics are refused.
        """
        results: DeleteRecordsResults = {}
        required: dict[TopicPartition, int] = {}
        effects: list[Effect] = []
        for topic_partition, offset in offsets.items():
            try:
                if topic_partition.topic in INTERNAL_TOPICS:
                    raise InvalidTopic(topic_partition.topic)
                done = self.find(topic_partition).delete_records_before(offset)
            except (ApiError, StorageError) as failure:
                error = self.answer_to(topic_partition, failure)
                results[topic_partition] = DeleteRecordsResult(error)
                continue
            results[topic_partition] = DeleteRecordsResult(None, done.low_watermark)
            if done.low_watermark < done.requested_offset:
                required[topic_partition] = done.requested_offset
            effects += done.effects
        if not required:
            self.perform(effects)
            return results
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        deletion = DelayedDeleteRecords(deadline_ms, results, required, self.find)
        # Each has just been looked at here too.
        promise = deletion.promise
        self._deletes.watch(deletion, required)
        self._ports.on_waiting(deadline_ms)
        self.perform(effects)
        return promise

    # Effects and time

    def perform(self, effects: Iterable[Effect]) -> None:
        """Perform effects: keep the promises they complete, and have others do what is theirs.

        What watches a promise may call back into the manager: what that leads to is done after it.

        Source: HW-14, D22.
        """
        waiting = self._effects
        waiting.extend(effects)
        if self._is_performing:
            return
        self._is_performing = True
        try:
            while waiting:
                self._perform_one(waiting.popleft())
        finally:
            self._is_performing = False

    def _perform_one(self, effect: Effect) -> None:
        match effect:
            case LogEndMoved():
                self._delayed.check_fetches(effect.topic_partition)
            case HighWatermarkMoved():
                # Anything that waits on the partition may be complete.
                self._delayed.check_all(effect.topic_partition)
            case RoleChanged():
                self._delayed.check_all(effect.topic_partition)
                self._ports.moving.resume(effect.topic_partition)
            case LogStartMoved():
                # The task of the log manager writes it down; an earlier deletion may be complete.
                self._check_deletes(effect.topic_partition)
                self._delayed.check_fetches(effect.topic_partition)
            case ProposeIsr():
                partition = self._partitions.get(effect.topic_partition)
                if partition is not None:
                    log_isr_proposal(partition, effect.isr)
                self._ports.propose_isr(effect)
            case FetchFrom():
                self._ports.fetching.fetch_from(effect)
            case StopFetching():
                self._ports.fetching.stop(effect.topic_partition)
            case _:
                assert_never(effect)

    def isr_decided(self, proposal: ProposeIsr, decision: IsrDecision) -> None:
        """Bring the controller's response to its partition, if that is still here.

        Source: Partition.submitAlterPartition.
        """
        partition = self._partitions.get(proposal.topic_partition)
        if partition is None:
            return
        before = partition.in_sync.committed
        effects = partition.on_isr_decided(proposal, decision)
        if partition.in_sync.committed != before:
            log_isr(partition)
        self.perform(effects)

    def advance(self) -> None:
        """Complete the operations past their deadline."""
        self._delayed.advance(self._clock.monotonic_ms())

    def next_deadline_ms(self) -> int | None:
        """Return when to advance next (monotonic), None if nothing waits."""
        return self._delayed.next_deadline_ms()

    def shrink_isrs(self) -> None:
        """Propose to drop the followers that lag; for the isr-expiration task (SCH-2)."""
        for partition in tuple(self._partitions.values()):
            self.perform(partition.maybe_shrink_isr())

    def high_watermarks(self) -> dict[TopicPartition, int]:
        """Return what the watermark checkpoint is written from (PART-13)."""
        return {key: partition.high_watermark for key, partition in self._partitions.items()}

    def stop(self) -> None:
        """Complete every delayed operation, as if its time were over; append no more."""
        self.large_appends.stop()
        try:
            self._delayed.drain()
        finally:
            self.large_fetches.stop()


def _is_leader_enough(partition: Partition, required_acks: int) -> bool:
    """Return whether an append of these acks, other than 1, is complete without a wait."""
    return required_acks == ACKS_ALL and not partition.followers and not partition.is_under_min_isr
