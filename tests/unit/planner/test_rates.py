"""Goals on rates: bytes in by exchanges of replicas, bytes out by exchanges of leaders."""

from __future__ import annotations

from engine.planner.cluster_model import BrokerModel, ClusterModel, PartitionModel
from engine.planner.constraints import ALL_GOALS, RATE_GOALS, LevelGoal
from engine.planner.plan import ReassignmentPlan
from engine.planner.planner import balance
from engine.planner.sampled_rates import SampledRates, with_rates
from tests.generated_clusters import after

GOALS = ALL_GOALS | RATE_GOALS


def cluster(*rows: tuple[tuple[int, ...], int], brokers: int = 4) -> ClusterModel:
    """Return brokers with partitions of one size: the replicas of each, and its rate."""
    return ClusterModel(
        [BrokerModel(number) for number in range(1, brokers + 1)],
        [
            PartitionModel("t", number, replicas, replicas[0], 1000, write_bytes_per_s=rate)
            for number, (replicas, rate) in enumerate(rows)
        ],
    )


#: Counts, bytes and leaders are level; the partitions that are written to stand together.
HOT = cluster(((1, 2), 100), ((2, 1), 100), ((3, 4), 0), ((4, 3), 0))


def rates(plan: ReassignmentPlan) -> dict[int, tuple[int, int]]:
    return {b.broker_id: (b.after.in_bytes_per_s, b.after.out_bytes_per_s) for b in plan.brokers}


def test_hot_partitions_that_stand_together_are_parted() -> None:
    assert balance(HOT).is_empty
    plan = balance(HOT, GOALS)
    assert 2.0 == plan.before.in_max_over_mean
    assert 1.0 == plan.after.in_max_over_mean
    assert {1: 100, 2: 100, 3: 100, 4: 100} == {b: rate for b, (rate, _) in rates(plan).items()}
    assert 0 == plan.after.count_spread == plan.after.leader_spread
    assert 0 < plan.bound_moves <= plan.moves
    assert balance(after(HOT, plan), GOALS).is_empty


def test_bytes_out_are_levelled_by_leaders_alone() -> None:
    model = cluster(((1, 2), 100), ((1, 2), 100), ((2, 1), 0), ((2, 1), 0), brokers=2)
    plan = balance(model, ALL_GOALS | {LevelGoal.BYTES_OUT})
    assert 0 == plan.moves
    assert {1: (200, 100), 2: (200, 100)} == rates(plan)
    assert 0 == plan.after.leader_spread


def test_two_leaders_that_could_only_trade_places_stay() -> None:
    # By rounded squares each trade of the first two would be nearer to the level, for ever.
    rows = (((1, 2), 621834985), ((2, 1), 108028558), ((3, 1), 23834130))
    model = cluster(*rows, brokers=3)
    plan = balance(model, {LevelGoal.LEADERS, LevelGoal.BYTES_OUT})
    assert plan.is_empty
    assert 1 == len(plan.warnings)


def test_a_partition_hotter_than_all_else_leaves_a_warning() -> None:
    model = cluster(((1, 2), 1000), ((3, 4), 1), ((3, 4), 1), ((1, 2), 1))
    plan = balance(model, GOALS)
    assert [w for w in plan.warnings if w.startswith("bytes in cannot be level")]


def test_samples_of_other_partitions_change_nothing() -> None:
    rated = with_rates(HOT, SampledRates(1000, {}))
    assert balance(rated, GOALS).is_empty
