"""The target number of replicas of each broker, and the fewest moves to reach it.

All brokers get one common level, but not fewer replicas than must stay on a broker and not more
than it may have; the sum of a rack stays between the fewest replicas that it must have and the most
that it may have. Replicas left over by the whole-numbered level go to the brokers with the most
replicas, one each: these would have to give one away otherwise.

```
brokers  a a a b b b      counts 9 5 4 6 6 6, no bounds: level 6, none left: 6 6 6 6 6 6, 3 moves
one replica of each partition in each rack, 18 partitions: the same within each rack
two added to rack a, old ones give only:  9 5 4 0 0 → 5 5 4 2 2
```
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple


class CountBounds(NamedTuple):
    """The least and largest permitted number of replicas of a broker, and the present one."""

    broker: int
    group: int
    held: int
    lowest: int
    highest: int

    def at(self, level: int) -> int:
        """Return the broker's target count if all brokers aim at `level`, within its bounds."""
        return min(max(level, self.lowest), self.highest)


def level_counts(
    bounds: Sequence[CountBounds], group_bounds: Sequence[tuple[int, int]], total: int
) -> dict[int, int]:
    """Return the target count of replicas of each broker, as level as the bounds permit.

    `bounds` are those of brokers, `group_bounds` those of racks; the sum is `total` if they
    permit it. Of equal brokers, those that have more now get one more.
    """
    groups: dict[int, list[CountBounds]] = {}
    for bound in bounds:
        groups.setdefault(bound.group, []).append(bound)

    reach = {
        group: (sum(b.lowest for b in members), sum(b.highest for b in members))
        for group, members in groups.items()
    }

    def held(group: int, level: int) -> int:
        """Return the replicas of a rack at a level, within its bounds."""
        fewest, most = group_bounds[group]
        bounded = min(max(sum(b.at(level) for b in groups[group]), fewest), most)
        return min(max(bounded, reach[group][0]), reach[group][1])

    level = _highest_level(lambda at: sum(held(group, at) for group in groups), total)
    totals = {group: held(group, level) for group in groups}
    left = total - sum(totals.values())
    rising = [b for b in bounds if b.at(level + 1) > b.at(level)]
    rising.sort(key=lambda b: (-b.held, b.broker))
    now = {group: sum(b.held for b in members) for group, members in groups.items()}
    # Racks that hold more now come first, so that as few replicas as possible must move.
    for most in (now, dict.fromkeys(groups, total)):
        for bound in rising:
            group = bound.group
            if left > 0 and totals[group] < min(held(group, level + 1), most[group]):
                totals[group] += 1
                left -= 1
    targets: dict[int, int] = {}
    for group, members in groups.items():
        targets.update(_level_group(members, totals[group]))
    return targets


def _level_group(members: Sequence[CountBounds], total: int) -> dict[int, int]:
    """Return the target count of each broker in a rack.

    Their sum is `total` if bounds permit it.
    """
    level = _highest_level(lambda at: sum(b.at(at) for b in members), total)
    targets = {b.broker: b.at(level) for b in members}
    left = total - sum(targets.values())
    rising = [b for b in members if b.at(level + 1) > b.at(level)]
    for bound in sorted(rising, key=lambda b: (-b.held, b.broker))[: max(left, 0)]:
        targets[bound.broker] += 1
    return targets


def _highest_level(held: Callable[[int], int], total: int) -> int:
    """Return the highest common count of brokers at which `held` is at most `total`.

    `held` returns the sum of the brokers' counts at a level, and does not fall as the level
    rises.
    """
    low, high = 0, max(total, 1)
    while low < high:
        middle = (low + high + 1) // 2
        if held(middle) <= total:
            low = middle
        else:
            high = middle - 1
    return low


def moves_between(counts: Sequence[int], targets: dict[int, int]) -> int:
    """Return the fewest moves from the counts to the targets: how many replicas brokers lack."""
    return sum(max(0, target - counts[broker]) for broker, target in targets.items())


def clamp_to_moves(counts: Sequence[int], targets: dict[int, int], moves: int) -> dict[int, int]:
    """Return targets between the counts and `targets` that at most `moves` moves reach.

    The fullest and emptiest brokers change first. A later plan continues from these targets.
    """
    if moves_between(counts, targets) <= moves:
        return targets
    highest = _lowest_level(
        lambda level: sum(max(0, counts[b] - max(level, t)) for b, t in targets.items()),
        moves,
        max(counts),
    )
    lowest = _highest_level(
        lambda rise: sum(max(0, min(rise, t) - counts[b]) for b, t in targets.items()), moves
    )
    clamped = {
        b: max(t, min(highest, counts[b])) if t < counts[b] else max(min(t, lowest), counts[b])
        for b, t in targets.items()
    }
    return _use_remaining_moves(counts, targets, clamped, moves)


def _lowest_level(given: Callable[[int], int], moves: int, high: int) -> int:
    """Return the lowest level to which brokers can be lowered with at most `moves` moves.

    `given` returns the replicas that they give away at a level.
    """
    low = 0
    while low < high:
        middle = (low + high) // 2
        if given(middle) <= moves:
            high = middle
        else:
            low = middle + 1
    return low


def _use_remaining_moves(
    counts: Sequence[int], targets: dict[int, int], clamped: dict[int, int], moves: int
) -> dict[int, int]:
    """Return clamped targets with the remaining moves used up, one for each broker in order."""
    result = dict(clamped)
    givers = sum(max(0, counts[b] - t) for b, t in result.items())
    takers = sum(max(0, t - counts[b]) for b, t in result.items())
    for broker in sorted(result, key=lambda b: (-result[b], b)):
        if givers < moves and result[broker] > targets[broker]:
            result[broker] -= 1
            givers += 1
    for broker in sorted(result, key=lambda b: (result[b], b)):
        if takers < moves and result[broker] < targets[broker]:
            result[broker] += 1
            takers += 1
    return result
