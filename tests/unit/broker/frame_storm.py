"""Frames that no client should send, for a whole broker in memory.

Requests are drawn from their schemas, with names and numbers that mean something to the broker, so
that they reach deep; then some of their bytes are changed. With any bytes: no exception leaves the
server, no handler fails, and another client is served.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from engine.api.dispatch import ApiRow
from engine.wire.codec import message_codec
from engine.wire.errors import UnencodableValue
from engine.wire.headers import encode_request_header
from engine.wire.layout import FieldLayout, message_layout
from engine.wire.schema import ENGINE_RELEASE
from engine.wire.structs import message_class
from tests.unit.broker.memory_broker import MemoryBroker, MemoryClient
from tests.unit.log.writing import sent, sent_by
from tests.unit.wire.values import Drawer

TOPIC, FOLLOWED = "t", "t2"
_STRINGS = (
    *(
        TOPIC,
        TOPIC,
        TOPIC,
        FOLLOWED,
        FOLLOWED,
        "new",
        "",
        "1",
        "0",
        "-1",
        "no such",
        "a/b",
        "..",
        "x" * 300,
    ),
    *("retention.ms", "cleanup.policy", "compact", "segment.bytes", "max.message.bytes"),
    *("message.timestamp.type", "min.insync.replicas", "root", "kafka", "DEBUG", "/data", "1:1"),
    *("PLAINTEXT", "log.retention.ms", "background.threads", "\x00", "häßlich", "9" * 40),
)
_NUMBERS = (0, 0, 0, 1, 1, 2, 3, 5, -1, -2, -3, 100, 1000)


class KnownDrawer(Drawer):
    """Draws what a broker knows more often than what it does not."""

    def __init__(
        self, rng: Random, name: str, topic_ids: Sequence[bytes], epochs: dict[str, int]
    ) -> None:
        super().__init__(rng, name, ENGINE_RELEASE)
        self._topic_ids = topic_ids
        self._epochs = epochs

    def one(self, field: FieldLayout) -> Any:
        """Draw one value of a field's type."""
        if field.attribute in self._epochs and self.rng.random() < 0.8:
            return self._epochs[field.attribute]
        if field.struct is None and field.type == "string" and self.rng.random() < 0.9:
            return self.rng.choice(_STRINGS)
        if field.type == "records" and self.rng.random() < 0.9:
            return self._records()
        return super().one(field)

    def integer(self, low: int, high: int) -> int:
        """Draw an integer that often is an index, an id or an epoch."""
        if self.rng.random() < 0.8:
            return max(low, self.rng.choice(_NUMBERS))
        return super().integer(low, high)

    def fixed(self, type_name: str) -> Any:
        """Draw a uuid that often is a topic's."""
        if type_name == "uuid" and self.rng.random() < 0.7:
            return self.rng.choice(self._topic_ids)
        return super().fixed(type_name)

    def _records(self) -> memoryview:
        made = self.rng.choice(
            (
                sent(self.rng.randint(1, 4)),
                sent_by(self.rng.randint(0, 3), self.rng.randint(0, 4), self.rng.randint(1, 2)),
                memoryview(bytes(sent(2)) + bytes(sent(1))),
            )
        )
        if self.rng.random() < 0.6:
            return made
        return memoryview(changed(self.rng, bytes(made)))


def changed(rng: Random, raw: bytes) -> bytes:
    """Return bytes with a few of them changed, cut out or put in."""
    found = bytearray(raw)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(found) + 1)
        kind = rng.randrange(5)
        if kind == 0 and at < len(found):
            found[at] = rng.randrange(256)
        elif kind == 1:
            found[at : at + 4] = rng.choice((b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", bytes(4)))
        elif kind == 2:
            del found[at : at + rng.randint(1, 8)]
        elif kind == 3:
            found[at:at] = rng.randbytes(rng.randint(1, 8))
        else:
            del found[at:]
    return bytes(found)


class Storm:
    """A broker with one topic, and what is thrown at it."""

    def __init__(self) -> None:
        self.stage = MemoryBroker(auto_create_topics_enable="false").start()
        self._client: MemoryClient | None = None
        self._create_topic()

    @property
    def rows(self) -> list[ApiRow]:
        """Return the APIs that the broker serves."""
        return self.stage.broker.table.rows()

    def _create_topic(self) -> None:
        """Make a topic that is alone, and one with followers that never reach this broker."""
        for broker_id in (2, 3):
            self.stage.join(broker_id)
        self.topic_ids = (self._make(TOPIC, [1], [1]), self._make(FOLLOWED, [1, 2, 3]))

    def _make(self, name: str, *assignment: list[int]) -> bytes:
        create, produce = message_class("CreateTopicsRequest"), message_class("ProduceRequest")
        topic = create.CreatableTopic(
            name=name,
            num_partitions=-1,
            replication_factor=-1,
            assignments=[
                create.CreatableReplicaAssignment(partition_index=index, broker_ids=broker_ids)
                for index, broker_ids in enumerate(assignment)
            ],
        )
        client = self.stage.connect()
        reply = client.ask("CreateTopics", 7, topics=[topic], timeout_ms=1000)
        assert reply.topics[0].error_code == 0
        data = [
            produce.PartitionProduceData(index=index, records=sent(3))
            for index in range(len(assignment))
        ]
        topic_data = [produce.TopicProduceData(name=name, partition_data=data)]
        client.ask("Produce", 9, acks=1, timeout_ms=1000, topic_data=topic_data)
        topic_id: bytes = reply.topics[0].topic_id
        return topic_id

    def drawn(self, rng: Random, row: ApiRow, version: int) -> bytes:
        """Return a request of one version as bytes that can be decoded."""
        name = f"{row.name}Request"
        layout = message_layout(name, version, ENGINE_RELEASE)
        codec = message_codec(name, version)
        while True:
            drawer = KnownDrawer(rng, name, self.topic_ids, self._epochs())
            try:
                body = codec.encode(drawer.struct(layout))
            except UnencodableValue:
                continue
            return encode_request_header(row.key, version, 77, "storm") + body

    def _epochs(self) -> dict[str, int]:
        """Return the epochs without which a broker's request gets nowhere."""
        broker = self.stage.broker
        return {
            "broker_epoch": broker.epoch,
            "controller_epoch": broker.storage.leadership.controller_epoch,
        }

    def throw(self, frame: bytes) -> None:
        """Send a frame; fails when the broker fails at it."""
        if self._client is None or self._client.is_closed or not self._client.frames:
            # What waits for its answer would hold back those behind it.
            self._client = self.stage.connect()
        self._client.frames.clear()
        self._client.send(frame)
        assert not self.stage.faults, self.stage.faults
        assert not self.stage.fatal, self.stage.fatal

    def check(self) -> None:
        """Let time go by, and see another client served."""
        self.stage.pass_time(1000)
        assert not self.stage.faults, self.stage.faults
        client = self.stage.connect()
        assert client.ask("ApiVersions", 0).error_code == 0
        assert client.ask("Metadata", 9, topics=None) is not None
        client.connection.close("done")
        self.stage.timers.run_until_idle()
