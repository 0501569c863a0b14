"""Throttles that are changed, refused or damaged on the way, and come back in the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from engine.client.config_admin import ConfigResourceType
from engine.client.reassignments import OngoingReassignment
from engine.errors import api_error
from engine.host.process_identity import ProcessIdentity
from engine.kafka_errors import REQUEST_TIMED_OUT
from engine.model import TopicPartition
from engine.reassign.change_status import ExecutionStatus
from engine.reassign.journal import MoveJournal, request_change
from engine.reassign.journal_state import Begun, ExecutionSettings, SettingsChange
from engine.reassign.phases import AT_WORK
from engine.reassign.throttles import ThrottleRates
from engine.reassign.throttling import ThrottleNotSet, ThrottleOfAnotherMove
from tests.unit.reassign.moved_cluster import JOURNAL, WRITER, Died, Mortal, MovedTopic

OTHER = ProcessIdentity(9, "there", "lee")
SLOW = ThrottleRates(replication=1)
BROKER = ConfigResourceType.BROKER
LEADER_RATE_2 = "leader.replication.throttled.rate of broker 2"


@pytest.fixture
def moved() -> MovedTopic:
    return MovedTopic(replica_fetch_max_bytes="1")


def rates_after(
    moved: MovedTopic, change: SettingsChange
) -> tuple[Callable[[ExecutionStatus], None], dict[str, str]]:
    """Return what asks for a change at the third look, and the throttles two looks later."""
    found: dict[str, str] = {}

    def look(now: ExecutionStatus) -> None:
        moved.looks.append(now)
        if len(moved.looks) == 3:
            request_change(moved.files, JOURNAL, change, OTHER)
        if len(moved.looks) == 5:
            found.update(moved.throttles(), seen="yes")

    return look, found


def test_no_throttle_takes_away_that_of_replicas_beside_one_of_directories(
    moved: MovedTopic,
) -> None:
    moved.begin(ExecutionSettings(ThrottleRates(1, 1)))
    look, found = rates_after(moved, SettingsChange(0))
    assert moved.execution().run(look).is_clean
    assert {"seen": "yes"} == found


def test_a_change_to_the_rate_of_before_is_set(moved: MovedTopic) -> None:
    moved.set(BROKER, "2", leader_replication_throttled_rate="77")
    moved.begin(ExecutionSettings(SLOW))
    look, found = rates_after(moved, SettingsChange(77))
    assert moved.execution().run(look).is_clean
    assert "77" == found[LEADER_RATE_2]
    assert {LEADER_RATE_2: "77"} == moved.throttles()


class Refusing(Mortal):
    """A cluster of which one broker takes no rate but the first."""

    def __init__(self, cluster: Any, refused: str) -> None:
        super().__init__(cluster, 0, is_made=False)
        self._refused = refused

    def set_throttles(self, values: Any) -> Any:
        refused = {
            s: v for s, v in values.items() if str(s) == LEADER_RATE_2 and v == self._refused
        }
        taken = {s: v for s, v in values.items() if s not in refused}
        return self._cluster.set_throttles(taken) | {
            setting: api_error(REQUEST_TIMED_OUT) for setting in refused
        }


def test_a_change_that_one_broker_refuses_leaves_all_rates_as_they_were(
    moved: MovedTopic,
) -> None:
    moved.begin(ExecutionSettings(SLOW))
    look, found = rates_after(moved, SettingsChange(50))
    execution = moved.execution(lambda cluster: Refusing(cluster, "50"))  # type: ignore[arg-type]
    assert execution.run(look).is_clean
    assert {"1"} == {value for name, value in found.items() if ".rate of broker" in name}
    assert moved.state().answers[1] is not None


def test_a_throttle_that_cannot_be_set_at_first_leaves_none_and_a_journal_to_begin_again(
    moved: MovedTopic,
) -> None:
    moved.begin(ExecutionSettings(SLOW))
    with pytest.raises(ThrottleNotSet):
        moved.execution(lambda cluster: Refusing(cluster, "1")).run(lambda _: None)  # type: ignore[arg-type]
    assert {} == moved.throttles()
    moved.files.kill_holders()
    begun = Begun(None, moved.changes, ExecutionSettings())
    MoveJournal.create(moved.files, JOURNAL, begun, WRITER).close()


def stopped(moved: MovedTopic) -> None:
    """Execute until a death at work, with the throttles brought back and noted so."""

    def die(now: ExecutionStatus) -> None:
        if any(change.phase in AT_WORK for change in now.changes):
            request_change(moved.files, JOURNAL, SettingsChange(0), OTHER)
            if not moved.throttles():
                raise Died

    moved.begin(ExecutionSettings(SLOW))
    with pytest.raises(Died):
        moved.execution().run(die)
    assert moved.state().is_returned


def test_what_was_there_before_is_read_again_once_it_was_brought_back(moved: MovedTopic) -> None:
    stopped(moved)
    moved.set(BROKER, "2", leader_replication_throttled_rate="77")
    request_change(moved.files, JOURNAL, SettingsChange(5), OTHER)
    assert moved.execution().run(lambda _: None).is_clean
    assert {LEADER_RATE_2: "77"} == moved.throttles()


def test_a_resume_does_not_replace_the_rates_of_a_move_that_began_meanwhile(
    moved: MovedTopic,
) -> None:
    stopped(moved)
    moved.set(BROKER, "2", leader_replication_throttled_rate="77")
    request_change(moved.files, JOURNAL, SettingsChange(5), OTHER)

    class Shared(Mortal):
        def read(self) -> Any:
            now = self._cluster.read()
            other = OngoingReassignment((1, 2), (2,), ())
            return now._replace(ongoing={**now.ongoing, TopicPartition("u", 0): other})

    with pytest.raises(ThrottleOfAnotherMove):
        moved.execution(lambda cluster: Shared(cluster, 0, is_made=False)).run(lambda _: None)  # type: ignore[arg-type]
    assert {LEADER_RATE_2: "77"} == moved.throttles()


@pytest.mark.parametrize("step", [b'{"step":"before"', b'{"step":"throttle"'])
def test_a_damaged_line_of_throttles_leaves_none_behind(moved: MovedTopic, step: bytes) -> None:
    def die(now: ExecutionStatus) -> None:
        if any(change.phase in AT_WORK for change in now.changes):
            raise Died

    for is_cancel in (False, True):
        moved.begin(ExecutionSettings(SLOW))
        with pytest.raises(Died):
            moved.execution().run(die)
        content = moved.files.read_bytes(JOURNAL)
        damaged = content.replace(step, b'{"st#p":' + step[8:])
        assert damaged != content
        moved.files.remove(JOURNAL)
        moved.files.open(JOURNAL, write=True, create=True).close()
        moved.files.append(JOURNAL, damaged)
        execution = moved.execution()
        (execution.cancel if is_cancel else execution.run)(lambda _: None)
        assert {} == moved.throttles()
        moved = MovedTopic(replica_fetch_max_bytes="1")
