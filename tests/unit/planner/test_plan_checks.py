from __future__ import annotations

import pytest

from engine.planner.cluster_model import ClusterModel
from engine.planner.constraints import PlanConstraints
from engine.planner.plan import PartitionChange, ReassignmentPlan
from engine.planner.plan_checks import find_broken_rules
from engine.planner.planner import balance, drain
from tests.unit.planner.clusters import cluster

MODEL = cluster(["a", "b", "c", "a"], [(1, 2), (2, 3)], capacity={3: 15})


def plan_of(*changes: PartitionChange) -> ReassignmentPlan:
    return balance(cluster([None], [(1,)]))._replace(
        changes=changes, batches=[[position] for position in range(len(changes))]
    )


def change(new: tuple[int, ...], partition: int = 0) -> PartitionChange:
    old = MODEL.partitions[min(partition, 1)].replicas
    return PartitionChange("t", partition, old, new, old[0], new[0], size_bytes=10)


@pytest.mark.parametrize(
    ("rule", "bad"),
    [
        ("duplicate", change((1, 1))),
        ("unknown", change((1, 9))),
        ("unknown", change((1, 3), partition=7)),
        ("stale", change((1, 3))._replace(old_replicas=(2, 1))),
        ("rack", change((1, 4))),
        ("capacity", change((1, 3))),
    ],
)
def test_what_no_plan_may_do_is_found(rule: str, bad: PartitionChange) -> None:
    assert rule in {it.rule for it in find_broken_rules(MODEL, plan_of(bad), PlanConstraints())}


def test_dead_and_excluded_brokers_get_nothing() -> None:
    brokers = [b._replace(is_alive=b.broker_id != 4) for b in MODEL.brokers]
    dead = ClusterModel(brokers, MODEL.partitions)
    plan = plan_of(change((4, 2)))
    assert ["dead"] == [it.rule for it in find_broken_rules(dead, plan, PlanConstraints())]
    excluded = PlanConstraints(excluded_brokers=frozenset({4}), excluded_topics=frozenset({"t"}))
    assert ["excluded", "excluded"] == [it.rule for it in find_broken_rules(MODEL, plan, excluded)]


def test_batches_name_each_change_once() -> None:
    plan = plan_of(change((4, 2)))._replace(batches=[[0], [0], []])
    assert {"order"} == {it.rule for it in find_broken_rules(MODEL, plan, PlanConstraints())}


def test_own_plans_break_none() -> None:
    assert [] == find_broken_rules(MODEL, drain(MODEL, [1]), PlanConstraints(), (1,))
