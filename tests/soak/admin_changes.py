"""Topics made and deleted, records deleted, settings changed, producer ids given, all the time.

A change whose answer a kill took away may have happened or not; the metadata after the restart
says which.
"""

from __future__ import annotations

import random
import threading
from typing import Any

from engine.wire.structs import message_class
from tests.cluster.raw_client import RawClient
from tests.soak.writers import Place

_PAUSE_S = 0.03
_TIMEOUT_MS = 10_000
_TOPIC = 2
_NONE = 0
#: What a broker answers before the controller's first orders, and when it stops: unknown topic, no
#: leader, no longer the leader, timed out, not the controller. The change may come or not.
_LATER = frozenset((3, 5, 6, 7, 41))
_INVALID_REPLICATION_FACTOR = 38


def of(name: str, part: str, /, **fields: Any) -> Any:
    """Return a part of a message."""
    return getattr(message_class(name), part)(**fields)


def topic_to_create(name: str, partitions: int, **configs: str) -> Any:
    """Return one topic of a CreateTopics request; `_` in the names of settings stands for `.`."""
    given = [
        of("CreateTopicsRequest", "CreatableTopicConfig", name=key.replace("_", "."), value=value)
        for key, value in configs.items()
    ]
    return of(
        "CreateTopicsRequest",
        "CreatableTopic",
        name=name,
        num_partitions=partitions,
        replication_factor=1,
        configs=given,
    )


def is_done(error_code: int, reply: Any) -> bool:
    """Return whether a change was made; False when it may be or not, and fails for refusals."""
    if error_code == _INVALID_REPLICATION_FACTOR and "available brokers: 0." in repr(reply):
        # A controller that has just begun, Kafka's too, has not sent metadata to itself yet.
        return False
    assert error_code == _NONE or error_code in _LATER, reply
    return error_code == _NONE


class AdminChanges:
    """Changes things on a thread of its own until it is paused."""

    def __init__(self, address: str, aged: str, trimmed: Place, seed: int) -> None:
        self._address = address
        self._aged = aged
        self._trimmed = trimmed
        self._random = random.Random(seed)
        #: Topics that are there, those that may be, and those that were there and are gone.
        self.there: dict[str, int] = {}
        self.maybe: dict[str, int] = {}
        self.gone: set[str] = set()
        #: Which values retention.bytes of the aged topic may have.
        self.retention: set[str | None] = {None}
        self.trim_requested = 0
        self.trim_answered = 0
        self.producer_ids: list[int] = []
        self.changes = 0
        self._failure: BaseException | None = None
        self._number = 0
        self._client: RawClient | None = None
        self._runs = threading.Event()
        self._idle = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    def resume(self) -> None:
        """Change things."""
        self._idle.clear()
        self._runs.set()

    def pause(self) -> None:
        """Return once the last change has ended."""
        self._runs.clear()
        assert self._idle.wait(30), f"a change does not end: {self._failure}"
        if self._failure is not None:
            raise AssertionError("a change went wrong") from self._failure

    def _run(self) -> None:
        acts = [self._create, self._delete, self._change_settings, self._trim, self._take_ids]
        while True:
            if not self._runs.wait(_PAUSE_S):
                self._idle.set()
                continue
            try:
                if self._client is None:
                    self._client = RawClient(self._address)
                self._random.choice(acts)(self._client)
                self.changes += 1
            except (LookupError, OSError):
                if self._client is not None:
                    self._client.socket.close()
                self._client = None
            except Exception as error:
                self._failure = error
                self._idle.set()
                return
            # Waits only, unless it is paused meanwhile.
            threading.Event().wait(_PAUSE_S)

    def _create(self, client: RawClient) -> None:
        self._number += 1
        name, partitions = f"brief-{self._number}", self._random.randint(1, 3)
        self.maybe[name] = partitions
        topics = [topic_to_create(name, partitions)]
        reply = client.ask("CreateTopics", 7, topics=topics, timeout_ms=_TIMEOUT_MS)
        if is_done(reply.topics[0].error_code, reply):
            self.there[name] = self.maybe.pop(name)

    def _delete(self, client: RawClient) -> None:
        if len(self.there) < 3:
            return
        name = self._random.choice(sorted(self.there))
        self.maybe[name] = self.there.pop(name)
        topics = [of("DeleteTopicsRequest", "DeleteTopicState", name=name)]
        reply = client.ask("DeleteTopics", 6, topics=topics, timeout_ms=_TIMEOUT_MS)
        if is_done(reply.responses[0].error_code, reply):
            del self.maybe[name]
            self.gone.add(name)

    def _change_settings(self, client: RawClient) -> None:
        value = str(self._random.randrange(300_000, 900_000))
        self.retention.add(value)
        config = of(
            "IncrementalAlterConfigsRequest",
            "AlterableConfig",
            name="retention.bytes",
            config_operation=0,
            value=value,
        )
        resource = of(
            "IncrementalAlterConfigsRequest",
            "AlterConfigsResource",
            resource_type=_TOPIC,
            resource_name=self._aged,
            configs=[config],
        )
        reply = client.ask("IncrementalAlterConfigs", 1, resources=[resource])
        if is_done(reply.responses[0].error_code, reply):
            self.retention = {value}

    def _trim(self, client: RawClient) -> None:
        end = latest(client, [self._trimmed])[self._trimmed]
        offset = self._random.randint(self.trim_requested, max(end, self.trim_requested))
        if offset > end:
            return
        self.trim_requested = offset
        kind = "DeleteRecordsRequest"
        partition = of(
            kind, "DeleteRecordsPartition", partition_index=self._trimmed.partition, offset=offset
        )
        topic = of(kind, "DeleteRecordsTopic", name=self._trimmed.topic, partitions=[partition])
        reply = client.ask("DeleteRecords", 2, topics=[topic], timeout_ms=_TIMEOUT_MS)
        found = reply.topics[0].partitions[0]
        if is_done(found.error_code, reply):
            assert found.low_watermark == offset, reply
            self.trim_answered = offset

    def _take_ids(self, client: RawClient) -> None:
        for _ in range(200):
            reply = client.ask(
                "InitProducerId", 4, transactional_id=None, transaction_timeout_ms=1000
            )
            if reply.error_code == _NONE:
                self.producer_ids.append(reply.producer_id)

    def learn(self, found: dict[str, int]) -> None:
        """Compare the topics of a settled cluster with what was answered; settle what was open."""
        brief = {name: count for name, count in found.items() if name.startswith("brief-")}
        for name, count in self.there.items():
            assert brief.get(name) == count, f"{name} was made and is {brief.get(name)}"
        assert not self.gone & set(brief), f"deleted and there: {self.gone & set(brief)}"
        for name, count in brief.items():
            assert name in self.there or name in self.maybe, f"{name} was never asked for"
            assert count == {**self.maybe, **self.there}[name], f"{name} is half there"
        self.gone |= set(self.maybe) - set(brief)
        self.there = brief
        self.maybe = {}


