"""The same traffic to a real broker and to ours, and what their meters count of it.

`tests/golden/brokers/meters-<version>.json` holds, for each step of `STEPS` in order, by how much
it raised the `Count` of each meter of the real broker. Frames are the same for both, so that
bytes are too. `python -m tools.record_broker_meters LIBS VERSION PORT` records it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from engine.records.builder import BatchBuilder, BatchSettings
from engine.records.codec import Codec
from engine.records.legacy_builder import LegacySettings, build_messages
from engine.records.record import Record, TimestampType
from engine.wire.structs import message_class
from tests.broker_sessions import FOLDER

VERSION = "3.9.1"
#: Settings of the broker, and the topics with theirs.
SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "auto.create.topics.enable": "false",
}
TOPICS: dict[str, tuple[int, dict[str, str]]] = {
    "t": (2, {"retention.ms": "-1"}),
    "small": (1, {"max.message.bytes": "200"}),
    "compact": (1, {"cleanup.policy": "compact"}),
    "lz4": (1, {"compression.type": "lz4", "retention.ms": "-1"}),
    "past": (1, {"message.timestamp.before.max.ms": "1000"}),
    "old": (1, {"retention.ms": "-1"}),
}
#: Groups commit to it, and it is there before the first step.
GROUP = "g"
#: The types of the meters that are compared.
TYPES = (
    "kafka.server:type=BrokerTopicMetrics",
    "kafka.network:type=RequestMetrics",
)
_NOW_MS = 1_700_000_000_000


class Request(NamedTuple):
    """A request of a step, and whether a response comes."""

    name: str
    version: int
    message: Any
    is_answered: bool = True


class Step(NamedTuple):
    """Requests on one connection, one after the other's response."""

    name: str
    requests: tuple[Request, ...]


def batch(count: int = 3, *, key: bytes | None = b"k", **settings: Any) -> bytes:
    """Return a batch as a producer sends it."""
    builder = BatchBuilder(BatchSettings(**settings))
    for number in range(count):
        builder.append(_NOW_MS + number, key, b"v" * 20)
    return bytes(builder.build())


def messages(count: int = 2, magic: int = 1) -> bytes:
    """Return messages of an old format."""
    kind = TimestampType.CREATE_TIME if magic else TimestampType.NONE
    time_ms = _NOW_MS if magic else -1
    records = [Record(number, time_ms, kind, b"k", b"v" * 20) for number in range(count)]
    return bytes(build_messages(records, LegacySettings(magic)))


def _changed(data: bytes, at: int, value: bytes) -> bytes:
    return data[:at] + value + data[at + len(value) :]


def _with_crc(data: bytes) -> bytes:
    from engine.records.crc import crc32c

    return _changed(data, 17, crc32c(memoryview(data)[21:]).to_bytes(4, "big"))


def produce(
    *rows: tuple[str, int, bytes | None], acks: int = 1, version: int = 9, **more: Any
) -> Request:
    """Return a Produce of batches by topic and partition."""
    of = message_class("ProduceRequest")
    topics = {}
    for topic, index, records in rows:
        partition = of.PartitionProduceData(index=index, records=records)
        topics.setdefault(topic, []).append(partition)
    data = [of.TopicProduceData(name=name, partition_data=each) for name, each in topics.items()]
    message = message_class("ProduceRequest")(acks=acks, timeout_ms=1000, topic_data=data, **more)
    return Request("Produce", version, message, is_answered=acks != 0)


def fetch(
    *rows: tuple[str, int, int], version: int = 11, max_wait_ms: int = 0, **more: Any
) -> Request:
    """Return a Fetch of partitions from offsets."""
    of = message_class("FetchRequest")
    topics = {}
    for topic, index, offset in rows:
        partition = of.FetchPartition(
            partition=index, fetch_offset=offset, partition_max_bytes=1 << 20
        )
        topics.setdefault(topic, []).append(partition)
    data = [of.FetchTopic(topic=name, partitions=each) for name, each in topics.items()]
    given = {"session_id": 0, "session_epoch": -1, "min_bytes": 1, "max_bytes": 1 << 24, **more}
    message = of(replica_id=-1, max_wait_ms=max_wait_ms, topics=data, **given)
    return Request("Fetch", version, message)


def commit() -> Request:
    """Return a commit of offsets to the group."""
    of = message_class("OffsetCommitRequest")
    rows = [of.OffsetCommitRequestPartition(partition_index=i, committed_offset=1) for i in (0, 1)]
    topic = of.OffsetCommitRequestTopic(name="t", partitions=rows)
    return Request("OffsetCommit", 8, of(group_id=GROUP, topics=[topic]))


