"""Requests about transactions: list them, find those that block a partition, end one.

| question | sent to |
|---|---|
| which transactional ids exist | all brokers: each lists those that it coordinates |
| the state of one id | its coordinator |
| the producers of a partition | its leader |
| hanging transactions | leaders for open transactions, coordinators for their ids |
| end one in a partition | its leader, by a marker |

A transaction hangs in a partition if its producer wrote nothing for longer than any timeout that
the cluster allows, and no coordinator has it open there: it will never end by itself.

Source: KIP-664; TransactionsCommand of 3.9.1.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.connection import Call
from engine.client.every_broker import send_to_every_broker
from engine.client.metadata import ClusterView
from engine.errors import ApiError, EngineError, api_error
from engine.kafka_errors import NONE, TRANSACTIONAL_ID_NOT_FOUND
from engine.model import TopicPartition, by_topic
from engine.wire import messages

_TRANSACTION_KEY: Final = 1
_NO_OFFSET: Final = -1
#: The transaction timeout of the new producer, which no one uses.
_FENCING_TIMEOUT_MS: Final = 1
#: States in which a coordinator will still write markers to the partitions of a transaction.
_OPEN_STATES: Final = frozenset(("Ongoing", "PrepareCommit", "PrepareAbort"))


class TransactionListing(NamedTuple):
    """A transactional id as its coordinator lists it."""

    transactional_id: str
    producer_id: int
    state: str
    coordinator_id: int


class TransactionDescription(NamedTuple):
    """The state of a transactional id; `start_ms` is −1 before its first transaction."""

    transactional_id: str
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_ms: int
    coordinator: str
    partitions: tuple[TopicPartition, ...]


class ActiveProducer(NamedTuple):
    """A producer in the producer state of a partition's leader.

    `transaction_start_offset` is −1 without an open transaction, `coordinator_epoch` −1 before the
    first transaction marker of a coordinator in this partition.
    """

    partition: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    transaction_start_offset: int


class HangingTransaction(NamedTuple):
    """A transaction that blocks the last stable offset, and that no coordinator will end.

    `transactional_id` is None if no coordinator knows the producer.
    """

    producer: ActiveProducer
    transactional_id: str | None


class TransactionsFound(NamedTuple):
    """The transactional ids of all coordinators, and the errors of brokers without a list."""

    transactions: list[TransactionListing]
    failures: dict[int, EngineError]


def list_transactions(
    client: KafkaClient,
    *,
    states: Collection[str] = (),
    producer_ids: Collection[int] = (),
    longer_than_ms: int = -1,
) -> TransactionsFound:
    """Return the transactions of all coordinators, and the errors of brokers without a response.

    No `states` or `producer_ids` means any. `longer_than_ms` leaves out younger transactions (-1:
    none); it needs a broker from 3.8 on.
    """
    request = messages.ListTransactionsRequest(
        state_filters=list(states),
        producer_id_filters=list(producer_ids),
        duration_filter=longer_than_ms,
    )
    lowest = 1 if longer_than_ms >= 0 else 0
    responses, failures = send_to_every_broker(client, Call("ListTransactions", request, lowest))
    found = [
        TransactionListing(row.transactional_id, row.producer_id, row.transaction_state, broker_id)
        for broker_id, message in responses.items()
        for row in message.transaction_states
    ]
    return TransactionsFound(found, failures)


def describe_transaction(client: KafkaClient, transactional_id: str) -> TransactionDescription:
    """Return state, producer, start time and partitions of a transactional id's last transaction.

    Raises ApiError, for instance TRANSACTIONAL_ID_NOT_FOUND.
    """
    response = client.send_to_coordinator(
        transactional_id,
        "DescribeTransactions",
        messages.DescribeTransactionsRequest(transactional_ids=[transactional_id]),
        key_type=_TRANSACTION_KEY,
        retriable_code=lambda answer: answer.transaction_states[0].error_code,
    )
    (row,) = response.message.transaction_states
    if row.error_code != NONE:
        raise api_error(row.error_code)
    return TransactionDescription(
        row.transactional_id,
        row.transaction_state,
        row.producer_id,
        row.producer_epoch,
        row.transaction_timeout_ms,
        row.transaction_start_time_ms,
        str(client.coordinator(transactional_id, _TRANSACTION_KEY)),
        tuple(
            TopicPartition(topic.topic, index) for topic in row.topics for index in topic.partitions
        ),
    )


def request_active_producers(
    client: KafkaClient, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, list[ActiveProducer] | EngineError]:
    """Return the producers that each partition's leader has state of, or the partition's error."""

    def make_call(wanted: list[TopicPartition], _view: ClusterView) -> Call:
        """Return DescribeProducers for the partitions of one leader."""
        return producers_call(wanted)

    return client.send_to_leaders(
        partitions, make_call, lambda message, _version: producers_of(message)
    )


def request_active_producers_of_replica(
    client: KafkaClient, broker_id: int, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, list[ActiveProducer] | EngineError]:
    """Return the producers that the replica on one broker has state of, by partition.

    The value is the error for a partition with one. Raises the errors of the request.
    """
    request = producers_call(partitions).message
    response = client.send("DescribeProducers", request, to=broker_id)
    return producers_of(response.message)


def producers_call(wanted: Iterable[TopicPartition]) -> Call:
    """Return a DescribeProducers request for partitions of one broker."""
    topic = messages.DescribeProducersRequest.TopicRequest
    request = messages.DescribeProducersRequest(
        topics=[
            topic(name=name, partition_indexes=[key.partition for key in keys])
            for name, keys in by_topic(wanted).items()
        ]
    )
    return Call("DescribeProducers", request)


def producers_of(
    response: messages.DescribeProducersResponse,
) -> dict[TopicPartition, list[ActiveProducer] | EngineError]:
    """Return the active producers of each partition in the response, or its error."""
    found: dict[TopicPartition, list[ActiveProducer] | EngineError] = {}
    for topic in response.topics:
        for row in topic.partitions:
            key = TopicPartition(topic.name, row.partition_index)
            if row.error_code != NONE:
                found[key] = api_error(row.error_code, row.error_message)
                continue
            found[key] = [
                ActiveProducer(
                    key,
                    producer.producer_id,
                    producer.producer_epoch,
                    producer.coordinator_epoch,
                    producer.last_sequence,
                    producer.last_timestamp,
                    producer.current_txn_start_offset,
                )
                for producer in row.active_producers
            ]
    return found


def open_in(producers: Iterable[ActiveProducer]) -> list[ActiveProducer]:
    """Return the producers with an open transaction, by start offset: the oldest first."""
    found = [p for p in producers if p.transaction_start_offset != _NO_OFFSET]
    return sorted(found, key=lambda producer: producer.transaction_start_offset)


def request_ids_of_producers(
    client: KafkaClient, producer_ids: Collection[int]
) -> dict[int, tuple[str, str]]:
    """Return transactional id and transaction state by producer id.

    Producers that no coordinator has are left out. Raises the error of a coordinator that does not
    respond.
    """
    if not producer_ids:
        return {}
    listed = list_transactions(client, producer_ids=producer_ids)
    for error in listed.failures.values():
        raise error
    return {row.producer_id: (row.transactional_id, row.state) for row in listed.transactions}


def find_hanging(
    client: KafkaClient, producers: Iterable[ActiveProducer], *, idle_for_ms: int
) -> list[HangingTransaction]:
    """Return the transactions of `producers` that no coordinator will end: they block consumers.

    1. A candidate has an open transaction, and wrote nothing for more than `idle_for_ms`.
    2. Coordinators return the transactional ids of the candidates.
    3. A candidate without an id hangs; one with an id hangs unless its coordinator has the
       transaction open in this partition.

    Raises the error of a coordinator that does not respond: its transactions would seem to hang.
    """
    # 1
    now_ms = client.clock.wall_ms()
    candidates = [p for p in open_in(producers) if now_ms - p.last_timestamp_ms > idle_for_ms]
    if not candidates:
        return []
    # 2
    named = request_ids_of_producers(client, {p.producer_id for p in candidates})
    ids = {producer_id: row[0] for producer_id, row in named.items()}
    known: dict[str, TransactionDescription | None] = {
        transactional_id: _describe_if_known(client, transactional_id)
        for transactional_id in set(ids.values())
    }
    # 3
    hanging = []
    for producer in candidates:
        transactional_id = ids.get(producer.producer_id)
        described = None if transactional_id is None else known[transactional_id]
        is_open = (
            described is not None
            and described.state in _OPEN_STATES
            and producer.partition in described.partitions
        )
        if not is_open:
            hanging.append(HangingTransaction(producer, transactional_id))
    return hanging


def _describe_if_known(client: KafkaClient, transactional_id: str) -> TransactionDescription | None:
    """Return the transaction's description; None if its coordinator does not know the id."""
    try:
        return describe_transaction(client, transactional_id)
    except ApiError as error:
        if error.code == TRANSACTIONAL_ID_NOT_FOUND:
            return None
        raise


