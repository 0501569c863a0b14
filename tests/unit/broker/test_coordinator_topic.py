"""Appends of coordinators: their state follows the log, also where the client is gone."""

from __future__ import annotations

import pytest

from engine.broker.coordinator_topic import CoordinatorTopic, Waiting
from engine.broker.dynamic_config import LiveConfig
from engine.broker.offsets_topic import OffsetsTopic
from engine.config.settings import BrokerSettings
from engine.groups.ports import CommittingProducer, GroupRecord, Written
from engine.host.promise import Promise
from engine.ids import uuid_text
from engine.kafka_errors import NOT_ENOUGH_REPLICAS
from engine.log.log_config import LogConfig
from engine.log.producer_state import AppendOrigin
from engine.model import TopicPartition
from engine.records.batch import BatchView
from engine.records.builder import BatchSettings, settings_of
from engine.records.codec import Codec
from engine.records.control import ControlType
from engine.replication.delayed_produce import ProduceResult
from engine.replication.metadata_cache import MetadataCache, PartitionMetadata
from engine.replication.partition import ACKS_ALL
from engine.znode.values import PartitionAssignment, TopicAssignment
from tests.unit.log.writing import PARTITION, end_of_transaction
from tests.unit.replication.replicas import FOLLOWER, Broker, borrowed_segments


def same(result: ProduceResult) -> ProduceResult:
    return result


def test_an_append_is_waited_for_though_its_client_is_gone() -> None:
    broker = Broker((1, 2))
    topic = CoordinatorTopic(
        PARTITION.topic, broker.manager, MetadataCache(1, "cluster"), broker.clock
    )
    waiting = Waiting(ACKS_ALL, 1_000)
    taken: list[ProduceResult] = []
    appended = topic.append(PARTITION.partition, [(b"k", b"v")], BatchSettings(), waiting, same)
    appended.then(taken.append).abandon()
    assert 1 == broker.manager.delayed_produce_count
    broker.pass_time(1_000)
    assert [7] == [result.error.code for result in taken if result.error is not None]


