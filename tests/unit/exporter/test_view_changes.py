"""Changes between two snapshots of a cluster, on plain values."""

from __future__ import annotations

import pytest

from engine.client.metadata import BrokerView, ClusterView, PartitionView, TopicView
from engine.client.settings import Address
from engine.exporter.view_changes import (
    Change,
    ChangeKind,
    ClusterSnapshot,
    changes_between,
    newest_snapshot,
)
from engine.kafka_errors import LEADER_NOT_AVAILABLE
from engine.model import TopicPartition

T0 = TopicPartition("t", 0)


def snapshot(
    *,
    leader: int = 1,
    leader_epoch: int = 0,
    isr: tuple[int, ...] = (1, 2),
    brokers: tuple[int, ...] = (1, 2),
    controller_id: int = 1,
    topics: tuple[str, ...] = ("t",),
    topic_id: bytes = b"i",
    error_code: int = 0,
    moving: frozenset[TopicPartition] | None = frozenset(),
    is_controller_known: bool = True,
) -> ClusterSnapshot:
    """Return a snapshot of a cluster whose topics have one partition each."""
    row = PartitionView(0, leader, leader_epoch, (1, 2), isr, ())
    rows = () if error_code else (row,)
    return ClusterSnapshot(
        ClusterView(
            "c",
            controller_id,
            {id_: BrokerView(id_, Address("here", id_)) for id_ in brokers},
            {name: TopicView(name, topic_id, False, rows, error_code) for name in topics},
            is_controller_known,
        ),
        moving,
    )


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (snapshot(), []),
        (
            snapshot(controller_id=2),
            [Change(ChangeKind.CONTROLLER_CHANGED, before=(1,), after=(2,))],
        ),
        (snapshot(controller_id=2, is_controller_known=False), []),
        (
            snapshot(controller_id=-1),
            [Change(ChangeKind.CONTROLLER_CHANGED, before=(1,), after=())],
        ),
        (snapshot(brokers=(1,)), [Change(ChangeKind.BROKER_LOST, broker_id=2)]),
        (snapshot(brokers=(1, 2, 3)), [Change(ChangeKind.BROKER_BACK, broker_id=3)]),
        (snapshot(leader=2), [Change(ChangeKind.LEADER_CHANGED, "t", 0, before=(1,), after=(2,))]),
        (snapshot(leader=-1), [Change(ChangeKind.LEADER_CHANGED, "t", 0, before=(1,), after=())]),
        (snapshot(isr=(1,)), [Change(ChangeKind.ISR_SHRANK, "t", 0, before=(1, 2), after=(1,))]),
        (snapshot(isr=(2, 1)), []),
        (
            snapshot(isr=(1, 3)),
            [
                Change(ChangeKind.ISR_SHRANK, "t", 0, before=(1, 2), after=(1, 3)),
                Change(ChangeKind.ISR_GREW, "t", 0, before=(1, 2), after=(1, 3)),
            ],
        ),
        (snapshot(topics=("t", "u")), [Change(ChangeKind.TOPIC_CREATED, "u")]),
        (snapshot(topics=()), [Change(ChangeKind.TOPIC_DELETED, "t")]),
        (
            snapshot(topic_id=b"other", leader=2),
            [Change(ChangeKind.TOPIC_DELETED, "t"), Change(ChangeKind.TOPIC_CREATED, "t")],
        ),
        (snapshot(moving=frozenset([T0])), [Change(ChangeKind.MOVE_BEGAN, "t", 0)]),
    ],
)
def test_each_difference_is_a_change(after: ClusterSnapshot, expected: list[Change]) -> None:
    assert expected == changes_between(snapshot(), after)


def test_a_move_ends_when_it_is_listed_no_more_and_not_when_nobody_lists_it() -> None:
    before = snapshot(moving=frozenset([T0]))
    assert [Change(ChangeKind.MOVE_ENDED, "t", 0)] == changes_between(before, snapshot())
    assert [] == changes_between(before, snapshot(moving=None))
    assert [] == changes_between(snapshot(moving=None), before)


def test_moves_that_nobody_says_and_topics_with_an_error_are_as_they_were() -> None:
    before = snapshot(moving=frozenset([T0]))
    assert before == newest_snapshot(before, snapshot(moving=None))
    assert before == newest_snapshot(
        before, snapshot(error_code=LEADER_NOT_AVAILABLE, moving=before.moving)
    )
    created = snapshot(topics=("t", "u"))
    assert created == newest_snapshot(before, created)


def test_a_partition_of_an_earlier_leader_epoch_is_as_it_was() -> None:
    before = snapshot(leader_epoch=1)
    assert before == newest_snapshot(before, snapshot(leader=2, isr=(2,)))
    later = snapshot(leader=2, leader_epoch=2)
    assert later == newest_snapshot(before, later)
    # A topic made again begins with epochs of its own.
    other = snapshot(leader=2, topic_id=b"other")
    assert other == newest_snapshot(before, other)
