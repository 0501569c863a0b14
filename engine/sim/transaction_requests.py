"""Requests of one transactional id: to its coordinator, and to the leaders of partitions.

1. InitProducerId aborts the transaction that the previous instance has left open.
2. A batch is sent until it is accepted, or its producer gives up.
3. EndTxn is sent until there is a response. If an attempt had no response the instance ends: in
   this version of Kafka a late EndTxn ends any open transaction of its epoch.

Source: TransactionManager of 3.9.1; T8 for (3).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Final, NamedTuple

from engine.client.connection import Call, RequestMessage
from engine.client.settings import Address
from engine.errors import EngineError
from engine.host.coroutine import drive
from engine.host.promise import Promise
from engine.kafka_errors import (
    CONCURRENT_TRANSACTIONS,
    COORDINATOR_LOAD_IN_PROGRESS,
    DUPLICATE_SEQUENCE_NUMBER,
    INVALID_PRODUCER_EPOCH,
    INVALID_PRODUCER_ID_MAPPING,
    INVALID_TXN_STATE,
    NONE,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    PRODUCER_FENCED,
    TRANSACTION_ABORTABLE,
    UNKNOWN_PRODUCER_ID,
    kafka_error,
)
from engine.model import TopicPartition
from engine.records.builder import BatchBuilder, BatchSettings
from engine.sim.clients import ACKS_ALL, BACKOFF_MS, ClusterRequests
from engine.sim.sent_transactions import (
    Ids,
    SentOutcome,
    SentTransaction,
    TransactorEvents,
)
from engine.wire import messages
from engine.wire.structs import Message

TRANSACTION_TIMEOUT_MS: Final = 4_000
_PRODUCE_TIMEOUT_MS = 5_000
_TRANSACTION_KEY_TYPE = 1
#: Errors after which an instance's ids are fenced, by another instance or the coordinator.
_FENCED = frozenset((INVALID_PRODUCER_EPOCH, PRODUCER_FENCED, INVALID_PRODUCER_ID_MAPPING))
#: Errors after which a transaction cannot continue.
_GIVES_UP = frozenset(
    (
        *_FENCED,
        INVALID_TXN_STATE,
        OUT_OF_ORDER_SEQUENCE_NUMBER,
        TRANSACTION_ABORTABLE,
        UNKNOWN_PRODUCER_ID,
    )
)
#: Errors after which no attempt is pending, and the instance may continue. NOT_COORDINATOR is not
#: among them: a coordinator that is deposed while it writes responds with it, and the next one may
#: have the record in its log.
_UNTOUCHED = frozenset((CONCURRENT_TRANSACTIONS, COORDINATOR_LOAD_IN_PROGRESS))
#: Probability that a producer gives up after a failed attempt.
_GIVE_UP_SHARE = 0.1


class _LastResponse(NamedTuple):
    """The last response to a request that was sent until it succeeded or failed."""

    message: Message
    #: Whether each attempt before it had a response of `_UNTOUCHED`.
    is_sure: bool
    #: Whether an attempt before it may have been executed. A coordinator that is elected again
    #: while it writes EndTxn's decision responds COORDINATOR_LOAD_IN_PROGRESS, as in Kafka.
    may_be_done: bool


class InstanceEnds(EngineError):
    """Raised when an instance ends: it crashed, gave up, or was fenced."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class TransactionRequests:
    """The requests of all instances of one transactional id to brokers."""

    def __init__(
        self,
        requests: ClusterRequests,
        transactional_id: str,
        topics: Sequence[str],
        random: Random,
        events: TransactorEvents,
        *,
        gives_up: bool = True,
    ) -> None:
        """Create it without a coordinator.

        With `gives_up`, batches may arrive after their transaction.

        Late batches hang a transaction unless leaders verify it (KIP-890).
        """
        #: Probability of giving up a batch after a failed attempt.
        self._give_up_share = _GIVE_UP_SHARE * gives_up
        self.name = requests.name
        self.transactional_id = transactional_id
        self.committed_count = 0
        #: Number of late batches in flight.
        self.late_count = 0
        self._requests = requests
        self._topics = list(topics)
        self._random = random
        self._events = events
        #: Address of the coordinator; None if it must be requested.
        self._coordinator: Address | None = None
        #: Next sequence of each partition in the present epoch.
        self._sequences: dict[TopicPartition, int] = {}

    async def init_ids(self) -> Ids:
        """Send InitProducerId until it succeeds (step 1 of the module); return the new ids."""
        request = messages.InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
            producer_id=-1,
            producer_epoch=-1,
        )
        while True:
            response, *_ = await self._send_to_coordinator("InitProducerId", request, 4, _code)
            if response.error_code == NONE:
                self._sequences = {}
                ids = Ids(response.producer_id, response.producer_epoch)
                self._events.record(
                    self.name,
                    f"{self.transactional_id} is {ids.producer_id}/{ids.producer_epoch}",
                )
                self._events.record_ids(self.transactional_id, ids)
                return ids
            # Two instances that begin at once fence each other.
            await self.pause(BACKOFF_MS)

    async def add_partition(self, ids: Ids, partition: TopicPartition) -> None:
        """Add a partition to the transaction; raises InstanceEnds."""
        topic = messages.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
        request = messages.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=ids.producer_id,
            v3_and_below_producer_epoch=ids.producer_epoch,
            v3_and_below_topics=[topic(name=partition.topic, partitions=[partition.partition])],
        )
        response, *_ = await self._send_to_coordinator(
            "AddPartitionsToTxn", request, 3, _added_code, ids
        )
        self.check("AddPartitionsToTxn", _added_code(response))

    async def add_offsets(self, ids: Ids, group_id: str) -> None:
        """Add the offsets of a group to the transaction; raises InstanceEnds."""
        request = messages.AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=ids.producer_id,
            producer_epoch=ids.producer_epoch,
            group_id=group_id,
        )
        response, *_ = await self._send_to_coordinator("AddOffsetsToTxn", request, 3, _code, ids)
        self.check("AddOffsetsToTxn", _code(response))

    async def produce(
        self, ids: Ids, transaction: SentTransaction, partition: TopicPartition, numbers: range
    ) -> bool:
        """Send one batch until it is accepted, or the producer gives up at random (step 2).

        Return True if it was accepted; raises InstanceEnds.
        """
        message = self._batch(ids, transaction, partition, numbers)
        while True:
            code = await self._produce_once(ids, partition, message)
            if code in (NONE, DUPLICATE_SEQUENCE_NUMBER):
                break
            if code is not None:
                self.check(f"Produce {partition} {numbers.start}", code)
            if self._random.random() < self._give_up_share:
                return False
            await self.pause(BACKOFF_MS)
        self._sequences[partition] = self._sequences.get(partition, 0) + len(numbers)
        transaction.accepted.setdefault(partition, set()).update(numbers)
        return True

    def produce_late(
        self,
        ids: Ids,
        transaction: SentTransaction,
        partition: TopicPartition,
        numbers: range,
        delay_ms: int,
    ) -> None:
        """Send a batch after a delay, regardless of the transaction's end."""
        message = self._batch(ids, transaction, partition, numbers)

        async def arrive() -> None:
            """Send the batch after the delay; record an error in the trace."""
            await self.pause(delay_ms)
            code = await self._produce_once(ids, partition, message)
            text = "nothing" if code is None else kafka_error(code).name
            self._events.record(self.name, f"late batch {partition} {numbers.start}: {text}")
            self.late_count -= 1

        self.late_count += 1
        drive(arrive())

    def _batch(
        self, ids: Ids, transaction: SentTransaction, partition: TopicPartition, numbers: range
    ) -> messages.ProduceRequest:
        """Create the Produce request of the next batch, and record its numbers as sent."""
        records = self._build(ids, numbers, self._sequences.get(partition, 0))
        transaction.sent.setdefault(partition, set()).update(numbers)
        request = messages.ProduceRequest
        data = request.PartitionProduceData(index=partition.partition, records=records)
        return request(
            transactional_id=self.transactional_id,
            acks=ACKS_ALL,
            timeout_ms=_PRODUCE_TIMEOUT_MS,
            topic_data=[request.TopicProduceData(name=partition.topic, partition_data=[data])],
        )

    def _build(self, ids: Ids, numbers: range, sequence: int) -> bytes:
        """Build a transactional batch with one record, `name:number`, for each number."""
        builder = BatchBuilder(
            BatchSettings(
                producer_id=ids.producer_id,
                producer_epoch=ids.producer_epoch,
                base_sequence=sequence,
                is_transactional=True,
            )
        )
        now_ms = self._requests.timers.clock.wall_ms()
        for number in numbers:
            builder.append(now_ms, None, f"{self.name}:{number}".encode())
        return bytes(builder.build())

    async def _produce_once(
        self, ids: Ids, partition: TopicPartition, message: RequestMessage
    ) -> int | None:
        """Send Produce once; return its error code, None without a response. Refresh stale leaders.

        A replica that a reassignment removed while its broker was down believes that it is the
        leader, and rejects everything with NOT_ENOUGH_REPLICAS: its producers must find the leader
        themselves. Source: `metadata.max.age.ms`; here each attempt refreshes the metadata.
        """
        code: int | None = None
        leader = self._requests.leaders.get(partition)
        if leader is not None:
            fence = self._events.fence_of(self.transactional_id, ids, partition)
            try:
                response = await self._requests.send(leader, Call("Produce", message, highest=9))
            except EngineError as error:
                self._events.record(self.name, f"{partition}: {error}")
            else:
                (topic,) = response.message.responses
                (row,) = topic.partition_responses
                code = int(row.error_code)
                if code == NONE and fence is not None:
                    self._events.check_fenced_success(fence, leader.host, f"{self.name}: Produce")
                if code == NONE or not kafka_error(code).is_retriable:
                    return code
        await self._find_leaders()
        return code

    async def end(self, ids: Ids, transaction: SentTransaction, *, is_commit: bool) -> None:
        """Send EndTxn until the coordinator responds (step 3 of the module); raises InstanceEnds.

        `transaction.outcome` becomes UNKNOWN if an attempt without a response may have committed.
        """
        request = messages.EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=ids.producer_id,
            producer_epoch=ids.producer_epoch,
            committed=is_commit,
        )
        if not transaction.sent:
            # Nothing was added, so the coordinator has no transaction.
            transaction.outcome = SentOutcome.ABORTED
            return
        transaction.outcome = SentOutcome.UNKNOWN if is_commit else SentOutcome.ABORTED
        response, is_sure, may_be_done = await self._send_to_coordinator(
            "EndTxn", request, 3, _code, ids
        )
        code = int(response.error_code)
        if code != NONE:
            if not may_be_done:
                transaction.outcome = SentOutcome.ABORTED
            self.check("EndTxn", code)
        if is_commit:
            transaction.outcome = SentOutcome.COMMITTED
            self.committed_count += 1
        self._events.record(self.name, f"{transaction} is {transaction.outcome.value}")
        if not is_sure:
            raise InstanceEnds("EndTxn had an attempt without an answer")

    def check(self, what: str, code: int) -> None:
        """Return after success and retriable errors; raise InstanceEnds for other codes.

        Rule T2: codes other than those that fence an instance must be retriable. `what` names the
        request.
        """
        if code == NONE or (code not in _GIVES_UP and kafka_error(code).is_retriable):
            return
        text = f"{what}: {kafka_error(code).name}"
        if code not in _GIVES_UP:
            self._events.broke("T2", f"{self.name} {text}", None)
        raise InstanceEnds(text)

    # Requests

    async def _send_to_coordinator(
        self,
        api_name: str,
        request: RequestMessage,
        highest: int,
        code_of: Callable[[Message], int],
        ids: Ids | None = None,
    ) -> _LastResponse:
        """Send a request to the coordinator until it succeeds or fails with a final error.

        `code_of` returns the error code of a response. The result has also whether an earlier
        attempt may have changed the transaction.
        """
        is_sure, may_be_done = True, False
        while True:
            coordinator = self._coordinator or await self._find_coordinator()
            if coordinator is not None:
                fence = ids and self._events.fence_of(self.transactional_id, ids, None)
                try:
                    response = await self._requests.send(
                        coordinator, Call(api_name, request, highest=highest)
                    )
                except EngineError as error:
                    self._events.record(self.name, f"{api_name}: {error}")
                    is_sure, may_be_done = False, True
                else:
                    code = code_of(response.message)
                    if code == NONE and fence:
                        request_name = f"{self.name}: {api_name}"
                        self._events.check_fenced_success(fence, coordinator.host, request_name)
                    if code == NONE or not kafka_error(code).is_retriable:
                        return _LastResponse(response.message, is_sure, may_be_done)
                    self._events.record(self.name, f"{api_name}: {kafka_error(code).name}")
                    is_sure = is_sure and code in _UNTOUCHED
                    may_be_done = may_be_done or code != CONCURRENT_TRANSACTIONS
                self._coordinator = None
            await self.pause(BACKOFF_MS)

    async def _find_coordinator(self) -> Address | None:
        """Request the transaction coordinator and keep its address; None after an error."""
        request = messages.FindCoordinatorRequest(
            key=self.transactional_id, key_type=_TRANSACTION_KEY_TYPE
        )
        call = Call("FindCoordinator", request, highest=3)
        try:
            response = (await self._requests.send(self._requests.any_broker(), call)).message
        except EngineError:
            return None
        if response.error_code != NONE:
            return None
        self._coordinator = Address(response.host, response.port)
        return self._coordinator

    async def _find_leaders(self) -> None:
        """Request the leaders of the topics, and wait for the response."""
        found: Promise[None] = Promise()
        self._requests.find_leaders(self._topics, lambda: found.keep(None))
        await found

    async def pause(self, pause_ms: int) -> None:
        """Wait for `pause_ms`."""
        over: Promise[None] = Promise()
        self._requests.after(pause_ms, lambda: over.keep(None))
        await over


def _code(message: Message) -> int:
    """Return the error code of a response that has only one."""
    return int(message.error_code)


def _added_code(message: Message) -> int:
    """Return the error code of the only partition of an AddPartitionsToTxn response."""
    (topic,) = message.results_by_topic_v3_and_below
    (row,) = topic.results_by_partition
    return int(row.partition_error_code)
