"""DeleteRecords: what goes, what waits for replicas, what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from engine.log.log_config import LogConfig
from engine.wire.structs import message_class
from tests.unit.api.data_stage import T0, DataStage
from tests.unit.log.writing import sent

MADE = message_class("DeleteRecordsRequest")


def delete(stage: DataStage, offsets: dict[int, int], *, version: int = 2, topic: str = "t") -> Any:
    request = MADE(
        topics=[
            MADE.DeleteRecordsTopic(
                name=topic,
                partitions=[
                    MADE.DeleteRecordsPartition(partition_index=index, offset=offset)
                    for index, offset in offsets.items()
                ],
            )
        ],
        timeout_ms=1000,
    )
    return rows(stage.ask("DeleteRecords", version, request))


def rows(answer: Any) -> Any:
    return answer and {
        found.partition_index: (found.error_code, found.low_watermark)
        for topic in answer.topics
        for found in topic.partitions
    }


@pytest.mark.parametrize("version", range(3))
def test_records_below_an_offset_are_gone(version: int) -> None:
    stage = DataStage()
    stage.produce(sent(5))
    assert {0: (0, 3)} == delete(stage, {0: 3}, version=version)
    assert 1 == stage.fetch(0).error_code
    assert 3 == stage.fetch(3).log_start_offset


def test_minus_one_deletes_all_that_is_committed() -> None:
    stage = DataStage()
    stage.produce(sent(5), sent(1))
    assert {0: (0, 5), 1: (0, 1)} == delete(stage, {0: -1, 1: -1})


@pytest.mark.parametrize(("offset", "code"), [(6, 1), (-2, 1)])
def test_offsets_outside_of_the_log_are_refused(offset: int, code: int) -> None:
    stage = DataStage()
    stage.produce(sent(5))
    assert {0: (code, -1), 1: (0, 0), 9: (3, -1)} == delete(stage, {0: offset, 1: 0, 9: 0})


def test_other_refusals() -> None:
    stage = DataStage()
    stage.add("t", 1, leader=2)
    stage.add("t", 2, config=LogConfig(is_deleting=False, is_compacted=True))
    stage.add("__consumer_offsets", 0)
    assert {1: (6, -1), 2: (44, -1)} == delete(stage, {1: 0, 2: 0})
    assert {0: (17, -1)} == delete(stage, {0: 0}, topic="__consumer_offsets")
    assert {0: (3, -1)} == delete(stage, {0: 0}, topic="no-such")


def led_by_one_of_three() -> DataStage:
    stage = DataStage((1, 2, 3))
    stage.produce(sent(5), acks=1)
    for replica_id in (2, 3):
        stage.follow(5, replica_id)
    return stage


def test_the_answer_waits_for_the_replicas() -> None:
    stage = led_by_one_of_three()
    assert delete(stage, {0: 3}) is None
    assert 1 == stage.manager.delayed_delete_count
    stage.follow(5, 2, log_start=3)
    assert stage.answer("DeleteRecords", 2) is None
    stage.follow(5, 3, log_start=4)
    assert {0: (0, 3)} == rows(stage.answer("DeleteRecords", 2))


def test_the_answer_does_not_wait_for_ever() -> None:
    stage = led_by_one_of_three()
    assert delete(stage, {0: 3}) is None
    assert stage.manager.next_deadline_ms() is not None
    stage.pass_time(1001)
    assert {0: (7, 0)} == rows(stage.answer("DeleteRecords", 2))


def test_a_partition_that_leaves_is_answered() -> None:
    stage = led_by_one_of_three()
    assert delete(stage, {0: 3}) is None
    stage.manager.remove(T0)
    assert {0: (6, -1)} == rows(stage.answer("DeleteRecords", 2))


def test_a_stop_answers_what_waits() -> None:
    stage = led_by_one_of_three()
    assert delete(stage, {0: 3}) is None
    stage.manager.stop()
    assert {0: (7, 0)} == rows(stage.answer("DeleteRecords", 2))
