"""What keeps a plan from being executed, found before anything moves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from engine.client.cluster_admin import LogDirView, ReplicaSize
from engine.client.errors import TimedOut
from engine.client.metadata import BrokerView, ClusterView, PartitionView, TopicView
from engine.client.settings import Address
from engine.errors import EngineError, api_error
from engine.kafka_errors import KAFKA_STORAGE_ERROR
from engine.model import TopicPartition
from engine.planner.plan import PartitionChange
from engine.reassign.preflight import PlanTarget, Preflight, check_changes, waiting_changes
from engine.reassign.scheduling import PlanOrder

T0 = TopicPartition("t", 0)
GIB = 1 << 30


def disk(
    path: str, free: int | None = 100 * GIB, *sizes: int, total: int = 200 * GIB, **more: Any
) -> LogDirView:
    """Return a directory with replicas of t-0, t-1, … of these sizes."""
    replicas = tuple(
        ReplicaSize(TopicPartition("t", number), size, 0, False)
        for number, size in enumerate(sizes)
    )
    told = None if free is None else total
    return LogDirView(path, more.get("error"), replicas, told, free)


def checked(
    changes: Sequence[PartitionChange],
    dirs: dict[int, Sequence[LogDirView] | EngineError],
    *,
    batches: Sequence[Sequence[int]] | None = None,
    min_isr: int = 1,
    is_room_required: bool = True,
    leader: int = 1,
    alive: Sequence[int] = (1, 2, 3),
) -> Preflight:
    partitions = tuple(
        PartitionView(c.partition, leader, 1, c.old_replicas, c.old_replicas, ()) for c in changes
    )
    brokers = {id_: BrokerView(id_, Address("h", id_)) for id_ in alive}
    view = ClusterView("c", 1, brokers, {"t": TopicView("t", b"x" * 16, False, partitions)})
    ground = PlanTarget(view, dirs, {"t": min_isr})
    return check_changes(
        changes,
        batches or [range(len(changes))],
        ground,
        is_room_required=is_room_required,
    )


def move(number: int, old: Sequence[int], new: Sequence[int], *paths: str) -> PartitionChange:
    old_paths = ("/a",) * len(old) if paths else ()
    return PartitionChange(
        "t", number, tuple(old), tuple(new), old[0], new[0], 10 * GIB, (), old_paths, paths
    )


def faults(found: Preflight) -> list[str]:
    return [str(fault) for fault in found.faults]


def test_a_plan_that_can_be_executed_has_no_fault_and_shows_its_room() -> None:
    found = checked([move(0, (1, 2), (1, 3))], {1: [disk("/a", None, 30)], 3: [disk("/a")]})
    assert ([], []) == (found.faults, found.warnings)
    (room,) = found.rooms
    # What the leader has counts, not what the plan knew.
    assert (3, ("/a",), 30, 100 * GIB) == room[:4]


@pytest.mark.parametrize(
    ("new", "paths", "dirs", "reason"),
    [
        ((1, 9), (), [disk("/a")], "t-0: broker 9 is not alive; alive: 1, 2, 3"),
        (
            (1, 3),
            ("any", "/x"),
            [disk("/a"), disk("/b")],
            "t-0: broker 3 has no directory /x; it has /a, /b",
        ),
        (
            (1, 3),
            ("any", "/a"),
            [disk("/a", error=api_error(KAFKA_STORAGE_ERROR)), disk("/b")],
            "t-0: /a of broker 3 is offline: KAFKA_STORAGE_ERROR",
        ),
        (
            (1, 3),
            (),
            [disk("/a", error=api_error(KAFKA_STORAGE_ERROR))],
            "t-0: all directories of broker 3 are offline",
        ),
        (
            (1, 3),
            ("any", "/a"),
            TimedOut("DescribeLogDirs to h:3", 1000),
            "t-0: broker 3 does not return its log directories: DescribeLogDirs",
        ),
        (
            (1, 3),
            ("any", "/b"),
            [disk("/a"), disk("/b", 4 * GIB)],
            f"broker 3: {10 * GIB} bytes are to come, and {4 * GIB} are free in /b: "
            f"{6 * GIB} bytes lack",
        ),
    ],
)
def test_what_a_target_lacks_is_a_fault(
    new: Sequence[int], paths: Sequence[str], dirs: Any, reason: str
) -> None:
    (fault,) = faults(checked([move(0, (1, 2), new, *paths)], {3: dirs}))
    assert fault.startswith(reason)


def test_a_move_between_directories_needs_room_and_a_broker_that_lives() -> None:
    between = move(0, (1, 2), (1, 2), "/b", "/a")
    full = checked([between], {1: [disk("/a", 1, 7 * GIB), disk("/b", 5 * GIB)]})
    assert f"broker 1: {7 * GIB} bytes are to come, and {5 * GIB} are free in /b" in faults(full)[0]
    # On one disk it needs the room as well, until the old copy is deleted.
    same = checked([between], {1: [disk("/a", 5 * GIB, 7 * GIB), disk("/b", 5 * GIB)]})
    assert [] == same.faults
    assert "until what leaves is deleted" in str(same.warnings[0])
    down = checked([between], {}, alive=(2, 3), leader=2)
    assert ["t-0: broker 1 is not alive; alive: 2, 3"] == faults(down)


def test_all_that_comes_to_a_broker_needs_room_on_its_disks_together() -> None:
    changes = [move(number, (1, 2), (1, 3)) for number in range(4)]
    two_disks = {3: [disk("/a", 15 * GIB), disk("/b", 30 * GIB)]}
    assert [] == faults(checked(changes, two_disks))
    one_disk = {3: [disk("/a", 30 * GIB), disk("/b", 30 * GIB)]}
    assert (
        f"{40 * GIB} bytes are to come, and {30 * GIB} are free in /a, /b"
        in (faults(checked(changes, one_disk))[0])
    )
    small = {3: [disk("/a", 9 * GIB), disk("/b", 8 * GIB), disk("/c", 7 * GIB)]}
    assert f"{1 * GIB} bytes lack" in faults(checked(changes[:1], small))[0]


def test_what_leaves_first_makes_room_where_batches_wait_for_each_other() -> None:
    out, into = move(0, (1, 3), (1, 2)), move(1, (1, 2), (1, 3))
    dirs: dict[int, Any] = {2: [disk("/a", 50 * GIB)], 3: [disk("/a", 2 * GIB)]}
    assert [] == checked([out, into], dirs, batches=[[0], [1]]).warnings
    together = checked([out, into], dirs)
    assert [] == together.faults
    assert "broker 3" == together.warnings[0].subject


def test_brokers_before_3_3_do_not_report_their_disks() -> None:
    found = checked([move(0, (1, 2), (1, 3))], {3: [disk("/a", None)]})
    assert ([], []) == (found.faults, found.rooms)


def test_fewer_replicas_than_min_isr_and_nobody_to_copy_from_are_warned_of() -> None:
    found = checked([move(0, (1, 2), (3,))], {}, min_isr=2, leader=-1)
    assert [] == found.faults
    assert [
        "t-0: 1 replica, and min.insync.replicas is 2: acks=all is refused from then on",
        "t-0: it has no leader: its replicas are copied once it has one",
    ] == [str(warning) for warning in found.warnings]


def test_a_disk_that_would_be_full_is_a_warning_where_room_is_not_required() -> None:
    dirs = {3: [disk("/a", 4 * GIB)]}
    (fault,) = faults(checked([move(0, (1, 2), (1, 3))], dirs))
    found = checked([move(0, (1, 2), (1, 3))], dirs, is_room_required=False)
    assert ([], [fault]) == (faults(found), [str(warning) for warning in found.warnings])
    # Nothing else is forgiven.
    assert faults(checked([move(0, (1, 2), (1, 9))], {}, is_room_required=False))


@pytest.mark.parametrize(
    ("has_barriers", "positions"), [(True, [[], [0, 1], []]), (False, [[0, 1]])]
)
def test_of_an_execution_that_goes_on_the_changes_that_wait_are_left(
    has_barriers: bool, positions: list[list[int]]
) -> None:
    changes = [move(number, (1, 2), (1, 3)) for number in range(4)]
    order = PlanOrder([[0], [1, 2], [3]], has_barriers)
    begun = {changes[0].name, changes[3].name}
    assert (changes[1:3], positions) == waiting_changes(changes, order, begun)
