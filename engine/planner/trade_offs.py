"""Plans with fewer moves or bytes, none of which is worse than another in every figure.

Each row is a plan within a budget: a share of the moves of the whole plan, or of its bytes. Within
a budget of bytes the smallest replicas move first: counts become level, bytes less so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from engine.planner.constraints import PlanConstraints
from engine.planner.plan import LevelFigures, ReassignmentPlan

_SHARES: Final = (0.1, 0.25, 0.5, 0.75)


class TradeOff(NamedTuple):
    """One plan.

    Its budget, its moves and bytes, the evenness after it, and the number of unmet goals.
    """

    max_moves: int | None
    max_bytes_moved: int | None
    moves: int
    bytes_moved: int
    after: LevelFigures
    unmet: int

    @property
    def cost_and_imbalance(self) -> tuple[float, ...]:
        """The figures that should be low: moves and bytes, and the imbalance afterwards."""
        after = self.after
        return (
            self.moves,
            self.bytes_moved,
            self.unmet,
            after.count_spread_in_rack,
            after.bytes_max_over_mean,
            after.rack_faults + after.offline_replicas,
        )


def find_trade_offs(
    make_plan: Callable[[PlanConstraints], ReassignmentPlan],
    constraints: PlanConstraints,
    whole: ReassignmentPlan,
) -> list[TradeOff]:
    """Return the best plans between none and the whole plan, the cheapest first.

    A plan is made for each of several budgets. `make_plan` is the planning function that made
    `whole` under the same constraints.
    """
    budgets = [(int(whole.moves * share), None) for share in (0.0, *_SHARES)]
    by_bytes = [(None, int(whole.bytes_moved * share)) for share in _SHARES]
    found = [_trade_off(whole, None, None)]
    for max_moves, max_bytes in (*budgets, *by_bytes):
        bounded = constraints._replace(max_moves=max_moves, max_bytes_moved=max_bytes)
        found.append(_trade_off(make_plan(bounded), max_moves, max_bytes))
    return pareto_front(found)


def pareto_front(found: Sequence[TradeOff]) -> list[TradeOff]:
    """Return the trade-offs that no other one beats in each figure; of equal ones the first."""
    front: list[TradeOff] = []
    seen = set()
    for item in sorted(found, key=lambda t: (t.bytes_moved, t.moves)):
        cost = item.cost_and_imbalance
        if cost not in seen and not any(_beats(o.cost_and_imbalance, cost) for o in found):
            front.append(item)
            seen.add(cost)
    return front


def _beats(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    """Return True if `one` is in no figure worse than `other`, and better in at least one."""
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))


def _trade_off(plan: ReassignmentPlan, max_moves: int | None, max_bytes: int | None) -> TradeOff:
    """Return the figures of a plan that was made with a budget."""
    return TradeOff(max_moves, max_bytes, plan.moves, plan.bytes_moved, plan.after, len(plan.unmet))
