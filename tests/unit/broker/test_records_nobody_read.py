"""Records that no leader of ours has read, as other brokers may leave: no harm to readers."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pytest

from engine.model import TopicPartition
from engine.records.codec import Codec
from engine.records.crc import crc32c
from engine.wire.structs import message_class
from tests.unit.broker.memory_broker import MemoryBroker, MemoryClient
from tests.unit.log.writing import NOW_MS, sent

_RECORDS_AT = 61
#: No fault, damage of all sorts that has a code, and what has none.
_ANSWERS = (0, 2, 56, 76, 87, -1)


def _patched(records: memoryview, value: bytes) -> memoryview:
    found = bytearray(records)
    found[_RECORDS_AT : _RECORDS_AT + len(value)] = value
    struct.pack_into(">I", found, 17, crc32c(memoryview(found)[21:]))
    return memoryview(found)


UNREADABLE: dict[str, Callable[[], memoryview]] = {
    "a record longer than its batch": lambda: _patched(sent(3), b"\xfe\xff\xff\xff\x0f"),
    "a bomb": lambda: sent(1, value=bytes(40 << 20), codec=Codec.ZSTD),
    "no compressed data": lambda: _patched(sent(3, codec=Codec.ZSTD), b"\0\1\2\3\4\5"),
}


def _fetch(client: MemoryClient, version: int) -> Any:
    made = message_class("FetchRequest")
    requested = made.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 30)
    topics = [made.FetchTopic(topic="t", partitions=[requested])]
    reply = client.ask(
        "Fetch", version, max_wait_ms=0, min_bytes=1, max_bytes=1 << 30, topics=topics
    )
    return reply.responses[0].partitions[0]


def _offset_at(client: MemoryClient, timestamp_ms: int) -> Any:
    made = message_class("ListOffsetsRequest")
    requested = made.ListOffsetsPartition(partition_index=0, timestamp=timestamp_ms)
    topic = made.ListOffsetsTopic(name="t", partitions=[requested])
    return client.ask("ListOffsets", 7, replica_id=-1, topics=[topic]).topics[0].partitions[0]


@pytest.mark.parametrize("name", UNREADABLE)
def test_readers_get_an_answer_and_the_broker_lives(name: str) -> None:
    stage = MemoryBroker().start()
    client = stage.connect()
    topic = message_class("CreateTopicsRequest").CreatableTopic(
        name="t", num_partitions=1, replication_factor=1
    )
    assert 0 == client.ask("CreateTopics", 5, topics=[topic], timeout_ms=1000).topics[0].error_code
    partition = stage.broker.storage.replica_manager.partitions[TopicPartition("t", 0)]
    # A follower takes what its leader has, unread.
    partition.log.append_as_follower(UNREADABLE[name](), NOW_MS)
    partition.high_watermark = partition.log.log_end_offset
    # Consumers of magic 1 make the broker open it, and so do look-ups by time.
    for version in (2, 12):
        assert _fetch(client, version).error_code in _ANSWERS
    for timestamp_ms in (1, -3):
        assert _offset_at(client, timestamp_ms).error_code in _ANSWERS
    assert [] == stage.faults
    assert not client.is_closed
    stage.stop()
