"""Appends to the partitions of one broker.

```
 append_records ─ append to each partition ─┬─ nothing to wait for ─────────────────> results
                                            └─ acks=-1: DelayedProduce ─ watermark, deadline ─> kept
 append_records_fast ─ one batch to one partition ─ the same
 append_in_turns ─ some partitions ─ next turn ─ some partitions … ─ the same
```

One partition's failure is an error in its result and never fails the request (PUR-4).

Source: PART-5, ISR-9, PUR-4, PUR-10; Kafka's ReplicaManager.appendRecords, which also appends to
the partitions in sequence while leaders change and followers fetch.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from itertools import islice
from typing import NamedTuple

from engine.errors import ApiError, StorageError
from engine.host.promise import Promise
from engine.host.turns import Share
from engine.limits import ROWS_PER_SHARE
from engine.log.local_log import CODECS_ALONE
from engine.log.producer_state import AppendOrigin
from engine.model import TopicPartition, new_tuple
from engine.records.one_record import batch_bytes
from engine.replication.delayed_produce import DelayedProduce, ProduceResult, ProduceResults
from engine.replication.effects import Effect, HighWatermarkMoved, LogEndMoved
from engine.replication.errors import InvalidRequiredAcks, InvalidTopic, NotLeaderOrFollower
from engine.replication.partition import ACKS_ALL, ACKS_LEADER, Partition
from engine.replication.partition_access import PartitionAccess
from engine.replication.topic_counts import ERRORS_NOT_FAILURES, ONE

VALID_ACKS = (ACKS_ALL, 0, ACKS_LEADER)


class Appended(NamedTuple):
    """The results of a request's partitions up to now, and the offsets it has to wait for."""

    results: ProduceResults
    required: dict[TopicPartition, int]
    required_acks: int
    must_spare_internal: bool


