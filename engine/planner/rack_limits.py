"""The largest number of a partition's replicas that one rack may have.

The limit is the smallest number with which all replicas can be placed: ⌈replicas / racks⌉, or more
if some racks have fewer brokers than that. Each replica above the limit is a rack fault.

| brokers by rack | replicas | limit |
|---|---|---|
| 4 4 4 | 3 | 1 |
| 4 4 | 3 | 2 |
| 1 5 | 4 | 3 |

A broker without a rack, among brokers with one, counts as a separate rack. If no broker has a rack,
or racks are ignored, all brokers are in one rack without a limit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.planner.cluster_model import BrokerModel
from engine.planner.constraints import RackRule


def rack_groups(brokers: Sequence[BrokerModel], rule: RackRule) -> list[int]:
    """Return the number of each broker's rack, in the order of `brokers`.

    A broker without a rack is a rack by itself; all are in one if racks are ignored.
    """
    if rule is RackRule.IGNORED or all(broker.rack is None for broker in brokers):
        return [0] * len(brokers)
    numbers: dict[tuple[str, int], int] = {}
    groups = []
    for broker in brokers:
        name = (broker.rack, -1) if broker.rack is not None else ("", broker.broker_id)
        groups.append(numbers.setdefault(name, len(numbers)))
    return groups


def rack_limit(replication_factor: int, brokers_by_group: Sequence[int]) -> int:
    """Return how many replicas of a partition a rack may have.

    `brokers_by_group` has the number of usable brokers in each rack.
    """
    if len(brokers_by_group) <= 1 or sum(brokers_by_group) < replication_factor:
        return replication_factor
    limit = 1
    while sum(min(limit, count) for count in brokers_by_group) < replication_factor:
        limit += 1
    return limit


class RackLimits:
    """Rack limits by replication factor, computed from the brokers that may hold replicas."""

    def __init__(self, groups: Sequence[int], usable: Sequence[bool]) -> None:
        """Create the limits from each broker's rack number and whether it may have replicas."""
        self.group_count = max(groups, default=-1) + 1
        #: Number of usable brokers in each rack.
        self.sizes = [0] * self.group_count
        for group, is_usable in zip(groups, usable, strict=True):
            self.sizes[group] += is_usable
        self._filled = [size for size in self.sizes if size]
        #: Cached limits, by replication factor.
        self._limits: dict[int, int] = {}

    def limit(self, replication_factor: int) -> int:
        """Return how many replicas of a partition a rack may have at a replication factor."""
        known = self._limits.get(replication_factor)
        if known is None:
            known = rack_limit(replication_factor, self._filled)
            self._limits[replication_factor] = known
        return known

    def bounds(self, replication_factor: int) -> list[tuple[int, int]]:
        """Return the fewest and the most replicas of a partition that each rack may have."""
        limit = self.limit(replication_factor)
        most = [min(limit, size) for size in self.sizes]
        room = sum(most)
        return [(max(0, replication_factor - (room - own)), own) for own in most]


def fault_count(
    replicas: Sequence[int], group_of: Sequence[int] | Mapping[int, int], limit: int
) -> int:
    """Return how many of a partition's replicas exceed the limit of their rack."""
    counts: dict[int, int] = {}
    for broker in replicas:
        group = group_of[broker]
        counts[group] = counts.get(group, 0) + 1
    return sum(count - limit for count in counts.values() if count > limit)
