"""Plans with fewer moves or bytes, of which none is better than another in every respect.

Each row is a plan under a budget: a share of the moves of the whole plan, or of its bytes. Under a
budget of bytes the smallest replicas move first, so counts become level at the price of bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from engine.planner.constraints import PlanConstraints
from engine.planner.plan import LevelFigures, ReassignmentPlan

_SHARES: Final = (0.1, 0.25, 0.5, 0.75)


class TradeOff(NamedTuple):
    """One plan: its budget, its moves and bytes, and the levels after it."""

    max_moves: int | None
    max_bytes_moved: int | None
    moves: int
    bytes_moved: int
    after: LevelFigures
    unmet: int

    @property
    def cost_and_imbalance(self) -> tuple[float, ...]:
        """Return the figures to keep low: moves and bytes, and the imbalance afterwards."""
        after = self.after
        return (
            self.moves,
            self.bytes_moved,
            self.unmet,
            after.count_spread_in_rack,
            after.bytes_max_over_mean,
            after.rack_faults + after.offline_replicas,
        )


def trade_offs(
    make_plan: Callable[[PlanConstraints], ReassignmentPlan],
    constraints: PlanConstraints,
    whole: ReassignmentPlan,
) -> list[TradeOff]:
    """Return the front from nothing to the whole plan, cheapest first; a plan is made for each.

    `make_plan` is a verb, as it made `whole` under the same constraints.
    """
    budgets = [(int(whole.moves * share), None) for share in (0.0, *_SHARES)]
    by_bytes = [(None, int(whole.bytes_moved * share)) for share in _SHARES]
    found = [_trade_off(whole, None, None)]
    for max_moves, max_bytes in (*budgets, *by_bytes):
        bounded = constraints._replace(max_moves=max_moves, max_bytes_moved=max_bytes)
        found.append(_trade_off(make_plan(bounded), max_moves, max_bytes))
    return front_of(found)


def front_of(found: Sequence[TradeOff]) -> list[TradeOff]:
    """Return the trade-offs that no other beats, nor equals at a lower cost."""
    front: list[TradeOff] = []
    seen = set()
    for item in sorted(found, key=lambda t: (t.bytes_moved, t.moves)):
        cost = item.cost_and_imbalance
        if cost not in seen and not any(_beats(o.cost_and_imbalance, cost) for o in found):
            front.append(item)
            seen.add(cost)
    return front


def _beats(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    """Return whether one plan is nowhere worse than another, by figures, and better somewhere."""
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))


def _trade_off(plan: ReassignmentPlan, max_moves: int | None, max_bytes: int | None) -> TradeOff:
    return TradeOff(max_moves, max_bytes, plan.moves, plan.bytes_moved, plan.after, len(plan.unmet))
