from __future__ import annotations

from engine.planner.constraints import PlanConstraints
from engine.planner.planner import spread
from engine.planner.trade_offs import find_trade_offs
from tests.unit.planner.clusters import cluster

MODEL = cluster([None] * 4, [(1, 2), (2, 3), (3, 1)] * 20, [1 + number**2 for number in range(60)])


def test_a_front_goes_from_nothing_to_the_whole_and_each_is_worth_its_price() -> None:
    constraints = PlanConstraints()
    whole = spread(MODEL, [4], constraints)
    front = find_trade_offs(lambda c: spread(MODEL, [4], c), constraints, whole)
    assert (0, 0) == (front[0].moves, front[0].bytes_moved)
    assert whole.moves in {item.moves for item in front}
    assert sorted(item.bytes_moved for item in front) == [item.bytes_moved for item in front]
    for item in front:
        assert not any(
            all(
                a <= b
                for a, b in zip(other.cost_and_imbalance, item.cost_and_imbalance, strict=True)
            )
            for other in front
            if other is not item
        )
    assert len(front) >= 5


def test_of_plans_that_come_to_the_same_one_is_shown() -> None:
    whole = spread(MODEL, [4], PlanConstraints())
    front = find_trade_offs(lambda _: whole, PlanConstraints(), whole)
    assert [whole.moves] == [item.moves for item in front]
