"""The bound of moves for level bytes, against every placement of small clusters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations, product
from random import Random

import pytest

from engine.planner.byte_balancing import expected_bytes
from engine.planner.byte_bound import fewest_moves_for_bytes, fewest_moves_for_bytes_alone
from engine.planner.constraints import PlanConstraints
from engine.planner.level_targets import TargetRule, find_targets
from engine.planner.placement_state import PlacementState
from tests.unit.planner.clusters import cluster

Placement = tuple[tuple[int, ...], ...]


def state_of(
    racks: Sequence[str | None], replicas: Sequence[Sequence[int]], sizes: Sequence[int]
) -> PlacementState:
    """Return the search of brokers 1, 2, ...; their numbers in it are 0, 1, ..."""
    return PlacementState(cluster(racks, replicas, sizes), PlanConstraints())


def bound(state: PlacementState, tolerance: float) -> int:
    return fewest_moves_for_bytes(state, find_targets(state, TargetRule.ALL_LEVEL), tolerance)


def test_who_holds_too_much_gives_its_largest_and_takes_as_many() -> None:
    # 40 above the level of 50, the largest 25 and 24: two go to the other, two come back.
    state = state_of([None] * 2, [(1,)] * 4 + [(2,)] * 4, [25, 24, 21, 20, 3, 3, 2, 2])
    assert 4 == bound(state, 1.01)


def test_each_replica_of_one_byte_brings_one_byte_of_level() -> None:
    # 2 above the level of 2, by replicas of one byte: two go to the other, two empty ones back.
    state = state_of([None] * 2, [(1,)] * 4 + [(2,)] * 4, [1] * 4 + [0] * 4)
    assert 4 == bound(state, 1.01)


def test_a_broker_that_holds_nothing_makes_no_replica_larger() -> None:
    # 4 above the level of 2: four replicas of one byte go, two empty ones come; the empty broker
    # takes four, two of them of one byte, and broker 2 two of one byte for four that it gives.
    state = state_of([None] * 3, [(1,)] * 6 + [(2,)] * 6, [1] * 6 + [0] * 6)
    assert 8 == bound(state, 1.0)


def test_nothing_is_needed_where_bytes_are_level() -> None:
    assert 0 == bound(state_of([None] * 2, [(1,), (2,)], [10, 10]), 1.02)


def test_each_rack_is_counted_for_itself_where_it_must_hold_every_partition() -> None:
    racks = ["a", "a", "b", "b"]
    replicas = [(1, 3), (1, 4), (2, 3), (2, 4)]
    # Broker 1 holds 60 of 70 in its rack; brokers 3 and 4 hold 33 and 37 of the other.
    state = state_of(racks, replicas, [30, 30, 3, 7])
    assert 2 == bound(state, 1.1)


def test_what_brokers_lack_takes_no_more_than_there_is_room_for() -> None:
    # Broker 1 is 60 above its 100; broker 2 lacks one replica and has room for 10; the rest
    # goes to the others, who give one for each they take.
    replicas = [(1,)] * 4 + [(2,)] * 2 + [(3,)] * 3 + [(4,)] * 3
    sizes = [40, 40, 40, 40, 45, 45, 24, 23, 23, 24, 23, 23]
    state = state_of([None] * 4, replicas, sizes)
    assert 4 == bound(state, 1.001)


@pytest.mark.parametrize("seed", range(60))
def test_no_placement_as_level_has_fewer_moves(seed: int) -> None:
    random = Random(seed)
    racks: list[str | None] = list(random.choice(([None] * 3, [None] * 4, ["a", "a", "b", "b"])))
    is_racked = racks[0] is not None
    choices: list[tuple[int, ...]] = (
        list(product((1, 2), (3, 4)))
        if is_racked
        else list(combinations(range(1, len(racks) + 1), random.choice((1, 2))))
    )
    replicas = [random.choice(choices) for _ in range(6 if len(choices) < 6 else 5)]
    sizes = [random.randint(1, 40) for _ in replicas]
    state = state_of(racks, replicas, sizes)
    tolerance = random.choice((1.02, 1.1, 1.3))
    fewest = min(_moves_to_level(state, choices, tolerance), default=None)
    if fewest is not None:
        assert bound(state, tolerance) <= fewest
    free = min(_moves_to_level(state, choices, tolerance, levels_counts=False), default=None)
    if free is not None:
        assert fewest_moves_for_bytes_alone(state, tolerance) <= free


def test_where_counts_are_no_goal_nothing_comes_back_for_what_is_given_away() -> None:
    # 40 above the level of 50: the largest two, 25 and 24, have to go, and no more.
    state = state_of([None] * 2, [(1,)] * 4 + [(2,)] * 4, [25, 24, 21, 20, 3, 3, 2, 2])
    assert 2 == fewest_moves_for_bytes_alone(state, 1.01)


def test_a_replica_that_grows_when_it_is_copied_makes_room_for_more() -> None:
    # 40 and 20 bytes. Once the 10 bytes that brokers lack are copied both may hold 40.
    model = cluster([None] * 2, [(1,), (1,), (2,)], [20, 20, 30])
    lagging = model.partitions[2]._replace(replica_sizes=(20,))
    state = PlacementState(
        model._replace(partitions=[*model.partitions[:2], lagging]), PlanConstraints()
    )
    assert 0 == fewest_moves_for_bytes_alone(state, 1.0)


def _moves_to_level(
    state: PlacementState,
    choices: Sequence[tuple[int, ...]],
    tolerance: float,
    *,
    levels_counts: bool = True,
) -> Iterator[int]:
    """Yield the moves of every placement that is level in bytes and, if asked, in counts."""
    allowed = [level * tolerance for level in expected_bytes(state)]
    for placed in product(choices, repeat=len(state.sizes)):
        counts: Counter[int] = Counter(dict.fromkeys(range(len(state.brokers)), 0))
        held = [0] * len(state.brokers)
        moves = 0
        for original, replicas, size in zip(state.original, placed, state.sizes, strict=True):
            for broker in replicas:
                counts[broker - 1] += 1
                held[broker - 1] += size
                moves += broker - 1 not in original
        in_groups = [[counts[b] for b in members] for members in state.members]
        is_level = not levels_counts or all(max(group) - min(group) <= 1 for group in in_groups)
        if is_level and all(
            bytes_held <= most for bytes_held, most in zip(held, allowed, strict=True)
        ):
            yield moves
