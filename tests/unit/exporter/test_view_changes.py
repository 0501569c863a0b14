"""Changes between two looks at a cluster, on plain values."""

from __future__ import annotations

import pytest

from engine.client.metadata import BrokerView, ClusterView, PartitionView, TopicView
from engine.client.settings import Address
from engine.exporter.view_changes import Change, ChangeKind, Look, changes_between, newest
from engine.kafka_errors import LEADER_NOT_AVAILABLE
from engine.model import TopicPartition

T0 = TopicPartition("t", 0)


def look(
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
) -> Look:
    """Return a look at a cluster whose topics have one partition each."""
    row = PartitionView(0, leader, leader_epoch, (1, 2), isr, ())
    rows = () if error_code else (row,)
    return Look(
        ClusterView(
            "c",
            controller_id,
            {id_: BrokerView(id_, Address("here", id_)) for id_ in brokers},
            {name: TopicView(name, topic_id, False, rows, error_code) for name in topics},
        ),
        moving,
    )


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (look(), []),
        (look(controller_id=2), [Change(ChangeKind.CONTROLLER_CHANGED, before=(1,), after=(2,))]),
        (look(controller_id=-1), [Change(ChangeKind.CONTROLLER_CHANGED, before=(1,), after=())]),
        (look(brokers=(1,)), [Change(ChangeKind.BROKER_LOST, broker_id=2)]),
        (look(brokers=(1, 2, 3)), [Change(ChangeKind.BROKER_BACK, broker_id=3)]),
        (look(leader=2), [Change(ChangeKind.LEADER_CHANGED, "t", 0, before=(1,), after=(2,))]),
        (look(leader=-1), [Change(ChangeKind.LEADER_CHANGED, "t", 0, before=(1,), after=())]),
        (look(isr=(1,)), [Change(ChangeKind.ISR_SHRANK, "t", 0, before=(1, 2), after=(1,))]),
        (look(isr=(2, 1)), []),
        (
            look(isr=(1, 3)),
            [
                Change(ChangeKind.ISR_SHRANK, "t", 0, before=(1, 2), after=(1, 3)),
                Change(ChangeKind.ISR_GREW, "t", 0, before=(1, 2), after=(1, 3)),
            ],
        ),
        (look(topics=("t", "u")), [Change(ChangeKind.TOPIC_CREATED, "u")]),
        (look(topics=()), [Change(ChangeKind.TOPIC_DELETED, "t")]),
        (
            look(topic_id=b"other", leader=2),
            [Change(ChangeKind.TOPIC_DELETED, "t"), Change(ChangeKind.TOPIC_CREATED, "t")],
        ),
        (look(moving=frozenset([T0])), [Change(ChangeKind.MOVE_BEGAN, "t", 0)]),
    ],
)
def test_each_difference_is_a_change(after: Look, expected: list[Change]) -> None:
    assert expected == changes_between(look(), after)


def test_a_move_ends_when_it_is_listed_no_more_and_not_when_nobody_lists_it() -> None:
    before = look(moving=frozenset([T0]))
    assert [Change(ChangeKind.MOVE_ENDED, "t", 0)] == changes_between(before, look())
    assert [] == changes_between(before, look(moving=None))
    assert [] == changes_between(look(moving=None), before)


def test_moves_that_nobody_says_and_topics_with_an_error_are_as_they_were() -> None:
    before = look(moving=frozenset([T0]))
    assert before == newest(before, look(moving=None))
    assert before == newest(before, look(error_code=LEADER_NOT_AVAILABLE, moving=before.moving))
    created = look(topics=("t", "u"))
    assert created == newest(before, created)


def test_a_partition_of_an_earlier_leader_epoch_is_as_it_was() -> None:
    before = look(leader_epoch=1)
    assert before == newest(before, look(leader=2, isr=(2,)))
    later = look(leader=2, leader_epoch=2)
    assert later == newest(before, later)
    # A topic made again begins with epochs of its own.
    other = look(leader=2, topic_id=b"other")
    assert other == newest(before, other)
