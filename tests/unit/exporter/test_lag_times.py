"""Lag in seconds from the ends that scrapes saw."""

from __future__ import annotations

import pytest

from engine.exporter.lag_times import EndHistory
from engine.limits import EXPORTER_ENDS_KEPT
from engine.model import TopicPartition

T0 = TopicPartition("t", 0)


def history_of(*ends: tuple[int, int]) -> EndHistory:
    """Return what scrapes at these times (in s) saw: ends of one partition."""
    history = EndHistory()
    for at_s, end_offset in ends:
        history.add_ends({T0: end_offset}, at_s * 1000, {T0})
    return history


@pytest.mark.parametrize(
    ("committed", "lag_s"),
    [
        (220, 0),
        (250, 0),
        (160, 10),
        (190, 5),
        (130, 15),
        (100, 20),
        # Below all that was seen: for as long as there were scrapes.
        (40, 20),
    ],
)
def test_the_first_unread_record_was_written_between_two_scrapes(
    committed: int, lag_s: float
) -> None:
    history = history_of((0, 100), (10, 160), (20, 220))
    assert lag_s == history.lag_s(T0, committed, 20_000)


def test_a_record_behind_a_quiet_time_was_written_after_it() -> None:
    history = history_of((0, 100), (10, 100), (20, 100), (30, 110))
    assert 10 == history.lag_s(T0, 100, 30_000)
    assert 5 == history.lag_s(T0, 105, 30_000)


def test_a_partition_that_was_never_seen_has_no_lag() -> None:
    assert EndHistory().lag_s(T0, 5, 0) is None
    history = history_of((0, 100))
    history.add_ends({}, 1_000, set())
    assert history.lag_s(T0, 5, 2_000) is None


def test_an_end_that_fell_begins_again() -> None:
    history = history_of((0, 100), (10, 200), (20, 50), (30, 60))
    assert 10 == history.lag_s(T0, 50, 30_000)
    assert 10 == history.lag_s(T0, 10, 30_000)


def test_old_ends_become_sparse_and_the_first_stays() -> None:
    history = history_of(*((n, n * 10) for n in range(20 * EXPORTER_ENDS_KEPT)))
    last = 20 * EXPORTER_ENDS_KEPT - 1
    assert last == history.lag_s(T0, 0, last * 1000)
    assert 0.5 == history.lag_s(T0, last * 10 - 5, last * 1000)
    assert last / 2 == pytest.approx(history.lag_s(T0, last * 5, last * 1000))
