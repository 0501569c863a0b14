"""A throttle that follows what is seen of a cluster, look by look."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

import pytest

from engine.client.errors import TimedOut
from engine.errors import EngineError
from engine.host.memory_held_file import MemoryHeldFiles
from engine.reassign.adaptive_rate import PERIOD_MS
from engine.reassign.change_status import ChangeStatus, ExecutionStatus
from engine.reassign.journal import MoveJournal
from engine.reassign.journal_state import Begun, ExecutionSettings, read_journal
from engine.reassign.live_cluster import MovedCluster
from engine.reassign.phases import MovePhase
from engine.reassign.throttles import ThrottleRates, ThrottleSetting
from engine.reassign.throttling import Throttling
from tests.unit.reassign.moved_cluster import JOURNAL, T0, WRITER, change
from tests.unit.reassign.scripted_cluster import look

RATES = ThrottleRates(replication=20_000_000)
#: From 1 and 2 to 2 and 3: replica 2 stays, 1 goes, 3 comes.
MOVE = change(0, (1, 2), (2, 3))


class ThrottledCluster:
    """A cluster whose throttles are what was set, and whose answers take a given time."""

    def __init__(self) -> None:
        self.values: dict[ThrottleSetting, str | None] = {}
        #: The rates of all brokers that were set at once, each time.
        self.rates_set: list[set[str | None]] = []
        self.response: int | EngineError = 5

    def throttles(self, settings: Iterable[ThrottleSetting]) -> dict[ThrottleSetting, Any]:
        return {setting: self.values.get(setting) for setting in settings}

    def set_throttles(
        self, values: Mapping[ThrottleSetting, str | None]
    ) -> dict[ThrottleSetting, EngineError]:
        self.values |= values
        self.rates_set.append({v for s, v in values.items() if s.name.endswith(".rate")})
        return {}

    def measure_response_ms(self) -> int:
        if isinstance(self.response, EngineError):
            raise self.response
        return self.response


class Stage:
    """The throttles of an execution of one move, set and looked at once."""

    def __init__(self) -> None:
        self.cluster = ThrottledCluster()
        self.files = MemoryHeldFiles()
        begun = Begun(None, (MOVE,), ExecutionSettings(RATES))
        MoveJournal.create(self.files, JOURNAL, begun, WRITER).close()
        journal, state = MoveJournal.reopen(self.files, JOURNAL, WRITER)
        self.throttling = Throttling(cast(MovedCluster, self.cluster), journal, state)
        assert not self.throttling.has_begun
        self.throttling.set(look({T0: (1, 2)}), RATES, [MOVE])
        self.cluster.rates_set.clear()
        self.rates = RATES
        self.periods = -1
        self.see(copied_bytes=0)

    def see(
        self,
        *,
        copied_bytes: int,
        isr: tuple[int, ...] = (1, 2),
        phase: MovePhase = MovePhase.A2_COPYING,
        early_ms: int = 0,
    ) -> int:
        """Look again after a period; returns the rate from then on."""
        self.periods += 1
        status = ChangeStatus(MOVE, phase, copied_bytes, 1000, isr, 1)
        now_ms = self.periods * PERIOD_MS - early_ms
        now = ExecutionStatus([status], frozenset((1, 2, 3)), None, [], now_ms)
        self.rates = self.throttling.adapt_rate(now, self.rates)
        assert self.rates.replication is not None
        return self.rates.replication


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_a_rate_that_rises_is_noted_and_set_on_all_that_take_part(stage: Stage) -> None:
    lists = {s: v for s, v in stage.cluster.values.items() if not s.name.endswith(".rate")}
    assert 2 == len(lists)
    assert 25_000_000 == stage.see(copied_bytes=10)
    assert [{"25000000"}] == stage.cluster.rates_set
    rates = {s: v for s, v in stage.cluster.values.items() if s not in lists}
    assert (6, {"25000000"}) == (len(rates), set(rates.values()))
    assert lists == {s: stage.cluster.values[s] for s in lists}
    noted = read_journal(stage.files, JOURNAL).ours
    assert all(["20000000", "25000000"] == noted[setting] for setting in rates)


def test_a_rate_that_stays_is_not_set_again(stage: Stage) -> None:
    assert 20_000_000 == stage.see(copied_bytes=0)
    assert 20_000_000 == stage.see(copied_bytes=10, early_ms=1)
    assert [] == stage.cluster.rates_set


def test_a_replica_that_stays_and_leaves_the_in_sync_set_halves_the_rate_once(
    stage: Stage,
) -> None:
    assert 10_000_000 == stage.see(copied_bytes=10, isr=(1,))
    assert 12_500_000 == stage.see(copied_bytes=20, isr=(1,))
    assert 15_625_000 == stage.see(copied_bytes=30, isr=(1, 2))
    assert 7_812_500 == stage.see(copied_bytes=40, isr=(1,))


def test_who_goes_and_who_is_not_at_work_are_not_missed(stage: Stage) -> None:
    assert 25_000_000 == stage.see(copied_bytes=10, isr=(2,))
    assert 31_250_000 == stage.see(copied_bytes=20, isr=(1,), phase=MovePhase.WAITING)


def test_an_unknown_time_leaves_the_rate(stage: Stage) -> None:
    stage.cluster.response = TimedOut("ListOffsets", 1000)
    assert 20_000_000 == stage.see(copied_bytes=10)
    stage.cluster.response = 5
    assert 25_000_000 == stage.see(copied_bytes=20)


def test_an_answer_that_is_slow_lowers_the_rate(stage: Stage) -> None:
    stage.cluster.response = 500
    assert 14_000_000 == stage.see(copied_bytes=10)


def test_what_was_arrived_at_is_forgotten_where_another_rate_is_given(stage: Stage) -> None:
    stage.throttling.stop_adapting()
    stage.rates = ThrottleRates(replication=2_000_000)
    assert 2_000_000 == stage.see(copied_bytes=10)
    assert 2_500_000 == stage.see(copied_bytes=20)


def test_every_rate_of_the_way_is_taken_back(stage: Stage) -> None:
    stage.see(copied_bytes=10)
    assert stage.throttling.has_begun
    assert {} == stage.throttling.restore()
    assert {None} == set(stage.cluster.values.values())
    assert read_journal(stage.files, JOURNAL).is_returned
    stage.cluster.rates_set.clear()
    assert {} == stage.throttling.restore()
    assert [] == stage.cluster.rates_set