def abort_in_partition(client: KafkaClient, producer: ActiveProducer) -> None:
    """Abort a hanging transaction in one partition, by WriteTxnMarkers to the partition's leader.
    read_committed consumers never get its records.

    Raises ApiError of the leader, INVALID_PRODUCER_EPOCH if another producer has used the id
    meanwhile.
    """
    request = messages.WriteTxnMarkersRequest
    key = producer.partition
    marker = request.WritableTxnMarker(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        transaction_result=False,
        # -1 before the first marker in this partition: 0 is the lowest valid epoch.
        coordinator_epoch=max(producer.coordinator_epoch, 0),
        topics=[request.WritableTxnMarkerTopic(name=key.topic, partition_indexes=[key.partition])],
    )

    def make_call(_wanted: list[TopicPartition], _view: ClusterView) -> Call:
        """Return WriteTxnMarkers with the one ABORT marker."""
        return Call("WriteTxnMarkers", request(markers=[marker]))

    written = client.send_to_leaders([key], make_call, _read_markers)[key]
    if isinstance(written, EngineError):
        raise written


def fence_producer(client: KafkaClient, transactional_id: str) -> None:
    """Fence the producer of a transactional id and abort its open transaction, by InitProducerId.

    Source: FenceProducersHandler. Raises ApiError.
    """
    request = messages.InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=_FENCING_TIMEOUT_MS
    )
    response = client.send_to_coordinator(
        transactional_id,
        "InitProducerId",
        request,
        key_type=_TRANSACTION_KEY,
        retriable_code=lambda answer: answer.error_code,
    )
    if response.message.error_code != NONE:
        raise api_error(response.message.error_code)


def _read_markers(
    response: messages.WriteTxnMarkersResponse, _version: int
) -> dict[TopicPartition, bool | EngineError]:
    """Return True, or the error, for each partition of a WriteTxnMarkers response."""
    return {
        TopicPartition(topic.name, row.partition_index): (
            True if row.error_code == NONE else api_error(row.error_code)
        )
        for marker in response.markers
        for topic in marker.topics
        for row in topic.partitions
    }
