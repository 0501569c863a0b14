from __future__ import annotations

import pytest

from engine.planner.cluster_model import BrokerModel
from engine.planner.constraints import RackRule
from engine.planner.rack_limits import RackLimits, fault_count, rack_groups, rack_limit


@pytest.mark.parametrize(
    ("sizes", "factor", "limit"),
    [((4, 4, 4), 3, 1), ((4, 4), 3, 2), ((1, 5), 4, 3), ((1, 1), 3, 3), ((5,), 3, 3)],
)
def test_limit_is_the_least_with_which_all_find_a_place(
    sizes: tuple[int, ...], factor: int, limit: int
) -> None:
    assert limit == rack_limit(factor, sizes)


def test_a_broker_without_a_rack_is_its_own_among_others() -> None:
    brokers = [BrokerModel(1, "a"), BrokerModel(2), BrokerModel(3), BrokerModel(4, "a")]
    assert [0, 1, 2, 0] == rack_groups(brokers, RackRule.STRICT)
    assert [0, 0, 0, 0] == rack_groups(brokers, RackRule.IGNORED)


def test_brokers_without_any_rack_are_one() -> None:
    assert [0, 0] == rack_groups([BrokerModel(1), BrokerModel(2)], RackRule.STRICT)


def test_bounds_leave_room_for_the_others() -> None:
    limits = RackLimits([0, 0, 1, 1, 2], [True] * 5)
    assert [(1, 1), (1, 1), (1, 1)] == limits.bounds(3)
    assert [(0, 1), (0, 1), (0, 1)] == limits.bounds(2)
    assert [(1, 2), (1, 2), (0, 1)] == limits.bounds(4)


def test_faults_are_what_stands_beyond_the_limit() -> None:
    groups = {1: 0, 2: 0, 3: 0, 4: 1}
    assert 2 == fault_count((1, 2, 3, 4), groups, 1)
    assert 0 == fault_count((1, 4), groups, 1)
