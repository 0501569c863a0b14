"""Read the stored batches of a partition in order, up to the last stable offset.

For commands that show batches instead of records: their sizes, producers and markers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.connection import Call
from engine.client.fetched_records import AbortedProducer, aborted_of
from engine.client.metadata import ClusterView
from engine.client.offsets import READ_COMMITTED
from engine.errors import EngineError, api_error
from engine.kafka_errors import NONE
from engine.limits import FETCH_PARTITION_BYTES_MAX
from engine.model import TopicPartition
from engine.records.view import RecordBatch, batches_in
from engine.wire import messages

#: Batches of magic 2 need Fetch 4; topic ids replace names from 13 on.
_VERSIONS: Final = (4, 12)
_WAIT_MS: Final = 500
_FETCH_BYTES: Final = 8 * FETCH_PARTITION_BYTES_MAX


class StoredBatches(NamedTuple):
    """Batches whose checksums were verified, and the aborted transactions that may contain them."""

    batches: list[RecordBatch]
    aborted: list[AbortedProducer]


def stored_batches(
    client: KafkaClient, partition: TopicPartition, start_offset: int, end_offset: int
) -> Iterator[StoredBatches]:
    """Yield the batches with offsets in [start_offset, end_offset), one item for each Fetch.

    Ends earlier at the last stable offset. Raises the errors of the leader, and CorruptRecord.
    """
    position = start_offset
    while position < end_offset:
        row = _fetch_once(client, partition, position)
        batches = []
        for batch in batches_in(memoryview(row.records or b""), allow_partial_tail=True):
            batch.ensure_valid()
            if batch.last_offset >= position and batch.base_offset < end_offset:
                batches.append(batch)
        if not batches:
            return
        position = batches[-1].next_offset
        yield StoredBatches(batches, aborted_of(row))


def _fetch_once(
    client: KafkaClient, partition: TopicPartition, position: int
) -> messages.FetchResponse.PartitionData:
    """Fetch once from offset `position` at the leader, up to the last stable offset.

    Raises the partition's error, for instance OFFSET_OUT_OF_RANGE, or the leader's.
    """
    request = messages.FetchRequest

    def make_call(_partitions: list[TopicPartition], _view: ClusterView) -> Call:
        """Build the Fetch of the one partition."""
        row = request.FetchPartition(
            partition=partition.partition,
            fetch_offset=position,
            partition_max_bytes=_FETCH_BYTES,
        )
        message = request(
            max_wait_ms=_WAIT_MS,
            min_bytes=1,
            max_bytes=_FETCH_BYTES,
            isolation_level=READ_COMMITTED,
            session_id=0,
            session_epoch=-1,
            topics=[request.FetchTopic(topic=partition.topic, partitions=[row])],
        )
        return Call("Fetch", message, *_VERSIONS)

    found = client.send_to_leaders([partition], make_call, _rows_of_response)[partition]
    if isinstance(found, EngineError):
        raise found
    return found


def _rows_of_response(
    response: messages.FetchResponse, _version: int
) -> dict[TopicPartition, messages.FetchResponse.PartitionData | EngineError]:
    """Return each partition's row of a Fetch response, or its error."""
    return {
        TopicPartition(topic.topic, row.partition_index): row
        if row.error_code == NONE
        else api_error(row.error_code)
        for topic in response.responses
        for row in topic.partitions
    }
