"""Producer: collects records into batches and sends the batches to their leaders.

With acks=all a producer is idempotent: it has a producer id, its batches have sequence numbers, and
a batch that is sent again after a lost response is stored once. Source: KIP-98.

Records without a key all go to one partition until its batch is full, then to another: large
batches cost less than an even spread of small ones. Source: KIP-480, KIP-794.

A batch is sent when it is full, or `linger_ms` after its first record; see `batch_sender`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from engine.client.batch_sender import IN_FLIGHT_MAX, BatchResult, ProduceSender, SenderOptions
from engine.client.blocking import KafkaClient
from engine.client.errors import BufferExhausted, NoCommonVersion, TimedOut, Unreachable
from engine.client.metadata import ClusterView
from engine.client.outgoing_batch import NO_PLACE, OutgoingBatch
from engine.client.partitioning import partition_of_key, partitions_of_keys
from engine.client.produce_calls import ACKS_ALL, request_producer_id
from engine.errors import ApiError, EngineError
from engine.kafka_errors import CLUSTER_AUTHORIZATION_FAILED, UNSUPPORTED_VERSION
from engine.limits import PRODUCE_BATCH_BYTES, PRODUCE_PENDING_BYTES_MAX, SEND_BLOCK_MS
from engine.model import TopicPartition
from engine.records.builder import BatchSettings, prepare_run
from engine.records.codec import Codec
from engine.records.record import Header

#: How long one wait for responses lasts.
_WAIT_MS = 1_000


class OutgoingRecord(NamedTuple):
    """A record to produce; a partition of None is chosen by the key."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()
    timestamp_ms: int | None = None
    partition: int | None = None


class OutgoingValues(NamedTuple):
    """Records for one topic, stamped when they are added.

    One key for all, or one each in `keys`.
    """

    topic: str
    values: Sequence[bytes]
    keys: Sequence[bytes] | None = None
    key: bytes | None = None
    headers: tuple[Header, ...] = ()
    partition: int | None = None


class ProducerOptions(NamedTuple):
    """Options of a producer. `level` None is the codec's default.

    `is_idempotent` None requests a producer id if acks are all, and continues without one if the
    cluster refuses it; True fails then. With `goes_on` a partition accepts records again after a
    failure; without, later records fail too, so that no record is stored after a gap.

    `buffer_bytes` bounds the records without a result (buffer.memory), by default
    PRODUCE_PENDING_BYTES_MAX, in the producer for asyncio SEND_BUFFER_BYTES. A record waits for
    room for `max_block_ms` (max.block.ms).
    """

    acks: int = ACKS_ALL
    codec: Codec = Codec.NONE
    level: int | None = None
    batch_bytes: int = PRODUCE_BATCH_BYTES
    linger_ms: int = 0
    is_idempotent: bool | None = None
    in_flight_max: int = IN_FLIGHT_MAX
    metadata_max_age_ms: int = 300_000
    goes_on: bool = False
    buffer_bytes: int | None = None
    max_block_ms: int = SEND_BLOCK_MS


class ProducerCallbacks(NamedTuple):
    """Callbacks for events of a producer that are not in its results."""

    on_retry: Callable[[EngineError], None] | None = None
    on_plain: Callable[[EngineError], None] | None = None


class OpenTransaction(Protocol):
    """The transaction that a producer's batches are part of."""

    @property
    def transactional_id(self) -> str:
        """Return the transactional id that Produce requests name."""
        ...

    @property
    def transactional_identity(self) -> tuple[int, int]:
        """Return the producer id and epoch that the batches get."""
        ...

    def add_partition_once(self, partition: TopicPartition) -> None:
        """Add a partition to the transaction unless it is in it.

        Raises the errors of the request. Called before the first batch of the partition is sent.
        """
        ...


