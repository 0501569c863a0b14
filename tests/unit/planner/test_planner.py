from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from engine.model import TopicPartition
from engine.planner.cluster_model import (
    BadClusterModel,
    BrokerModel,
    ClusterModel,
    LogDirModel,
    PartitionModel,
)
from engine.planner.constraints import LevelGoal, PlanConstraints, RackRule
from engine.planner.planner import (
    PlanRefused,
    balance,
    balance_log_dirs,
    demote,
    drain,
    repair,
    replace,
    set_replication_factor,
    spread,
)
from tests.unit.planner.clusters import cluster, moved

ROUND = [(1, 2), (2, 3), (3, 1), (1, 3), (2, 1), (3, 2)]


def counts_after(model: ClusterModel, new: dict[int, tuple[int, ...]]) -> Counter[int]:
    return Counter(b for p in model.partitions for b in new.get(p.partition, p.replicas))


def test_spread_takes_the_fewest_moves_to_added_brokers() -> None:
    model = cluster([None] * 4, ROUND)
    plan = spread(model, [4])
    assert (3, 3) == (plan.moves, plan.bound_moves)
    assert Counter({1: 3, 2: 3, 3: 3, 4: 3}) == counts_after(model, moved(plan))
    assert 1.0 == plan.gap


def test_spread_leaves_old_brokers_uneven_rather_than_move_among_them() -> None:
    model = cluster([None] * 3, [(1,), (1,), (1,), (1,), (1,), (1,), (2,)])
    new = moved(spread(model, [3]))
    assert Counter({1: 3, 2: 1, 3: 3}) == counts_after(model, new)


def test_spread_levels_bytes_by_what_it_moves() -> None:
    sizes = [100, 1, 1, 100, 1, 1]
    model = cluster([None] * 3, [(1,), (1,), (1,), (2,), (2,), (2,)], sizes)
    plan = spread(model, [3])
    assert 2 == plan.moves
    assert {("t", 0), ("t", 3)} != {(c.topic, c.partition) for c in plan.changes}
    assert plan.after.bytes_max_over_mean < 1.5


def test_drain_moves_what_the_broker_holds_and_nothing_else() -> None:
    model = cluster([None] * 4, [*ROUND, (4, 1), (4, 2)])
    plan = drain(model, [4])
    assert (2, 2) == (plan.moves, plan.bound_moves)
    assert {6, 7} == set(moved(plan))
    assert all(4 not in replicas for replicas in moved(plan).values())
    assert plan.changes[0].is_mandatory


def test_drain_says_what_it_cannot_place() -> None:
    plan = drain(cluster(["a", "b"], [(1, 2)]), [2])
    assert plan.is_empty
    assert ["t-0"] == [unmet.subject for unmet in plan.unmet]


def test_racks_hold_unless_they_are_relaxed() -> None:
    model = cluster(["a", "a", "b", "b"], [(1, 3), (1, 4)], capacity={4: 10})
    strict = drain(model, [3])
    assert ["t-0"] == [unmet.subject for unmet in strict.unmet]
    relaxed = drain(model, [3], PlanConstraints(racks=RackRule.RELAXED))
    assert {1, 2} == set(moved(relaxed)[0])
    assert ["1 replicas share a rack for want of another"] == relaxed.warnings


def test_replace_keeps_places_and_leaders() -> None:
    plan = replace(cluster([None] * 4, ROUND), 1, 4)
    assert {0: (4, 2), 2: (3, 4), 3: (4, 3), 4: (2, 4)} == moved(plan)
    assert (4, 4) == (plan.moves, plan.bound_moves)


def test_replace_sends_elsewhere_what_the_new_one_has_already() -> None:
    plan = replace(cluster([None] * 4, [(1, 4), (1, 2)]), 1, 4)
    assert (4, 2) == moved(plan)[1]
    assert set(moved(plan)[0]) in ({2, 4}, {3, 4})
    assert 1 == len(plan.warnings)


