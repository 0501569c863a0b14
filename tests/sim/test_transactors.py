"""Which transactions the simulation ends in the end, as no time-out does."""

from __future__ import annotations

import pytest

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
