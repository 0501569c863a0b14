"""ListOffsets: ends, times and refusals by version."""

from __future__ import annotations

from typing import Any

import pytest

from engine.log.log_config import LogConfig
from engine.log.producer_state import AppendOrigin
from engine.model import TopicPartition
from engine.replication.partition_types import PartitionState
from engine.wire.structs import message_class
from tests.unit.api.data_stage import T0, DataStage
from tests.unit.log.writing import NOW_MS, sent, sent_by

MADE = message_class("ListOffsetsRequest")


def requested(index: int = 0, timestamp: int = -1, **more: Any) -> Any:
    return MADE.ListOffsetsPartition(partition_index=index, timestamp=timestamp, **more)


def look_up(stage: DataStage, version: int, *partitions: Any, **more: Any) -> Any:
    more.setdefault("replica_id", -1)
    topic = more.pop("topic", "t")
    request = MADE(topics=[MADE.ListOffsetsTopic(name=topic, partitions=list(partitions))], **more)
    answer = stage.ask("ListOffsets", version, request)
    return answer.topics[0].partitions


def offset_at(stage: DataStage, timestamp: int, version: int = 9, **more: Any) -> tuple[int, ...]:
    (found,) = look_up(stage, version, requested(timestamp=timestamp), **more)
    return found.error_code, found.offset, found.timestamp, found.leader_epoch


def filled() -> DataStage:
    stage = DataStage()
    stage.produce(sent(2, at_ms=NOW_MS))
    stage.produce(sent(2, at_ms=NOW_MS + 100))
    stage.produce(sent(1, at_ms=NOW_MS + 50))
    return stage


@pytest.mark.parametrize(
    ("timestamp", "answer"),
    [
        (-1, (0, 5, -1, 0)),
        (-2, (0, 0, -1, 0)),
        (-3, (0, 3, NOW_MS + 101, 0)),
        (-4, (0, 0, -1, 0)),
        (-5, (0, -1, -1, -1)),
        (0, (0, 0, NOW_MS, 0)),
        (NOW_MS + 1, (0, 1, NOW_MS + 1, 0)),
        (NOW_MS + 2, (0, 2, NOW_MS + 100, 0)),
        (NOW_MS + 102, (0, -1, -1, -1)),
    ],
)
def test_times_and_ends(timestamp: int, answer: tuple[int, ...]) -> None:
    assert answer == offset_at(filled(), timestamp)


@pytest.mark.parametrize(
    ("timestamp", "first"), [(-1, 0), (-2, 0), (-3, 7), (-4, 8), (-5, 9), (-6, 10)]
)
def test_ends_have_their_first_version(timestamp: int, first: int) -> None:
    stage = filled()
    codes = [offset_at(stage, timestamp, version)[0] for version in range(10)]
    assert [35 if version < first else 0 for version in range(10)] == codes


def test_isolation_says_where_the_end_is() -> None:
    stage = DataStage((1, 2))
    partition = stage.manager.find(T0)
    stage.produce(sent(2), acks=1)
    stage.follow(2)
    open_batch = memoryview(bytearray(sent_by(9, 0, is_transactional=True)))
    partition.append(open_batch, 1, AppendOrigin.CLIENT)
    stage.follow(3)
    stage.produce(sent(1), acks=1)
    ends = [
        offset_at(stage, -1, replica_id=-1, isolation_level=1)[1],
        offset_at(stage, -1, replica_id=-1)[1],
        offset_at(stage, -1, replica_id=2)[1],
    ]
    assert [2, 3, 4] == ends


def test_what_is_above_the_end_has_no_time() -> None:
    stage = DataStage((1, 2))
    stage.produce(sent(2), acks=1)
    assert [-1, 0] == [offset_at(stage, NOW_MS, replica_id=who)[1] for who in (-1, 2)]


def test_a_partition_named_twice_is_refused() -> None:
    stage = filled()
    found = look_up(stage, 5, requested(0), requested(1), requested(0))
    assert [42, 0, 42] == [answer.error_code for answer in found]
    found = look_up(stage, 0, requested(0), requested(0))
    assert [0, 0] == [answer.error_code for answer in found]


def test_epochs_and_places_are_checked() -> None:
    stage = filled()
    partition = stage.manager.find(T0)
    partition.become_leader(PartitionState(1, 3, (1,), 1, (1,)))
    codes = [
        look_up(stage, 9, requested(current_leader_epoch=epoch))[0].error_code
        for epoch in (-2, -1, 2, 3, 4)
    ]
    assert [74, 0, 74, 0, 75] == codes
    assert 3 == look_up(stage, 9, requested(9))[0].error_code
    stage.tell(TopicPartition("t", 9), leader=2)
    assert 6 == look_up(stage, 9, requested(9))[0].error_code
    stage.manager.mark_offline(T0)
    assert 56 == look_up(stage, 9, requested(0))[0].error_code


def test_what_kafka_fails_at_has_no_code_of_its_own() -> None:
    stage = filled()
    assert -1 == look_up(stage, 0, requested(max_num_offsets=-1))[0].error_code
    assert -1 == look_up(stage, 2, requested(), isolation_level=5)[0].error_code
    assert 0 == look_up(stage, 2, requested(), isolation_level=5, replica_id=-2)[0].error_code


def test_a_follower_answers_a_debugger_alone() -> None:
    stage = DataStage()
    stage.add("t", 0, leader=2)
    assert [6, 0] == [offset_at(stage, -1, replica_id=who)[0] for who in (-1, -2)]


@pytest.mark.parametrize(("version", "code"), [(4, 5), (5, 78)])
def test_a_new_leader_does_not_let_the_end_go_back(version: int, code: int) -> None:
    stage = DataStage((1, 2))
    stage.produce(sent(2), acks=1)
    partition = stage.manager.find(T0)
    partition.become_leader(PartitionState(1, 1, (1, 2), 1, (1, 2, 3)))
    assert code == offset_at(stage, -1, version)[0]


def test_version_0_lists_where_segments_begin() -> None:
    stage = DataStage()
    stage.add("t", 0, config=LogConfig(segment_bytes=200, segment_index_bytes=1024))
    for _ in range(5):
        stage.produce(sent(2))
    bases = [segment.base_offset for segment in stage.manager.find(T0).log.segments]
    assert len(bases) > 1

    def starts(timestamp: int, count: int, **more: Any) -> list[int]:
        wanted = requested(timestamp=timestamp, max_num_offsets=count)
        found: list[int] = look_up(stage, 0, wanted, **more)[0].old_style_offsets
        return found

    assert [10, *reversed(bases)] == starts(-1, 99)
    assert [10] == starts(-1, 1)
    assert [] == starts(-1, -1)
    assert [0] == starts(-2, 99)
    assert [*reversed(bases)] == starts(0, 99)
    assert [10, *reversed(bases)] == starts(1 << 60, 99)
    stage.manager.find(T0).high_watermark = 3
    assert [3, *(base for base in reversed(bases) if base <= 3)] == starts(-1, 99)
    assert [10, *reversed(bases)] == starts(-1, 99, replica_id=2)
