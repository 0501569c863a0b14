"""Producing: records into batches, batches to their leaders.

With acks=all a producer is idempotent: it has an id, its batches carry sequence numbers, and a
batch that is sent again after a lost response is stored once. Source: KIP-98.

Records without a key all go to one partition until its batch is full, then to another: large
batches cost less than an even spread of small ones. Source: KIP-480.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.connection import Call
from engine.client.metadata import ClusterView
from engine.client.partitioning import partition_of_key
from engine.client.topic_admin import by_topic
from engine.errors import EngineError, api_error
from engine.host.ports import Buffer
from engine.kafka_errors import DUPLICATE_SEQUENCE_NUMBER, NONE
from engine.limits import PRODUCE_BATCH_BYTES
from engine.model import TopicPartition
from engine.records.builder import BatchBuilder, BatchSettings
from engine.records.codec import Codec
from engine.records.record import Header, increment_sequence
from engine.wire import messages

ACKS_NONE: Final = 0
ACKS_LEADER: Final = 1
ACKS_ALL: Final = -1

#: Batches of magic 2 need Produce 3 (Kafka 0.11); zstd needs 7 (2.1).
_LOWEST_VERSION: Final = 3
_LOWEST_VERSION_OF_ZSTD: Final = 7
#: Topic ids replace names from 13 on.
_HIGHEST_VERSION: Final = 12
_NO_TIMEOUT: Final = 0x7FFFFFFF


class OutgoingRecord(NamedTuple):
    """A record to produce; a partition of None is chosen by the key."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()
    timestamp_ms: int | None = None
    partition: int | None = None


class Produced(NamedTuple):
    """Where a batch was stored: −1 where the broker does not say (acks=0, a repeated batch)."""

    base_offset: int
    record_count: int


class ProducerOptions(NamedTuple):
    """How records are sent. `level` None is the codec's default."""

    acks: int = ACKS_ALL
    codec: Codec = Codec.NONE
    level: int | None = None
    batch_bytes: int = PRODUCE_BATCH_BYTES


class Producer:
    """Collects records by partition and sends a batch of each when one is full.

    `add` and `flush` return what was stored or failed; nothing is sent twice after an error.
    """

    def __init__(self, client: KafkaClient, options: ProducerOptions | None = None) -> None:
        self._client = client
        self._options = options or ProducerOptions()
        self._builders: dict[TopicPartition, BatchBuilder] = {}
        self._sequences: dict[TopicPartition, int] = {}
        self._identity: tuple[int, int] | None = None
        self._sticky: dict[str, int] = {}
        self._view: ClusterView | None = None

    def add(self, record: OutgoingRecord) -> dict[TopicPartition, Produced | EngineError]:
        """Take a record; returns results when batches had to be sent for it.

        Errors: ApiError if the topic is not there.
        """
        partition = TopicPartition(record.topic, self._partition_of(record))
        timestamp_ms = record.timestamp_ms
        if timestamp_ms is None:
            timestamp_ms = self._client.clock.wall_ms()
        content = (timestamp_ms, record.key, record.value, record.headers)
        builder = self._builders.get(partition)
        results: dict[TopicPartition, Produced | EngineError] = {}
        if builder is not None and not builder.has_room_for(
            *content, limit_bytes=self._options.batch_bytes
        ):
            results = self.flush()
            builder = None
        if builder is None:
            builder = BatchBuilder(self._settings_of(partition))
            self._builders[partition] = builder
        builder.append(*content)
        return results

    def flush(self) -> dict[TopicPartition, Produced | EngineError]:
        """Send all batches; returns a result for each."""
        builders, self._builders = self._builders, {}
        if not builders:
            return {}
        for topic in {p.topic for p in builders}:
            self._sticky.pop(topic, None)
        batches = {partition: builder.build() for partition, builder in builders.items()}
        stored = produce(self._client, batches, self._options)
        results: dict[TopicPartition, Produced | EngineError] = {}
        for partition, builder in builders.items():
            result = stored[partition]
            if isinstance(result, EngineError):
                results[partition] = result
                # The broker may or may not have the batch: a new id starts without doubt.
                self._identity = None
                self._sequences.clear()
            else:
                results[partition] = Produced(result, builder.record_count)
        if self._identity is not None:
            for partition, builder in builders.items():
                start = self._sequences.get(partition, 0)
                self._sequences[partition] = increment_sequence(start, builder.record_count)
        return results

    def _settings_of(self, partition: TopicPartition) -> BatchSettings:
        settings = BatchSettings(codec=self._options.codec, level=self._options.level)
        if self._options.acks != ACKS_ALL:
            return settings
        if self._identity is None:
            self._identity = new_producer_id(self._client)
        producer_id, epoch = self._identity
        return settings._replace(
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=self._sequences.get(partition, 0),
        )

    def _partition_of(self, record: OutgoingRecord) -> int:
        if record.partition is not None:
            return record.partition
        if record.key is not None:
            return partition_of_key(record.key, self._partition_count(record.topic))
        chosen = self._sticky.get(record.topic)
        if chosen is None:
            count = self._partition_count(record.topic)
            chosen = self._client.entropy.random_below(count)
            self._sticky[record.topic] = chosen
        return chosen

    def _partition_count(self, topic: str) -> int:
        if self._view is None or topic not in self._view.topics:
            self._view = self._client.view_of_existing([topic])
        return len(self._view.topics[topic].partitions)