def test_repair_moves_offline_replicas_and_rack_faults() -> None:
    model = cluster(["a", "a", "b", "b"], [(1, 2), (1, 3), (4, 1)])
    brokers = [b._replace(is_alive=b.broker_id != 3) for b in model.brokers]
    plan = repair(ClusterModel(brokers, model.partitions))
    new = moved(plan)
    assert {0, 1} == set(new)
    assert 4 in new[0]
    assert 1 == len({1, 2} & set(new[0]))
    assert {1, 4} == set(new[1])
    assert (0, 0) == (plan.after.rack_faults, plan.after.offline_replicas)
    assert plan.moves == plan.bound_moves == 2


def test_repair_leaves_what_has_no_live_replica() -> None:
    model = cluster([None] * 2, [(1,)])
    dead = ClusterModel(
        [model.brokers[0]._replace(is_alive=False), model.brokers[1]], model.partitions
    )
    plan = repair(dead)
    assert plan.is_empty
    assert ["no replica is alive to copy from"] == [unmet.reason for unmet in plan.unmet]


def test_a_failed_directory_is_left_though_its_broker_lives() -> None:
    model = cluster([None] * 3, [(1, 2)])
    failed = ClusterModel(model.brokers, [model.partitions[0]._replace(offline=(2,))])
    assert {0: (1, 3)} == moved(repair(failed))


def test_a_replica_does_not_return_to_its_failed_directory() -> None:
    # Broker 4 can take one of two replicas; for the other there is only the failed directory.
    model = cluster([None] * 4, [(1, 2, 3)])
    brokers = [b._replace(is_alive=b.broker_id != 3) for b in model.brokers]
    partition = model.partitions[0]._replace(offline=(2,), isr=(1,))
    plan = repair(ClusterModel(brokers, [partition]))
    assert {0: (1, 4, 3)} == moved(plan)
    assert ["t-0"] == [unmet.subject for unmet in plan.unmet]


def test_of_a_shrinking_partition_the_replica_in_a_failed_directory_goes() -> None:
    model = cluster([None] * 3, [(1, 2, 3)])
    failed = ClusterModel(model.brokers, [model.partitions[0]._replace(offline=(1,))])
    assert {0: (3, 2)} == moved(set_replication_factor(failed, {"t": 2}))


def test_excluded_topics_stay_on_a_drained_broker_and_are_no_missed_goal() -> None:
    model = cluster([None] * 3, [(1, 2), (2, 1)])
    other = model.partitions[0]._replace(topic="other")
    mixed = ClusterModel(model.brokers, [*model.partitions, other])
    plan = drain(mixed, [1], PlanConstraints(excluded_topics=frozenset({"other"})))
    assert [] == plan.unmet
    assert ["broker 1 keeps 1 replica of topics that this plan may not change: other"] == list(
        plan.warnings
    )
    assert (2, 2) == (plan.moves, plan.bound_moves)


def test_excluded_topics_keep_a_demoted_leader_and_are_no_missed_goal() -> None:
    model = cluster([None] * 2, [(1, 2), (1, 2)])
    plan = demote(model, [1], PlanConstraints(excluded_topics=frozenset({"t"})))
    assert plan.is_empty
    assert [] == plan.unmet
    assert ["broker 1 keeps 2 leaders of topics that this plan may not change: t"] == list(
        plan.warnings
    )


def test_a_balance_of_excluded_topics_alone_is_bound_to_no_move() -> None:
    model = cluster([None] * 2, [(1,), (1,)], [10, 30])
    plan = balance(model, constraints=PlanConstraints(excluded_topics=frozenset({"t"})))
    assert (0, 0) == (plan.moves, plan.bound_moves)
    assert "bytes cannot be level: 2.00 times its level for a broker is the best" in str(
        plan.warnings
    )


