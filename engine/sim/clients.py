"""Producers of the simulated cluster, and the requests and metadata that all its clients share.

```
producer   due ──> a batch in the queue of a partition ──> the first few of the queue are sent
           all of these have a response: accepted ones at the front are removed from the queue,
           the rest are sent again after a back-off, in order, with the same sequences
```

A producer with acks=all retries forever, and sends a batch only after all earlier ones. Producers
with acks=1 and 0 send each batch once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import NamedTuple, Protocol

from engine.client.connection import BrokerConnection, Call, Response
from engine.client.loop_connection import LoopConnection
from engine.client.settings import Address
from engine.errors import EngineError
from engine.host.promise import Promise
from engine.kafka_errors import (
    DUPLICATE_SEQUENCE_NUMBER,
    NONE,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    kafka_error,
)
from engine.model import TopicPartition
from engine.sim.client_quotas import QuotaRules
from engine.sim.machine import MachineTimers
from engine.sim.network import MachineNetwork
from engine.sim.records import Sender, build
from engine.wire import messages
from engine.wire.structs import Message

ACKS_ALL = -1
_TIMEOUT_MS = 10_000
_PRODUCE_TIMEOUT_MS = 5_000
_PASSING_PERIOD_MS = 400
#: The back-off of clients before a retry.
BACKOFF_MS = 150


class ClientEvents(Protocol):
    """Receives the events of clients: acknowledged batches, records read, damage, broken rules."""

    def record(self, subject: str, text: str) -> None:
        """Add a line to the trace of the run."""
        ...

    def record_acknowledged(
        self, producer: SimulatedProducer, batch: SentBatch, base_offset: int
    ) -> None:
        """Record that a leader accepted a batch; `base_offset` is -1 if the response has none."""
        ...

    def read(
        self, consumer: str, partition: TopicPartition, position: int, content: bytes
    ) -> int | None:
        """Record the batches that a consumer got from a fetch at `position`.

        Return the offset after the last record; None if there was no record.
        """
        ...

    def on_damaged_batch(
        self, consumer: str, host: str, partition: TopicPartition, base_offset: int
    ) -> None:
        """Record that a consumer received a batch with a wrong checksum from machine `host`."""
        ...

    def broke(self, rule: str, text: str, partition: TopicPartition | None) -> None:
        """Record a rule that a response to a client broke."""
        ...

    def is_doomed(self, partition: TopicPartition) -> bool:
        """Return True if the deletion of a partition was requested."""
        ...

    def loss_count(self, partition: TopicPartition) -> int:
        """Return how often records of a partition were lost in a way that Kafka allows too."""
        ...

    def resume_at(self, partition: TopicPartition, position: int) -> int | None:
        """Return the offset at which a consumer resumes that has read lost records.

        None if it has not.
        """
        ...

    def record_abandoned(self, producer: SimulatedProducer, batch: SentBatch) -> None:
        """Record a batch that is not sent again and may or may not be in the log."""
        ...

    def leads(self, host: str, partition: TopicPartition) -> bool:
        """Return True if the broker of a machine is running and is the leader in the store."""
        ...

    def leader_epoch(self, partition: TopicPartition) -> int:
        """Return the leader epoch in the store; -1 if there is none."""
        ...

    def start_of(self, partition: TopicPartition) -> int:
        """Return the offset below which old records may have been deleted."""
        ...

    def is_written(self, producer: SimulatedProducer, batch: SentBatch) -> bool:
        """Return True if the leader's log has a batch, even if the producer got no response."""
        ...

    def is_committed(self, producer: SimulatedProducer, batch: SentBatch) -> bool:
        """Return True if a batch is, or was, in the leader's log and will not be lost."""
        ...

    def is_overtaken(self, producer: SimulatedProducer, batch: SentBatch) -> bool:
        """Return True if the leader's log has only later batches of the producer."""
        ...

    def is_forgotten(self, producer: SimulatedProducer, batch: SentBatch) -> bool:
        """Return True if a cleaning removed the batch before this one from the leader's log."""
        ...


class SentBatch:
    """Records that a producer sends to one partition."""

    __slots__ = (
        "attempts",
        "count",
        "first_number",
        "is_accepted",
        "is_answered",
        "leader_epoch",
        "loss_count",
        "partition",
    )

    def __init__(self, partition: TopicPartition, first_number: int, count: int) -> None:
        """Create a batch whose records have consecutive numbers from `first_number`."""
        self.partition = partition
        self.first_number = first_number
        self.count = count
        #: How often the batch was sent.
        self.attempts = 0
        #: Leader epoch when the batch was last sent, −1 before.
        self.leader_epoch = -1
        #: The partition's number of losses when the batch was last sent.
        self.loss_count = 0
        #: Whether the last attempt has a response, and whether any response has accepted the batch.
        self.is_answered = False
        self.is_accepted = False


