"""Exchange replicas between brokers so that bytes are level and counts stay.

```
broker x has too many bytes, y too few, both have their target count of replicas
p on x is larger than q on y by about the excess of x:   p moves to y, q to x
```

Most exchanges are free: two replicas that move anyway may exchange their targets, or a replica may
stay while another one of its broker moves instead. Only the remaining difference costs additional
moves, and only if level bytes are requested.

The target of a broker is the level that racks permit: if each rack must have a copy of everything,
brokers in small racks have more, and no move changes that.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from engine.planner.placement_state import PlacementState

#: Number of replicas of a broker, spread over the sizes, for which a counterpart is searched.
_ANCHORS: Final = 24
#: Number of replicas of similar size that are tried on each side of the best one.
_NEIGHBOURS: Final = 4
#: Most departed replicas that are searched for moves between two brokers.
_SEARCHED_MAX: Final = 800
#: Free exchanges continue until no broker has more than this times its target.
_FREE_TOLERANCE: Final = 1.002
#: Number of lightest brokers to try as partners, in the same rack and in other racks each.
_PARTNERS: Final = 16
#: Paid exchanges of which a broker would need more than this are not made: otherwise one partition
#: larger than a broker's target would drive away all its other replicas.
_EXCHANGES_MAX: Final = 200
#: Largest number of passes over all overloaded brokers.
_PASSES_MAX: Final = 12


class ReplicaExchange(NamedTuple):
    """An exchange: `there` moves from `heavy` to `light`, `back` (None for none) in return."""

    there: int
    heavy: int
    light: int
    back: int | None
    cost: int
    #: Difference between the relief of `heavy` and the wanted relief, in bytes.
    miss: int

    def worth(self, wanted: int) -> float:
        """Return the worth of an exchange: how many of the `wanted` bytes each of its moves brings.

        An exchange without additional moves counts tenfold.
        """
        return (wanted - self.miss) / (max(self.cost, 0) + 0.1)


def expected_bytes(state: PlacementState, held: Sequence[int] | None = None) -> list[float]:
    """Return the bytes that each broker should have, as level as racks permit.

    `held` are the bytes that brokers have, by default those of the search.
    """
    playing = [b for b in range(len(state.brokers)) if state.in_play[b]]
    total = float(sum((held or state.held_bytes)[b] for b in playing))
    expected = [0.0] * len(state.brokers)
    groups = {state.group_of[b]: 0 for b in playing}
    for broker in playing:
        groups[state.group_of[broker]] += 1
    bounds = _group_bytes(state) if state.has_racks else {}
    open_groups = dict(groups)
    left = total
    # Racks that cannot be level get their minimum or maximum; the rest is shared by the other
    # racks.
    while open_groups:
        level = left / sum(open_groups.values())
        outside = {
            group: bound
            for group, count in open_groups.items()
            if group in bounds
            and (bound := min(max(level * count, bounds[group][0]), bounds[group][1]))
            != level * count
        }
        if not outside:
            break
        worst = max(outside, key=lambda g: (abs(outside[g] - level * open_groups[g]), -g))
        for broker in playing:
            if state.group_of[broker] == worst:
                expected[broker] = outside[worst] / groups[worst]
        left -= outside[worst]
        del open_groups[worst]
    for broker in playing:
        if state.group_of[broker] in open_groups:
            expected[broker] = left / sum(open_groups.values())
    return expected


def _group_bytes(state: PlacementState) -> dict[int, tuple[float, float]]:
    """Return the fewest and the most bytes that the brokers of each rack together can have."""
    by_factor: dict[int, int] = {}
    for replicas, size in zip(state.replicas, state.sizes, strict=True):
        by_factor[len(replicas)] = by_factor.get(len(replicas), 0) + size
    bounds = dict.fromkeys(range(len(state.members)), (0.0, 0.0))
    for factor, size in by_factor.items():
        for group, (fewest, most) in enumerate(state.limits.bounds(factor)):
            low, high = bounds[group]
            bounds[group] = (low + fewest * size, high + most * size)
    return bounds


class ByteBalancing:
    """The search for exchanges that level bytes, heaviest broker first."""

    def __init__(
        self, state: PlacementState, *, max_moves: int | None = None, max_bytes: int | None = None
    ) -> None:
        """Create the search, with limits of moves and copied bytes; None means no limit."""
        self._state = state
        #: Target bytes of each broker.
        self.expected = expected_bytes(state)
        self._max_moves = max_moves
        self._max_bytes = max_bytes
        #: Brokers that the search may use, by index.
        self._playing = [b for b in range(len(state.brokers)) if state.in_play[b]]

    def level_free(self) -> None:
        """Make exchanges that need no additional move, until bytes are level or none helps."""
        self._level(_FREE_TOLERANCE, max_cost=0)

    def level_paid(self, tolerance: float) -> None:
        """Make exchanges until no broker exceeds `tolerance` times its target, or none helps."""
        self._level(tolerance, max_cost=2)

    def _excess(self, broker: int) -> float:
        """Return a broker's bytes above its target; negative if it is below."""
        return self._state.held_bytes[broker] - self.expected[broker]

    def highest(self) -> float:
        """Return the highest ratio of a broker's bytes to its target, 0 if all targets are 0."""
        held = self._state.held_bytes
        return max(
            (held[b] / self.expected[b] for b in self._playing if self.expected[b]), default=0
        )

    def _level(self, tolerance: float, max_cost: int) -> None:
        """Relieve the brokers above their target in passes, until a pass brings little.

        `tolerance` is the highest permitted ratio to the target, `max_cost` the most additional
        moves
        of an exchange.
        """
        highest = self.highest()
        for _ in range(_PASSES_MAX):
            self._relieve_all(tolerance, max_cost)
            before, highest = highest, self.highest()
            if highest <= tolerance or before - highest < (before - 1) / 50:
                return

    def _relieve_all(self, tolerance: float, max_cost: int) -> None:
        """Apply exchanges, each for the broker with the largest excess that has one.

        Ends when that broker is within the tolerance, or when no broker above it has an exchange.
        """
        without_exchange: set[int] = set()
        while True:
            heavy = max(
                (b for b in self._playing if b not in without_exchange),
                key=lambda b: (self._excess(b), -b),
                default=None,
            )
            if heavy is None or self._excess(heavy) <= self.expected[heavy] * (tolerance - 1):
                return
            exchange = self._best_exchange(heavy, max_cost)
            if exchange is None:
                without_exchange.add(heavy)
            else:
                self._apply(exchange)

    def _best_exchange(self, heavy: int, max_cost: int) -> ReplicaExchange | None:
        """Return the exchange that helps the broker `heavy` most, None if none helps.

        An exchange without additional moves is returned at once, from the lightest partner.
        """
        excess = self._excess(heavy)
        best, best_worth = None, 0.0
        for light in self._partners(heavy, max_cost):
            room = excess - self._excess(light)
            if room < 2:
                continue
            lack = -self._excess(light)
            wanted = int(min(excess, lack) if lack >= excess / 4 else room / 2)
            exchange = self._best_exchange_with(heavy, light, wanted, int(room), max_cost)
            if exchange is None:
                continue
            if max_cost == 0:
                return exchange
            if exchange.worth(wanted) > best_worth:
                best, best_worth = exchange, exchange.worth(wanted)
        return best

    def _partners(self, heavy: int, max_cost: int) -> list[int]:
        """Return the lightest brokers with which `heavy` may exchange, those of its rack first."""
        state = self._state
        moved = bool(state.arrived[heavy])
        possible = [
            b for b in self._playing if b != heavy and (max_cost > 0 or moved or state.arrived[b])
        ]
        possible.sort(key=lambda b: (self._excess(b), b))
        group_of = state.group_of
        same_rack = [b for b in possible if group_of[b] == group_of[heavy]]
        other_racks = [b for b in possible if group_of[b] != group_of[heavy]]
        return same_rack[:_PARTNERS] + other_racks[:_PARTNERS]

    def _best_exchange_with(
        self, heavy: int, light: int, wanted: int, room: int, max_cost: int
    ) -> ReplicaExchange | None:
        """Return the exchange with the partner `light` that is worth most, None if none helps.

        `wanted` is the best relief in bytes, `room` (exclusive) the largest that helps both
        brokers.
        """
        best: ReplicaExchange | None = None
        wanted = max(wanted, 1)
        excess = self._excess(heavy)
        for there, back in self._candidate_pairs(heavy, light, wanted, max_cost):
            exchange = self._checked_exchange(heavy, light, there, back, wanted, room)
            if exchange is None or exchange.cost > max_cost or not self._is_in_budget(exchange):
                continue
            if exchange.cost > 0 and (wanted - exchange.miss) * _EXCHANGES_MAX < excess:
                continue
            if best is None or exchange.worth(wanted) > best.worth(wanted):
                best = exchange
                if best.cost <= 0 and best.miss * 50 < wanted:
                    break
        return best

    def _candidate_pairs(
        self, heavy: int, light: int, wanted: int, max_cost: int
    ) -> Iterator[tuple[int, int | None]]:
        """Yield partitions to exchange between two brokers, first those whose replicas move anyway.

        Each is (to `light`, to `heavy`); the second is None if nothing is moved back.
        """
        state = self._state
        moved_there, moved_here = state.arrived[heavy], state.arrived[light]
        for there in _spread_over_sizes(moved_there):
            for back in self._replicas_near_size(moved_here, state.sizes[there] - wanted):
                yield there, back
        for back in _spread_over_sizes(self._moved_between(heavy, light)):
            for there in self._replicas_near_size(
                state.on_broker[heavy], state.sizes[back] + wanted
            ):
                yield there, back
        for there in _spread_over_sizes(self._moved_between(light, heavy)):
            for back in self._replicas_near_size(
                state.on_broker[light], state.sizes[there] - wanted
            ):
                yield there, back
        if max_cost > 0:
            yield from self._paid_pairs(heavy, light, wanted)

    def _moved_between(self, source: int, target: int) -> list[int]:
        """Return the partitions of which this plan moves a replica from `source` to `target`.

        Of very many only a sample is returned, to keep the search short.
        """
        departed = self._state.departed[source]
        replicas, original = self._state.replicas, self._state.original
        stride = 1 + len(departed) // _SEARCHED_MAX
        return [
            partition
            for partition in departed[::stride]
            if target in replicas[partition] and target not in original[partition]
        ]

    def _paid_pairs(self, heavy: int, light: int, wanted: int) -> Iterator[tuple[int, int | None]]:
        """Yield exchanges that need additional moves; (there, None) moves one replica only."""
        state = self._state
        # A broker with a higher count than another of its rack may give it one: counts stay as
        # level.
        same_rack = state.group_of[heavy] == state.group_of[light]
        if same_rack and state.counts[heavy] > state.counts[light]:
            for there in self._replicas_near_size(state.on_broker[heavy], wanted):
                yield there, None
        for there in _spread_over_sizes(state.on_broker[heavy]):
            for back in self._replicas_near_size(
                state.on_broker[light], state.sizes[there] - wanted
            ):
                yield there, back

    def _replicas_near_size(self, held: Sequence[int], size: int) -> Iterator[int]:
        """Yield a few of the partitions `held` whose size is about `size`, closest first."""
        at = bisect_left(held, bisect_left(self._state.sizes, size))
        low, high = at - 1, at
        for _ in range(_NEIGHBOURS):
            if high < len(held):
                yield held[high]
                high += 1
            if low >= 0:
                yield held[low]
                low -= 1

    def _checked_exchange(
        self, heavy: int, light: int, there: int, back: int | None, wanted: int, room: int
    ) -> ReplicaExchange | None:
        """Return the exchange of two replicas, None if it does not help or is not permitted.

        `there` is the partition that moves to `light`, `back` the one that moves to `heavy`, None
        for none.
        """
        state = self._state
        relief = state.size_at(there, heavy) - (0 if back is None else state.size_at(back, heavy))
        burden = state.size_at(there, light) - (0 if back is None else state.size_at(back, light))
        if relief <= 0 or relief >= room or there == back:
            return None
        if not self._helps(heavy, light, relief, burden):
            return None
        if not self._is_allowed(heavy, light, there, back):
            return None
        cost = state.cost(there, heavy, light)
        if back is not None:
            cost += state.cost(back, light, heavy)
        return ReplicaExchange(there, heavy, light, back, cost, abs(relief - wanted))

    def _helps(self, heavy: int, light: int, relief: int, burden: int) -> bool:
        """Return True if an exchange brings both brokers together closer to their expected bytes.

        Each exchange decreases the sum of squares, so the search ends.
        """
        above, below = self._excess(heavy), self._excess(light)
        return (above - relief) ** 2 + (below + burden) ** 2 + 1 < above**2 + below**2

    def _is_allowed(self, heavy: int, light: int, there: int, back: int | None) -> bool:
        """Return True if both replicas may move, each before the other one has left."""
        state = self._state
        return state.may_move(there, heavy, light) and (
            back is None or state.may_move(back, light, heavy)
        )

    def _is_in_budget(self, exchange: ReplicaExchange) -> bool:
        """Return True if the plan stays within its limits of moves and bytes with an exchange."""
        state = self._state
        if self._max_moves is not None and state.moves + exchange.cost > self._max_moves:
            return False
        if self._max_bytes is None:
            return True
        there, back = exchange.there, exchange.back
        added = state.copied_bytes(there) * state.cost(there, exchange.heavy, exchange.light)
        if back is not None:
            added += state.copied_bytes(back) * state.cost(back, exchange.light, exchange.heavy)
        return added <= 0 or state.bytes_moved + added <= self._max_bytes

    def _apply(self, exchange: ReplicaExchange) -> None:
        """Move both replicas of an exchange."""
        state = self._state
        state.move(exchange.there, exchange.heavy, exchange.light)
        if exchange.back is not None:
            state.move(exchange.back, exchange.light, exchange.heavy)


def _spread_over_sizes(held: Sequence[int]) -> Iterator[int]:
    """Yield a few partitions of `held`, which is sorted by size, from the largest to the smallest.

    They are spread evenly over the sizes.
    """
    count = len(held)
    if count <= _ANCHORS:
        yield from reversed(held)
        return
    for number in range(_ANCHORS):
        yield held[count - 1 - number * (count - 1) // (_ANCHORS - 1)]