class Appends:
    """Appends records to the partitions of one broker."""

    def __init__(self, access: PartitionAccess) -> None:
        """Create the appends of a replica manager.

        `access` has the manager's parts that they use.
        """
        self._clock, hosted, delayed, performer = access
        self._partitions = hosted.partitions
        self._find, self._answer_to = hosted.find, hosted.answer_to
        self._counts_of = hosted.topic_counts.counts_of
        #: Internal topics to which clients may not write.
        self._refused = hosted.refused_to_clients
        self._perform = performer.perform
        self._watch = delayed.watch_produce
        #: Watched keys of the purgatories: most appends complete no delayed operation, and check
        #: only these.
        self._produce_keys = delayed.produces.watched_keys
        self._delete_keys = delayed.deletes.watched_keys
        self._fetch_keys = delayed.fetches.watched_keys
        #: Set by `stop`: an append that takes several turns refuses its remaining partitions, and
        #: no append waits for followers.
        self._is_stopped = False

    def stop(self) -> None:
        """Refuse all appends from now on, also those of an append in progress."""
        self._is_stopped = True

    def append_records(
        self,
        entries: Mapping[TopicPartition, memoryview],
        required_acks: int,
        timeout_ms: int,
        *,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        is_internal_allowed: bool = False,
    ) -> ProduceResults | Promise[ProduceResults]:
        """Append batches to each partition.

        Returns the results once `required_acks` are there (PUR-10). acks −1 waits for the in-sync
        replicas, at most `timeout_ms`, and the result is then a promise; 0 and 1 wait for no other
        broker. Clients may not write to internal topics unless `is_internal_allowed` (Kafka's admin
        tools).
        """
        if required_acks not in VALID_ACKS:
            refused = InvalidRequiredAcks(required_acks)
            return dict.fromkeys(entries, ProduceResult(refused))
        must_spare_internal = origin is AppendOrigin.CLIENT and not is_internal_allowed
        appended = Appended({}, {}, required_acks, must_spare_internal)
        effects = self._append_entries(entries.items(), appended, origin)
        if not appended.required:
            self._perform(effects)
            return appended.results
        promise = self._complete_or_await(appended, self._clock.monotonic_ms() + timeout_ms)
        self._perform(effects)
        return promise

    def _append_entries(
        self,
        entries: Iterable[tuple[TopicPartition, memoryview]],
        appended: Appended,
        origin: AppendOrigin,
    ) -> list[Effect]:
        """Append batches to some partitions of a request.

        Returns the effects that the caller performs. The results, and the offsets that acks −1
        waits for, are added to `appended`.
        """
        results, required, required_acks, must_spare_internal = appended
        effects: list[Effect] = []
        partitions = self._partitions
        for topic_partition, batches in entries:
            self._counts_of(topic_partition.topic).produces += 1
            try:
                if must_spare_internal and topic_partition.topic in self._refused:
                    raise InvalidTopic(topic_partition.topic)
                partition = partitions.get(topic_partition) or self._find(topic_partition)
                info, required_offset, moved = partition.append(batches, required_acks, origin)
                if required_acks == ACKS_ALL:
                    enough = partition.check_enough_replicas(required_offset)
                    # With one replica in sync nothing is left to wait for.
                    if not enough.is_reached:
                        required[topic_partition] = required_offset
            except (ApiError, StorageError) as failure:
                results[topic_partition] = self._count_failure(
                    topic_partition, failure, len(batches)
                )
                continue
            first_offset, _, _, log_append_time_ms, log_start_offset, _, _, _ = info
            results[topic_partition] = new_tuple(
                ProduceResult, (None, first_offset, log_append_time_ms, log_start_offset)
            )
            effects += moved
        return effects

    def _complete_or_await(self, appended: Appended, deadline_ms: int) -> Promise[ProduceResults]:
        """Return the promise of an append with acks −1, kept when followers have them.

        It is kept immediately if the offsets are reached, or if a partition has failed meanwhile,
        with the directory of another partition.
        """
        produce = DelayedProduce(deadline_ms, appended.results, appended.required, self._find)
        promise = produce.promise
        if self._is_stopped or produce.can_complete():
            produce.force_complete()
            produce.keep_promise()
        else:
            self._watch(produce, appended.required)
        return promise

    def _watch_produce(
        self, results: ProduceResults, required: Mapping[TopicPartition, int], deadline_ms: int
    ) -> Promise[ProduceResults]:
        """Wait for offsets that are known not to be reached yet.

        Returns the promise of the results.
        """
        produce = DelayedProduce(deadline_ms, results, required, self._find)
        promise = produce.promise
        self._watch(produce, required)
        return promise

    def append_records_fast(
        self,
        topic_partition: TopicPartition,
        batches: memoryview,
        required_acks: int,
        timeout_ms: int,
        *,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        is_internal_allowed: bool = False,
        fast_attributes: Container[int] = CODECS_ALONE,
    ) -> ProduceResult | Promise[ProduceResults] | None:
        """Append batches to one partition as `append_records` does, without its general checks.

        Fast path of Produce for one partition. Returns the partition's result, or a promise of the
        result within `timeout_ms`. Returns None, with nothing appended, if `append_records` has to
        decide: this broker does not lead the partition (`Partition.append_fast` checks that), acks
        are 0, or all with fewer than min.insync.replicas in sync, clients may not write to the
        topic, or the bytes are not exactly one batch whose attributes are in `fast_attributes`.
        These must not include attributes of transactions, unless the coordinator has verified the
        transaction of the batch.
        """
        partition = self._partitions.get(topic_partition)
        if (
            partition is None
            or (
                required_acks != ACKS_LEADER
                and (required_acks != ACKS_ALL or partition.is_under_min_isr)
            )
            or (topic_partition.topic in self._refused and not is_internal_allowed)
        ):
            return None
        watermark = partition.high_watermark
        try:
            info = partition.append_fast(batches, origin, fast_attributes)
        except (ApiError, StorageError) as failure:
            partition.counts.produces += 1
            return self._count_failure(topic_partition, failure, len(batches))
        if info is None:
            return None
        first_offset, last_offset, _, append_time_ms, log_start_offset, size, _, is_duplicate = info
        counts = partition.counts
        # Two counts in one integer, appends and bytes: see `TopicCounts.fold`.
        counts.fast_appends += ONE + size
        if last_offset != first_offset:
            counts.fast_offset_steps += last_offset - first_offset
        result = new_tuple(ProduceResult, (None, first_offset, append_time_ms, log_start_offset))
        awaited: ProduceResult | Promise[ProduceResults] = result
        if required_acks == ACKS_ALL and partition.high_watermark <= last_offset:
            # Watched before the effects are performed: they may complete it.
            required = {topic_partition: last_offset + 1}
            deadline_ms = self._clock.monotonic_ms() + timeout_ms
            awaited = self._watch_produce({topic_partition: result}, required, deadline_ms)
        if (self._fetch_keys or self._produce_keys or self._delete_keys) and not is_duplicate:
            self._complete_after_append(partition, watermark)
        return awaited

    def append_own_fast(
        self,
        topic_partition: TopicPartition,
        record: bytes,
        required_acks: int,
        timeout_ms: int,
        now_ms: int,
    ) -> int | ProduceResult | Promise[ProduceResults] | None:
        """Append one record of a broker, encoded by `one_record`, to a partition.

        `now_ms` is wall time. Fast path for a broker's own record (a group's offset commit, a
        transaction's state). Returns the record's offset if no replica is waited for, or the result
        with its error. Returns None, with nothing appended, if the general path has to decide: this
        broker does not lead the partition, fewer than min.insync.replicas are in sync, acks are 0,
        or the log's format or codec differs from the record's.
        """
        partition = self._partitions.get(topic_partition)
        if partition is None or (
            required_acks != ACKS_LEADER
            and (required_acks != ACKS_ALL or partition.is_under_min_isr)
        ):
            return None
        watermark = partition.high_watermark
        try:
            offset = partition.append_own_fast(record, now_ms)
        except (ApiError, StorageError) as failure:
            partition.counts.produces += 1
            return self._count_failure(topic_partition, failure, batch_bytes(record))
        if offset is None:
            return None
        partition.counts.fast_appends += ONE + batch_bytes(record)
        awaited: int | Promise[ProduceResults] = offset
        if required_acks == ACKS_ALL and partition.high_watermark <= offset:
            # Watched before the effects are performed: they may complete it.
            result = ProduceResult(None, offset, -1, partition.log.log_start_offset)
            required = {topic_partition: offset + 1}
            deadline_ms = self._clock.monotonic_ms() + timeout_ms
            awaited = self._watch_produce({topic_partition: result}, required, deadline_ms)
        if self._fetch_keys or self._produce_keys or self._delete_keys:
            self._complete_after_append(partition, watermark)
        return awaited

    async def append_in_turns(
        self,
        entries: Mapping[TopicPartition, memoryview],
        required_acks: int,
        timeout_ms: int,
        share: Share,
        *,
        is_internal_allowed: bool = False,
    ) -> ProduceResults | Promise[ProduceResults]:
        """Append a client's batches as `append_records` does, spread over turns of the loop.

        After `stop` the remaining partitions get NotLeaderOrFollower. A promise in the result waits
        for the followers.
        """
        if required_acks not in VALID_ACKS:
            return dict.fromkeys(entries, ProduceResult(InvalidRequiredAcks(required_acks)))
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        appended = Appended({}, {}, required_acks, not is_internal_allowed)
        left = iter(entries.items())
        while some := tuple(islice(left, ROWS_PER_SHARE)):
            if share.is_over():
                await share.next()
            if self._is_stopped:
                _refuse(some, appended.results)
            else:
                self._perform(self._append_entries(some, appended, AppendOrigin.CLIENT))
        if not appended.required:
            return appended.results
        await share.next()
        # Between two turns followers may have fetched, and leaders have changed.
        return self._complete_or_await(appended, deadline_ms)

    def _complete_after_append(self, partition: Partition, earlier_watermark: int) -> None:
        """Complete the delayed operations that waited for the records just appended to `partition`.

        `earlier_watermark` is the high watermark before the append.
        """
        topic_partition, watermark = partition.topic_partition, partition.high_watermark
        if (
            topic_partition in self._fetch_keys
            or topic_partition in self._produce_keys
            or topic_partition in self._delete_keys
        ):
            if watermark > earlier_watermark:
                self._perform((HighWatermarkMoved(topic_partition, watermark),))
            else:
                self._perform((LogEndMoved(topic_partition, partition.log.log_end_offset),))

    def _count_failure(
        self, topic_partition: TopicPartition, failure: ApiError | StorageError, size_bytes: int
    ) -> ProduceResult:
        """Count a refused append in the topic's metrics; return the result with its error.

        The log start offset is set where Kafka sends it.
        """
        error = self._answer_to(topic_partition, failure)
        self._counts_of(topic_partition.topic).count_refusal(error, size_bytes)
        partition = self._partitions.get(topic_partition)
        if partition is None or error.code in ERRORS_NOT_FAILURES:
            return ProduceResult(error)
        return ProduceResult(error, log_start_offset=partition.log.log_start_offset)


def _refuse(entries: Iterable[tuple[TopicPartition, memoryview]], results: ProduceResults) -> None:
    """Add NotLeaderOrFollower as the result of partitions that the stop left without an append."""
    for topic_partition, _ in entries:
        refused = NotLeaderOrFollower(topic_partition, "the broker stops")
        results[topic_partition] = ProduceResult(refused)