class ClusterRequests:
    """The connections of one client to all brokers, and its metadata of leaders."""

    def __init__(
        self,
        name: str,
        timers: MachineTimers,
        network: MachineNetwork,
        brokers: Sequence[Address],
        random: Random,
        quotas: QuotaRules,
        *,
        waits_when_throttled: bool = False,
    ) -> None:
        """Create it without connections.

        With `waits_when_throttled` the client sends nothing during a broker's throttle time.
        """
        self.name = name
        self.timers = timers
        self._network = network
        self._brokers = list(brokers)
        self._random = random
        self._quotas = quotas
        self._waits_when_throttled = waits_when_throttled
        if waits_when_throttled:
            quotas.check_quota_of(name)
        self._connections: dict[Address, LoopConnection] = {}
        #: How many connections were opened to each broker.
        self._connection_numbers: dict[Address, int] = {}
        #: Time until which nothing is sent to a broker that throttles this client.
        self._throttled_until_ms: dict[Address, int] = {}
        #: Leaders by partition, from the last Metadata response.
        self.leaders: dict[TopicPartition, Address] = {}
        #: Address of the controller in the last metadata; None if it has none.
        self.controller: Address | None = None

    def after(self, delay_ms: int, work: Callable[[], None]) -> None:
        """Run `work` once after a delay."""
        self.timers.call_at(self.timers.clock.monotonic_ms() + delay_ms, work)

    def send(self, address: Address, call: Call) -> Promise[Response]:
        """Send a request to one broker; promise the response.

        If the broker throttles this client, the request waits until that is over.
        """
        until_ms = self._throttled_until_ms.get(address, 0)
        wait_ms = until_ms - self.timers.clock.monotonic_ms()
        if wait_ms <= 0 or not self._waits_when_throttled:
            return self._send(address, call)
        promise: Promise[Response] = Promise()

        def take(response: Promise[Response]) -> None:
            """Complete the promise with the response, or with its error."""
            if response.error is not None:
                promise.fail(response.error)
            else:
                promise.keep(response.result())

        def send() -> None:
            """Send the request after the throttle time, and keep the promise with its response."""
            response = self._send(address, call)
            response.watch(lambda: take(response))

        self.after(wait_ms, send)
        return promise

    def _send(self, address: Address, call: Call) -> Promise[Response]:
        """Send a call on the connection to `address`, which is opened on first use.

        Report the request and its response to the quota rules.
        """
        connection = self._connections.get(address)
        if connection is None:
            connection = self._connections[address] = LoopConnection(
                self._network,
                self.timers,
                self.timers.clock,
                address,
                partial(self._connect, address),
                timeout_ms=_TIMEOUT_MS,
            )
        sent_ms = self.timers.clock.monotonic_ms()
        sent_number = self._quotas.record_request(self.name, address, call)
        response = connection.send(call)
        response.watch(lambda: self._on_response(address, call, sent_number, sent_ms, response))
        return response

    def _connect(self, address: Address) -> BrokerConnection:
        """Create a connection, and count it: a throttle is checked within one connection only."""
        self._connection_numbers[address] = self._connection_numbers.get(address, 0) + 1
        return BrokerConnection(self.name)

    def _on_response(
        self,
        address: Address,
        call: Call,
        sent_number: int,
        sent_ms: int,
        promise: Promise[Response],
    ) -> None:
        """Report a response to the quota rules, and store its throttle time for later requests."""
        self._quotas.record_end(self.name, address, call, is_lost=promise.error is not None)
        if promise.error is not None or not call.has_response:
            return
        now_ms = self.timers.clock.monotonic_ms()
        throttle_ms = self._quotas.check_response(
            self.name,
            address,
            call,
            promise.result(),
            connection_number=self._connection_numbers[address],
            sent_number=sent_number,
            sent_ms=sent_ms,
            now_ms=now_ms,
        )
        if throttle_ms:
            self._throttled_until_ms[address] = now_ms + throttle_ms

    def any_broker(self) -> Address:
        """Return the address of a random broker."""
        return self._random.choice(self._brokers)

    def find_leaders(self, topics: Sequence[str], done: Callable[[], None]) -> None:
        """Request metadata of topics from a random broker; `done` runs after success or failure."""
        request = messages.MetadataRequest(
            topics=[messages.MetadataRequest.MetadataRequestTopic(name=name) for name in topics],
            allow_auto_topic_creation=False,
        )
        response = self.send(self.any_broker(), Call("Metadata", request, highest=9))

        def take() -> None:
            """Store the leaders of the response; call `done`, also after a failure."""
            if response.error is None:
                self._apply_metadata(response.result().message)
            done()

        response.watch(take)

    def _apply_metadata(self, response: messages.MetadataResponse) -> None:
        """Store the addresses of the controller and of each partition's leader."""
        addresses = {node.node_id: Address(node.host, node.port) for node in response.brokers}
        self.controller = addresses.get(response.controller_id)
        for topic in response.topics:
            for row in topic.partitions:
                leader = addresses.get(row.leader_id)
                partition = TopicPartition(topic.name or "", row.partition_index)
                if leader is None:
                    self.leaders.pop(partition, None)
                else:
                    self.leaders[partition] = leader


