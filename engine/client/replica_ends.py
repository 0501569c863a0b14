"""Log end offset of each replica, requested from its own broker as Kafka's debugging tools do.

Source: ListOffsetsRequest.DEBUGGING_REPLICA_ID.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from engine.client.blocking import KafkaClient
from engine.client.connection import Call
from engine.client.offsets import EARLIEST, LATEST
from engine.errors import EngineError, api_error
from engine.kafka_errors import NONE
from engine.model import TopicPartition, by_topic
from engine.wire import messages

#: This replica id requests the log end offset, not the high watermark, also from followers.
_DEBUGGER_ID: Final = -2


def request_replica_offsets(
    client: KafkaClient, replicas: Mapping[int, list[TopicPartition]], *, start: bool = False
) -> dict[tuple[TopicPartition, int], int | EngineError]:
    """Return the log end offset of each replica, by partition and broker id, or its error.

    With `start` it is the log start offset. All brokers are requested at once.
    """
    brokers = client.brokers_view().brokers
    timestamp = EARLIEST if start else LATEST
    calls = {
        broker_id: (brokers[broker_id].address, ends_call(partitions, timestamp))
        for broker_id, partitions in replicas.items()
        if broker_id in brokers
    }
    found: dict[tuple[TopicPartition, int], int | EngineError] = {}
    deadline_ms = client.clock.monotonic_ms() + client.timeout_ms
    for broker_id, result in client.exchange(calls, deadline_ms).items():
        if isinstance(result, EngineError):
            found |= {(key, broker_id): result for key in replicas[broker_id]}
            continue
        found |= {(key, broker_id): end for key, end in ends_of(result.message).items()}
    return found


def ends_of(
    response: messages.ListOffsetsResponse,
) -> dict[TopicPartition, int | EngineError]:
    """Return the offset of each partition in a broker's ListOffsets response, or its error."""
    return {
        TopicPartition(topic.name, row.partition_index): row.offset
        if row.error_code == NONE
        else api_error(row.error_code)
        for topic in response.topics
        for row in topic.partitions
    }


def ends_call(partitions: list[TopicPartition], timestamp: int = LATEST) -> Call:
    """Return ListOffsets for the replicas of one broker: log ends, or log starts with EARLIEST.

    It has the replica id of a debugging consumer, so that followers respond too.
    """
    request = messages.ListOffsetsRequest
    topics = [
        request.ListOffsetsTopic(
            name=name,
            partitions=[
                request.ListOffsetsPartition(partition_index=p.partition, timestamp=timestamp)
                for p in of_topic
            ],
        )
        for name, of_topic in by_topic(partitions).items()
    ]
    return Call("ListOffsets", request(replica_id=_DEBUGGER_ID, topics=topics), 1)
