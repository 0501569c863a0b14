"""What an execution makes of each look at a cluster: patience, pauses, strays, orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from engine.client.errors import TimedOut, Unreachable
from engine.client.reassignments import OngoingReassignment
from engine.errors import api_error
from engine.host.memory import ManualClock
from engine.host.memory_held_file import MemoryHeldFiles
from engine.kafka_errors import KAFKA_STORAGE_ERROR, LOG_DIR_NOT_FOUND, REQUEST_TIMED_OUT
from engine.model import TopicPartition
from engine.planner.plan import PartitionChange
from engine.reassign.change_status import ExecutionStatus
from engine.reassign.execution import PATIENCE_MS
from engine.reassign.journal_state import read_journal
from engine.reassign.phases import ObservedReplica
from tests.unit.reassign.moved_cluster import T0, change
from tests.unit.reassign.scripted_cluster import JOURNAL, ScriptedCluster, execution_of, look

T1 = TopicPartition("t", 1)
MOVE = change(0, (1, 2), (2, 3))
LATE = api_error(REQUEST_TIMED_OUT, "late")


def ignore(_: ExecutionStatus) -> None: ...


def test_a_cluster_out_of_reach_is_waited_for_and_left_in_the_end() -> None:
    clock = ManualClock()
    cluster = ScriptedCluster(clock, LATE)
    with pytest.raises(type(LATE)):
        execution_of(clock, cluster, [MOVE]).run(ignore)
    # One look a second, and one more behind the last of them.
    assert PATIENCE_MS // 1000 + 2 == cluster.look_count


def test_a_cluster_that_is_back_in_time_is_gone_on_with() -> None:
    clock = ManualClock()
    done = look({T0: (2, 3)})
    cluster = ScriptedCluster(clock, *[LATE] * 100, done)
    assert execution_of(clock, cluster, [MOVE]).run(ignore).is_clean


@pytest.mark.parametrize("look_count", [1, 2])
def test_a_partition_elsewhere_for_a_moment_is_not_given_up(look_count: int) -> None:
    clock = ManualClock()
    before, elsewhere = look({T0: (1, 2)}), look({T0: (1, 3)})
    moving = look({T0: (2, 3, 1)}, {T0: OngoingReassignment((2, 3, 1), (3,), (1,))})
    cluster = ScriptedCluster(
        clock, before, before, moving, *[elsewhere] * look_count, look({T0: (2, 3)})
    )
    assert execution_of(clock, cluster, [MOVE]).run(ignore).is_clean


def test_a_partition_that_stays_elsewhere_ends() -> None:
    clock = ManualClock()
    before, elsewhere = look({T0: (1, 2)}), look({T0: (1, 3)})
    cluster = ScriptedCluster(clock, before, before, *[elsewhere] * 3, look({T0: (2, 3)}))
    end = execution_of(clock, cluster, [MOVE]).run(ignore)
    assert {T0: "elsewhere"} == dict(end.how_ended)


@pytest.mark.parametrize(
    ("replicas", "orders"),
    [((2, 1), [{T0: (1, 2)}]), ((1, 2), []), ((2, 3), [])],
)
def test_a_cancel_brings_back_the_order_of_replicas(
    replicas: tuple[int, ...], orders: list[dict[TopicPartition, tuple[int, ...]]]
) -> None:
    clock = ManualClock()
    cluster = ScriptedCluster(clock, look({T0: replicas, T1: (2, 1)}))
    not_begun = change(1, (1, 2), (3, 1))
    execution_of(clock, cluster, [MOVE, not_begun], [T0]).cancel(ignore)
    assert orders == cluster.submitted


@pytest.mark.parametrize(
    ("under", "reason"),
    [
        ((T1,), "t-1 fell under min.insync.replicas"),
        ((T0, T1), "t-0 and 1 more fell under min.insync.replicas"),
    ],
)
def test_a_pause_names_what_fell_under_min_isr(
    under: tuple[TopicPartition, ...], reason: str
) -> None:
    clock = ManualClock()
    before = look({T0: (1, 2)})
    fallen = look({T0: (1, 2)}, under_min_isr=under)
    pauses: list[str | None] = []
    cluster = ScriptedCluster(clock, before, fallen, before, look({T0: (2, 3)}))
    execution_of(clock, cluster, [MOVE]).run(lambda now: pauses.append(now.pause))
    assert [reason, None] == pauses[:2]


DIRS = PartitionChange("t", 0, (1, 2), (1, 2), 1, 1, 8, (), ("/a", "/a"), ("/b", "/a"))
PLACED = PartitionChange("t", 0, (1, 2), (2, 3), 1, 2, 8, (), ("/a", "/a"), ("any", "/b"))


def test_a_directory_whose_broker_is_down_is_waited_for_and_requested_once_it_is_back() -> None:
    clock = ManualClock()
    down = look({T0: (1, 2)})._replace(brokers=frozenset((2, 3)))
    back = look({T0: (1, 2)})._replace(replicas={T0: {1: ObservedReplica(8, "/a")}})
    done = back._replace(replicas={T0: {1: ObservedReplica(8, "/b")}})
    missed: list[list[int]] = []
    cluster = ScriptedCluster(clock, down, down, down, down, down, back, done)
    end = execution_of(clock, cluster, [DIRS]).run(lambda now: missed.append(now.missed))
    assert end.is_clean
    assert [[1]] * 4 + [[], []] == missed
    assert [{1: {T0: "/b"}}] == cluster.placed


def test_a_broker_that_dies_during_a_move_between_its_directories_takes_nothing_back() -> None:
    clock = ManualClock()
    in_progress = look({T0: (1, 2)})._replace(replicas={T0: {1: ObservedReplica(8, "/a", 3, "/b")}})
    down = look({T0: (1, 2)})._replace(brokers=frozenset((2, 3)))
    done = in_progress._replace(replicas={T0: {1: ObservedReplica(8, "/b")}})
    cluster = ScriptedCluster(clock, in_progress, in_progress, *[down] * 9, in_progress, done)
    assert execution_of(clock, cluster, [DIRS], [T0]).run(ignore).is_clean
    assert [] == cluster.placed


@pytest.mark.parametrize("code", [LOG_DIR_NOT_FOUND, KAFKA_STORAGE_ERROR])
def test_a_replica_does_not_move_whose_directory_is_refused(code: int) -> None:
    clock = ManualClock()
    cluster = ScriptedCluster(clock, look({T0: (1, 2)}))
    cluster.placing.append({(T0, 3): api_error(code)})
    end = execution_of(clock, cluster, [PLACED]).run(ignore)
    assert [] == cluster.submitted
    assert {T0: code} == {key: error.code for key, error in end.refused.items()}


def test_a_replica_does_not_move_before_its_broker_knows_the_directory() -> None:
    clock = ManualClock()
    before = look({T0: (1, 2)})
    cluster = ScriptedCluster(clock, before, before, before, look({T0: (2, 3)}))
    cluster.placing.append({(T0, 3): Unreachable("h", 3, "gone")})
    assert execution_of(clock, cluster, [PLACED]).run(ignore).is_clean
    assert [{T0: (2, 3)}] == cluster.submitted
    assert 2 == len(cluster.placed)


def test_an_election_that_fails_leaves_no_throttle_and_is_reported() -> None:
    class Unelecting(ScriptedCluster):
        def elect_preferred(self, keys: Sequence[TopicPartition]) -> None:
            raise LATE

    clock = ManualClock()
    files = MemoryHeldFiles()
    done = look({T0: (2, 3)})
    led_by_3 = done.partitions[T0]._replace(leader=3)
    cluster = Unelecting(clock, look({T0: (1, 2)}), done._replace(partitions={T0: led_by_3}))
    end = execution_of(clock, cluster, [MOVE], files=files).run(ignore)
    assert (LATE, False) == (end.election_error, end.is_clean)
    assert read_journal(files, JOURNAL).is_over


def test_a_request_that_a_dying_controller_does_not_answer_is_made_again() -> None:
    failures = [TimedOut("AlterPartitionReassignments", 5), LATE]

    class Dying(ScriptedCluster):
        def submit(self, targets: Mapping[TopicPartition, tuple[int, ...] | None]) -> Any:
            answer = super().submit(targets)
            if failures:
                raise failures.pop()
            return answer

    clock = ManualClock()
    before = look({T0: (1, 2)})
    cluster = Dying(clock, before, before, before, before, look({T0: (2, 3)}))
    assert execution_of(clock, cluster, [MOVE]).run(ignore).is_clean
    assert [{T0: (2, 3)}] * 3 == cluster.submitted


def test_a_request_that_nobody_answers_for_long_or_may_not_be_made_ends_it() -> None:
    for error, count in ((LATE, PATIENCE_MS // 1000 + 2), (api_error(31), 1)):

        class Refusing(ScriptedCluster):
            def submit(self, targets: Mapping[TopicPartition, Any], error: Any = error) -> Any:
                super().submit(targets)
                raise error

        clock = ManualClock()
        cluster = Refusing(clock, look({T0: (1, 2)}))
        with pytest.raises(type(error)):
            execution_of(clock, cluster, [MOVE]).run(ignore)
        assert count == len(cluster.submitted)