class ProducerKind(NamedTuple):
    """Settings of a producer; `window` is the number of batches in flight per partition.

    Without a producer id it must be 1: otherwise a retried batch would follow later ones that were
    accepted meanwhile, in Kafka too.
    """

    acks: int
    is_idempotent: bool
    window: int
    period_ms: int
    is_keyed: bool = False
    is_compressed: bool = False


def short_lived_producer_kind(number: int) -> ProducerKind:
    """Return the kind of the producer to a short-lived topic; `number` counts earlier ones.

    Idempotent producers, with 1 to 3 batches in flight, alternate with others. All use acks=all.
    """
    is_idempotent = number % 2 == 0
    in_flight_max = 1 + number % 3 if is_idempotent else 1
    return ProducerKind(ACKS_ALL, is_idempotent, in_flight_max, _PASSING_PERIOD_MS)


class _Lane:
    """The queue of one producer for one partition."""

    def __init__(self) -> None:
        """Create an empty queue; the partition uses the producer's common producer id."""
        #: Batches that are not accepted yet, in order.
        self.queue: deque[SentBatch] = deque()
        #: Batches in flight, whose responses are outstanding.
        self.sent: list[SentBatch] = []
        #: The number in the next record; numbers show which records are lost or repeated.
        self.next_number = 0
        #: Whether a response or a back-off is outstanding, so that nothing may be sent.
        self.waits = False
        #: A producer id only for this partition, requested after records of the partition were lost
        #: or cleaned away (KIP-360). None while the producer's common id is used.
        self.sender: Sender | None = None
        #: The partition's number of losses when `sender` was requested: only a later loss excuses
        #: OUT_OF_ORDER_SEQUENCE_NUMBER.
        self.loss_count = 0
        #: Whether the leader has lost this producer's sequences, so that a new id is needed.
        self.needs_id = False


