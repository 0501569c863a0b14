"""A lower bound of the moves by which both bytes and counts become level.

A broker above its bytes gives away at least as many of its largest replicas as cover the excess,
and then receives as many as its count lacks. The excess bytes of all such brokers go to the other
brokers, in pieces not larger than the largest replica. Brokers below their count receive them with
the replicas they lack, up to their room. Each remaining piece costs an additional move, since a
broker that receives more replicas than it lacks gives as many away.

```
counts stay 100 each, one broker 40 GB above, its largest replicas 30, 20, ... GB:
two must leave it, two must come to it, two must go to other brokers: at least 4 moves
```

If every rack must have its share of each partition, no replica moves between racks, and each rack
is counted separately.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from engine.planner.byte_balancing import expected_bytes
from engine.planner.placement_state import PlacementState


def fewest_moves_for_bytes(
    state: PlacementState, targets: Mapping[int, int], tolerance: float
) -> int:
    """Return a lower bound of the moves that level bytes if brokers end with the target counts.

    The module's docstring derives the bound. `tolerance` is the highest permitted ratio of a
    broker's bytes to its target bytes.
    """
    least: dict[int, int] = {}
    for broker, target in targets.items():
        group = state.group_of[broker]
        least[group] = min(least.get(group, target), target)
    lacking = {b: least[state.group_of[b]] - state.counts[b] for b in targets}
    allowed = _most_bytes(state, tolerance)
    return sum(
        _fewest_moves_among(state, brokers, lacking, allowed)
        for brokers in _movable_groups(state, list(targets))
    )


def fewest_moves_for_bytes_alone(state: PlacementState, tolerance: float) -> int:
    """Return a lower bound of the moves that level bytes if counts may become uneven.

    Each broker with too many bytes gives away its largest replicas until it has few enough.
    """
    return sum(
        _fewest_given_away(state, broker, state.held_bytes[broker] - most)
        for broker, most in enumerate(_most_bytes(state, tolerance))
        if state.in_play[broker]
    )


def _most_bytes(state: PlacementState, tolerance: float) -> list[float]:
    """Return the most bytes that each broker may have once bytes are level.

    A replica that is smaller than its partition grows to its size when it is copied: all limits
    are higher by that.
    """
    growth = sum(max(0, state.sizes[p] - own) for (p, _), own in state.own_sizes.items())
    return [(expected + growth) * tolerance for expected in expected_bytes(state)]


def _movable_groups(state: PlacementState, playing: Sequence[int]) -> list[list[int]]:
    """Return the groups of brokers among which replicas can move.

    These are the racks if every rack must keep its number of replicas, else one group of all.
    `playing` are the brokers that take part in balancing.
    """
    if not state.has_racks or not _are_racks_closed(state):
        return [list(playing)]
    pools: dict[int, list[int]] = {}
    for broker in playing:
        pools.setdefault(state.group_of[broker], []).append(broker)
    return list(pools.values())


def _are_racks_closed(state: PlacementState) -> bool:
    """Return True if every rack must keep its number of replicas of each partition."""
    factors = {len(replicas) for replicas in state.replicas}
    is_fixed = all(low == high for factor in factors for low, high in state.limits.bounds(factor))
    return is_fixed and not any(map(state.fault_count, range(len(state.replicas))))


def _fewest_moves_among(
    state: PlacementState,
    brokers: Sequence[int],
    lacking: Mapping[int, int],
    allowed: Sequence[float],
) -> int:
    """Return a lower bound of the moves among the brokers of one group.

    The module's docstring describes the bound. `lacking` has the replicas that each broker lacks
    (negative: surplus), `allowed` the most bytes that each may have.
    """
    to_heavy, to_others, excess_sum, absorbed = 0, 0, 0.0, 0.0
    heavy = [b for b in brokers if state.held_bytes[b] > allowed[b]]
    largest = max((_largest_bytes(state, b) for b in heavy), default=1)
    for broker in brokers:
        room = allowed[broker] - state.held_bytes[broker]
        if room < 0:
            excess_sum -= room
            to_heavy += max(0, _fewest_given_away(state, broker, -room) + lacking[broker])
            continue
        lack = max(0, lacking[broker])
        to_others += lack
        absorbed += min(room, lack * largest)
    if not heavy:
        return to_others
    if not state.own_sizes and excess_sum > absorbed:
        # A broker that receives one more than it lacks may give one of its largest for it.
        piece = max(_largest_bytes(state, broker) for broker in brokers)
        to_others += math.ceil((excess_sum - absorbed) / piece)
    return to_heavy + max(to_others, math.ceil(excess_sum / largest))


def _largest_bytes(state: PlacementState, broker: int) -> int:
    """Return the bytes of a broker's largest replica, at least 1 because it is a divisor."""
    held = state.on_broker[broker]
    return max(1, state.size_at(held[-1], broker)) if held else 1


def _fewest_given_away(state: PlacementState, broker: int, excess: float) -> int:
    """Return the fewest replicas that a broker must give away to lose `excess` bytes."""
    given = 0
    for partition in reversed(state.on_broker[broker]):
        if excess <= 0:
            break
        excess -= state.size_at(partition, broker)
        given += 1
    return given
