"""The target counts of a search, by the rule of its verb.

| rule | a broker that receives replicas | an old broker, when brokers are added |
|---|---|---|
| all level | may fall to its immovable replicas, and rise | – |
| added rise | may rise | may fall, never rise |
| none sinks | may rise from its former count | – |
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import Enum

from engine.planner.count_targets import CountBounds, level_counts
from engine.planner.placement_state import UNBOUNDED, PlacementState


class TargetRule(Enum):
    """How a verb may change the counts of brokers."""

    ALL_LEVEL = "all level"
    ADDED_RISE = "added rise"
    NONE_SINKS = "none sinks"


def find_targets(
    state: PlacementState, rule: TargetRule, before: Sequence[int] | None = None
) -> dict[int, int]:
    """Return the target count of replicas of each broker, with racks as balanced as possible.

    `rule` limits which brokers may gain or lose replicas. `before` are the counts that
    NONE_SINKS must keep: those before any placement.
    """
    bounds = _broker_bounds(state, rule, before)
    total = sum(bound.held for bound in bounds)
    return level_counts(bounds, _group_bounds(state), total)


def targets_within_racks(state: PlacementState, rule: TargetRule) -> dict[int, int]:
    """Return the target count of each broker if each rack keeps its number of replicas."""
    bounds = _broker_bounds(state, rule, None)
    held = [sum(state.counts[b] for b in m if state.in_play[b]) for m in state.members]
    return level_counts(bounds, [(count, count) for count in held], sum(held))


def _broker_bounds(
    state: PlacementState, rule: TargetRule, before: Sequence[int] | None
) -> list[CountBounds]:
    """Return the lowest and highest count that a rule permits for each broker that takes part."""
    fixed = _immovable_counts(state)
    bounds = []
    for broker in range(len(state.brokers)):
        if not state.in_play[broker]:
            continue
        count = state.counts[broker]
        lowest, highest = fixed[broker], UNBOUNDED
        if rule is TargetRule.NONE_SINKS:
            lowest = min(count, before[broker] if before is not None else count)
        elif rule is TargetRule.ADDED_RISE and state.receives[broker]:
            lowest = count
        elif rule is TargetRule.ADDED_RISE:
            highest = count
        bounds.append(CountBounds(broker, state.group_of[broker], count, lowest, highest))
    return bounds


def _immovable_counts(state: PlacementState) -> list[int]:
    """Return by broker the number of its replicas that must not move."""
    fixed = [0] * len(state.brokers)
    if all(state.movable):
        return fixed
    for movable, replicas in zip(state.movable, state.replicas, strict=True):
        if not movable:
            for broker in replicas:
                fixed[broker] += 1
    return fixed


def _group_bounds(state: PlacementState) -> list[tuple[int, int]]:
    """Return the fewest and the most replicas that each rack's brokers may have."""
    if not state.has_racks:
        return [(0, UNBOUNDED)]
    groups = range(len(state.members))
    lows, highs = [0] * len(groups), [0] * len(groups)
    beyond = _partitions_beyond_limits(state)
    factors = Counter(map(len, state.replicas))
    factors.subtract(len(state.replicas[number]) for number in beyond)
    for factor, count in factors.items():
        for group, (low, high) in enumerate(state.limits.bounds(factor)):
            lows[group] += low * count
            highs[group] += high * count
    for number in beyond:
        replicas = state.replicas[number]
        held = [state.group_of[broker] for broker in replicas]
        bounds = state.limits.bounds(len(replicas))
        for group, (low, high) in enumerate(bounds):
            actual = held.count(group)
            movable = state.movable[number]
            lows[group] += min(low, actual) if movable else actual
            highs[group] += max(high, actual) if movable else actual
    for broker, group in enumerate(state.group_of):
        if not state.in_play[broker]:
            lows[group] = max(0, lows[group] - state.counts[broker])
            highs[group] = max(0, highs[group] - state.counts[broker])
    return list(zip(lows, highs, strict=True))


def _partitions_beyond_limits(state: PlacementState) -> list[int]:
    """Return the partitions that cannot move, exceed a rack's limit, or have a dead broker."""
    unusable = {broker for broker, usable in enumerate(state.usable) if not usable}
    return [
        number
        for number, replicas in enumerate(state.replicas)
        if not state.movable[number]
        or state.fault_count(number)
        or (unusable and not unusable.isdisjoint(replicas))
    ]
