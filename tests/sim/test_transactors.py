"""Which transactions the simulation ends in the end, and whom an unended one holds up."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from engine.model import TopicPartition
from engine.sim.histories import Loss
from engine.sim.plan import plan_of
from engine.sim.simulation import Simulation
from engine.sim.transactors import ids_that_outlast_their_timeout
from engine.transactions.states import TransactionState
from engine.transactions.transaction import Transaction


@pytest.mark.parametrize(
    ("state", "start_ms", "outlasts"),
    [
        (TransactionState.ONGOING, 5_000, True),
        (TransactionState.ONGOING, 1_000, False),
        (TransactionState.COMPLETE_ABORT, 5_000, False),
    ],
)
def test_a_transaction_of_a_time_to_come_outlasts_its_timeout(
    state: TransactionState, start_ms: int, *, outlasts: bool
) -> None:
    transaction = Transaction("x", 7, 4_000, 0)
    transaction.state, transaction.start_ms = state, start_ms
    expected = {"x"} if outlasts else set()
    assert expected == ids_that_outlast_their_timeout([transaction], wall_ms=2_000)


def test_readers_are_not_waited_for_where_a_marker_may_have_been_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = Simulation(plan_of(130))
    lossy, whole = TopicPartition("t0", 0), TopicPartition("t0", 1)
    reader = SimpleNamespace(name="committed", positions={lossy: 3, whole: 4})
    monkeypatch.setattr(world.coordinated, "readers", [reader])
    monkeypatch.setattr(world, "_is_owed", lambda _partition, _position: True)
    unread = [f"committed has read t0-{index} to {index + 3} of 0" for index in range(2)]
    assert unread == world._unanswered()
    world.invariants.history(lossy).losses.append(Loss(0, 1, "an unclean election", 0))
    assert unread[1:] == world._unanswered()
