"""An operator's moves between log directories, and throttles that come and go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from engine.client.connection import Call
from engine.host.promise import Promise
from engine.sim.fault_kinds import FaultKind
from engine.sim.faults import Injector
from engine.sim.loop import VirtualLoop
from engine.sim.operator import Operator
from engine.sim.plan import Fault, Plan, plan_of
from engine.sim.simulation import RunResult, run_plan
from engine.wire import messages


def quiet_plan(*faults: Fault, log_dir_count: int = 1) -> Plan:
    """Return a plan of three brokers, each in a process of its own, with these faults alone."""
    return plan_of(3, duration_ms=20_000)._replace(
        broker_count=3,
        topics=(3,),
        processes=((1,), (2,), (3,)),
        is_unclean_allowed=False,
        log_dir_count=log_dir_count,
        faults=faults,
    )


def traced(plan: Plan) -> RunResult:
    """Run a plan that keeps every rule and serves producers; returns it with its trace."""
    result = run_plan(plan, is_traced=True)
    assert result.violation is None
    assert result.acknowledged_count
    return result


def time_s(line: str) -> float:
    """Return when a line of a trace was written."""
    return float(line.split(maxsplit=1)[0])


def test_replicas_move_between_directories_under_load() -> None:
    moves = [Fault(2_000 + 900 * n, FaultKind.MOVE_DIRECTORY, "1", 0, n) for n in range(16)]
    lines = traced(quiet_plan(*moves, log_dir_count=2)).lines
    answers = [line for line in lines if "AlterReplicaLogDirs of" in line]
    assert 16 == len([line for line in answers if line.endswith("done")])
    assert 5 <= len([line for line in lines if " has moved to " in line])


def test_a_throttled_move_lasts_until_the_throttle_is_taken_back() -> None:
    throttle = Fault(6_000, FaultKind.THROTTLE, "1", 4_000, 0)
    move = Fault(8_000, FaultKind.MOVE_DIRECTORY, "1", 0, 0)
    lines = traced(quiet_plan(throttle, move, log_dir_count=2)).lines
    begun = next(line for line in lines if " begins to move to " in line)
    moved = next(line for line in lines if " has moved to " in line)
    assert time_s(begun) < 9.1
    assert 11.0 < time_s(moved)


def test_a_throttled_replica_stays_behind_until_the_throttle_is_taken_back() -> None:
    throttle = Fault(2_000, FaultKind.THROTTLE, "1", 12_000, 0)
    lines = traced(quiet_plan(throttle, Fault(3_000, FaultKind.KILL, "3", 6_000))).lines
    over = next(line for line in lines if "throttle of 2000 ms is over" in line)
    back = [line for line in lines if line.split()[1:4] == ["b3", "is", "up,"]][1]
    joined = [
        next(line for line in lines if f"Partition {name} " in line and "Expanding ISR" in line)
        for name in ("t0-0", "t0-1")
    ]
    assert time_s(back) < time_s(over) < min(map(time_s, joined))


class SlowLinks:
    """Links of an operator who learns late which broker is the controller."""

    controller = "b1"

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []
        self.asked: list[Call] = []

    def find_leaders(self, _topics: Sequence[str], done: Callable[[], None]) -> None:
        self.waiting.append(done)

    def send(self, _controller: str, call: Call) -> Promise[Any]:
        self.asked.append(call)
        return Promise.of(SimpleNamespace(message=messages.AlterClientQuotasResponse(entries=[])))


@pytest.mark.parametrize("kind", [FaultKind.LIMIT_CLIENTS, FaultKind.THROTTLE])
def test_what_is_set_behind_its_removal_is_removed_again(kind: FaultKind) -> None:
    links = SlowLinks()
    operator = Operator(
        cast(Any, links),
        cast(Any, SimpleNamespace(topics=SimpleNamespace(by_name={}))),
        cast(Any, SimpleNamespace(add=lambda *_: None)),
        brokers={},
        log_dirs=(),
        min_isr=1,
    )
    operator._orders[kind](Random(1))
    operator.unthrottle(is_repeated=True)
    operator.unlimit_clients(is_repeated=True)
    setting, removing = links.waiting
    links.waiting = []
    removing()
    setting()
    for again in links.waiting:
        again()
    removed, _set, removed_again = (repr(call.message) for call in links.asked)
    assert removed == removed_again != _set


class LateLimits:
    """A metadata store where a request from before the removal sets limits after it, twice."""

    def __init__(self) -> None:
        self.removals: list[tuple[int, str]] = []
        self.loop = VirtualLoop()
        self._times_left = 2

    @property
    def has_limits(self) -> bool:
        self._times_left -= 1
        return self._times_left >= 0

    def unthrottle(self, *, is_repeated: bool) -> None:
        assert is_repeated
        self.removals.append((self.loop.now_ms, "throttles"))

    def unlimit_clients(self, *, is_repeated: bool) -> None:
        assert is_repeated
        self.removals.append((self.loop.now_ms, "quotas"))


def test_limits_are_removed_at_the_end_until_the_store_has_none() -> None:
    store = LateLimits()
    network = SimpleNamespace(links=SimpleNamespace(loop=store.loop))
    injector = Injector(
        {}, cast(Any, network), cast(Any, store), cast(Any, None), store, cast(Any, None)
    )
    injector.heal_all()
    store.loop.run_until(30_000)
    rounds = [
        (time_ms, name) for time_ms in (3_000, 6_000, 9_000) for name in ("throttles", "quotas")
    ]
    assert rounds == store.removals
