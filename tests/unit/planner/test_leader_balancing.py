"""Leaders as level as replicas allow, against every choice of leaders; who may lead at all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from random import Random

import pytest

from engine.planner.cluster_model import ClusterModel
from engine.planner.constraints import PlanConstraints
from engine.planner.leader_balancing import LeaderBalancing
from engine.planner.placement_state import PlacementState
from tests.unit.planner.clusters import cluster


def squares(leaders: Iterable[int], brokers: int) -> int:
    """Return the sum of the squares of how many each leads: the least is the most level."""
    leading = list(leaders)
    return sum(leading.count(broker) ** 2 for broker in range(brokers))


def levelled(
    state: PlacementState, free: Sequence[int] | None = None, demoted: Sequence[int] = ()
) -> list[int]:
    """Return the leaders by partition once they are level."""
    chosen = range(len(state.replicas)) if free is None else free
    balancing = LeaderBalancing(state, chosen, demoted=demoted)
    balancing.level()
    leaders = [replicas[0] for replicas in state.replicas]
    assert [leaders.count(broker) for broker in range(len(state.brokers))] == balancing.leads
    return leaders


@pytest.mark.parametrize("seed", range(40))
def test_no_choice_of_leaders_is_more_level(seed: int) -> None:
    random = Random(seed)
    replicas = [tuple(random.sample(range(1, 5), random.choice((1, 2, 2, 3)))) for _ in range(6)]
    state = PlacementState(cluster([None] * 4, replicas), PlanConstraints())
    before = [set(held) for held in state.replicas]
    leaders = levelled(state)
    assert before == [set(held) for held in state.replicas]
    assert min(squares(choice, 4) for choice in product(*map(sorted, before))) == squares(
        leaders, 4
    )


def test_leaders_that_are_level_stay_and_so_do_those_that_are_not_free() -> None:
    replicas = [(1, 2), (1, 2), (2, 1), (2, 1)]
    assert [0, 0, 1, 1] == levelled(
        PlacementState(cluster([None] * 2, replicas), PlanConstraints())
    )
    crowded = [(1, 2), (1, 2), (1, 2), (1, 2)]
    state = PlacementState(cluster([None] * 2, crowded), PlanConstraints())
    assert [0, 0, 0, 1] == levelled(state, free=[3])


def test_a_difference_of_one_moves_nothing() -> None:
    state = PlacementState(cluster([None] * 2, [(1, 2), (1, 2), (2, 1)]), PlanConstraints())
    assert [0, 0, 1] == levelled(state)


def test_leadership_goes_on_over_a_broker_in_between() -> None:
    # Broker 1 leads 3, 2 leads 2, 3 leads 1; what 1 leads has no replica on 3.
    replicas = [(1, 2), (1, 2), (1, 2), (2, 3), (2, 3), (3, 2)]
    leaders = levelled(PlacementState(cluster([None] * 3, replicas), PlanConstraints()))
    assert [2, 2, 2] == [leaders.count(broker) for broker in range(3)]


def test_a_demoted_broker_gives_all_away_that_another_may_lead_and_gets_nothing() -> None:
    replicas = [(1, 2), (1, 3), (1,), (2, 1), (2, 1), (2, 1)]
    state = PlacementState(cluster([None] * 3, replicas), PlanConstraints())
    assert [1, 2, 0, 1, 1, 1] == levelled(state, demoted=[0])


def test_who_lags_is_dead_or_excluded_is_given_no_leadership() -> None:
    model = cluster([None] * 4, [(1, 2), (1, 3), (1, 4)])
    lagging = model.partitions[0]._replace(isr=(1,))
    brokers = [b._replace(is_alive=b.broker_id != 3) for b in model.brokers]
    constraints = PlanConstraints(excluded_brokers=frozenset({4}))
    state = PlacementState(ClusterModel(brokers, [lagging, *model.partitions[1:]]), constraints)
    assert [0, 0, 0] == levelled(state)


def test_a_partition_whose_first_replica_went_is_led_by_an_old_one_that_leads_least() -> None:
    replicas = [(1, 2, 3), (2, 4), (2, 4), (3, 4), (5,)]
    state = PlacementState(cluster([None] * 5, replicas), PlanConstraints())
    state.move(0, 0, 4)
    # Broker 5 has no copy yet; of 2, that leads two, and 3, that leads one, the latter.
    assert 2 == levelled(state, free=[0])[0]
    assert {1, 2, 4} == set(state.replicas[0])


def test_a_leader_that_only_changed_its_place_leads_again_among_others_as_free() -> None:
    replicas = [(3, 1, 2), (1,), (2,), (3,)]
    state = PlacementState(cluster([None] * 3, replicas), PlanConstraints())
    state.replicas[0][:] = [1, 0, 2]
    assert [2, 0, 1, 2] == levelled(state, free=[0])
