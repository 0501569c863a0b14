"""Transactional producers of the simulated cluster.

```
InitProducerId ──> AddPartitionsToTxn, Produce … ──> EndTxn ──┐
      ^                 ^                                     │
      │ fenced, gave up │ answered at once                    │
      └─────────────────┴─────────────────────────────────────┘
```

1. InitProducerId ends the transaction that the instance before this one has left open.
2. A transaction adds some partitions; each gets batches, and each batch is sent until accepted.
3. EndTxn commits or aborts, and is sent until it is answered. If an attempt had no answer the next
   transaction begins with another epoch (1): at this level of Kafka a late EndTxn ends any
   transaction of that epoch that is open then.
4. A producer that waits for a leader may give up: it aborts (3), with a request on its way that
   may come after the marker. Then it begins again (1).
5. An instance that crashes leaves its transaction as it is. The next one begins (1) after a while,
   before or after the transaction has timed out; at the end there may be none.

Instances of one transactional id that do not know of each other fence each other.

Source: TransactionManager of 3.9.1; T8 for (3).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from random import Random
from typing import Final, NamedTuple, Protocol

from engine.client.connection import Call, RequestMessage
from engine.client.settings import Address
from engine.errors import EngineError
from engine.host.promise import Promise
from engine.kafka_errors import (
    CONCURRENT_TRANSACTIONS,
    COORDINATOR_LOAD_IN_PROGRESS,
    DUPLICATE_SEQUENCE_NUMBER,
    INVALID_PRODUCER_EPOCH,
    INVALID_PRODUCER_ID_MAPPING,
    INVALID_TXN_STATE,
    NONE,
    NOT_COORDINATOR,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    PRODUCER_FENCED,
    TRANSACTION_ABORTABLE,
    UNKNOWN_PRODUCER_ID,
    kafka_error,
)
from engine.model import TopicPartition
from engine.records.builder import BatchBuilder, BatchSettings
from engine.sim.clients import ACKS_ALL, BACKOFF_MS, ClusterLinks
from engine.wire import messages
from engine.wire.structs import Message

TRANSACTION_TIMEOUT_MS: Final = 4_000
_PRODUCE_TIMEOUT_MS = 5_000
_TRANSACTION_KEY_TYPE = 1
#: What ends an instance's work with its ids: another one, or the coordinator, has fenced them.
_FENCED = frozenset((INVALID_PRODUCER_EPOCH, PRODUCER_FENCED, INVALID_PRODUCER_ID_MAPPING))
#: What ends a transaction that cannot be gone on with.
_GIVES_UP = frozenset(
    (
        *_FENCED,
        INVALID_TXN_STATE,
        OUT_OF_ORDER_SEQUENCE_NUMBER,
        TRANSACTION_ABORTABLE,
        UNKNOWN_PRODUCER_ID,
    )
)
#: Errors of a coordinator that has changed nothing.
_UNTOUCHED = frozenset((CONCURRENT_TRANSACTIONS, COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR))
#: How often an instance crashes in a transaction, and how often it aborts one.
_CRASH_SHARE, _ABORT_SHARE = 0.15, 0.25
#: How often a producer gives up after an attempt without success.
_GIVE_UP_SHARE = 0.1


class SentOutcome(Enum):
    """How a transaction ended, as far as its producer knows."""

    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"
    #: EndTxn had an attempt without an answer, and a later one was refused.
    UNKNOWN = "unknown"


class SentTransaction:
    """What one transaction sent."""

    __slots__ = ("accepted", "name", "outcome", "producer_epoch", "producer_id", "sent")

    def __init__(self, name: str, producer_id: int, producer_epoch: int) -> None:
        self.name = name
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.outcome = SentOutcome.OPEN
        #: Numbers of records that were sent, and of those that leaders accepted, by partition.
        self.sent: dict[TopicPartition, set[int]] = {}
        self.accepted: dict[TopicPartition, set[int]] = {}

    def __str__(self) -> str:
        return f"{self.name} of {self.producer_id}/{self.producer_epoch}"


class TransactorEvents(Protocol):
    """Who is told what transactional producers see."""

    def told(self, subject: str, text: str) -> None:
        """Take note of something that a reader of the trace wants to know."""
        ...

    def began(self, transaction: SentTransaction) -> None:
        """Take note of a transaction that begins."""
        ...

    def broke(self, rule: str, text: str, partition: TopicPartition | None) -> None:
        """Take note of a broken promise to a client."""
        ...


class _Ids(NamedTuple):
    producer_id: int
    producer_epoch: int


class _InstanceEnds(EngineError):
    """An instance goes on with no transaction of its ids: it crashed, or was fenced."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class Transactor:
    """Instances of one transactional id, one after the other."""

    def __init__(
        self,
        links: ClusterLinks,
        transactional_id: str,
        partitions: Sequence[TopicPartition],
        random: Random,
        events: TransactorEvents,
    ) -> None:
        self.name = links.name
        self.transactional_id = transactional_id
        #: Whether it is at its end, with nothing open.
        self.is_done = False
        self.committed_count = 0
        self._links = links
        self._partitions = list(partitions)
        self._random = random
        self._events = events
        self._coordinator: Address | None = None
        self._next_number = 0
        self._sequences: dict[TopicPartition, int] = {}
        self._is_finishing = False

    def finish(self) -> None:
        """Begin no other transaction; the one that is open comes to its end."""
        self._is_finishing = True

    async def run(self) -> None:
        """Run instances until it is to finish."""
        while not self._is_finishing:
            try:
                ids = await self._init_ids()
                while not self._is_finishing:
                    await self._transact(ids)
                    await self._pause(self._random.randrange(1, 600))
            except _InstanceEnds as end:
                self._events.told(self.name, f"an instance ends: {end.why}")
                await self._pause(self._random.randrange(1, 2 * TRANSACTION_TIMEOUT_MS))
        if self._draws(0.5):
            # What a crashed instance has left is ended by the next one, or by its time-out (5).
            await self._init_ids()
        self.is_done = True

    async def _init_ids(self) -> _Ids:
        request = messages.InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
            producer_id=-1,
            producer_epoch=-1,
        )
        while True:
            response, _ = await self._ask_coordinator("InitProducerId", request, 4, _code)
            if response.error_code == NONE:
                self._sequences = {}
                self._events.told(
                    self.name,
                    f"{self.transactional_id} is {response.producer_id}/{response.producer_epoch}",
                )
                return _Ids(response.producer_id, response.producer_epoch)
            # Two instances that begin at once fence each other.
            await self._pause(BACKOFF_MS)

    # One transaction

    async def _transact(self, ids: _Ids) -> None:
        transaction = SentTransaction(f"{self.name}@{self._next_number}", *ids)
        self._events.began(transaction)
        try:
            crashes_at = self._random.randrange(8) if self._draws(_CRASH_SHARE) else None
            for step in range(self._random.choice((1, 1, 2, 4))):
                if step == crashes_at:
                    raise _InstanceEnds("it crashes in a transaction")
                partition = self._random.choice(self._partitions)
                await self._add(ids, partition)
                if not await self._produce(ids, transaction, partition):
                    await self._end(ids, transaction, is_commit=False)
                    raise _InstanceEnds("it gave a batch up")
            if crashes_at is not None and self._draws(0.5):
                raise _InstanceEnds("it crashes before the end of a transaction")
            await self._end(ids, transaction, is_commit=not self._draws(_ABORT_SHARE))
        except _InstanceEnds:
            if transaction.outcome is SentOutcome.OPEN:
                transaction.outcome = SentOutcome.ABORTED
            raise

    def _draws(self, share: float) -> bool:
        return self._random.random() < share

    async def _add(self, ids: _Ids, partition: TopicPartition) -> None:
        topic = messages.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
        request = messages.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=ids.producer_id,
            v3_and_below_producer_epoch=ids.producer_epoch,
            v3_and_below_topics=[topic(name=partition.topic, partitions=[partition.partition])],
        )
        response, _ = await self._ask_coordinator("AddPartitionsToTxn", request, 3, _added_code)
        self._check("AddPartitionsToTxn", _added_code(response))

    async def _produce(
        self, ids: _Ids, transaction: SentTransaction, partition: TopicPartition
    ) -> bool:
        """Send one batch until it is accepted (2), or given up (4); returns whether it was."""
        count = self._random.choice((1, 1, 2, 5))
        numbers = range(self._next_number, self._next_number + count)
        self._next_number += count
        sequence = self._sequences.get(partition, 0)
        records = self._build(ids, numbers, sequence)
        transaction.sent.setdefault(partition, set()).update(numbers)
        request = messages.ProduceRequest
        data = request.PartitionProduceData(index=partition.partition, records=records)
        message = request(
            transactional_id=self.transactional_id,
            acks=ACKS_ALL,
            timeout_ms=_PRODUCE_TIMEOUT_MS,
            topic_data=[request.TopicProduceData(name=partition.topic, partition_data=[data])],
        )
        while True:
            code = await self._produce_once(partition, message)
            if code in (NONE, DUPLICATE_SEQUENCE_NUMBER):
                break
            if code is not None:
                self._check(f"Produce {partition} {numbers.start}", code)
            if self._draws(_GIVE_UP_SHARE):
                return False
            await self._pause(BACKOFF_MS)
        self._sequences[partition] = sequence + count
        transaction.accepted.setdefault(partition, set()).update(numbers)
        return True

    def _build(self, ids: _Ids, numbers: range, sequence: int) -> bytes:
        builder = BatchBuilder(
            BatchSettings(
                producer_id=ids.producer_id,
                producer_epoch=ids.producer_epoch,
                base_sequence=sequence,
                is_transactional=True,
            )
        )
        now_ms = self._links.timers.clock.wall_ms()
        for number in numbers:
            builder.append(now_ms, None, f"{self.name}:{number}".encode())
        return bytes(builder.build())

    async def _produce_once(self, partition: TopicPartition, message: RequestMessage) -> int | None:
        """Return the code of a response, None if none came."""
        leader = self._links.leaders.get(partition)
        if leader is not None:
            try:
                response = await self._links.ask(leader, Call("Produce", message, highest=9))
            except EngineError as error:
                self._events.told(self.name, f"{partition}: {error}")
            else:
                (topic,) = response.message.responses
                (row,) = topic.partition_responses
                code = int(row.error_code)
                if code == NONE or not kafka_error(code).needs_metadata:
                    return code
        await self._find_leaders()
        return None

    async def _end(self, ids: _Ids, transaction: SentTransaction, *, is_commit: bool) -> None:
        """Commit or abort, until that is answered (3)."""
        request = messages.EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=ids.producer_id,
            producer_epoch=ids.producer_epoch,
            committed=is_commit,
        )
        if not transaction.sent:
            # Nothing was added: the coordinator knows of no transaction.
            transaction.outcome = SentOutcome.ABORTED
            return
        transaction.outcome = SentOutcome.UNKNOWN if is_commit else SentOutcome.ABORTED
        response, is_sure = await self._ask_coordinator("EndTxn", request, 3, _code)
        code = int(response.error_code)
        if code != NONE:
            if is_sure:
                transaction.outcome = SentOutcome.ABORTED
            self._check("EndTxn", code)
        if is_commit:
            transaction.outcome = SentOutcome.COMMITTED
            self.committed_count += 1
        self._events.told(self.name, f"{transaction} is {transaction.outcome.value}")
        if not is_sure:
            raise _InstanceEnds("EndTxn had an attempt without an answer")

    def _check(self, what: str, code: int) -> None:
        """Go on after success and retriable errors; end the instance after others."""
        if code == NONE or (code not in _GIVES_UP and kafka_error(code).is_retriable):
            return
        text = f"{what}: {kafka_error(code).name}"
        if code not in _GIVES_UP:
            self._events.broke("T2", f"{self.name} {text}", None)
        raise _InstanceEnds(text)

    # Requests

    async def _ask_coordinator(
        self,
        api_name: str,
        request: RequestMessage,
        highest: int,
        code_of: Callable[[Message], int],
    ) -> tuple[Message, bool]:
        """Ask the coordinator until it has an answer; also whether no attempt may have worked."""
        is_sure = True
        while True:
            coordinator = self._coordinator or await self._find_coordinator()
            if coordinator is not None:
                try:
                    response = await self._links.ask(
                        coordinator, Call(api_name, request, highest=highest)
                    )
                except EngineError as error:
                    self._events.told(self.name, f"{api_name}: {error}")
                    is_sure = False
                else:
                    code = code_of(response.message)
                    if code == NONE or not kafka_error(code).is_retriable:
                        return response.message, is_sure
                    self._events.told(self.name, f"{api_name}: {kafka_error(code).name}")
                    is_sure = is_sure and code in _UNTOUCHED
                self._coordinator = None
            await self._pause(BACKOFF_MS)

    async def _find_coordinator(self) -> Address | None:
        request = messages.FindCoordinatorRequest(
            key=self.transactional_id, key_type=_TRANSACTION_KEY_TYPE
        )
        call = Call("FindCoordinator", request, highest=3)
        try:
            response = (await self._links.ask(self._links.any_broker(), call)).message
        except EngineError:
            return None
        if response.error_code != NONE:
            return None
        self._coordinator = Address(response.host, response.port)
        return self._coordinator

    async def _find_leaders(self) -> None:
        found: Promise[None] = Promise()
        topics = sorted({partition.topic for partition in self._partitions})
        self._links.find_leaders(topics, lambda: found.keep(None))
        await found

    async def _pause(self, pause_ms: int) -> None:
        over: Promise[None] = Promise()
        self._links.after(pause_ms, lambda: over.keep(None))
        await over


def _code(message: Message) -> int:
    return int(message.error_code)


def _added_code(message: Message) -> int:
    (topic,) = message.results_by_topic_v3_and_below
    (row,) = topic.results_by_partition
    return int(row.partition_error_code)