class Producer:
    """Collects records by partition and sends a partition's batch when it is due.

    `add` and `add_fast` accept records and wait only if the buffer is full; `poll` and `flush`
    return the results of batches, with each record's `place`.
    """

    def __init__(
        self,
        client: KafkaClient,
        options: ProducerOptions | None = None,
        notes: ProducerCallbacks | None = None,
        *,
        transaction: OpenTransaction | None = None,
    ) -> None:
        """Create a producer without requests.

        With a `transaction` all batches belong to it, and have its producer id and epoch.
        """
        self._client = client
        self._transaction = transaction
        self._options = options or ProducerOptions()
        self._notes = notes or ProducerCallbacks()
        #: The open batch of each partition, to which records are added.
        self._open: dict[TopicPartition, OutgoingBatch] = {}
        #: Partition that records without a key go to now, by topic; another one after each batch.
        self._sticky: dict[str, int] = {}
        #: The last metadata, given to the sender when that is created.
        self._view: ClusterView | None = None
        #: Number of partitions of each topic, and when it is requested again (monotonic).
        self._counts: dict[str, tuple[int, int]] = {}
        #: Partitions of each topic that have a leader, by the latest metadata.
        self._led: dict[str, tuple[int, ...]] = {}
        #: None until the first batch is due.
        self._sender: ProduceSender | None = None
        #: Results that the next `poll` returns.
        self._results: list[BatchResult] = []
        #: Number of batches opened; the `order` of the next one.
        self._batch_count = 0

    # -- taking records

    def add(self, record: OutgoingRecord, place: int = NO_PLACE) -> None:
        """Add a record to its partition's open batch; a full batch is handed to the sender first.

        `place` is the record's number in the caller's input, which the batch's result returns.
        Raises ApiError if the topic does not exist, and BufferExhausted.
        """
        topic, timestamp_ms = record.topic, record.timestamp_ms
        if timestamp_ms is None:
            timestamp_ms = self._client.clock.wall_ms()
        content = (timestamp_ms, record.key, record.value, record.headers)
        partition = TopicPartition(topic, self._partition_of(record))
        batch = self._open_batch(partition)
        if not batch.builder.has_room_for(*content, limit_bytes=self._limit_bytes(topic)):
            self._close(partition)
            batch = self._open_batch(TopicPartition(topic, self._partition_of(record)))
        batch.builder.append(*content)
        batch.places.append(place)

    def add_fast(self, records: OutgoingValues, places: Sequence[int]) -> None:
        """Add many records of one topic with one timestamp.

        Each gets the partition `add` would choose. `places` are their numbers in the caller's
        input. The sticky partition of records without a key changes only when a batch is full.
        """
        timestamp_ms = self._client.clock.wall_ms()
        if records.keys is None or records.partition is not None:
            self._add_run(records, places, timestamp_ms)
            return
        chosen = partitions_of_keys(records.keys, self._refresh_partition_count(records.topic))
        # Sorted by partition, and within a partition in the given order.
        order = sorted(range(len(chosen)), key=chosen.__getitem__)
        keys = list(map(records.keys.__getitem__, order))
        values = list(map(records.values.__getitem__, order))
        ordered_places = list(map(places.__getitem__, order))
        start = 0
        for partition, count in sorted(Counter(chosen).items()):
            group = slice(start, start + count)
            of_partition = records._replace(
                keys=keys[group], values=values[group], partition=partition
            )
            self._add_run(of_partition, ordered_places[group], timestamp_ms)
            start += count

    def _add_run(self, records: OutgoingValues, places: Sequence[int], timestamp_ms: int) -> None:
        """Append a run of records with one topic to batches; close a batch when it is full.

        The first record of a batch may exceed the batch's limit.
        """
        run = prepare_run(
            records.values, keys=records.keys, key=records.key, headers=records.headers
        )
        topic, values, done = records.topic, records.values, 0
        while done < len(values):
            partition = TopicPartition(topic, self._partition_of_run(records))
            batch = self._open_batch(partition)
            limit_bytes = self._limit_bytes(topic)
            taken = batch.builder.append_fast(timestamp_ms, run, done, limit_bytes=limit_bytes)
            batch.places.extend(places[done : done + taken])
            done += taken
            if done == len(values):
                return
            if batch.record_count == 0:
                # The first record of a batch is taken, however large it is.
                key = records.key if records.keys is None else records.keys[done]
                batch.builder.append(timestamp_ms, key, values[done], records.headers)
                batch.places.append(places[done])
                done += 1
            else:
                self._close(partition)

    def _open_batch(self, partition: TopicPartition) -> OutgoingBatch:
        """Return the open batch of a partition; a new one if there is none.

        Before a new batch opens, `_send_full` bounds the bytes of pending ones.
        """
        batch = self._open.get(partition)
        if batch is None:
            self._send_full()
            settings = BatchSettings(codec=self._options.codec, level=self._options.level)
            now_ms = self._client.clock.monotonic_ms()
            self._batch_count += 1
            batch = OutgoingBatch(partition, settings, now_ms, (self._batch_count,))
            self._open[partition] = batch
        return batch

    def _limit_bytes(self, topic: str) -> int:
        """Return the size limit of a topic's batches: `batch_bytes`, or less after a refusal.

        MESSAGE_TOO_LARGE halves the limit of its topic.
        """
        learnt_bytes = self._sender.limit_bytes(topic) if self._sender is not None else None
        own_bytes = self._options.batch_bytes
        return own_bytes if learnt_bytes is None else min(own_bytes, learnt_bytes)

    # -- sending

    def poll(self, wait_ms: int = 0) -> list[BatchResult]:
        """Send the batches whose linger time is over; wait up to `wait_ms`, and return the results.

        A result is a batch that is stored or has failed.
        """
        due_ms = self._client.clock.monotonic_ms() - self._options.linger_ms
        for partition, batch in list(self._open.items()):
            if batch.opened_ms <= due_ms:
                self._close(partition)
        if self._sender is not None:
            self._results += self._sender.poll(wait_ms)
        return self._pop_results()

    def flush(self) -> list[BatchResult]:
        """Send all records, wait until each batch has a result, and return them."""
        for partition in list(self._open):
            self._close(partition)
        if self._sender is not None:
            while not self._sender.is_idle:
                self._results += self._sender.poll(_WAIT_MS, may_be_interrupted=False)
        return self._pop_results()

    def discard(self) -> None:
        """Drop the records that were not handed to the sender; they get no result."""
        self._open.clear()

    def send_without_linger(self) -> None:
        """Hand all open batches to the sender now, to free buffer room for waiting records."""
        for partition in list(self._open):
            self._close(partition)

    def due_in_ms(self) -> int | None:
        """Return the ms until the linger time of the first open batch ends.

        None without open batches. The caller waits for input at most so long, and then calls
        `poll`.
        """
        opened_ms = min((batch.opened_ms for batch in self._open.values()), default=None)
        if opened_ms is None:
            return None
        return max(opened_ms + self._options.linger_ms - self._client.clock.monotonic_ms(), 0)

    @property
    def is_idle(self) -> bool:
        """True if each added record has its result, and all results were returned."""
        return not self._open and not self.is_sending

    @property
    def is_sending(self) -> bool:
        """True if a batch was handed to the sender and its result was not returned yet."""
        return bool(self._results) or (self._sender is not None and not self._sender.is_idle)

    def _pop_results(self) -> list[BatchResult]:
        """Return and remove the results since the last call."""
        results, self._results = self._results, []
        return results

    def _close(self, partition: TopicPartition) -> None:
        """Close a partition's open batch and hand it to the sender; an empty one is dropped.

        The partition is added to the transaction first. Later records without a key get another
        sticky partition.
        """
        batch = self._open[partition]
        if batch.record_count:
            if self._transaction is not None:
                self._transaction.add_partition_once(partition)
            # Create the sender first: if that raises, the batch stays open and is sent later.
            self._ensure_sender()
        self._open.pop(partition, None)
        if self._sticky.get(partition.topic) == partition.partition:
            del self._sticky[partition.topic]
        if batch.record_count:
            self._ensure_sender().put(batch)

    def _send_full(self) -> None:
        """Poll the sender, and wait while the bytes of its batches exceed the buffer.

        Called before a new batch opens. Raises BufferExhausted after max.block.ms.
        """
        sender = self._sender
        if sender is None:
            return
        self._results += sender.poll(0)
        total_bytes, clock = self._options.buffer_bytes, self._client.clock
        if total_bytes is None:
            total_bytes = PRODUCE_PENDING_BYTES_MAX
        block_ms = self._options.max_block_ms
        deadline_ms = clock.monotonic_ms() + block_ms
        while sender.pending_bytes > total_bytes:
            left_ms = deadline_ms - clock.monotonic_ms()
            if left_ms <= 0:
                raise BufferExhausted(self._options.batch_bytes, block_ms, total_bytes, 0)
            self._results += sender.poll(min(_WAIT_MS, left_ms), may_be_interrupted=False)

    def _ensure_sender(self) -> ProduceSender:
        """Return the sender; create it, with a new producer id if idempotent, on first use."""
        if self._sender is None:
            options = self._options
            sender_options = SenderOptions(
                options.acks,
                options.codec,
                self._new_identity(),
                options.in_flight_max,
                # All batches of a transaction have its epoch, so that no partition may raise its
                # own.
                goes_on=options.goes_on and self._transaction is None,
            )
            if self._transaction is not None:
                sender_options = sender_options._replace(
                    acks=ACKS_ALL, transactional_id=self._transaction.transactional_id
                )
            self._sender = ProduceSender(
                self._client,
                sender_options,
                on_retry=self._notes.on_retry,
                on_view=self._note_leaders,
            )
            if self._view is not None:
                self._sender.take_view(self._view)
        return self._sender

    def _new_identity(self) -> tuple[int, int] | None:
        """Return the producer id and epoch for all batches; None if the producer is not idempotent.

        They are the transaction's, or new ones. Unless idempotence was requested explicitly, a
        broker that refuses it makes the producer a plain one.
        """
        if self._transaction is not None:
            return self._transaction.transactional_identity
        wanted = self._options.is_idempotent
        if self._options.acks != ACKS_ALL or wanted is False:
            return None
        try:
            return request_producer_id(self._client)
        except NoCommonVersion as error:
            refused: EngineError = error
        except ApiError as error:
            if error.code not in (CLUSTER_AUTHORIZATION_FAILED, UNSUPPORTED_VERSION):
                raise
            refused = error
        if wanted:
            raise refused
        if self._notes.on_plain is not None:
            self._notes.on_plain(refused)
        return None

    # -- partitions

    def _partition_of(self, record: OutgoingRecord) -> int:
        """Return the partition of a record: its own, by the hash of its key, or the sticky one."""
        if record.partition is not None:
            return record.partition
        if record.key is not None:
            return partition_of_key(record.key, self._refresh_partition_count(record.topic))
        return self._choose_sticky_partition(record.topic)

    def _partition_of_run(self, records: OutgoingValues) -> int:
        """Return the partition of records with one key or none, by the rule of `_partition_of`."""
        if records.partition is not None:
            return records.partition
        if records.key is not None:
            return partition_of_key(records.key, self._refresh_partition_count(records.topic))
        return self._choose_sticky_partition(records.topic)

    def _choose_sticky_partition(self, topic: str) -> int:
        """Return the sticky partition for records without a key: one with a leader if possible.

        Source: BuiltInPartitioner.nextPartition of 3.9.1.
        """
        chosen = self._sticky.get(topic)
        if chosen is None:
            count = self._refresh_partition_count(topic)
            led = self._led[topic] or range(count)
            chosen = self._sticky[topic] = led[self._client.entropy.random_below(len(led))]
        return chosen

    def _refresh_partition_count(self, topic: str) -> int:
        """Return the partition count of a topic.

        Request it if the cached one is older than its age. If no broker responds the cached count
        is returned; raises the error without one.
        """
        now_ms = self._client.clock.monotonic_ms()
        count, until_ms = self._counts.get(topic, (0, now_ms))
        if now_ms < until_ms:
            return count
        try:
            view = self._view = self._client.view_of_existing([topic])
        except (Unreachable, TimedOut):
            if not count:
                raise
            # Keep the known count: batches wait until brokers respond.
            self._counts[topic] = count, now_ms + self._client.settings.retry_backoff_ms_max
            return count
        count = len(view.topics[topic].partitions)
        self._counts[topic] = count, now_ms + self._options.metadata_max_age_ms
        self._note_leaders(view)
        return count

    def _note_leaders(self, view: ClusterView) -> None:
        """Store the partitions with a leader, among which records without a key are distributed."""
        for name, topic in view.topics.items():
            self._led[name] = tuple(row.partition for row in topic.partitions if row.has_leader)
