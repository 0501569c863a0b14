from __future__ import annotations

from engine.planner.count_targets import (
    CountBounds,
    clamp_to_moves,
    level_counts,
    moves_between,
)

ANY = 1 << 60


def bounds(counts: list[int], groups: list[int] | None = None) -> list[CountBounds]:
    return [
        CountBounds(broker, groups[broker] if groups else 0, count, 0, ANY)
        for broker, count in enumerate(counts)
    ]


def test_what_is_left_over_stays_with_those_that_hold_most() -> None:
    targets = level_counts(bounds([9, 5, 6]), [(0, ANY)], 20)
    assert {0: 7, 1: 6, 2: 7} == targets
    assert 2 == moves_between([9, 5, 6], targets)


def test_a_level_start_stays() -> None:
    counts = [4, 3, 4, 3]
    assert dict(enumerate(counts)) == level_counts(bounds(counts), [(0, ANY)], 14)


def test_racks_that_must_hold_a_copy_are_level_within() -> None:
    counts = [9, 5, 4, 9, 9]
    targets = level_counts(bounds(counts, [0, 0, 0, 1, 1]), [(18, 18), (18, 18)], 36)
    assert {0: 6, 1: 6, 2: 6, 3: 9, 4: 9} == targets


def test_old_brokers_sink_and_added_ones_rise() -> None:
    old = [CountBounds(b, 0, count, 0, count) for b, count in enumerate((9, 5, 2))]
    added = CountBounds(3, 0, 0, 0, ANY)
    assert {0: 5, 1: 5, 2: 2, 3: 4} == level_counts([*old, added], [(0, ANY)], 16)


def test_what_must_stay_is_not_counted_on() -> None:
    fixed = CountBounds(0, 0, 9, 8, ANY)
    assert {0: 8, 1: 3, 2: 3} == level_counts([fixed, *bounds([0, 5, 0])[1:]], [(0, ANY)], 14)


def test_a_budget_takes_from_the_fullest_first() -> None:
    counts = [9, 8, 4, 3]
    targets = level_counts(bounds(counts), [(0, ANY)], 24)
    assert {0: 6, 1: 6, 2: 6, 3: 6} == targets
    clamped = clamp_to_moves(counts, targets, 2)
    assert (8, 4) == (max(clamped.values()), min(clamped.values()))
    assert 2 == moves_between(counts, clamped)
    assert dict(enumerate(counts)) == clamp_to_moves(counts, targets, 0)


def test_racks_that_are_as_level_as_they_can_be_keep_what_they_hold() -> None:
    # Old brokers only give, the last one was added: 12 replicas, 2 for most of them.
    racks = [(1, 2), (0, 2), (0, 2), (0, 2), (0, 1), (1, 2)]
    old = [CountBounds(b, rack, count, 0, count) for b, (rack, count) in enumerate(racks, 1)]
    added = CountBounds(0, 1, 1, 1, ANY)
    targets = level_counts([added, *old], [(5, 7), (5, 7)], 12)
    assert {0: 1, 1: 2, 2: 2, 3: 2, 4: 2, 5: 1, 6: 2} == targets
