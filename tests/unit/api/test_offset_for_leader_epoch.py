"""OffsetForLeaderEpoch: ends of epochs, and who may ask."""

from __future__ import annotations

from typing import Any

import pytest

from engine.model import TopicPartition
from engine.replication.partition_types import PartitionState
from engine.wire.structs import message_class
from tests.unit.api.data_stage import T0, DataStage
from tests.unit.log.writing import sent

MADE = message_class("OffsetForLeaderEpochRequest")


def end_of(stage: DataStage, epoch: int, *, index: int = 0, version: int = 4, **more: Any) -> Any:
    requested = MADE.OffsetForLeaderPartition(partition=index, leader_epoch=epoch, **more)
    request = MADE(topics=[MADE.OffsetForLeaderTopic(topic="t", partitions=[requested])])
    answer = stage.ask("OffsetForLeaderEpoch", version, request)
    found = answer.topics[0].partitions[0]
    assert index == found.partition
    return found.error_code, found.leader_epoch, found.end_offset


def lasting(*epochs: int) -> DataStage:
    """Return a log with two records of each epoch."""
    stage = DataStage()
    for number, epoch in enumerate(epochs):
        state = PartitionState(1, epoch, (1,), number + 1, (1,))
        stage.manager.find(T0).become_leader(state)
        stage.produce(sent(2))
    return stage


@pytest.mark.parametrize(
    ("epoch", "answer"),
    [(-1, (0, -1, -1)), (0, (0, 0, 0)), (2, (0, 2, 2)), (4, (0, 2, 2)), (5, (0, 5, 4))],
)
def test_an_epoch_ends_where_the_next_one_begins(epoch: int, answer: tuple[int, ...]) -> None:
    assert answer == end_of(lasting(2, 5), epoch)


def test_an_epoch_above_all_that_is_known_has_no_end() -> None:
    assert (0, -1, -1) == end_of(lasting(2), 9)


@pytest.mark.parametrize("version", range(5))
def test_every_version_has_the_end(version: int) -> None:
    code, epoch, end = end_of(lasting(2, 5), 2, version=version)
    assert (0, 2 if version else -1, 2) == (code, epoch, end)


@pytest.mark.parametrize(("current", "code"), [(-2, 74), (-1, 0), (4, 74), (5, 0), (6, 75)])
def test_the_leaders_epoch_is_checked(current: int, code: int) -> None:
    assert code == end_of(lasting(2, 5), 2, current_leader_epoch=current)[0]


def test_partitions_that_are_not_led_here_are_refused() -> None:
    stage = DataStage()
    assert (3, -1, -1) == end_of(stage, 0, index=9)
    stage.tell(TopicPartition("t", 9), leader=2)
    assert (6, -1, -1) == end_of(stage, 0, index=9)
    stage.add("t", 0, leader=2)
    assert (6, -1, -1) == end_of(stage, 0)
    stage.manager.mark_offline(T0)
    assert (56, -1, -1) == end_of(stage, 0)
