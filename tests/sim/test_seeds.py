"""Sixty whole clusters with faults: no rule is broken in any, after any event.

More by hand: `make sim`.
"""

from __future__ import annotations

import pytest

from engine.sim.plan import plan_of
from engine.sim.simulation import run_plan

SEEDS = 60
CHUNK = 5


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_no_seed_breaks_a_rule(first: int) -> None:
    results = [run_plan(plan_of(seed)) for seed in range(first, first + CHUNK)]
    broken = {r.plan.seed: str(r.violation) for r in results if r.violation is not None}
    assert {} == broken
    # A run in which nobody was served would hold every promise.
    assert all(result.acknowledged_count for result in results)