def test_bytes_that_no_plan_levels_bind_it_to_no_moves() -> None:
    plan = balance(cluster([None] * 2, [(1,)], [1000]), {LevelGoal.BYTES})
    assert (0, 0) == (plan.moves, plan.bound_moves)
    assert 1 == len(plan.warnings)


def test_replication_factor_grows_into_other_racks_and_shrinks_without_moves() -> None:
    model = cluster(["a", "b", "c"], [(1,), (2,)])
    plan = set_replication_factor(model, {"t": 3})
    assert {1, 2, 3} == set(moved(plan)[0])
    assert (1, 2) == (moved(plan)[0][0], moved(plan)[1][0])
    assert 4 == plan.moves == plan.bound_moves
    full = cluster(["a", "b", "c"], [(1, 2, 3), (1, 3, 2)])
    less = set_replication_factor(full, {"t": 2})
    assert 0 == less.moves
    assert all(replicas[0] == 1 and len(replicas) == 2 for replicas in moved(less).values())


def test_fewer_replicas_stay_in_different_racks_though_one_of_them_lags() -> None:
    model = cluster(["a", "a", "b"], [(1, 2, 3)])
    lagging = ClusterModel(model.brokers, [model.partitions[0]._replace(isr=(1, 2))])
    assert {0: (1, 3)} == moved(set_replication_factor(lagging, {"t": 2}))


def test_balance_is_level_in_counts_and_leaders() -> None:
    model = cluster([None] * 3, [(1, 2)] * 6)
    plan = balance(model)
    assert (0, 0) == (plan.after.count_spread, plan.after.leader_spread)
    assert 4 == plan.moves == plan.bound_moves


def test_leaders_alone_move_no_replica() -> None:
    model = cluster([None] * 3, [(1, 2), (1, 3), (1, 2), (1, 3), (1, 2), (1, 3)])
    plan = balance(model, [LevelGoal.LEADERS])
    assert 0 == plan.moves
    assert 0 == plan.after.leader_spread
    assert 4 == plan.leader_changes


def test_leaders_go_by_paths_where_no_follower_lacks_any() -> None:
    # 1 has followers on 2 alone; 2 hands on to 3 what 1 hands to it.
    model = cluster([None] * 3, [(1, 2), (1, 2), (1, 2), (2, 3), (2, 3)])
    plan = balance(model, [LevelGoal.LEADERS])
    assert 1 == plan.after.leader_spread


def test_leaders_that_cannot_be_level_are_reported() -> None:
    model = cluster([None] * 3, [(1, 2), (1, 2), (1, 2), (1, 2), (3,)])
    assert [] == balance(model, [LevelGoal.LEADERS]).warnings
    stuck = cluster([None] * 3, [(1,), (1,), (1,), (2, 3)])
    assert 1 == len(balance(stuck, [LevelGoal.LEADERS]).warnings)


def test_demoted_brokers_lead_nothing_and_stand_last() -> None:
    model = cluster([None] * 3, [(1, 2, 3), (1, 3, 2), (2, 1, 3)])
    plan = demote(model, [1])
    assert {0, 1} == set(moved(plan))
    assert all(replicas[-1] == 1 for replicas in moved(plan).values())
    assert plan.after.leader_spread <= 2
    assert 1 not in {replicas[0] for replicas in moved(plan).values()}
    assert 0 == plan.moves


def led_by_the_second(replicas: tuple[int, ...], isr: tuple[int, ...] = ()) -> ClusterModel:
    """Return two level brokers: of t-0 the second replica leads, in place of the first."""
    model = cluster([None] * 2, [replicas, replicas[::-1]])
    led = model.partitions[0]._replace(leader=replicas[1], isr=isr)
    return ClusterModel(model.brokers, [led, model.partitions[1]])


def test_a_demoted_broker_that_leads_as_the_second_has_the_preferred_leader_elected() -> None:
    plan = demote(led_by_the_second((2, 1)), [1])
    leaders = {change.partition: (change.old_leader, change.new_leader) for change in plan.changes}
    assert {0: (1, 2), 1: (1, 2)} == leaders
    assert {0: (2, 1), 1: (2, 1)} == moved(plan)


