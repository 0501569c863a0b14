"""The fewest moves by which bytes can become level while counts do.

A broker that holds too much gives at least so many of its largest replicas away as make up for the
excess, and takes as many in as its count lacks then. The bytes that all of them hold in excess go
to the others, in pieces no larger than the largest. Those that lack replicas take it in with these,
as far as there is room; what is left costs a move more for each piece, since a broker that takes
more replicas than it lacks gives as many away.

```
counts stay 100 each, one broker 40 GB above, its largest replicas 30, 20, ... GB:
two must leave it, two must come to it, two must go to others: 4 moves at least
```

Where every rack must hold its share of each partition nothing goes from rack to rack, and each is
counted for itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from engine.planner.byte_balancing import expected_bytes
from engine.planner.placement_state import PlacementState


def moves_for_bytes(state: PlacementState, targets: Mapping[int, int], tolerance: float) -> int:
    """Return the bound, given where counts should end and how uneven bytes may be."""
    least: dict[int, int] = {}
    for broker, target in targets.items():
        group = state.group_of[broker]
        least[group] = min(least.get(group, target), target)
    lacking = {b: least[state.group_of[b]] - state.counts[b] for b in targets}
    allowed = _most_bytes(state, tolerance)
    return sum(
        _moves_among(state, brokers, lacking, allowed) for brokers in _pools(state, list(targets))
    )


def moves_for_bytes_alone(state: PlacementState, tolerance: float) -> int:
    """Return the fewest moves by which bytes become level; counts may become uneven.

    Each broker that holds too much gives its largest replicas away until it does no longer.
    """
    return sum(
        _given_away(state, broker, state.held_bytes[broker] - most)
        for broker, most in enumerate(_most_bytes(state, tolerance))
        if state.in_play[broker]
    )


def _most_bytes(state: PlacementState, tolerance: float) -> list[float]:
    """Return the most bytes that each broker may hold once bytes are level.

    A replica that is smaller than its partition is as large as it once it is copied: all may hold
    more then.
    """
    growth = sum(max(0, state.sizes[p] - own) for (p, _), own in state.own_sizes.items())
    return [(expected + growth) * tolerance for expected in expected_bytes(state)]


def _pools(state: PlacementState, playing: Sequence[int]) -> list[list[int]]:
    """Return brokers among which replicas can move: racks where these are closed, or all."""
    if not state.has_racks or not _are_racks_closed(state):
        return [list(playing)]
    pools: dict[int, list[int]] = {}
    for broker in playing:
        pools.setdefault(state.group_of[broker], []).append(broker)
    return list(pools.values())


def _are_racks_closed(state: PlacementState) -> bool:
    """Return whether every rack must hold as many replicas of each partition as it does."""
    factors = {len(replicas) for replicas in state.replicas}
    is_fixed = all(low == high for factor in factors for low, high in state.limits.bounds(factor))
    return is_fixed and not any(map(state.fault_count, range(len(state.replicas))))


def _moves_among(
    state: PlacementState,
    brokers: Sequence[int],
    lacking: Mapping[int, int],
    allowed: Sequence[float],
) -> int:
    """Return the fewest moves among brokers, by replicas they lack and bytes they may hold."""
    to_heavy, to_others, excess_sum, absorbed = 0, 0, 0.0, 0.0
    heavy = [b for b in brokers if state.held_bytes[b] > allowed[b]]
    largest = max((_largest(state, b) for b in heavy), default=1)
    for broker in brokers:
        room = allowed[broker] - state.held_bytes[broker]
        if room < 0:
            excess_sum -= room
            to_heavy += max(0, _given_away(state, broker, -room) + lacking[broker])
            continue
        lack = max(0, lacking[broker])
        to_others += lack
        absorbed += min(room, lack * largest)
    if not heavy:
        return to_others
    if not state.own_sizes and excess_sum > absorbed:
        # A broker that takes one more than it lacks may give one of its largest for it.
        piece = max(_largest(state, broker) for broker in brokers)
        to_others += math.ceil((excess_sum - absorbed) / piece)
    return to_heavy + max(to_others, math.ceil(excess_sum / largest))


def _largest(state: PlacementState, broker: int) -> int:
    """Return the bytes of a broker's largest replica, at least 1 as the result is a divisor."""
    held = state.on_broker[broker]
    return max(1, state.size_at(held[-1], broker)) if held else 1


def _given_away(state: PlacementState, broker: int, excess: float) -> int:
    """Return the least number of replicas that a broker must give away to lose `excess` bytes."""
    given = 0
    for partition in reversed(state.on_broker[broker]):
        if excess <= 0:
            break
        excess -= state.size_at(partition, broker)
        given += 1
    return given
