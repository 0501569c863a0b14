"""The placement that searches change: its books after each step, and the rules of a step."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from engine.model import TopicPartition
from engine.planner.cluster_model import BrokerModel, ClusterModel, PartitionModel
from engine.planner.constraints import PlanConstraints, RackRule
from engine.planner.placement_state import PlacementState
from tests.unit.planner.clusters import cluster

AB = ["a", "a", "b", "b"]


def state_of(
    racks: Sequence[str | None],
    replicas: Sequence[Sequence[int]],
    sizes: Sequence[int] | None = None,
    constraints: PlanConstraints | None = None,
) -> PlacementState:
    """Return a search of brokers 1, 2, ...: in it they are 0, 1, ..., and partitions by size."""
    return PlacementState(cluster(racks, replicas, sizes), constraints or PlanConstraints())


def books(state: PlacementState) -> list[object]:
    """Return what a state keeps of its replicas, counted again."""
    brokers, partitions = range(len(state.brokers)), range(len(state.replicas))
    on = [[p for p in partitions if b in state.replicas[p]] for b in brokers]
    arrived = [[p for p in on[b] if b not in state.original[p]] for b in brokers]
    departed = [
        [p for p in partitions if b in state.original[p] and b not in state.replicas[p]]
        for b in brokers
    ]
    return [
        on,
        [len(held) for held in on],
        [sum(state.size_at(p, b) for p in on[b]) for b in brokers],
        arrived,
        departed,
        sum(map(len, arrived)),
        sum(state.copied_bytes(p) for held in arrived for p in held),
    ]


def kept(state: PlacementState) -> list[object]:
    return [
        state.on_broker,
        state.counts,
        state.held_bytes,
        state.arrived,
        state.departed,
        state.moves,
        state.bytes_moved,
    ]


def replicas_with_own_sizes() -> ClusterModel:
    model = cluster([None] * 4, [(1, 2), (2, 3), (3, 4), (4, 1), (1, 3)], [5, 4, 3, 2, 1])
    first = model.partitions[0]._replace(replica_sizes=(50, 4))
    return ClusterModel(model.brokers, [first, *model.partitions[1:]])


@pytest.mark.parametrize("seed", range(20))
def test_after_any_steps_the_books_are_those_of_the_replicas(seed: int) -> None:
    random = Random(seed)
    state = PlacementState(replicas_with_own_sizes(), PlanConstraints())
    assert books(state) == kept(state)
    for _ in range(30):
        partition = random.randrange(5)
        held = list(state.replicas[partition])
        others = [b for b in range(4) if b not in held]
        step = random.choice(("place", "remove", "move"))
        if step == "place" and others:
            target, at = random.choice(others), random.choice((None, 0))
            state.place(partition, target, at)
            held.insert(len(held) if at is None else 0, target)
        elif step == "remove" and len(held) > 1:
            gone = random.choice(held)
            assert held.index(gone) == state.remove(partition, gone)
            held.remove(gone)
        elif step == "move" and others:
            source, target = random.choice(held), random.choice(others)
            state.move(partition, source, target)
            held[held.index(source)] = target
        assert held == state.replicas[partition]
        assert books(state) == kept(state)


def test_shifts_are_in_the_books_once_they_are_settled() -> None:
    state = state_of([None] * 3, [(1,), (1,), (1,), (3,)], [1, 2, 3, 4])
    for partition, target in ((0, 1), (2, 1), (1, 2)):
        state.shift(partition, 0, target)
    state.settle([(0, {0, 1, 2})], [(1, [2, 0]), (2, [1])])
    assert [[], [0, 2], [1, 3]] == state.on_broker
    assert books(state) == kept(state)


def test_a_replica_costs_a_move_unless_it_returns() -> None:
    state = state_of([None] * 3, [(1, 2)])
    assert (1, 1) == (state.cost(0, 0, 2), state.cost(0, 1, 2))
    state.move(0, 0, 2)
    assert -1 == state.cost(0, 2, 0)
    assert 0 == state.cost(0, 1, 0)


def test_a_broker_has_room_up_to_its_last_byte() -> None:
    model = cluster([None] * 2, [(1,), (2,)], [5, 3], capacity={2: 8, 1: 7})
    state = PlacementState(model, PlanConstraints())
    assert state.fits(1, 1)
    assert not state.fits(0, 0)


def test_replicas_beyond_the_limit_of_a_rack_are_its_faults() -> None:
    state = state_of([*AB, "a"], [(1, 3), (1, 2), (1, 2, 5), (1, 2, 3), (1, 2, 5, 3)])
    # Of two a rack may hold one, of three and of four two.
    assert [0, 1, 1, 0, 1] == [state.fault_count(partition) for partition in range(5)]
    free = state_of(AB, [(1, 2)], constraints=PlanConstraints(racks=RackRule.IGNORED))
    assert 0 == free.fault_count(0)


def test_a_rack_takes_a_replica_below_its_limit_or_in_place_of_its_own() -> None:
    state = state_of(AB, [(1, 3), (1, 2)])
    # One in each rack: to the other one only from there, or as a third replica.
    assert not state.fits_rack(0, 1, 2)
    assert state.fits_rack(0, 1, 0)
    assert state.fits_rack(0, 1, 0, no_fault=True)
    assert state.fits_rack(0, 1)
    # Two in one rack: there is a fault, which may go on but not where there must be none.
    assert state.fits_rack(1, 2, 0)
    assert not state.fits_rack(1, 1)
    moved = state_of([*AB, "a"], [(1, 2)])
    assert moved.fits_rack(0, 4, 0)
    assert not moved.fits_rack(0, 4, 0, no_fault=True)


def test_who_leaves_is_dead_or_excluded_gets_nothing_and_a_leaver_is_no_home_again() -> None:
    model = cluster([None] * 5, [(1,), (2,), (3,)])
    brokers = [b._replace(is_alive=b.broker_id != 3) for b in model.brokers]
    state = PlacementState(
        ClusterModel(brokers, model.partitions),
        PlanConstraints(excluded_brokers=frozenset({4})),
        leaving=[2],
    )
    assert [True, False, False, True, True] == state.usable
    assert [True, False, False, False, True] == state.in_play == state.receives
    state.move(1, 1, 0)
    assert not state.is_admitted(1, 1)
    state.move(0, 0, 4)
    assert state.is_admitted(0, 0)
    assert {(2, 2)} == state.barred == state.lagging
    state.move(2, 2, 0)
    assert not state.is_admitted(2, 2)


def test_a_replica_that_left_a_broker_that_gets_nothing_may_return_there() -> None:
    model = cluster([None] * 3, [(1,), (2,)])
    state = PlacementState(model, PlanConstraints(), only_receivers=[3])
    assert [False, False, True] == state.receives
    assert not state.is_admitted(0, 1)
    assert not state.may_move(0, 0, 1)
    assert state.may_move(0, 0, 2)
    state.move(0, 0, 2)
    assert state.may_move(0, 2, 0)


@pytest.mark.parametrize(
    "constraints",
    [
        PlanConstraints(excluded_topics=frozenset({"t"})),
        PlanConstraints(pinned=frozenset({TopicPartition("t", 0), TopicPartition("t", 1)})),
    ],
)
def test_excluded_topics_and_pinned_partitions_do_not_move(constraints: PlanConstraints) -> None:
    model = cluster([None] * 2, [(1,), (1,)])
    other = PartitionModel("u", 0, (1,), 1, size_bytes=99)
    state = PlacementState(ClusterModel(model.brokers, [*model.partitions, other]), constraints)
    assert [False, False, True] == state.movable
    assert [False, False, True] == [state.may_move(partition, 0, 1) for partition in range(3)]


def test_replicas_out_of_sync_lag_and_those_in_failed_directories_are_barred_too() -> None:
    brokers = [BrokerModel(number) for number in (1, 2, 3)]
    partitions = [
        PartitionModel("t", 0, (1, 2, 3), 1, isr=(1, 3)),
        PartitionModel("t", 1, (1, 2), 1, offline=(2,)),
        PartitionModel("t", 2, (1, 2), 1),
    ]
    state = PlacementState(ClusterModel(brokers, partitions), PlanConstraints())
    assert {(0, 1), (1, 1)} == state.lagging
    assert {(1, 1)} == state.barred


def test_a_seed_changes_the_order_of_equals_alone() -> None:
    sizes = [10, 10, 10, 10, 10, 10, 1, 99]
    replicas = [(1,)] * 8
    ordered = [p.partition for p in state_of([None], replicas, sizes).partitions]
    assert [6, 0, 1, 2, 3, 4, 5, 7] == ordered
    seeded = [
        p.partition for p in state_of([None], replicas, sizes, PlanConstraints(seed=3)).partitions
    ]
    assert (6, 7) == (seeded[0], seeded[-1])
    assert ordered != seeded
    assert sorted(ordered) == sorted(seeded)
