"""Shrinking of a failing plan: faults are left out as long as the same rule is broken.

```
all faults ── without the first half? still fails ──> continue with that
           ── without this quarter? passes ──> keep it     ... down to single faults
```

The result may not be the smallest failing plan, but no single fault of it can be left out.

Source: Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input" (2002).
"""

from __future__ import annotations

from collections.abc import Callable

from engine.sim.plan import Plan
from engine.sim.simulation import RunResult, run_plan


def shrink(
    failed: RunResult, *, runs_max: int = 150, run: Callable[[Plan], RunResult] = run_plan
) -> RunResult:
    """Return the result of the smallest plan found that breaks the same rule as `failed`.

    Parts of its faults are left out, as long as the rule is still broken. At most `runs_max` plans
    are run.
    """
    assert failed.violation is not None
    best, rule = failed, failed.violation.rule
    size = max(1, len(best.plan.faults) // 2)
    while runs_max > 0:
        smaller = None
        for start in range(0, len(best.plan.faults), size):
            if runs_max <= 0:
                break
            runs_max -= 1
            faults = best.plan.faults[:start] + best.plan.faults[start + size :]
            result = run(best.plan._replace(faults=faults))
            if result.violation is not None and result.violation.rule == rule:
                smaller = result
                break
        if smaller is not None:
            best = smaller
            size = max(1, min(size, len(best.plan.faults)))
        elif size == 1:
            return best
        else:
            size = max(1, size // 2)
    return best
