"""DescribeProducers: what a log knows of its producers."""

from __future__ import annotations

from typing import Any

from engine.model import TopicPartition
from engine.wire.structs import message_class
from tests.unit.api.data_stage import T0, DataStage
from tests.unit.log.writing import NOW_MS, sent_by

MADE = message_class("DescribeProducersRequest")


def describe(stage: DataStage, *indexes: int, topic: str = "t") -> Any:
    request = MADE(topics=[MADE.TopicRequest(name=topic, partition_indexes=list(indexes))])
    return stage.ask("DescribeProducers", 0, request).topics[0].partitions


def test_producers_are_shown_as_the_log_knows_them() -> None:
    stage = DataStage()
    stage.produce(sent_by(7, 0, 3, producer_epoch=2))
    partition = stage.manager.find(T0)
    partition.append(memoryview(bytearray(sent_by(8, 0, is_transactional=True))), 1)
    (found,) = describe(stage, 0)
    assert [
        (7, 2, 2, NOW_MS + 2, -1, -1),
        (8, 0, 0, NOW_MS, -1, 3),
    ] == [
        (
            producer.producer_id,
            producer.producer_epoch,
            producer.last_sequence,
            producer.last_timestamp,
            producer.coordinator_epoch,
            producer.current_txn_start_offset,
        )
        for producer in found.active_producers
    ]


def test_a_follower_answers_too() -> None:
    stage = DataStage()
    stage.add("t", 0, leader=2)
    assert [0] == [found.error_code for found in describe(stage, 0)]


def test_refusals() -> None:
    stage = DataStage()
    stage.tell(TopicPartition("t", 5), leader=2)
    assert [(9, 3), (5, 6)] == [(f.partition_index, f.error_code) for f in describe(stage, 9, 5)]
    hosted = "This server does not host this topic-partition."
    unknown = describe(stage, 0, topic="no-such")
    assert [(3, hosted)] == [(found.error_code, found.error_message) for found in unknown]
    (bad,) = describe(stage, 0, topic="a/b")
    assert (17, "Topic name is invalid: 'a/b' ") == (bad.error_code, bad.error_message[:29])