def list_offsets() -> Request:
    """Return a request for the end of a topic that there is and of one that there is not."""
    of = message_class("ListOffsetsRequest")
    row = of.ListOffsetsPartition(partition_index=0, timestamp=-1)
    topics = [of.ListOffsetsTopic(name=name, partitions=[row]) for name in ("t", "none")]
    return Request("ListOffsets", 7, of(replica_id=-1, topics=topics))


def metadata(*names: str) -> Request:
    """Return a request for topics."""
    of = message_class("MetadataRequest")
    topics = [of.MetadataRequestTopic(name=name) for name in names]
    return Request("Metadata", 8, of(topics=topics))


def _ids(sequence: int) -> dict[str, int]:
    return {"producer_id": 4711, "producer_epoch": 0, "base_sequence": sequence}


def _steps() -> dict[str, tuple[Request, ...]]:
    good = batch()
    return {
        "one batch": (produce(("t", 0, good)),),
        "one batch, all in sync": (produce(("t", 0, good), acks=-1),),
        "no acknowledgement": (produce(("t", 0, good), acks=0),),
        "two partitions": (produce(("t", 0, good), ("t", 1, good)),),
        "compressed": (produce(("t", 0, batch(9, codec=Codec.GZIP))),),
        "compressed again": (produce(("lz4", 0, batch(9, codec=Codec.GZIP))),),
        "compressed by the broker": (produce(("lz4", 0, batch(9))),),
        "idempotent": (produce(("t", 0, batch(**_ids(0)))),),
        "idempotent, twice": (produce(("t", 0, batch(**_ids(0)))),),
        "idempotent, with a gap": (produce(("t", 0, batch(**_ids(9)))),),
        "old format": (produce(("old", 0, messages()), version=2),),
        "oldest format": (produce(("old", 0, messages(magic=0)), version=2),),
        "unknown topic": (produce(("none", 0, good)),),
        "unknown partition": (produce(("t", 7, good)),),
        "internal topic": (produce(("__consumer_offsets", 0, good)),),
        "too large": (produce(("small", 0, batch(9))),),
        "two topics, one refused": (produce(("small", 0, batch(9)), ("t", 0, good)),),
        "no such acknowledgement": (produce(("t", 0, good), acks=5),),
        "damaged": (produce(("t", 0, _changed(good, 80, b"x"))),),
        "damaged, old format": (produce(("old", 0, _changed(messages(), 30, b"x")), version=2),),
        "wrong magic": (produce(("t", 0, _changed(good, 16, b"\x01"))),),
        "wrong count": (produce(("t", 0, _with_crc(_changed(good, 57, b"\0\0\0\x02")))),),
        "wrong base offset": (produce(("t", 0, _changed(good, 0, b"\0\0\0\0\0\0\0\x05"))),),
        "two batches": (produce(("t", 0, good + good)),),
        "no key": (produce(("compact", 0, batch(key=None))),),
        "old times": (produce(("past", 0, good)),),
        "control records": (produce(("t", 0, batch(is_control=True, **_ids(3)))),),
        "fetch": (fetch(("t", 0, 0)),),
        "fetch from two": (fetch(("t", 0, 0), ("t", 1, 0)),),
        "fetch at the end": (fetch(("t", 1, 3)),),
        "fetch that waits": (fetch(("t", 1, 3), max_wait_ms=100),),
        "fetch out of range": (fetch(("t", 1, 99)),),
        "fetch of an unknown topic": (fetch(("none", 0, 0)),),
        "fetch of an unknown partition": (fetch(("t", 7, 0), ("t", 1, 0)),),
        "fetch in an old format": (fetch(("t", 1, 0), version=2),),
        "fetch of a wrong session": (fetch(("t", 1, 0), session_id=9, session_epoch=9),),
        "fetch of an internal topic": (fetch(("__consumer_offsets", 0, 0)),),
        "commit": (commit(),),
        "ends": (list_offsets(),),
        "metadata": (metadata("t", "none"),),
    }


STEPS = [Step(name, requests) for name, requests in _steps().items()]


def recording_path(version: str) -> Any:
    """Return the file of what a version counted."""
    return FOLDER / f"meters-{version}.json"


def recorded(version: str = VERSION) -> dict[str, dict[str, int]]:
    """Return by how much each step raised the meters of a real broker."""
    found: dict[str, dict[str, int]] = json.loads(recording_path(version).read_text())
    return found


def raised(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    """Return by how much counts have risen, of those that have."""
    return {
        name: count - before.get(name, 0)
        for name, count in sorted(after.items())
        if count != before.get(name, 0)
    }


#: Reads the counts of meters by name.
ReadCounts = Callable[[], dict[str, int]]