def latest(client: RawClient, places: list[Place], timestamp: int = -1) -> dict[Place, int]:
    """Return the high watermarks, or with timestamp −2 the log starts; fails on any error."""
    kind = "ListOffsetsRequest"
    by_topic: dict[str, list[Any]] = {}
    for place in places:
        by_topic.setdefault(place.topic, []).append(
            of(
                kind,
                "ListOffsetsPartition",
                partition_index=place.partition,
                timestamp=timestamp,
            )
        )
    topics = [of(kind, "ListOffsetsTopic", name=n, partitions=p) for n, p in by_topic.items()]
    reply = client.ask("ListOffsets", 7, replica_id=-1, topics=topics)
    found = {}
    for topic in reply.topics:
        for partition in topic.partitions:
            if partition.error_code != _NONE:
                raise LookupError(f"{topic.name}-{partition.partition_index}: {partition}")
            found[Place(topic.name, partition.partition_index)] = partition.offset
    return found


def topics_of(client: RawClient) -> dict[str, int]:
    """Return all topics with their partition counts; raises LookupError while one has no leader."""
    reply = client.ask("Metadata", 9, topics=None)
    found = {}
    for topic in reply.topics:
        if topic.error_code or any(part.error_code for part in topic.partitions):
            raise LookupError(f"{topic.name} is not ready")
        found[topic.name] = len(topic.partitions)
    return found


def retention_bytes(client: RawClient, topic: str) -> str | None:
    """Return the topic's own retention.bytes, None where it has none."""
    resource = of(
        "DescribeConfigsRequest",
        "DescribeConfigsResource",
        resource_type=_TOPIC,
        resource_name=topic,
        configuration_keys=["retention.bytes"],
    )
    reply = client.ask("DescribeConfigs", 4, resources=[resource])
    config = reply.results[0].configs[0]
    return config.value if config.config_source == 1 else None
