"""Plans that are executed while somebody else takes moves back, or asks for a cancel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from engine.client.reassignments import alter_reassignments, list_reassignments
from engine.host.process_identity import ProcessIdentity
from engine.model import TopicPartition
from engine.reassign.change_status import ExecutionStatus
from engine.reassign.execution import CANCELLED
from engine.reassign.journal import (
    JournalHeld,
    MoveJournal,
    is_held,
    request_cancel,
    request_change,
)
from engine.reassign.journal_state import ExecutionSettings, SettingsChange
from engine.reassign.phases import AT_WORK
from engine.reassign.throttles import ThrottleRates
from tests.unit.reassign.moved_cluster import JOURNAL, T0, Died, Mortal, MovedTopic, change

OLD = {0: (1, 2), 1: (2, 1), 2: (1, 2), 3: (2, 1)}
WANTED = {0: (3, 2), 1: (2, 3), 2: (2, 1), 3: (2, 1, 3)}
OTHER = ProcessIdentity(9, "there", "lee")
T1, T2, T3 = (TopicPartition("t", number) for number in (1, 2, 3))


@pytest.fixture
def moved() -> MovedTopic:
    return MovedTopic(replica_fetch_max_bytes="1")


#: So slow that a move takes minutes of looks.
SLOW = ThrottleRates(replication=1)


class Counting(Mortal):
    """A cluster that notes what is submitted."""

    def __init__(self, cluster: Any) -> None:
        super().__init__(cluster, 0, is_made=False)
        self.submitted: list[TopicPartition] = []

    def submit(self, targets: Any) -> Any:
        self.submitted += [key for key, target in targets.items() if target is not None]
        return self._cluster.submit(targets)


def counting(moved: MovedTopic) -> tuple[Any, Callable[[], list[TopicPartition]]]:
    """Return an execution, and what it has submitted."""
    clusters: list[Counting] = []

    def wrap(cluster: Any) -> Any:
        clusters.append(Counting(cluster))
        return clusters[0]

    return moved.execution(wrap), lambda: clusters[0].submitted


def take_back(moved: MovedTopic, *keys: TopicPartition) -> Callable[[ExecutionStatus], None]:
    """Return what takes back all that moves, or these, as Kafka's tool does, at the third look."""

    def look(now: ExecutionStatus) -> None:
        moved.looks.append(now)
        if len(moved.looks) == 3:
            ongoing = list_reassignments(moved.client)
            alter_reassignments(moved.client, dict.fromkeys(keys or ongoing))

    return look


def test_moves_that_somebody_takes_back_are_not_requested_again(moved: MovedTopic) -> None:
    moved.begin(ExecutionSettings(SLOW))
    execution, submitted = counting(moved)
    end = execution.run(take_back(moved))
    assert [T0, T1, T3] == end.taken_back
    assert not end.is_clean
    assert {T0, T1, T2, T3} == set(submitted())
    assert 4 == len(submitted())
    assert {} == list_reassignments(moved.client)
    # What they waited with is gone, and nothing of it is forgotten.
    assert {} == moved.throttles()
    assert not moved.state().is_over


def test_one_move_taken_back_stops_what_has_not_begun_and_lets_the_others_end(
    moved: MovedTopic,
) -> None:
    moved.begin(ExecutionSettings(SLOW, moves_per_broker=2))
    execution, submitted = counting(moved)
    end = execution.run(take_back(moved, T0))
    assert ([T0, T1, T2], [T0]) == (sorted(submitted()), end.taken_back)
    assert {T1: "done", T2: "done"} == end.how_ended
    assert {} == moved.throttles()
    assert {0: {1, 2}, 1: {2, 3}, 2: {1, 2}, 3: {1, 2}} == {
        number: set(replicas) for number, replicas in moved.replicas().items()
    }


