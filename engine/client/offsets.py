"""Offsets of partitions: first, last, by time.

| requested timestamp | response | from version |
|---|---|---|
| ≥ 0 | first record at or after this time, −1 if there is none | 1 |
| −1 | the end: high watermark, or last stable offset for read committed | 1 |
| −2 | the log start offset | 1 |
| −3 | the record with the largest timestamp | 7 |
| −4 | the local log start offset (tiered storage) | 8 |
| −5 | the last offset in remote storage | 9 |

Source: ListOffsetsRequest; KIP-734, KIP-405, KIP-1005.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.connection import Call
from engine.client.metadata import ClusterView
from engine.errors import EngineError, api_error
from engine.kafka_errors import NONE
from engine.model import TopicPartition, by_topic
from engine.wire import messages

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5

_LOWEST_VERSIONS: Final = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9}
READ_COMMITTED: Final = 1


class FoundOffset(NamedTuple):
    """An offset, −1 if there is none; the time is −1 unless a time was requested."""

    offset: int
    timestamp_ms: int
    leader_epoch: int


def list_offsets(
    client: KafkaClient,
    timestamps: Mapping[TopicPartition, int],
    *,
    read_committed: bool = False,
) -> dict[TopicPartition, FoundOffset | EngineError]:
    """Return the offset that each partition has for its timestamp, or the partition's error.

    A timestamp may be a sentinel like LATEST. With `read_committed` LATEST is the last stable
    offset.
    """

    def make_call(partitions: list[TopicPartition], _view: ClusterView) -> Call:
        """Return ListOffsets for the partitions of one leader."""
        wanted = {partition: timestamps[partition] for partition in partitions}
        return offsets_call(wanted, read_committed=read_committed)

    return client.send_to_leaders(
        timestamps, make_call, lambda message, _version: offsets_of(message)
    )


def offsets_call(timestamps: Mapping[TopicPartition, int], *, read_committed: bool = False) -> Call:
    """Return the ListOffsets call for partitions that one broker leads, by their timestamps.

    Its lowest version is one that knows all sentinels among the timestamps.
    """
    request = messages.ListOffsetsRequest
    rows = [
        request.ListOffsetsTopic(
            name=topic,
            partitions=[
                request.ListOffsetsPartition(partition_index=p.partition, timestamp=timestamps[p])
                for p in of_topic
            ],
        )
        for topic, of_topic in by_topic(timestamps).items()
    ]
    lowest = max(_LOWEST_VERSIONS.get(timestamps[p], 1) for p in timestamps)
    level = READ_COMMITTED if read_committed else 0
    message = request(replica_id=-1, isolation_level=level, topics=rows)
    return Call("ListOffsets", message, max(lowest, 2) if read_committed else lowest)


def offsets_of(
    response: messages.ListOffsetsResponse,
) -> dict[TopicPartition, FoundOffset | EngineError]:
    """Return the offset that a ListOffsets response has for each partition, or its error."""
    return {
        TopicPartition(topic.name, row.partition_index): _offset_of_row(row)
        for topic in response.topics
        for row in topic.partitions
    }


def _offset_of_row(
    row: messages.ListOffsetsResponse.ListOffsetsPartitionResponse,
) -> FoundOffset | EngineError:
    """Return the offset, timestamp and leader epoch of a ListOffsets row, or its error."""
    if row.error_code != NONE:
        return api_error(row.error_code)
    return FoundOffset(row.offset, row.timestamp, row.leader_epoch)
