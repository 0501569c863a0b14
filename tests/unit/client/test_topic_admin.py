"""Topics that a client has created, grown and deleted; records that it has deleted."""

from __future__ import annotations

from typing import Any

import pytest

from engine.client.topic_admin import (
    CreatedTopic,
    NewPartitions,
    NewTopic,
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
)
from engine.errors import ApiError
from engine.kafka_errors import (
    NOT_CONTROLLER,
    OFFSET_OUT_OF_RANGE,
    TOPIC_ALREADY_EXISTS,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from engine.model import TopicPartition, by_topic
from engine.wire.structs import message_class
from tests.unit.client.fake_broker import TOPIC_ID, FakeCluster

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class TopicCluster(FakeCluster):
    """Does what it is asked for but with topic `bad`; broker 2 may be the controller by now."""

    def __init__(self, **versions: tuple[int, int]) -> None:
        super().__init__(versions)
        self.asked: list[tuple[int, int, Any]] = []
        self.moves_controller = False
        self.codes = {"bad": TOPIC_ALREADY_EXISTS}
        for name in ("CreateTopics", "DeleteTopics", "CreatePartitions", "DeleteRecords"):
            self.handlers[name] = getattr(self, name)

    def _code(self, name: str) -> int:
        return NOT_CONTROLLER if self.moves_controller else self.codes.get(name, 0)

    def _note(self, body: Any, version: int, address: tuple[str, int]) -> None:
        self.asked.append((address[1] - 9000, version, body))

    def _end(self) -> None:
        if self.moves_controller:
            self.moves_controller, self.controller = False, 2

    def CreateTopics(self, body: Any, version: int, address: tuple[str, int]) -> Any:
        self._note(body, version, address)
        response = message_class("CreateTopicsResponse")
        rows = [
            response.CreatableTopicResult(
                name=topic.name,
                topic_id=TOPIC_ID,
                error_code=self._code(topic.name),
                error_message="there",
                num_partitions=3,
                replication_factor=2,
            )
            for topic in body.topics
        ]
        self._end()
        return response(topics=rows)

    def DeleteTopics(self, body: Any, version: int, address: tuple[str, int]) -> Any:
        self._note(body, version, address)
        response = message_class("DeleteTopicsResponse")
        names = body.topic_names if version < 6 else [row.name for row in body.topics]
        row = response.DeletableTopicResult
        return response(responses=[row(name=n, error_code=self._code(n)) for n in names])

    def CreatePartitions(self, body: Any, version: int, address: tuple[str, int]) -> Any:
        self._note(body, version, address)
        response = message_class("CreatePartitionsResponse")
        row = response.CreatePartitionsTopicResult
        return response(
            results=[
                row(name=t.name, error_code=self._code(t.name), error_message="no")
                for t in body.topics
            ]
        )

    def DeleteRecords(self, body: Any, version: int, address: tuple[str, int]) -> Any:
        self._note(body, version, address)
        response = message_class("DeleteRecordsResponse")
        row = response.DeleteRecordsPartitionResult
        return response(
            topics=[
                response.DeleteRecordsTopicResult(
                    name=topic.name,
                    partitions=[
                        row(
                            partition_index=p.partition_index,
                            low_watermark=max(p.offset, 0),
                            error_code=OFFSET_OUT_OF_RANGE if p.offset > 99 else 0,
                        )
                        for p in topic.partitions
                    ],
                )
                for topic in body.topics
            ]
        )


def codes(results: Any) -> dict[Any, int]:
    return {key: 0 if error is None else error.code for key, error in results.items()}


def test_a_created_topic_is_reported_and_a_refused_one_has_its_error() -> None:
    cluster = TopicCluster()
    topics = [
        NewTopic("t", 3, 2, configs={"retention.ms": "1"}),
        NewTopic("placed", assignment=((1, 2), (2, 1))),
        NewTopic("bad"),
    ]
    with cluster.client() as client:
        found = create_topics(client, topics, validate_only=True)
    assert CreatedTopic("t", TOPIC_ID, 3, 2) == found["t"]
    refused = found["bad"]
    assert isinstance(refused, ApiError)
    assert "TOPIC_ALREADY_EXISTS: there" == str(refused)
    ((broker_id, _, body),) = cluster.asked
    assert (1, True) == (broker_id, body.validate_only)
    counted, placed, default = body.topics
    assert (3, 2, []) == (counted.num_partitions, counted.replication_factor, counted.assignments)
    assert [("retention.ms", "1")] == [(c.name, c.value) for c in counted.configs]
    assert (-1, -1) == (placed.num_partitions, placed.replication_factor)
    assert [(0, [1, 2]), (1, [2, 1])] == [
        (row.partition_index, row.broker_ids) for row in placed.assignments
    ]
    assert (-1, -1) == (default.num_partitions, default.replication_factor)


def test_a_controller_that_moved_meanwhile_is_asked_where_it_is() -> None:
    cluster = TopicCluster()
    cluster.moves_controller = True
    with cluster.client() as client:
        assert isinstance(create_topics(client, [NewTopic("t")])["t"], CreatedTopic)
    assert [1, 2] == [broker_id for broker_id, *_ in cluster.asked]


@pytest.mark.parametrize("version", [5, 6])
def test_topics_are_deleted_by_name_in_every_version(version: int) -> None:
    cluster = TopicCluster(DeleteTopics=(1, version))
    cluster.codes["gone"] = UNKNOWN_TOPIC_OR_PARTITION
    with cluster.client() as client:
        found = delete_topics(client, ["t", "gone"])
    assert {"t": 0, "gone": UNKNOWN_TOPIC_OR_PARTITION} == codes(found)
    assert [version] == [asked for _, asked, _ in cluster.asked]


def test_topics_grow_to_the_given_count() -> None:
    cluster = TopicCluster()
    wanted = {"t": NewPartitions(4, ((1, 2),)), "free": NewPartitions(5), "bad": NewPartitions(1)}
    with cluster.client() as client:
        found = create_partitions(client, wanted, validate_only=True)
    assert {"t": 0, "free": 0, "bad": TOPIC_ALREADY_EXISTS} == codes(found)
    assert "TOPIC_ALREADY_EXISTS: no" == str(found["bad"])
    ((_, _, body),) = cluster.asked
    assert body.validate_only
    assert [("t", 4, [[1, 2]]), ("free", 5, None), ("bad", 1, None)] == [
        (t.name, t.count, t.assignments and [a.broker_ids for a in t.assignments])
        for t in body.topics
    ]


def test_records_are_deleted_at_the_leader_and_the_new_start_is_sent() -> None:
    cluster = TopicCluster()
    with cluster.client() as client:
        found = delete_records(client, {T0: 7, T1: 100})
        assert {T0: 0} == delete_records(client, {T0: -1})
    assert 7 == found[T0]
    refused = found[T1]
    assert isinstance(refused, ApiError)
    assert OFFSET_OUT_OF_RANGE == refused.code
    led = {
        (id_, t.name, p.partition_index)
        for id_, _, b in cluster.asked
        for t in b.topics
        for p in t.partitions
    }
    assert {(1, "t", 0), (2, "t", 1)} == led


def test_partitions_are_grouped_in_their_order() -> None:
    other = TopicPartition("a", 0)
    assert {"t": [T1, T0], "a": [other]} == by_topic([T1, other, T0])
