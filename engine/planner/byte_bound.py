"""The fewest moves by which bytes can become level while counts do.

A broker that holds too much gives at least so many of its largest replicas away as make up for
the excess, and takes as many in as its count lacks then. What they all hold too much goes to the
others, in pieces no larger than the largest.

```
counts stay 100 each, one broker 40 GB above, its largest replicas 30, 20, ... GB:
two must leave it, two must come to it, two must go to others: 4 moves at least
```
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from engine.planner.byte_levelling import expected_bytes
from engine.planner.placement_state import PlacementState


def moves_for_bytes(state: PlacementState, targets: Mapping[int, int], tolerance: float) -> int:
    """Return the bound, given where counts should end and how uneven bytes may be."""
    expected = expected_bytes(state)
    least: dict[int, int] = {}
    for broker, target in targets.items():
        group = state.group_of[broker]
        least[group] = min(least.get(group, target), target)
    to_heavy, to_others, excess_sum, largest = 0, 0, 0.0, 1
    for broker in targets:
        lacking = least[state.group_of[broker]] - state.counts[broker]
        excess = state.held_bytes[broker] - expected[broker] * tolerance
        if excess <= 0:
            to_others += max(0, lacking)
            continue
        to_heavy += max(0, _given_away(state, broker, excess) + lacking)
        excess_sum += excess
        largest = max(largest, state.size_at(state.on_broker[broker][-1], broker))
    return to_heavy + max(to_others, math.ceil(excess_sum / largest))


def _given_away(state: PlacementState, broker: int, excess: float) -> int:
    """Return how many replicas a broker must give away at least."""
    given = 0
    for partition in reversed(state.on_broker[broker]):
        if excess <= 0:
            break
        excess -= state.size_at(partition, broker)
        given += 1
    return given