@pytest.mark.parametrize("buffer_bytes", [1, 150, 1 << 20])
@pytest.mark.parametrize("value_size", [10, 150_000])
def test_all_batches_are_read_a_buffer_at_a_time(
    buffer_bytes: int, value_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = Broker((1,), log_config=LogConfig())
    topic = CoordinatorTopic(
        PARTITION.topic, broker.manager, MetadataCache(1, "cluster"), broker.clock
    )
    for _ in range(7):
        records = [(b"k", bytes(value_size))]
        topic.append(PARTITION.partition, records, BatchSettings(), Waiting(ACKS_ALL, 1_000), same)
    borrowed = borrowed_segments(monkeypatch)
    read = [batch.base_offset for batch in topic.batches(PARTITION.partition, buffer_bytes)]
    assert list(range(7)) == read
    assert [] == borrowed


def test_the_topic_has_as_many_partitions_as_are_known_or_will_be_made() -> None:
    broker, metadata = Broker((1,)), MetadataCache(1, "cluster")
    topic = CoordinatorTopic("__consumer_offsets", broker.manager, metadata, broker.clock)
    settings = BrokerSettings({"zookeeper.connect": "here", "offsets.topic.num.partitions": "7"})
    offsets = OffsetsTopic(topic, LiveConfig(settings).config)
    assert 7 == offsets.partition_count()
    partition = PartitionMetadata(1, 0, (1,), 0, (1,))
    keys = [TopicPartition("__consumer_offsets", index) for index in range(3)]
    metadata.update(1, [], dict.fromkeys(keys, partition), {})
    assert 3 == offsets.partition_count()


def _learn(metadata: MetadataCache, count: int, topic_id: bytes = b"i" * 16) -> None:
    """Have a broker learn of so many partitions of the topic."""
    partition = PartitionMetadata(1, 0, (1,), 0, (1,))
    keys = [TopicPartition("__consumer_offsets", index) for index in range(count)]
    ids = {"__consumer_offsets": topic_id}
    metadata.update(1, [], dict.fromkeys(keys, partition), ids, is_full=True)


def test_a_topic_that_grows_keeps_the_number_that_it_was_made_with() -> None:
    broker, metadata = Broker((1,)), MetadataCache(1, "cluster")
    name = "__consumer_offsets"
    topic = CoordinatorTopic(name, broker.manager, metadata, broker.clock, made_with=4)
    # One has no leader yet.
    _learn(metadata, 3)
    assert 3 == topic.partition_count()
    _learn(metadata, 4)
    _learn(metadata, 7)
    assert 4 == topic.partition_count()
    # Deleted; made again by an administrator; deleted and made again unnoticed.
    _learn(metadata, 0)
    assert topic.partition_count() is None
    _learn(metadata, 6)
    _learn(metadata, 7)
    assert 6 == topic.partition_count()
    _learn(metadata, 5, b"j" * 16)
    assert 5 == topic.partition_count()


def test_the_number_of_partitions_at_the_start_counts_before_anything_is_known() -> None:
    broker, metadata = Broker((1,)), MetadataCache(1, "cluster")
    name = "__consumer_offsets"
    assignment = PartitionAssignment((1,))
    stored = TopicAssignment(uuid_text(b"i" * 16), dict.fromkeys(range(9), assignment))
    topic = CoordinatorTopic(
        name, broker.manager, metadata, broker.clock, made_with=4, stored=stored
    )
    assert 9 == topic.partition_count()
    _learn(metadata, 8)
    assert 9 == topic.partition_count()
    _learn(metadata, 8, b"j" * 16)
    assert 8 == topic.partition_count()


def test_an_append_that_nobody_waits_for_needs_the_leader_alone() -> None:
    broker = Broker((1, 2), log_config=LogConfig(), min_isr=3)
    topic = CoordinatorTopic(
        PARTITION.topic, broker.manager, MetadataCache(1, "cluster"), broker.clock
    )
    offsets = OffsetsTopic(topic, LiveConfig(BrokerSettings({"zookeeper.connect": "here"})).config)
    written: list[Written] = []
    for is_awaited in (True, False):
        record = GroupRecord(b"k", None)
        offsets.append(PARTITION.partition, [record], is_awaited=is_awaited).then(written.append)
    assert [Written(NOT_ENOUGH_REPLICAS), Written(0, 0)] == written


@pytest.mark.parametrize(
    "settings",
    [
        BatchSettings(codec=Codec.GZIP),
        BatchSettings(producer_id=7, producer_epoch=1, base_sequence=3),
        BatchSettings(producer_id=7, producer_epoch=1, base_sequence=3, is_transactional=True),
        BatchSettings(base_sequence=3),
    ],
)
def test_a_batch_of_one_record_has_the_settings_that_it_is_to_have(settings: BatchSettings) -> None:
    broker = Broker((1,), log_config=LogConfig())
    topic = CoordinatorTopic(
        PARTITION.topic, broker.manager, MetadataCache(1, "cluster"), broker.clock
    )
    topic.append(PARTITION.partition, [(b"k", b"v")], settings, Waiting(ACKS_ALL, 1_000), same)
    (batch,) = topic.batches(PARTITION.partition, 1 << 20)
    assert isinstance(batch, BatchView)
    assert settings == settings_of(batch)._replace(append_time_ms=-1, leader_epoch=-1)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
@pytest.mark.parametrize("isr", [(1,), (1, 2)])
def test_one_offset_is_written_in_the_codec_of_the_settings(
    codec: Codec, isr: tuple[int, ...]
) -> None:
    broker = Broker(isr, log_config=LogConfig())
    topic = CoordinatorTopic(
        PARTITION.topic, broker.manager, MetadataCache(1, "cluster"), broker.clock
    )
    settings = {"zookeeper.connect": "here", "offsets.topic.compression.codec": str(codec.value)}
    offsets = OffsetsTopic(topic, LiveConfig(BrokerSettings(settings)).config)
    now_ms = broker.clock.wall_ms()
    written = offsets.append_fast(PARTITION.partition, b"k", b"v", now_ms, base_sequence=0)
    (batch,) = topic.batches(PARTITION.partition, 1 << 20)
    assert isinstance(batch, BatchView)
    assert (codec, 0) == (batch.codec, batch.base_sequence)
    if isinstance(written, Promise):
        assert written.is_kept == (isr == (1,))
        broker.fetch(1, FOLLOWER, log_start_offset=0)
        written = written.result()
    assert written in (0, Written(0, 0))
    assert isinstance(written, int) == (codec is Codec.NONE and isr == (1,))


def test_records_of_transactions_are_read_by_their_markers() -> None:
    broker = Broker((1,), log_config=LogConfig())
    topic = CoordinatorTopic(
        PARTITION.topic, broker.manager, MetadataCache(1, "cluster"), broker.clock
    )
    settings = BrokerSettings({"zookeeper.connect": "here"})
    offsets = OffsetsTopic(topic, LiveConfig(settings).config)

    def write(key: bytes, producer_id: int | None = None) -> None:
        producer = None if producer_id is None else CommittingProducer(producer_id, 0)
        record = GroupRecord(key, b"v")
        offsets.append(PARTITION.partition, [record], base_sequence=0, producer=producer)

    def mark(producer_id: int, kind: ControlType) -> None:
        marker = end_of_transaction(producer_id, kind)
        broker.partition.append(marker, ACKS_ALL, AppendOrigin.COORDINATOR)

    for producer_id in (7, 8, 9):
        write(b"%d" % producer_id, producer_id)
    write(b"plain")
    mark(8, ControlType.ABORT)
    mark(7, ControlType.COMMIT)
    write(b"last")
    assert [(3, b"plain", -1), (0, b"7", -1), (6, b"last", -1), (2, b"9", 9)] == [
        (record.offset, record.key, open_id)
        for records, open_id in offsets.read(PARTITION.partition)
        for record in records
    ]
