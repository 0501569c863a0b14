"""Which counts a search is after: by what a verb may do, and by what racks must and may hold."""

from __future__ import annotations

from collections.abc import Sequence

from engine.planner.cluster_model import ClusterModel, PartitionModel
from engine.planner.constraints import PlanConstraints
from engine.planner.level_targets import TargetRule, find_targets, targets_within_racks
from engine.planner.placement_state import PlacementState
from tests.unit.planner.clusters import cluster


def state_of(
    racks: Sequence[str | None],
    replicas: Sequence[Sequence[int]],
    constraints: PlanConstraints | None = None,
    **roles: Sequence[int],
) -> PlacementState:
    return PlacementState(cluster(racks, replicas), constraints or PlanConstraints(), **roles)


def targets(state: PlacementState, rule: TargetRule, before: Sequence[int] | None = None) -> object:
    return list(find_targets(state, rule, before).values())


def test_all_sink_and_rise_to_one_level_where_all_are_to_be_level() -> None:
    state = state_of([None] * 3, [(1,)] * 6 + [(2,)])
    assert [3, 2, 2] == targets(state, TargetRule.ALL_LEVEL)


def test_old_brokers_only_give_and_added_ones_only_take() -> None:
    state = state_of([None] * 4, [(1,)] * 6 + [(2,)] + [(3,)] * 2, only_receivers=[3, 4])
    # Broker 2 stays below the level of 2 to 3; of 3 and 4 the one that holds more gets the odd one.
    assert [3, 1, 3, 2] == targets(state, TargetRule.ADDED_RISE)
    heavy = state_of([None] * 2, [(1,)] + [(2,)] * 5, only_receivers=[2])
    assert [1, 5] == targets(heavy, TargetRule.ADDED_RISE)


def test_none_sinks_below_what_it_held_before_anything_was_placed() -> None:
    state = state_of([None] * 3, [(1,)] * 6 + [(2,)] * 2 + [(3,)])
    assert [6, 2, 1] == targets(state, TargetRule.NONE_SINKS)
    assert [4, 3, 2] == targets(state, TargetRule.NONE_SINKS, [4, 0, 0])


def test_what_cannot_be_moved_stays() -> None:
    model = cluster([None] * 2, [(2,)])
    others = [PartitionModel("u", number, (1,), 1) for number in range(4)]
    excluded = PlanConstraints(excluded_topics=frozenset({"u"}))
    state = PlacementState(ClusterModel(model.brokers, [*model.partitions, *others]), excluded)
    assert [4, 1] == targets(state, TargetRule.ALL_LEVEL)


def test_a_rack_holds_a_replica_of_each_partition_however_few_its_brokers_are() -> None:
    state = state_of(["a", "b", "b"], [(1, 2)] * 4)
    assert [4, 2, 2] == targets(state, TargetRule.ALL_LEVEL)


def test_partitions_beyond_the_limit_may_stay_there_and_may_go() -> None:
    # Both replicas of each are in rack a: it must hold none of them more than the limits want.
    state = state_of(["a", "a", "b", "b"], [(1, 2)] * 4)
    assert [2, 2, 2, 2] == targets(state, TargetRule.ALL_LEVEL)
    # What may not move stays whole in its rack.
    pinned = PlanConstraints(excluded_topics=frozenset({"t"}))
    kept = state_of(["a", "a", "b", "b"], [(1, 2)] * 4, pinned)
    assert [4, 4, 0, 0] == targets(kept, TargetRule.ALL_LEVEL)


def test_brokers_out_of_play_have_no_target_and_count_for_their_rack() -> None:
    constraints = PlanConstraints(excluded_brokers=frozenset({1}))
    state = state_of(["a", "a", "b", "b"], [(1, 3), (1, 3), (1, 4), (2, 4)], constraints)
    # Rack a holds one replica of each partition, three of them on the excluded broker.
    assert {1: 1, 2: 2, 3: 2} == find_targets(state, TargetRule.ALL_LEVEL)


def test_each_rack_becomes_level_for_itself_where_racks_keep_what_they_hold() -> None:
    state = state_of(["a", "a", "b", "b"], [(1,)] * 5 + [(3,)] * 2)
    assert {0: 3, 1: 2, 2: 1, 3: 1} == targets_within_racks(state, TargetRule.ALL_LEVEL)
    # All four would be level otherwise.
    assert [2, 2, 2, 1] == targets(state, TargetRule.ALL_LEVEL)
