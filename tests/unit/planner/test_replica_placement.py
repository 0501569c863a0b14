"""Where replicas go that must go somewhere: the largest first, to the emptiest that may."""

from __future__ import annotations

from collections.abc import Sequence

from engine.planner.constraints import PlanConstraints, RackRule
from engine.planner.placement_state import PlacementState
from engine.planner.replica_placement import Placed, ReplicaToPlace, place_replicas
from tests.unit.planner.clusters import cluster

AB = ["a", "a", "b", "b"]


def state_of(
    racks: Sequence[str | None],
    replicas: Sequence[Sequence[int]],
    sizes: Sequence[int] | None = None,
    constraints: PlanConstraints | None = None,
    capacity: dict[int, int] | None = None,
    leaving: Sequence[int] = (),
) -> PlacementState:
    model = cluster(racks, replicas, sizes, capacity)
    return PlacementState(model, constraints or PlanConstraints(), leaving=leaving)


def placed(state: PlacementState, *homeless: ReplicaToPlace) -> Placed:
    return place_replicas(state, homeless, lambda _state, _partition: True)


def test_the_largest_goes_first_and_each_to_the_broker_that_holds_fewest() -> None:
    state = state_of([None] * 3, [(3,), (3,), (3,), (1,)], [1, 2, 3, 4], leaving=[3])
    found = placed(state, *(ReplicaToPlace(partition, 2) for partition in range(3)))
    assert ([], []) == found
    # To 2, which holds none; then to 2, which holds fewer bytes than 1; then to 1.
    assert [[0], [1], [1], [0]] == state.replicas
    assert {0, 1, 2} == state.forced


def test_among_equals_it_goes_to_the_fewest_bytes_then_to_the_lowest_id() -> None:
    state = state_of([None] * 4, [(1,), (2,), (3,), (4,)], [9, 5, 5, 1], leaving=[4])
    placed(state, ReplicaToPlace(0, 3))
    assert [1] == state.replicas[0]


def test_a_new_replica_is_placed_last_and_its_count_is_that_of_the_next() -> None:
    state = state_of([None] * 3, [(1,), (1,)], [1, 2])
    placed(state, ReplicaToPlace(0, None), ReplicaToPlace(1, None))
    assert [[0, 2], [0, 1]] == state.replicas


def test_who_has_one_has_no_room_or_no_budget_gets_none() -> None:
    state = state_of([None] * 3, [(3, 1), (3,)], [5, 9], capacity={2: 8}, leaving=[3])
    found = place_replicas(
        state, [ReplicaToPlace(0, 2), ReplicaToPlace(1, 2)], lambda _state, p: p == 0
    )
    assert ([ReplicaToPlace(1, 2)], []) == found
    assert [1, 0] == state.replicas[0]
    full = state_of([None] * 2, [(2,)], [9], capacity={1: 8}, leaving=[2])
    assert [ReplicaToPlace(0, 1)] == placed(full, ReplicaToPlace(0, 1)).left


def test_a_rack_without_a_replica_goes_before_an_emptier_broker() -> None:
    # Broker 2 holds nothing, but rack a has a replica; brokers 3 and 4 are of the other rack.
    state = state_of([*AB, "c"], [(1, 5), (3,), (4,), (4,)], leaving=[5])
    placed(state, ReplicaToPlace(0, 4))
    assert [0, 2] == state.replicas[0]


def test_where_each_rack_has_one_a_replica_stays_away_unless_racks_are_relaxed() -> None:
    replicas = [(1, 3)]
    strict = state_of(AB, replicas, leaving=[3], capacity={4: 1})
    assert [ReplicaToPlace(0, 2)] == placed(strict, ReplicaToPlace(0, 2)).left
    relaxed = state_of(
        AB, replicas, None, PlanConstraints(racks=RackRule.RELAXED), {4: 1}, leaving=[3]
    )
    assert ([], [0]) == placed(relaxed, ReplicaToPlace(0, 2))
    assert [0, 1] == relaxed.replicas[0]


def test_a_replica_that_leaves_its_rack_goes_to_another_or_nowhere() -> None:
    state = state_of([*AB, "a"], [(1, 2)])
    placed(state, ReplicaToPlace(0, 1, leaves_rack=True))
    assert [0, 2] == state.replicas[0]
    alone = state_of(AB, [(1, 2)], capacity={3: 1, 4: 1})
    item = ReplicaToPlace(0, 1, leaves_rack=True)
    assert [item] == placed(alone, item).left


def test_the_order_is_kept_also_of_a_source_that_takes_replicas() -> None:
    # Of broker 1, that takes replicas itself, two leave; then it holds fewest, and gets the third.
    state = state_of([None] * 3, [(1,), (1,), (2,), (2,), (3,)], [1, 9, 2, 3, 5], leaving=[3])
    largest, third = 4, 3
    placed(state, ReplicaToPlace(largest, 0), ReplicaToPlace(third, 2))
    assert 1 == state.replicas[largest][0]
    assert 0 == state.replicas[third][0]