def test_preferred_leaders_are_elected_where_leaders_are_to_be_level_and_only_there() -> None:
    model = led_by_the_second((1, 2))
    (change,) = balance(model).changes
    assert (0, 2, 1) == (change.partition, change.old_leader, change.new_leader)
    assert (1, 2) == change.old_replicas == change.new_replicas
    assert balance(model, {LevelGoal.COUNTS, LevelGoal.BYTES}).is_empty
    # One that is out of sync cannot be elected.
    assert balance(led_by_the_second((1, 2), isr=(2,))).is_empty


def test_demoting_the_only_replica_is_reported() -> None:
    plan = demote(cluster([None] * 2, [(1,)]), [1])
    assert ["t-0"] == [unmet.subject for unmet in plan.unmet]


def test_a_replica_that_lags_does_not_lead() -> None:
    model = cluster([None] * 3, [(1, 2, 3)])
    lagging = ClusterModel(model.brokers, [model.partitions[0]._replace(isr=(1, 3))])
    assert (3, 2, 1) == moved(demote(lagging, [1]))[0]


def test_excluded_topics_and_pinned_partitions_stay() -> None:
    model = cluster([None] * 3, [(1,), (1,), (1,)])
    pinned = frozenset({TopicPartition("t", 0)})
    assert 0 not in moved(balance(model, constraints=PlanConstraints(pinned=pinned)))
    excluded = PlanConstraints(excluded_topics=frozenset({"t"}))
    assert balance(model, constraints=excluded).is_empty


def test_excluded_brokers_get_nothing() -> None:
    model = cluster([None] * 3, [(1,)] * 6)
    plan = balance(model, constraints=PlanConstraints(excluded_brokers=frozenset({3})))
    assert {(2,)} == set(moved(plan).values())


def test_directories_of_a_broker_become_level() -> None:
    model = cluster([None], [(1,), (1,), (1,), (1,)], [40, 30, 20, 10])
    dirs = (LogDirModel("/a"), LogDirModel("/b"))
    full = ClusterModel(
        [model.brokers[0]._replace(log_dirs=dirs)],
        [p._replace(log_dirs=("/a",)) for p in model.partitions],
    )
    plan = balance_log_dirs(full)
    assert 0 == plan.moves
    sizes = {p.partition: p.size_bytes for p in full.partitions}
    assert 50 == sum(sizes[c.partition] for c in plan.changes)
    assert {("/b",)} == {c.new_log_dirs for c in plan.changes}
    assert len(plan.changes) == plan.log_dir_moves


def test_time_is_that_of_the_busiest_broker() -> None:
    plan = drain(cluster([None] * 3, [(1, 2), (1, 2), (1, 2)], [100, 100, 100]), [2])
    by_id = {figures.broker_id: figures for figures in plan.brokers}
    assert (300, 300) == (by_id[3].bytes_in, by_id[1].bytes_out)
    assert 6.0 == plan.eta_s(50)


def test_seeds_break_ties_each_in_its_way() -> None:
    model = cluster([None] * 4, ROUND * 5)
    plans = {seed: spread(model, [4], PlanConstraints(seed=seed)) for seed in range(6)}
    assert 1 < len({str(moved(plan)) for plan in plans.values()})
    assert plans[3] == spread(model, [4], PlanConstraints(seed=3))


def test_budgets_hold_and_say_so() -> None:
    model = cluster([None] * 4, ROUND * 5)
    plan = spread(model, [4], PlanConstraints(max_moves=4))
    assert (4, 15) == (plan.moves, plan.bound_moves)
    assert ["it takes 15 moves, more than are allowed"] == [u.reason for u in plan.unmet]
    assert 50 == spread(model, [4], PlanConstraints(max_bytes_moved=55)).bytes_moved


