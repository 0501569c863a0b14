"""What a copy has of a cluster."""

from __future__ import annotations

from engine.planner.cluster_model import BrokerModel, ClusterModel
from engine.rehearsal.copied_cluster import plan_copy
from tests.unit.reassign.moved_cluster import change


def test_a_leader_that_a_plan_names_and_no_cluster_has_is_none_of_the_copy() -> None:
    model = ClusterModel([BrokerModel(id_, None, None, ()) for id_ in (10, 20, 30)], [])
    copy = plan_copy(model, {}, (), 0)
    move = change(0, (10, 20), (30, 20))
    assert (1, 3) == (copy.convert_change(move).old_leader, copy.convert_change(move).new_leader)
    assert copy.convert_change(move._replace(old_leader=99)).old_leader is None
