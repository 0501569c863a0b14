"""What the death of a broker would lead to, by the controller's rule."""

from __future__ import annotations

import pytest

from engine.client.broker_failure import Situation, effect_of_death
from engine.client.metadata import PartitionView


def situation(
    leader: int = 1,
    isr: tuple[int, ...] = (1, 2),
    alive: tuple[int, ...] = (1, 2, 3),
    min_isr: int = 2,
    *,
    unclean: bool = False,
    ends: dict[int, int] | None = None,
) -> Situation:
    partition = PartitionView(0, leader, 0, (1, 2, 3), isr, ())
    return Situation(partition, alive, min_isr, unclean, ends or {})


@pytest.mark.parametrize(
    ("given", "broker_id", "told"),
    [
        (
            situation(),
            1,
            "2 leads, nothing is lost; acks=all is refused, 1 in sync of 2 needed",
        ),
        (situation(min_isr=1), 1, "2 leads, nothing is lost; acks=all goes on, 1 in sync"),
        (situation(isr=(1, 3, 2)), 1, "2 leads, nothing is lost; acks=all goes on, 2 in sync"),
        (situation(), 2, "1 goes on; acks=all is refused, 1 in sync of 2 needed"),
        (situation(), 3, "1 goes on; acks=all goes on, 2 in sync"),
        (situation(alive=(1, 2)), 3, "it is gone already"),
        (
            situation(isr=(1,)),
            1,
            "offline: nobody else is in sync, its return is waited for",
        ),
        (situation(isr=(1,), unclean=True), 1, "2 leads, and records that it lacks are lost"),
        (
            situation(isr=(1,), unclean=True, ends={1: 10, 2: 7}),
            1,
            "2 leads, and 3 records are lost",
        ),
        (
            situation(isr=(1,), alive=(1,), unclean=True),
            1,
            "offline: nobody else is in sync, its return is waited for",
        ),
        (situation(leader=-1, isr=(9,)), 2, "still no leader"),
    ],
)
def test_what_would_happen(given: Situation, broker_id: int, told: str) -> None:
    assert told == effect_of_death(given, broker_id)
