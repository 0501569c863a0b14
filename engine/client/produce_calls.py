"""The Produce and InitProducerId requests, and the decoding of their responses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from engine.client.blocking import KafkaClient
from engine.client.connection import Call
from engine.client.outgoing_batch import OutgoingBatch
from engine.errors import EngineError, api_error
from engine.kafka_errors import DUPLICATE_SEQUENCE_NUMBER, NONE
from engine.model import TopicPartition, by_topic
from engine.records.codec import Codec
from engine.wire import messages

ACKS_NONE: Final = 0
ACKS_LEADER: Final = 1
ACKS_ALL: Final = -1

#: Batches of magic 2 need Produce 3 (Kafka 0.11); zstd needs 7 (2.1).
_LOWEST_VERSION: Final = 3
_LOWEST_VERSION_OF_ZSTD: Final = 7
#: Topic ids replace names from 13 on.
_HIGHEST_VERSION: Final = 12
#: From 12 on Produce adds partitions to the transaction (KIP-890); here AddPartitionsToTxn does.
_HIGHEST_VERSION_IN_TRANSACTIONS: Final = 11
_NO_TIMEOUT: Final = 0x7FFFFFFF


def request_producer_id(client: KafkaClient) -> tuple[int, int]:
    """Return a new producer id and its epoch, for an idempotent producer without transactions.

    Raises ApiError, NoCommonVersion.
    """
    request = messages.InitProducerIdRequest(
        transactional_id=None, transaction_timeout_ms=_NO_TIMEOUT
    )
    response: messages.InitProducerIdResponse
    response = client.send(
        "InitProducerId", request, retriable_code=lambda message: int(message.error_code)
    ).message
    if response.error_code != NONE:
        raise api_error(response.error_code)
    return response.producer_id, response.producer_epoch


def produce_call(
    batches: Mapping[TopicPartition, OutgoingBatch],
    acks: int,
    codec: Codec,
    timeout_ms: int,
    *,
    transactional_id: str | None = None,
) -> Call:
    """Return the Produce request that stores one batch in each partition of one leader."""
    request = messages.ProduceRequest
    rows = [
        request.TopicProduceData(
            name=topic,
            partition_data=[
                request.PartitionProduceData(index=p.partition, records=batches[p].wire_bytes())
                for p in of_topic
            ],
        )
        for topic, of_topic in by_topic(batches).items()
    ]
    message = request(
        transactional_id=transactional_id, acks=acks, timeout_ms=timeout_ms, topic_data=rows
    )
    lowest = _LOWEST_VERSION_OF_ZSTD if codec is Codec.ZSTD else _LOWEST_VERSION
    highest = _HIGHEST_VERSION if transactional_id is None else _HIGHEST_VERSION_IN_TRANSACTIONS
    return Call("Produce", message, lowest, highest, acks != ACKS_NONE)


def read_stored(
    response: messages.ProduceResponse | None,
) -> dict[TopicPartition, int | EngineError] | None:
    """Return the base offset or the error of each partition in a Produce response.

    An offset of −1 means that the batch was stored before. None, the response with acks=0, stays
    None.
    """
    if response is None:
        return None
    return {
        TopicPartition(topic.name, row.index): _stored_offset(row)
        for topic in response.responses
        for row in topic.partition_responses
    }


def _stored_offset(row: messages.ProduceResponse.PartitionProduceResponse) -> int | EngineError:
    """Return the base offset of a stored batch, -1 if it was stored before, or the error."""
    if row.error_code == DUPLICATE_SEQUENCE_NUMBER:
        return -1
    if row.error_code == NONE:
        return row.base_offset
    details = [d.batch_index_error_message for d in row.record_errors]
    texts = [row.error_message, *details]
    return api_error(row.error_code, "; ".join(text for text in texts if text) or None)
