"""Where each replica's log ends: asked of its own broker, as Kafka's tools for debugging do.

Source: ListOffsetsRequest.DEBUGGING_REPLICA_ID.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from engine.client.blocking import KafkaClient
from engine.client.connection import Call
from engine.client.offsets import EARLIEST, LATEST
from engine.client.topic_admin import by_topic
from engine.errors import EngineError, api_error
from engine.kafka_errors import NONE
from engine.model import TopicPartition
from engine.wire import messages

#: Asks a replica whether it leads or not, for the end of its log and not for what is committed.
_DEBUGGER_ID: Final = -2


def replica_offsets(
    client: KafkaClient, replicas: Mapping[int, list[TopicPartition]], *, start: bool = False
) -> dict[tuple[TopicPartition, int], int | EngineError]:
    """Return the end of each replica's log (exclusive), or its start, by partition and broker.

    All brokers are asked at once; what is not answered has an error.
    """
    brokers = client.brokers_view().brokers
    timestamp = EARLIEST if start else LATEST
    calls = {
        broker_id: (brokers[broker_id].address, _call(partitions, timestamp))
        for broker_id, partitions in replicas.items()
        if broker_id in brokers
    }
    found: dict[tuple[TopicPartition, int], int | EngineError] = {}
    deadline_ms = client.clock.monotonic_ms() + client.timeout_ms
    for broker_id, result in client.exchange(calls, deadline_ms).items():
        if isinstance(result, EngineError):
            found |= {(key, broker_id): result for key in replicas[broker_id]}
            continue
        for topic in result.message.topics:
            for row in topic.partitions:
                key = TopicPartition(topic.name, row.partition_index)
                code = row.error_code
                found[key, broker_id] = row.offset if code == NONE else api_error(code)
    return found


def _call(partitions: list[TopicPartition], timestamp: int) -> Call:
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