class SimulatedProducer:
    """Sends numbered records to partitions until `finish`."""

    def __init__(
        self,
        requests: ClusterRequests,
        kind: ProducerKind,
        partitions: Sequence[TopicPartition],
        random: Random,
        events: ClientEvents,
    ) -> None:
        """Create a producer; `events` receives each result, `kind` has its settings."""
        assert kind.window == 1 or kind.is_idempotent, "retries overtake what is in flight"
        self.name = requests.name
        self.kind = kind
        self._requests = requests
        self._partitions = list(partitions)
        self._random = random
        self._events = events
        #: The common producer id and epoch, used for partitions without a separate one.
        self._sender = Sender(
            requests.name, is_keyed=kind.is_keyed, is_compressed=kind.is_compressed
        )
        self._lanes = {partition: _Lane() for partition in partitions}
        #: Whether no new records are created: queued ones are still sent.
        self._is_finishing = False
        self.accepted_count = 0

    def start(self) -> None:
        """Start sending; an idempotent producer requests its id first."""
        if self.kind.is_idempotent:
            self._request_producer_id()
        else:
            self._produce_next()

    def finish(self) -> None:
        """Create no more records; queued ones are still sent and retried."""
        self._is_finishing = True

    def add(self, partition: TopicPartition) -> None:
        """Send to one more partition from now on."""
        if partition not in self._lanes:
            self._lanes[partition] = _Lane()
            self._partitions.append(partition)

    def give_up(self) -> None:
        """Stop sending, and ignore later responses, because the topic will be deleted."""
        self._is_finishing = True
        self._lanes.clear()

    def unanswered(self) -> list[TopicPartition]:
        """Return the partitions that still have queued batches."""
        return [partition for partition, lane in self._lanes.items() if lane.queue]

    def _request_producer_id(
        self, lane: _Lane | None = None, done: Callable[[], None] | None = None
    ) -> None:
        """Request a producer id for `lane`, or for all partitions if it is None.

        Then call `done`, or start sending if no lane is given. An error is retried.
        """
        request = messages.InitProducerIdRequest(
            transactional_id=None, transaction_timeout_ms=60_000
        )
        response = self._requests.send(
            self._requests.any_broker(), Call("InitProducerId", request, highest=4)
        )

        def take() -> None:
            """Use the new producer id for `lane` or all partitions; retry on error."""
            message = None if response.error is not None else response.result().message
            if message is None or message.error_code != NONE:
                self._requests.after(BACKOFF_MS, lambda: self._request_producer_id(lane, done))
                return
            sender = self._sender._replace(
                producer_id=message.producer_id, producer_epoch=message.producer_epoch
            )
            if lane is None:
                self._sender = sender
                self._produce_next()
            else:
                lane.sender = sender
            if done is not None:
                done()

        response.watch(take)

    def _produce_next(self) -> None:
        """Append a batch to the queue of a random partition and send it; schedule the next one."""
        if self._is_finishing:
            return
        partition = self._random.choice(self._partitions)
        lane = self._lanes[partition]
        if len(lane.queue) < 20 and not self._events.is_doomed(partition):
            count = self._random.choice((1, 1, 2, 5))
            lane.queue.append(SentBatch(partition, lane.next_number, count))
            lane.next_number += count
            self._send(partition)
        self._requests.after(self._random.randrange(1, 2 * self.kind.period_ms), self._produce_next)

    def _send(self, partition: TopicPartition) -> None:
        """Send the next batches of a partition's queue, unless a response is outstanding."""
        lane = self._lanes.get(partition)
        if lane is None or lane.waits or not lane.queue:
            return
        leader = self._requests.leaders.get(partition)
        if leader is None:
            self._retry_later(partition)
            return
        lane.waits = True
        lane.sent = [lane.queue[at] for at in range(min(self.kind.window, len(lane.queue)))]
        for batch in lane.sent:
            batch.is_answered = False
        for batch in lane.sent:
            self._send_one(leader, batch)

    def _send_one(self, leader: Address, batch: SentBatch) -> None:
        """Send one batch in a Produce request; with acks=0 it counts as accepted at once."""
        request = messages.ProduceRequest
        now_ms = self._requests.timers.clock.wall_ms()
        sender = self._lanes[batch.partition].sender or self._sender
        records = build(sender, batch.first_number, batch.count, now_ms)
        data = request.PartitionProduceData(index=batch.partition.partition, records=records)
        topic = request.TopicProduceData(name=batch.partition.topic, partition_data=[data])
        message = request(acks=self.kind.acks, timeout_ms=_PRODUCE_TIMEOUT_MS, topic_data=[topic])
        batch.attempts += 1
        batch.leader_epoch = self._events.leader_epoch(batch.partition)
        batch.loss_count = self._events.loss_count(batch.partition)
        has_response = self.kind.acks != 0
        call = Call("Produce", message, highest=9, has_response=has_response)
        response = self._requests.send(leader, call)
        if has_response:
            response.watch(lambda: self._on_batch_response(batch, leader, response))
        else:
            batch.is_accepted = batch.is_answered = True
            self._requests.after(1, lambda: self._on_all_responses(batch.partition))

    def _on_batch_response(
        self, batch: SentBatch, leader: Address, response: Promise[Response]
    ) -> None:
        """Apply the response to a batch; continue when all batches in flight have a response.

        Until then the queue is unchanged, so that the order is kept.
        """
        batch.is_answered = True
        if batch.partition not in self._lanes:
            return
        if response.error is not None:
            self._on_send_failure(batch, response.error)
        else:
            (topic,) = response.result().message.responses
            (row,) = topic.partition_responses
            self._apply_result(batch, leader, row)
        if all(each.is_answered for each in self._lanes[batch.partition].sent):
            self._on_all_responses(batch.partition)

    def _apply_result(self, batch: SentBatch, leader: Address, row: Message) -> None:
        """Apply the error code of a batch: accepted, excused, retried, or a violation of T5.

        OUT_OF_ORDER_SEQUENCE_NUMBER is excused if a fault of the run explains it.
        """
        code = row.error_code
        if code in (NONE, DUPLICATE_SEQUENCE_NUMBER):
            if not batch.is_accepted:
                batch.is_accepted = True
                self.accepted_count += 1
                self._events.record_acknowledged(
                    self, batch, row.base_offset if code == NONE else -1
                )
            return
        error = kafka_error(code)
        text = f"{batch.partition} {batch.first_number}: {error.name}"
        lane = self._lanes[batch.partition]
        if (
            code == OUT_OF_ORDER_SEQUENCE_NUMBER
            and self._events.loss_count(batch.partition) > lane.loss_count
        ):
            self._events.record(self.name, f"{text}, records of before are lost")
            lane.needs_id = True
        elif code == OUT_OF_ORDER_SEQUENCE_NUMBER and self._follows_a_gap(batch):
            self._events.record(self.name, f"{text}, an earlier one is to come again")
        elif code == OUT_OF_ORDER_SEQUENCE_NUMBER and not self._events.leads(
            leader.host, batch.partition
        ):
            self._events.record(self.name, f"{text} of {leader.host}, which leads no more")
        elif code == OUT_OF_ORDER_SEQUENCE_NUMBER and self._events.is_written(self, batch):
            # A producer snapshot contains only the last batch of each producer, in Kafka too: an
            # earlier batch that is repeated after a restart is refused and not recognized as a
            # duplicate.
            self._events.record(self.name, f"{text}, it is written already")
            # Until all in-sync replicas have it, it may be lost with its leader and must be sent
            # again.
            batch.is_accepted = self._events.is_committed(self, batch)
        elif code == OUT_OF_ORDER_SEQUENCE_NUMBER and self._events.is_overtaken(self, batch):
            # A log accepts any first sequence from a producer it does not know: this batch was
            # refused for too few in-sync replicas, and the next arrived when there were enough.
            self._events.record(self.name, f"{text}, a later one was taken first")
            batch.is_accepted = True
        elif code == OUT_OF_ORDER_SEQUENCE_NUMBER and self._events.is_forgotten(self, batch):
            self._events.record(self.name, f"{text}, what came before is cleaned away")
            lane.needs_id = True
        elif (
            code == OUT_OF_ORDER_SEQUENCE_NUMBER
            and self._events.leader_epoch(batch.partition) != batch.leader_epoch
        ):
            # A leader that was stopped and replaced refuses batches that follow records it does not
            # have. It may be the leader again when the response arrives, which waits for those
            # before it.
            self._events.record(self.name, f"{text}, asked in an earlier epoch")
        elif not error.is_retriable:
            self._events.broke("T5", f"{self.name} {text}", batch.partition)
        else:
            self._events.record(self.name, text)

    def _follows_a_gap(self, batch: SentBatch) -> bool:
        """Return True if an earlier batch of the partition is not accepted yet."""
        queue = self._lanes[batch.partition].queue
        return any(not each.is_accepted for each in queue if each.first_number < batch.first_number)

    def _on_send_failure(self, batch: SentBatch, error: EngineError) -> None:
        """Record in the trace that a request failed without a response."""
        self._events.record(self.name, f"{batch.partition} {batch.first_number}: {error}")

    def _on_all_responses(self, partition: TopicPartition) -> None:
        """Remove accepted batches from the front of the queue, then send the next or retry.

        Called once all batches in flight have a response. Without acks=all a batch with any
        response is removed: it is sent only once.
        """
        lane = self._lanes.get(partition)
        if lane is None:
            return
        lane.waits = False
        is_once = self.kind.acks != ACKS_ALL
        while lane.queue and (lane.queue[0].is_accepted or (is_once and lane.queue[0].is_answered)):
            lane.queue.popleft()
        if lane.needs_id:
            self._request_new_id(partition, lane)
        elif is_once or all(each.is_accepted for each in lane.sent):
            self._send(partition)
        else:
            self._retry_later(partition)

    def _request_new_id(self, partition: TopicPartition, lane: _Lane) -> None:
        """Request another producer id for a partition whose leader lost sequences with its records.

        The leader would reject this producer's next sequence forever. Batches that were sent
        without a success may be in the log, and are not sent again. Source: KIP-360.
        """
        for batch in [batch for batch in lane.queue if batch.attempts]:
            lane.queue.remove(batch)
            if not batch.is_accepted:
                self._events.record_abandoned(self, batch)
        lane.waits, lane.needs_id = True, False
        lane.loss_count = self._events.loss_count(partition)

        def go_on() -> None:
            """Send to the partition again, once the new producer id is there."""
            lane.waits = False
            if partition in self._lanes:
                self._retry_later(partition)

        self._request_producer_id(lane, go_on)

    def _retry_later(self, partition: TopicPartition) -> None:
        """Request the partition's leader, and send the queue again after the back-off."""
        lane = self._lanes[partition]
        lane.waits = True

        def again() -> None:
            """Send the partition's queue again."""
            lane.waits = False
            self._send(partition)

        topics = sorted({each.topic for each in self._partitions})
        self._requests.find_leaders(topics, lambda: self._requests.after(BACKOFF_MS, again))
