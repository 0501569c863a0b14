"""Send batches: in order within a partition, several in flight, with retries where they are safe.

| the response to a batch | then |
|---|---|
| stored, or stored before (DUPLICATE_SEQUENCE_NUMBER) | it is done |
| too large, and more than one record | it is split; the limit applies to the topic from now on |
| too large, and one record | it fails; the partition continues with the next batch |
| a retriable error, a lost connection | it is sent again, until the client's timeout has passed |
| out of sequence after a batch that is not stored | it is sent again after that batch |
| any other error | it fails, and so do all batches queued after it |

A failed partition fails all later batches, so that no batch is stored after a gap. With
`goes_on` it accepts later batches once none of its earlier ones is in flight: in the next epoch of
its producer id, so that a late request of the earlier epoch is fenced.

With a producer id (idempotence) a partition has up to IN_FLIGHT_MAX requests in flight: a broker
detects duplicates of that many batches, and refuses any that is out of sequence. Only one is in
flight until the first batch is stored, and after an error until the next one is: a broker that
does not know a producer accepts any sequence. Without a producer id only one is in flight, and a
batch that may have been stored is not sent again.

After an error a partition waits for its back-off, and then sends with fresh metadata; other
partitions do not wait.

Source: `Sender`, `TransactionManager`, KIP-98, KIP-360; KAFKA-8350 for the learnt size limit.
Differs: a batch that is too large is retried in order; no later batch overtakes it.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Callable
from typing import Final, NamedTuple

from engine.client.blocking import METADATA_LOWEST, KafkaClient
from engine.client.broker_connections import CallResult
from engine.client.connection import Call, Response
from engine.client.errors import TimedOut, Unreachable
from engine.client.metadata import ClusterView, leader_of, metadata_request
from engine.client.outgoing_batch import OutgoingBatch
from engine.client.produce_calls import ACKS_NONE, produce_call, read_stored
from engine.client.settings import Address
from engine.errors import ApiError, EngineError, api_error
from engine.kafka_errors import (
    MESSAGE_TOO_LARGE,
    NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    RECORD_LIST_TOO_LARGE,
    REQUEST_TIMED_OUT,
    UNKNOWN_TOPIC_OR_PARTITION,
    kafka_error,
)
from engine.limits import (
    PRODUCE_PENDING_BYTES_MAX,
    PRODUCE_REQUEST_BYTES,
    UNKNOWN_TOPIC_ATTEMPTS_MAX,
)
from engine.model import TopicPartition
from engine.records.codec import Codec
from engine.records.record import increment_sequence

#: The number of a producer's last batches that a broker remembers. Source: ProducerStateEntry.
IN_FLIGHT_MAX: Final = 5
INT16_MAX: Final = 0x7FFF

_TOO_LARGE: Final = frozenset((MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE))
#: Errors of batches that the leader has written nevertheless.
_MAY_BE_STORED: Final = frozenset((REQUEST_TIMED_OUT, NOT_ENOUGH_REPLICAS_AFTER_APPEND))


class BatchResult(NamedTuple):
    """The result of a batch.

    `base_offset` is −1 if the broker does not return it (acks=0, a duplicate). After an error
    no record is stored, unless `is_doubtful`: then it is unknown.
    """

    batch: OutgoingBatch
    base_offset: int
    error: EngineError | None = None
    is_doubtful: bool = False


class SenderOptions(NamedTuple):
    """Options for sending batches; `identity` (producer id, epoch) makes it idempotent.

    With a `transactional_id` batches are part of its transaction. With `goes_on` a partition
    accepts batches again after a failure.
    """

    acks: int
    codec: Codec
    identity: tuple[int, int] | None
    in_flight_max: int = IN_FLIGHT_MAX
    transactional_id: str | None = None
    goes_on: bool = False


class _Queue:
    """The batches of one partition, in order: those in flight and those that wait."""

    def __init__(self) -> None:
        """Create an empty queue whose first sequence is 0."""
        #: Batches to be sent, also for a retry, sorted by `order`; `in_flight`: sent, no response
        #: yet.
        self.waiting: list[OutgoingBatch] = []
        self.in_flight: list[OutgoingBatch] = []
        #: Base sequence of the next new batch.
        self.next_sequence = 0
        #: The first batch in flight that was given up. Its sequence is used again once no other
        #: batch is in flight. None without one.
        self.given_up: OutgoingBatch | None = None
        #: Whether the last response was a success: the leader then knows the last sequence and
        #: refuses batches out of order, so that several may be in flight.
        self.is_proven = False
        #: When the first attempt of the batch that fails now began (monotonic), for the delivery
        #: timeout. None while all goes well.
        self.trouble_since_ms: int | None = None
        #: Attempts that failed in a row: the back-off grows with them.
        self.attempts = 0
        #: When the last attempt failed (monotonic, None without a failure), and when the next one
        #: may begin (0 without).
        self.failed_ms: int | None = None
        self.retry_ms = 0
        #: Whether metadata has ever named the partition: UNKNOWN_TOPIC_OR_PARTITION is then worth a
        #: retry.
        self.is_known = False
        #: The error for which no more batches of this partition are sent. None without one.
        self.error: EngineError | None = None
        #: By how much this partition's epoch exceeds the producer's.
        self.epochs_above = 0

    def put_back(self, batch: OutgoingBatch) -> None:
        """Put a batch from in flight back among the waiting ones, in its place by `order`."""
        insort(self.waiting, batch, key=lambda b: b.order)

    def give_up(self, batch: OutgoingBatch) -> None:
        """Note that a batch of one record is never stored, so that its sequence is used again.

        Later batches are renumbered by `renumber_if_due`: a gap would make the broker refuse them.
        """
        if batch.base_sequence is None:
            return
        if self.given_up is None or batch.order < self.given_up.order:
            self.given_up = batch

    def resume_after_failure(self) -> None:
        """Accept batches again, in the next epoch; called when no batch is in flight.

        Source: TransactionManager.bumpIdempotentProducerEpoch of 3.9.1, for one partition.
        """
        self.error = self.trouble_since_ms = self.failed_ms = self.given_up = None
        self.attempts = self.next_sequence = self.retry_ms = 0
        self.is_proven = False
        self.epochs_above += 1

    def renumber_if_due(self) -> None:
        """Reuse the sequences of a failed record for later batches, once no batch is in flight.

        Batches queued before that record keep their sequences: the broker expects them, or has
        stored them already. Does nothing if no record has failed.
        """
        gap = self.given_up
        if gap is None or gap.base_sequence is None or self.in_flight:
            return
        self.next_sequence, self.given_up = gap.base_sequence, None
        for batch in self.waiting:
            if batch.order > gap.order:
                batch.base_sequence = None


class ProduceSender:
    """Queues batches by `put`; `poll` sends them, waits for responses and returns their results."""

    def __init__(
        self,
        client: KafkaClient,
        options: SenderOptions,
        *,
        on_retry: Callable[[EngineError], None] | None = None,
        on_view: Callable[[ClusterView], None] | None = None,
    ) -> None:
        """Create a sender without queued batches.

        `on_retry` is called with each error that leads to a retry; `on_view` with each metadata
        that is requested because a leader is unknown.
        """
        self._client = client
        self._options = options
        self._on_retry = on_retry
        self._on_view = on_view
        self._queues: dict[TopicPartition, _Queue] = {}
        #: Batches of each Produce request in flight, by the request's token.
        self._requests: dict[object, dict[TopicPartition, OutgoingBatch]] = {}
        #: Results that the next `poll` returns.
        self._results: list[BatchResult] = []
        #: Largest batch that each topic accepts, as learnt from MESSAGE_TOO_LARGE.
        self._limits_bytes: dict[str, int] = {}
        #: The last metadata and when it came (monotonic). None until first needed.
        self._view: ClusterView | None = None
        self._viewed_ms = 0
        #: Bytes of all batches that have no result.
        self.pending_bytes = 0
        #: Bytes sent to each broker with acks=0 since its last response; when there are many, a
        #: request with a response is sent.
        self._unanswered: Counter[Address] = Counter()

    @property
    def is_idle(self) -> bool:
        """Return True if no batch waits or is in flight, and every result was returned by `poll`.

        Requests with acks=0 count as in flight until `_await_unanswered`.
        """
        return not self._results and not self._unanswered and not self._has_batches

    @property
    def _has_batches(self) -> bool:
        """True if a batch of any partition waits, or is in flight without a response yet."""
        return any(queue.waiting or queue.in_flight for queue in self._queues.values())

    def limit_bytes(self, topic: str) -> int | None:
        """Return the largest batch size, in bytes before compression, that a topic accepts.

        It is estimated after a MESSAGE_TOO_LARGE of the topic; None before.
        """
        return self._limits_bytes.get(topic)

    def take_view(self, view: ClusterView) -> None:
        """Use `view`, which the caller has just requested,
        so that the sender need not request it.
        """
        self._view, self._viewed_ms = view, self._client.clock.monotonic_ms()

    def put(self, batch: OutgoingBatch) -> None:
        """Queue a batch after the earlier ones of its partition.

        A partition that has failed accepts no more batches unless it may continue: new batches fail
        with the error of the first failed one.
        """
        self.pending_bytes += batch.size_bytes
        queue = self._queues.setdefault(batch.partition, _Queue())
        if queue.error is not None and not self._may_continue(queue):
            self._finish(BatchResult(batch, -1, queue.error))
        else:
            queue.waiting.append(batch)

    def _may_continue(self, queue: _Queue) -> bool:
        """Return True if new batches may follow a failure of the partition, False if they fail too.

        True needs the option `goes_on` and, with a producer id, an epoch below the largest: the
        next batch gets the next epoch.
        """
        identity = self._options.identity
        return self._options.goes_on and (
            identity is None or identity[1] + queue.epochs_above < INT16_MAX
        )

    def poll(self, wait_ms: int, *, may_be_interrupted: bool = True) -> list[BatchResult]:
        """Send the batches that are due; wait up to `wait_ms` for results, and return them.

        Returns earlier with a result. A partition with an error backs off, and does not delay the
        others.
        """
        # Lost connections are noticed before something is sent on them.
        self._receive_responses(0)
        self._send_waiting()
        left_ms = 0 if self._results else min(wait_ms, self._retry_in_ms(wait_ms))
        if self._requests:
            self._receive_responses(left_ms, may_be_interrupted=may_be_interrupted)
            self._send_waiting()
        elif self._has_batches:
            self._client.connections.pause(left_ms, may_be_interrupted=may_be_interrupted)
            self._send_waiting()
        much = PRODUCE_PENDING_BYTES_MAX if self._has_batches else 0
        if self._unanswered.total() > much:
            self._await_unanswered()
        results, self._results = self._results, []
        return results

    def _retry_in_ms(self, otherwise_ms: int) -> int:
        """Return the ms until a failed batch is sent again, `otherwise_ms` if there is none."""
        now_ms = self._client.clock.monotonic_ms()
        times = [q.retry_ms for q in self._queues.values() if q.waiting and q.retry_ms > now_ms]
        return min(times) - now_ms if times else otherwise_ms

    # -- sending

    def _send_waiting(self) -> None:
        """Send the first batches of all partitions that may send, one request per leader.

        Repeats until nothing can be sent. The batches of a partition without a leader are kept for
        a retry, or fail.
        """
        while ready := [
            p for p, q in self._queues.items() if q.waiting and self._prepare_to_send(q)
        ]:
            view = self._current_view(ready)
            if view is None:
                return
            by_leader: dict[int, list[TopicPartition]] = {}
            for partition in ready:
                leader = leader_of(view, partition)
                if isinstance(leader, int):
                    self._queues[partition].is_known = True
                    by_leader.setdefault(leader, []).append(partition)
                else:
                    self._fail_or_repeat(partition, leader)
            for leader, led in by_leader.items():
                self._send_to(leader, led, view)

    def _prepare_to_send(self, queue: _Queue) -> bool:
        """Return True if the first waiting batch of the partition may be sent now.

        Before that, a partition that has failed is resumed, and sequences are reset after a record
        that failed. Several batches are in flight only with a producer id and after a success.
        """
        if queue.error is not None:
            if queue.in_flight:
                return False
            queue.resume_after_failure()
        queue.renumber_if_due()
        if queue.retry_ms and self._client.clock.monotonic_ms() < queue.retry_ms:
            return False
        if queue.given_up is not None:
            return False
        is_steady = queue.is_proven and self._options.identity is not None
        return len(queue.in_flight) < (self._options.in_flight_max if is_steady else 1)

    def _current_view(self, ready: list[TopicPartition]) -> ClusterView | None:
        """Return metadata of the topics to send to; None if no request can be sent now.

        The last metadata is used unless it is older than a failure of a `ready` partition, or lacks
        a topic. If the request fails, all waiting batches are retried later or fail.
        """
        failures = [at for p in ready if (at := self._queues[p].failed_ms) is not None]
        is_valid = all(failed_ms < self._viewed_ms for failed_ms in failures)
        if (
            is_valid
            and self._view is not None
            and {p.topic for p in ready} <= self._view.topics.keys()
        ):
            return self._view
        try:
            self.take_view(self._client.view({p.topic for p in self._queues}))
        except EngineError as error:
            for partition, queue in self._queues.items():
                if queue.waiting:
                    self._fail_or_repeat(partition, error)
            return None
        assert self._view is not None
        if self._on_view is not None:
            self._on_view(self._view)
        return self._view

    def _send_to(self, leader: int, led: list[TopicPartition], view: ClusterView) -> None:
        """Send the first batch of each partition to its leader, in requests of limited size."""
        batches: dict[TopicPartition, OutgoingBatch] = {}
        size_bytes = 0
        for partition in led:
            batch = self._next_batch(partition)
            if batches and size_bytes + batch.size_bytes > PRODUCE_REQUEST_BYTES:
                self._submit(leader, batches, view)
                batches, size_bytes = {}, 0
            batches[partition] = batch
            size_bytes += batch.size_bytes
        self._submit(leader, batches, view)

    def _next_batch(self, partition: TopicPartition) -> OutgoingBatch:
        """Move the next batch of a partition from those that wait to those in flight."""
        queue = self._queues[partition]
        limit_bytes = self._limits_bytes.get(partition.topic)
        batch = queue.waiting[0]
        # A batch that may be stored is not split: a broker detects a duplicate by all its
        # sequences.
        may_be_split = batch.record_count > 1 and not batch.is_doubtful
        if limit_bytes is not None and batch.size_bytes > limit_bytes and may_be_split:
            self._replace_by_parts(queue, batch, limit_bytes)
            batch = queue.waiting[0]
        if batch.base_sequence is None:
            identity = self._options.identity
            if identity is not None:
                identity = (identity[0], identity[1] + queue.epochs_above)
            batch.number(
                identity,
                queue.next_sequence,
                is_transactional=self._options.transactional_id is not None,
            )
            queue.next_sequence = increment_sequence(queue.next_sequence, batch.record_count)
        del queue.waiting[0]
        queue.in_flight.append(batch)
        return batch

    def _replace_by_parts(self, queue: _Queue, batch: OutgoingBatch, limit_bytes: int) -> None:
        """Split the first waiting batch by a size limit; the parts take its place."""
        parts = batch.split(limit_bytes)
        self.pending_bytes += sum(part.size_bytes for part in parts) - batch.size_bytes
        queue.waiting[0:1] = parts

    def _submit(
        self, leader: int, batches: dict[TopicPartition, OutgoingBatch], view: ClusterView
    ) -> None:
        """Send one Produce request to a leader, and record its batches as in flight.

        With acks=0 no response comes: the bytes count as unanswered until `_await_unanswered`.
        """
        client, options = self._client, self._options
        timeout_ms = min(client.settings.request_timeout_ms, client.timeout_ms)
        call = produce_call(
            batches,
            options.acks,
            options.codec,
            timeout_ms,
            transactional_id=options.transactional_id,
        )
        token = object()
        self._requests[token] = batches
        address = view.brokers[leader].address
        try:
            client.connections.submit(address, call, token, timeout_ms)
        except EngineError as error:
            self._complete_request(self._requests.pop(token), error)
            return
        if options.acks == ACKS_NONE:
            self._unanswered[address] += sum(batch.size_bytes for batch in batches.values())

    def _await_unanswered(self) -> None:
        """Wait until brokers have received the requests to which they send no response (acks=0).

        A connection's requests are served in order, so the response to a later request shows it.
        Without it, unsent bytes would be lost when the connection closes. Raises the errors
        of any request.
        """
        requested, self._unanswered = self._unanswered, Counter()
        call = Call("Metadata", metadata_request([]), METADATA_LOWEST)
        deadline_ms = self._client.clock.monotonic_ms() + self._client.timeout_ms
        calls = {address: (address, call) for address in requested}
        for result in self._client.exchange(calls, deadline_ms).values():
            if isinstance(result, EngineError):
                raise result

    # -- taking results

    def _receive_responses(self, wait_ms: int, *, may_be_interrupted: bool = True) -> None:
        """Wait up to `wait_ms` for Produce responses; complete or retry the batches of each."""
        arrived = self._client.wait_any(wait_ms, may_be_interrupted=may_be_interrupted)
        for token, result in arrived:
            batches = self._requests.pop(token, None)
            if batches is not None:
                self._complete_request(batches, result)

    def _complete_request(
        self, batches: dict[TopicPartition, OutgoingBatch], result: CallResult
    ) -> None:
        """Process the response to a Produce request, or its error, for each batch of the request.

        The base offset is -1 with acks=0. A batch that the response lacks has failed.
        """
        stored = read_stored(result.message) if isinstance(result, Response) else None
        for partition, batch in batches.items():
            queue = self._queues[partition]
            queue.in_flight.remove(batch)
            outcome: int | EngineError
            if isinstance(result, EngineError):
                outcome = result
            elif stored is None:
                outcome = -1
            else:
                outcome = (
                    stored[partition]
                    if partition in stored
                    else _missing_partition_error(partition)
                )
            if isinstance(outcome, EngineError):
                self._on_error(queue, batch, outcome)
            else:
                self._on_success(queue, batch, outcome)

    def _on_success(self, queue: _Queue, batch: OutgoingBatch, base_offset: int) -> None:
        """Add the result of a stored batch, and reset the error state of its partition."""
        queue.is_proven = True
        queue.trouble_since_ms = queue.failed_ms = None
        queue.attempts = queue.retry_ms = 0
        self._finish(BatchResult(batch, base_offset))

    def _on_error(self, queue: _Queue, batch: OutgoingBatch, error: EngineError) -> None:
        """Decide after a failed attempt: fail the batch, split it, wait, or send it again.

        OUT_OF_ORDER_SEQUENCE_NUMBER is no failure while an earlier batch of the partition is in
        flight: the batch returns to its queue.
        """
        code = error.code if isinstance(error, ApiError) else None
        if _is_stored_perhaps(error):
            batch.is_doubtful = True
        if queue.error is not None:
            self._finish(BatchResult(batch, -1, queue.error, batch.is_doubtful))
        elif code in _TOO_LARGE:
            self._on_too_large(queue, batch, error)
        elif code == OUT_OF_ORDER_SEQUENCE_NUMBER and _waits_for_another(queue, batch):
            queue.put_back(batch)
        else:
            queue.put_back(batch)
            self._fail_or_repeat(batch.partition, error, batch)

    def _on_too_large(self, queue: _Queue, batch: OutgoingBatch, error: EngineError) -> None:
        """Split a batch that the broker refused as too large; fail it if it has only one record.

        Half of the batch's size becomes the size limit of its topic, also for later batches.
        """
        queue.is_proven = False
        if batch.record_count > 1:
            limit_bytes = batch.size_bytes // 2
            topic = batch.partition.topic
            self._limits_bytes[topic] = min(self._limits_bytes.get(topic, limit_bytes), limit_bytes)
            parts = batch.split(self._limits_bytes[topic])
            self.pending_bytes += sum(part.size_bytes for part in parts) - batch.size_bytes
            for part in parts:
                queue.put_back(part)
            return
        if batch.is_doubtful:
            # The broker may have stored its sequence, so that no batch can follow safely.
            queue.put_back(batch)
            self._fail(queue, error)
            return
        queue.give_up(batch)
        self._finish(BatchResult(batch, -1, error))

    def _finish(self, result: BatchResult) -> None:
        """Add the result of a batch to those that the next `poll` returns.

        The bytes of the batch are no longer pending.
        """
        self.pending_bytes -= result.batch.size_bytes
        self._results.append(result)

    # -- errors

    def _fail_or_repeat(
        self, partition: TopicPartition, error: EngineError, batch: OutgoingBatch | None = None
    ) -> None:
        """After an error, leave a partition's batches queued for a retry, or fail them all.

        They fail after an error that is not retriable, and at the delivery timeout. `batch` is the
        failed one, already back in the queue; None if no leader was found. Without a producer id a
        batch that may be stored is not retried: it could be stored twice. `on_retry` is called with
        the first failure in a row, except for a topic that is not known yet.
        """
        queue = self._queues[partition]
        now_ms = self._client.clock.monotonic_ms()
        if queue.trouble_since_ms is None:
            waited_ms = error.timeout_ms if isinstance(error, TimedOut) else 0
            queue.trouble_since_ms = now_ms - waited_ms
        queue.attempts += 1
        queue.is_proven = False
        queue.failed_ms = now_ms
        queue.retry_ms = now_ms + self._client.drawn_backoff_ms(queue.attempts - 1)
        is_lost = batch is not None and batch.is_doubtful and self._options.identity is None
        may_recover = self._may_recover(error, queue)
        is_late = now_ms - queue.trouble_since_ms >= self._client.timeout_ms
        if may_recover and not is_lost and not is_late:
            is_first = queue.attempts == 1 and (queue.is_known or not isinstance(error, ApiError))
            if is_first and self._on_retry is not None:
                self._on_retry(error)
            return
        self._fail(queue, error)

    def _fail(self, queue: _Queue, error: EngineError) -> None:
        """Fail the queued batches of a partition with `error`.

        Later batches fail with it too, unless the partition may continue (`_may_continue`).
        """
        queue.error = error
        failed, queue.waiting = queue.waiting, []
        for left in failed:
            self._finish(BatchResult(left, -1, error, left.is_doubtful))

    def _may_recover(self, error: EngineError, queue: _Queue) -> bool:
        """Return True if a batch may succeed in a retry.

        It may after a retriable code, a lost connection or a timeout. A topic that no metadata has
        ever named is tried only a few times.
        """
        if not isinstance(error, ApiError):
            return isinstance(error, Unreachable | TimedOut)
        if error.code == UNKNOWN_TOPIC_OR_PARTITION and not queue.is_known:
            return queue.attempts < UNKNOWN_TOPIC_ATTEMPTS_MAX
        return kafka_error(error.code).is_retriable


def is_too_large(error: EngineError) -> bool:
    """Return True if a broker refused a batch because of its size."""
    return isinstance(error, ApiError) and error.code in _TOO_LARGE


def _is_stored_perhaps(error: EngineError) -> bool:
    """Return True if a batch may have been stored although its request ended with this error."""
    if isinstance(error, ApiError):
        return error.code in _MAY_BE_STORED
    return isinstance(error, TimedOut) or (
        isinstance(error, Unreachable) and error.may_have_arrived
    )


def _waits_for_another(queue: _Queue, batch: OutgoingBatch) -> bool:
    """Return True if an earlier batch of the partition still waits or is in flight.

    OUT_OF_ORDER_SEQUENCE_NUMBER for `batch` is then expected, and not its own failure.
    """
    if queue.given_up is not None:
        return True
    return any(other.order < batch.order for other in (*queue.in_flight, *queue.waiting))


def _missing_partition_error(partition: TopicPartition) -> EngineError:
    """Return the error of a partition that a Produce response does not contain."""
    return api_error(-1, f"the broker's answer leaves out {partition}")
