"""Cancels: all that moves is taken back, and nothing is told that did not happen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.client.reassignments import OngoingReassignment
from engine.errors import api_error
from engine.host.memory import ManualClock
from engine.host.memory_held_file import MemoryHeldFiles
from engine.kafka_errors import INVALID_REPLICA_ASSIGNMENT
from engine.model import TopicPartition
from engine.planner.plan import PartitionChange
from engine.reassign.change_status import ExecutionStatus
from engine.reassign.execution import CANCELLED
from engine.reassign.journal_state import read_journal
from engine.reassign.phases import ObservedReplica
from tests.unit.reassign.moved_cluster import T0, change
from tests.unit.reassign.scripted_cluster import JOURNAL, ScriptedCluster, execution_of, look

MOVE = change(0, (1, 2), (2, 3))
ONGOING = {T0: OngoingReassignment((2, 3, 1), (3,), (1,))}
MOVING = look({T0: (2, 3, 1)}, ONGOING)
DIRS = PartitionChange("t", 0, (1, 2), (1, 2), 1, 1, 8, (), ("/a", "/a"), ("/b", "/a"))


def ignore(_: ExecutionStatus) -> None: ...


def test_a_move_that_metadata_does_not_show_yet_is_taken_back_and_waited_for() -> None:
    clock = ManualClock()
    empty = look({}, ONGOING)
    cluster = ScriptedCluster(clock, empty, empty, MOVING, look({T0: (1, 2)}))
    end = execution_of(clock, cluster, [MOVE], [T0]).cancel(ignore)
    assert [{T0: None}] == cluster.submitted
    assert {T0: CANCELLED} == dict(end.how_ended)


def test_a_move_whose_cancel_is_refused_is_not_reported_as_cancelled_and_stays_open() -> None:
    class Refusing(ScriptedCluster):
        def submit(self, targets: Mapping[TopicPartition, Any]) -> Any:
            return dict.fromkeys(targets, api_error(INVALID_REPLICA_ASSIGNMENT))

    clock = ManualClock()
    cluster = Refusing(clock, MOVING)
    files = MemoryHeldFiles()
    end = execution_of(clock, cluster, [MOVE], [T0], files).cancel(ignore)
    assert ({}, [T0]) == (dict(end.how_ended), list(end.refused))
    assert [T0] == list(end.still_moving)
    state = read_journal(files, JOURNAL)
    assert (False, {}) == (state.is_over, state.ended)


def test_a_move_between_directories_is_taken_back_too() -> None:
    clock = ManualClock()
    in_progress = look({T0: (1, 2)})._replace(replicas={T0: {1: ObservedReplica(8, "/a", 3, "/b")}})
    back = in_progress._replace(replicas={T0: {1: ObservedReplica(8, "/a")}})
    cluster = ScriptedCluster(clock, in_progress, in_progress, in_progress, back)
    end = execution_of(clock, cluster, [DIRS], [T0]).cancel(ignore)
    assert [{1: {T0: "/a"}}] == cluster.placed
    assert {T0: CANCELLED} == dict(end.how_ended)
    assert 4 <= cluster.look_count


def test_a_move_between_directories_of_a_dead_broker_is_not_reported_as_cancelled() -> None:
    clock = ManualClock()
    cluster = ScriptedCluster(clock, look({T0: (1, 2)}))
    end = execution_of(clock, cluster, [DIRS], [T0]).cancel(ignore)
    assert ({}, [T0]) == (dict(end.how_ended), list(end.refused))
    not_begun = execution_of(clock, cluster, [DIRS]).cancel(ignore)
    assert {T0: CANCELLED} == dict(not_begun.how_ended)


def test_a_move_between_directories_that_ends_before_its_cancel_is_done() -> None:
    clock = ManualClock()
    in_progress = look({T0: (1, 2)})._replace(replicas={T0: {1: ObservedReplica(8, "/a", 3, "/b")}})
    done = in_progress._replace(replicas={T0: {1: ObservedReplica(8, "/b")}})
    cluster = ScriptedCluster(clock, in_progress, done)
    end = execution_of(clock, cluster, [DIRS], [T0]).cancel(ignore)
    assert {T0: "done"} == dict(end.how_ended)
