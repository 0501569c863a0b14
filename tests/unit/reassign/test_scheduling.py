"""Which changes may begin now."""

from __future__ import annotations

from engine.planner.plan import PartitionChange
from engine.reassign.scheduling import PlanOrder, startable_changes
from tests.unit.reassign.moved_cluster import change

CHANGES = [
    change(0, (1, 2), (1, 3)),
    change(1, (2, 1), (2, 3)),
    change(2, (1, 2), (1, 4)),
    change(3, (1, 2), (2, 1)),
    PartitionChange("t", 4, (3, 1), (3, 1), 3, 3, 5, (), ("/a", "/a"), ("/b", "/a")),
]
ALL = range(len(CHANGES))


def chosen(
    bound: int,
    *,
    waiting: range | list[int] = ALL,
    in_progress: list[int] | None = None,
    unable: list[int] | None = None,
    **order: bool,
) -> list[int]:
    batches = PlanOrder([[0, 1], [2, 3, 4]], order.get("has_barriers", False))
    return startable_changes(CHANGES, batches, waiting, in_progress or [], bound, unable or ())


def test_a_broker_takes_in_and_gives_no_more_than_the_bound() -> None:
    assert [0, 3] == chosen(1)
    assert [0, 1, 2, 3] == chosen(2)
    assert [0, 1, 2, 3, 4] == chosen(3)


def test_moves_in_progress_count() -> None:
    assert [3] == chosen(1, waiting=[1, 2, 3, 4], in_progress=[0])
    assert [2, 3] == chosen(1, waiting=[2, 3, 4], in_progress=[1])
    assert [1, 3] == chosen(1, waiting=[1, 3], in_progress=[2])


def test_a_batch_waits_for_those_before_it_where_room_is_short() -> None:
    assert [0, 1] == chosen(5, has_barriers=True)
    assert [] == chosen(5, waiting=[2, 3, 4], in_progress=[1], has_barriers=True)
    assert [2, 3, 4] == chosen(5, waiting=[2, 3, 4], has_barriers=True)
    # A change that waits for its broker has made no room yet.
    assert [0] == chosen(5, waiting=[0, 2, 3, 4], unable=[1], has_barriers=True)
    assert [2] == chosen(5, waiting=[2], unable=[1])


def test_a_partition_without_a_leader_is_read_from_its_first_replica() -> None:
    changes = [change(0, (1, 2), (1, 3))._replace(old_leader=None), change(1, (1, 2), (1, 4))]
    order = PlanOrder([[0, 1]], has_barriers=False)
    assert [0] == startable_changes(changes, order, [0, 1], [], 1)
