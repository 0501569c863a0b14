"""How far a reassignment is, by the sizes that brokers tell of."""

from __future__ import annotations

from engine.client.cluster_admin import LogDirView, ReplicaSize
from engine.client.errors import TimedOut
from engine.client.metadata import PartitionView
from engine.client.move_progress import (
    LogDirsByBroker,
    MoveFigures,
    added_replicas_bytes,
    move_figures,
    replica_size_bytes,
)
from engine.client.reassignments import OngoingReassignment
from engine.model import TopicPartition

T0 = TopicPartition("t", 0)
#: From 1 and 2 to 2, 3 and 4; broker 1 leads.
MOVE = OngoingReassignment((2, 3, 4, 1), (3, 4), (1,))
PARTITION = PartitionView(0, 1, 1, (2, 3, 4, 1), (1, 2), ())


def dirs(size: int, *, future: int | None = None, other: int = 7) -> list[LogDirView]:
    """Return a replica of t-0 and one of t-1; with `future`, a copy of t-0 elsewhere."""
    replicas = [ReplicaSize(TopicPartition("t", 1), other, 0, False)]
    copies = [] if future is None else [ReplicaSize(T0, future, 0, True)]
    here = (*replicas, ReplicaSize(T0, size, 0, False))
    return [
        LogDirView("/b", None, tuple(copies), None, None),
        LogDirView("/a", None, here, None, None),
    ]


def figures(
    log_dirs: LogDirsByBroker, rate: float | None = None, isr: tuple[int, ...] = (1, 2)
) -> MoveFigures:
    return move_figures(T0, PARTITION._replace(isr=isr), MOVE, log_dirs, rate)


def test_copies_are_counted_up_to_the_size_of_the_leader() -> None:
    found = figures({1: dirs(100), 3: dirs(40), 4: dirs(130)}, 10.0)
    assert MoveFigures((2, 1), (2, 3, 4), 140, 200, 10.0, 6.0) == found


def test_a_copy_in_sync_is_whole_and_one_that_nobody_reports_is_nothing() -> None:
    found = figures({1: dirs(100), 3: dirs(40), 4: TimedOut("x", 1)}, isr=(1, 2, 3))
    assert (100, 200, None) == (found.copied_bytes, found.total_bytes, found.left_s)


def test_without_the_size_of_the_leader_there_is_no_total() -> None:
    found = figures({3: dirs(40), 4: dirs(5)}, 10.0)
    assert (45, None, 10.0, None) == found[2:]


def test_nothing_left_takes_no_time_and_no_rate_takes_for_ever() -> None:
    whole = {1: dirs(100), 3: dirs(100), 4: dirs(100)}
    assert [0.0, 0.0, 0.0] == [figures(whole, rate).left_s for rate in (None, 0.0, 5.0)]
    begun = {1: dirs(100), 3: dirs(0), 4: dirs(0)}
    assert [None, None, 40.0] == [figures(begun, rate).left_s for rate in (None, 0.0, 5.0)]
    # What was truncated meanwhile is no rate.
    assert (0.0, None) == figures(begun, -5.0)[4:]


def test_the_log_counts_and_not_the_copy_that_moves_between_directories() -> None:
    told: LogDirsByBroker = {3: dirs(40, future=9), 4: dirs(2), 1: dirs(100)}
    assert (40, 100, None) == tuple(
        replica_size_bytes(T0, broker_id, told) for broker_id in (3, 1, 9)
    )
    assert 42 == added_replicas_bytes(T0, MOVE, told)
    assert replica_size_bytes(TopicPartition("t", 2), 3, told) is None