def test_a_resume_asks_for_what_was_taken_back(moved: MovedTopic) -> None:
    moved.begin(ExecutionSettings(SLOW))
    first, _ = counting(moved)
    assert first.run(take_back(moved)).taken_back
    moved.cluster.pass_time(2000)
    resumed = moved.execution().run(lambda _: None)
    assert resumed.is_clean
    assert WANTED == moved.replicas()
    assert ({}, True) == (moved.throttles(), moved.state().is_over)


def test_a_move_that_a_resume_found_at_work_can_be_taken_back(moved: MovedTopic) -> None:
    moved.changes = (change(0, (1, 2), (3, 2)),)

    def die(now: ExecutionStatus) -> None:
        if now.changes[0].phase in AT_WORK:
            raise Died

    moved.begin(ExecutionSettings(SLOW))
    with pytest.raises(Died):
        moved.execution().run(die)
    execution, submitted = counting(moved)
    end = execution.run(take_back(moved))
    assert ([T0], []) == (end.taken_back, submitted())


def test_a_resume_without_a_throttle_takes_away_that_of_the_process_before(
    moved: MovedTopic,
) -> None:
    def die(now: ExecutionStatus) -> None:
        if any(change.phase in AT_WORK for change in now.changes):
            raise Died

    moved.begin(ExecutionSettings(SLOW))
    with pytest.raises(Died):
        moved.execution().run(die)
    assert moved.throttles()
    request_change(moved.files, JOURNAL, SettingsChange(0), OTHER)
    seen: list[dict[str, str]] = []
    end = moved.execution().run(lambda _: seen.append(moved.throttles()))
    assert {} == seen[0]
    assert end.is_clean
    assert WANTED == moved.replicas()


def test_nothing_is_moved_long_after_a_cancel(moved: MovedTopic) -> None:
    moved.begin(ExecutionSettings(SLOW, moves_per_broker=1))
    execution, submitted = counting(moved)
    end = execution.run(take_back(moved))
    assert end.taken_back
    moved.cluster.pass_time(600_000)
    assert len(submitted()) == len(set(submitted()))
    assert {} == list_reassignments(moved.client)
    assert all(3 not in replicas for replicas in moved.replicas().values())


def test_metadata_that_is_late_is_no_move_taken_back(moved: MovedTopic) -> None:
    class Late(Mortal):
        looks = 0

        def read(self) -> Any:
            now = self._cluster.read()
            self.looks += 1
            key = TopicPartition("t", 2)
            if self.looks in (3, 4) and key not in now.ongoing:
                view = now.partitions[key]._replace(replicas=(1, 2))
                return now._replace(partitions={**now.partitions, key: view})
            return now

    moved.begin()
    end = moved.execution(lambda cluster: Late(cluster, 0, is_made=False)).run(moved.looks.append)  # type: ignore[arg-type]
    assert end.is_clean
    assert WANTED == moved.replicas()


def test_a_cancel_that_another_process_asks_for_is_honoured(moved: MovedTopic) -> None:
    def look(now: ExecutionStatus) -> None:
        moved.looks.append(now)
        if len(moved.looks) == 3:
            assert is_held(moved.files, JOURNAL)
            request_cancel(moved.files, JOURNAL, OTHER)

    moved.begin(ExecutionSettings(SLOW))
    execution, _ = counting(moved)
    end = execution.run(look)
    assert OTHER == end.cancelled_by
    assert CANCELLED in end.how_ended.values()
    assert {} == list_reassignments(moved.client)
    assert {} == moved.throttles()
    state = moved.state()
    assert (CANCELLED, True) == (state.how_over, state.is_cancelling)
    assert end.how_ended == state.ended
    back = {n for n, ids in moved.replicas().items() if set(ids) == set(OLD[n])}
    assert {key.partition for key, how in end.how_ended.items() if how == CANCELLED} <= back


def test_an_execution_at_work_cannot_be_resumed_by_another_process(moved: MovedTopic) -> None:
    moved.begin(ExecutionSettings(SLOW))
    execution = moved.execution()
    with pytest.raises(JournalHeld, match="process 7"):
        MoveJournal.reopen(moved.files, JOURNAL, OTHER)
    assert execution.run(moved.looks.append).is_clean
