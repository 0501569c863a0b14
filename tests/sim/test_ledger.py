"""What the ledger expects of the order in which a producer's numbers lie in a log."""

from __future__ import annotations

import pytest

from engine.sim.ledger import first_writes_are_in_order, required_numbers

# Two series: the first was appended and not answered, so the producer sent all of it again.
SENT_AGAIN = [2, 3, 4, 5, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("numbers", "forked", "is_in_order"),
    [
        ([0, 1, 2], set(), True),
        ([0, 2, 1], set(), False),
        (SENT_AGAIN, set(), True),
        (SENT_AGAIN[2:], set(), False),
        (SENT_AGAIN, {0, 1}, True),
        ([9, 9, *SENT_AGAIN[2:]], {0, 1}, True),
        ([8, *SENT_AGAIN[2:], 8, 7], {0, 1}, False),
        ([1, 2, 4, 3], {0}, False),
        ([0, 1, 3, 2], {0}, False),
        ([3, 1, 2], {0}, True),
    ],
)
def test_first_writes_are_in_order_but_for_a_series_that_a_fork_cuts(
    numbers: list[int], forked: set[int], is_in_order: bool
) -> None:
    placed = [(offset, n) for offset, n in enumerate(numbers) if offset not in forked]
    assert is_in_order == first_writes_are_in_order(placed, frozenset(forked))


def test_records_below_the_start_or_where_replicas_differ_are_owed_by_no_log() -> None:
    accepted = {20: 0, 21: 3, 22: 5}
    assert {20, 21, 22} == required_numbers(accepted, 0, frozenset())
    assert {21, 22} == required_numbers(accepted, 3, frozenset())
    assert {20, 22} == required_numbers(accepted, 0, frozenset({3, 4}))
