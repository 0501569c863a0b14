"""Leaders exchanged for the sake of bytes out: who leads how many in the end, and which."""

from __future__ import annotations

import pytest

from engine.planner.cluster_model import BrokerModel, ClusterModel, PartitionModel
from engine.planner.constraints import PlanConstraints
from engine.planner.placement_state import PlacementState
from engine.planner.rate_leaders import RateLeaders

#: Each broker leads two. By followers, 1 sends 100 and 50, 2 sends 10 and 40, 3 sends 30 and 60;
#: all three have a replica of the one of 10.
MODEL = ClusterModel(
    [BrokerModel(number) for number in (1, 2, 3)],
    [
        PartitionModel("t", number, replicas, replicas[0], write_bytes_per_s=rate)
        for number, (replicas, rate) in enumerate(
            [((1, 2), 100), ((1, 2), 50), ((2, 1, 3), 5), ((2, 3), 40), ((3, 2), 30), ((3, 2), 60)]
        )
    ],
)


@pytest.mark.parametrize(
    ("keeps_counts", "leading", "out"),
    [(True, [2, 2, 2], [110, 90, 90]), (False, [1, 3, 2], [100, 100, 90])],
)
def test_each_leads_as_many_as_before_where_that_is_a_goal(
    leading: list[int], out: list[int], *, keeps_counts: bool
) -> None:
    state = PlacementState(MODEL, PlanConstraints(rate_tolerance=1.0))
    leaders = RateLeaders(state, keeps_counts=keeps_counts)
    leaders.level()
    firsts = [replicas[0] for replicas in state.replicas]
    assert leading == [firsts.count(broker) for broker in range(3)]
    assert (out, leading) == (leaders.out, leaders.leads)


def test_the_leader_goes_that_brings_both_nearest_to_the_level() -> None:
    # Of the two that broker 1 leads, the one of 60 leaves 100 and 100, the one of 100 too little.
    rates: list[tuple[tuple[int, ...], int]] = [((1, 2), 60), ((1, 2), 100), ((2, 3), 40)]
    partitions = [
        PartitionModel("t", number, replicas, replicas[0], write_bytes_per_s=rate)
        for number, (replicas, rate) in enumerate(rates)
    ]
    model = ClusterModel([BrokerModel(number) for number in (1, 2, 3)], partitions)
    leaders = RateLeaders(PlacementState(model, PlanConstraints()), keeps_counts=False)
    leaders.level()
    assert [100, 60, 40] == leaders.out