def new_producer_id(client: KafkaClient) -> tuple[int, int]:
    """Return the id and epoch of a new idempotent producer."""
    request = messages.InitProducerIdRequest(
        transactional_id=None, transaction_timeout_ms=_NO_TIMEOUT
    )
    response: messages.InitProducerIdResponse
    response = client.ask(
        "InitProducerId", request, retriable_code=lambda message: int(message.error_code)
    ).message
    if response.error_code != NONE:
        raise api_error(response.error_code)
    return response.producer_id, response.producer_epoch


def produce(
    client: KafkaClient, batches: Mapping[TopicPartition, Buffer], options: ProducerOptions
) -> dict[TopicPartition, int | EngineError]:
    """Send one batch to each partition's leader; returns base offsets (−1: not told) or errors.

    Batches without a producer id are not sent again once they may have arrived.
    """
    request = messages.ProduceRequest

    def make_call(partitions: list[TopicPartition], view: ClusterView) -> Call:
        rows = [
            request.TopicProduceData(
                name=topic,
                partition_data=[
                    request.PartitionProduceData(index=p.partition, records=batches[p])
                    for p in of_topic
                ],
            )
            for topic, of_topic in by_topic(partitions).items()
        ]
        message = request(
            transactional_id=None,
            acks=options.acks,
            timeout_ms=client.settings.request_timeout_ms,
            topic_data=rows,
        )
        lowest = _LOWEST_VERSION_OF_ZSTD if options.codec is Codec.ZSTD else _LOWEST_VERSION
        return Call("Produce", message, lowest, _HIGHEST_VERSION, options.acks != ACKS_NONE)

    def read(
        response: messages.ProduceResponse | None, version: int
    ) -> dict[TopicPartition, int | EngineError]:
        if response is None:
            return dict.fromkeys(batches, -1)
        return {
            TopicPartition(topic.name, row.index): _stored(row)
            for topic in response.responses
            for row in topic.partition_responses
        }

    is_repeatable = options.acks == ACKS_ALL
    return client.ask_leaders(batches, make_call, read, is_repeatable=is_repeatable)


def _stored(row: messages.ProduceResponse.PartitionProduceResponse) -> int | EngineError:
    if row.error_code == DUPLICATE_SEQUENCE_NUMBER:
        return -1
    if row.error_code == NONE:
        return row.base_offset
    details = [d.batch_index_error_message for d in row.record_errors]
    said = [row.error_message, *details]
    return api_error(row.error_code, "; ".join(text for text in said if text) or None)