@pytest.mark.parametrize(
    "ask",
    [
        lambda m: spread(m, [9]),
        lambda m: replace(m, 1, 1),
        lambda m: drain(m, [9]),
        lambda m: demote(m, [9]),
        lambda m: balance_log_dirs(m, [9]),
        lambda m: set_replication_factor(m, {"t": 4}),
        lambda m: set_replication_factor(m, {"t": 0}),
        lambda m: set_replication_factor(m, {"other": 1}),
    ],
)
def test_what_is_not_possible_at_all_is_refused(ask: object) -> None:
    with pytest.raises(PlanRefused):
        ask(cluster([None] * 3, ROUND))  # type: ignore[operator]


@pytest.mark.parametrize(
    ("brokers", "replicas", "rule"),
    [
        ([1, 1], (1,), "is listed twice"),
        ([1], (1, 1), "two replicas on one broker"),
        ([1], (2,), "broker 2, which the model does not have"),
        ([1], (), "has no replicas"),
    ],
)
def test_models_that_contradict_themselves_are_refused(
    brokers: list[int], replicas: tuple[int, ...], rule: str
) -> None:
    partition = cluster([None], [(1,)]).partitions[0]._replace(replicas=replicas)
    model = ClusterModel([BrokerModel(b) for b in brokers], [partition])
    with pytest.raises(BadClusterModel, match=rule):
        balance(model)


def pinned_cluster(
    replicas: Sequence[tuple[str, tuple[int, ...]]],
) -> tuple[ClusterModel, PlanConstraints]:
    """Return partitions of topics t and pinned, and that the latter stay."""
    ids = sorted({id_ for _, listed in replicas for id_ in listed})
    partitions = [
        PartitionModel(topic, number, listed, listed[0], size_bytes=10)
        for number, (topic, listed) in enumerate(replicas)
    ]
    model = ClusterModel([BrokerModel(id_) for id_ in ids], partitions)
    return model, PlanConstraints(excluded_topics=frozenset(("pinned",)))


def test_counts_become_level_by_way_of_a_broker_that_is_level() -> None:
    # What broker 1 may give, 3 has already: it goes to 2, which gives another one.
    stays = [("pinned", (1,)), ("pinned", (1,)), ("pinned", (2,))]
    model, constraints = pinned_cluster([("t", (1, 3)), ("t", (2,)), *stays])
    plan = balance(model, (LevelGoal.COUNTS,), constraints)
    assert [2, 2, 2] == [broker.after.replica_count for broker in plan.brokers]
    assert 2 == plan.moves


def test_a_budget_that_pays_no_way_over_another_broker_is_kept_and_reported() -> None:
    # Broker 4 gives directly; what 1 may give comes to 3 or 5 only over 2.
    stays = [("pinned", (id_,)) for id_ in (1, 1, 1, 2, 4, 4)]
    moves = [("t", (1, 3, 4, 5)), ("t", (2,)), ("t", (4,))]
    model, constraints = pinned_cluster([*moves, *stays])
    whole = balance(model, (LevelGoal.COUNTS,), constraints)
    assert (3, []) == (whole.moves, list(whole.unmet))
    plan = balance(model, (LevelGoal.COUNTS,), constraints._replace(max_moves=2))
    assert 1 == plan.moves
    (unmet,) = plan.unmet
    assert "more than are allowed" in unmet.reason
    assert [] == list(balance(model, (LevelGoal.COUNTS,), constraints._replace(max_moves=3)).unmet)


def test_the_smallest_replica_is_exchanged_too() -> None:
    # Broker 1 holds 74 of 99: the 20 and the 10 go, the 5 comes.
    model = cluster([None] * 2, [(1,), (2,), (2,), (1,), (1,)], [20, 20, 5, 44, 10])
    plan = balance(model, (LevelGoal.BYTES,))
    assert [] == list(plan.warnings)
    assert plan.after.bytes_max_over_mean < 1.02
