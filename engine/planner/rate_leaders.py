"""Leaders by the bytes that their followers fetch each second: (replicas - 1) times the writes.

```
a leads p (90) and q (10), b leads r (20) and s (20), each has a replica of all four
a and b change leadership of p and r:  a 30, b 110: no
a and b change leadership of p and s, and of q and nothing, ...: the pair that levels best
```

Two brokers exchange leadership of a partition each, so that each leads as many as before; where the
count of leaders is no goal, or one leads more than the other, one is handed over alone. No replica
moves. Fetches of consumers are not counted: no request tells it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Final, NamedTuple

from engine.planner.placement_state import PlacementState

#: Leaderships near the wanted rate that are tried for each of the other.
_NEIGHBOURS: Final = 2
#: An exchange that brings less than this part of what a broker is above its level is not worth it.
_EXCHANGES_MAX: Final = 200


class LeaderExchange(NamedTuple):
    """A leadership that moves from one broker to another, and one that moves back, if any."""

    there: int
    heavy: int
    light: int
    back: int | None
    #: Sum of the squares of what both are from their level then.
    distance: float


class RateLeaders:
    """The search for exchanges of leadership, the broker with the most bytes out first."""

    def __init__(self, state: PlacementState, *, keeps_counts: bool) -> None:
        """With `keeps_counts` the numbers of leaderships do not become less even."""
        self._state = state
        self._keeps_counts = keeps_counts
        #: Bytes per second that each partition's leader sends to followers.
        self.rates = [
            partition.write_rate * (len(replicas) - 1)
            for partition, replicas in zip(state.partitions, state.replicas, strict=True)
        ]
        count = len(state.brokers)
        #: Sum of those rates, and number of leaderships, by broker index.
        self.out = [0] * count
        self.leads = [0] * count
        for rate, replicas in zip(self.rates, state.replicas, strict=True):
            self.out[replicas[0]] += rate
            self.leads[replicas[0]] += 1
        self._playing = [b for b in range(count) if state.in_play[b]]
        total = sum(self.out[b] for b in self._playing)
        #: Mean of `out` over the brokers that the search may use.
        self.mean = total / len(self._playing) if self._playing else 0.0

    def level(self) -> float:
        """Exchange leaders until bytes out are level; returns the highest by the mean."""
        most = self.mean * self._state.constraints.rate_tolerance
        done: set[int] = set()
        while self.mean:
            heavy = max(
                (b for b in self._playing if b not in done),
                key=lambda b: (self.out[b], -b),
                default=None,
            )
            if heavy is None or self.out[heavy] <= most:
                break
            exchange = self._best(heavy)
            if exchange is None:
                done.add(heavy)
            else:
                self._apply(exchange)
        return max((self.out[b] for b in self._playing), default=0) / (self.mean or 1)

    def _may_lead(self, partition: int, broker: int) -> bool:
        """Return True if a broker in play has a caught-up replica of a movable partition."""
        state = self._state
        return (
            state.movable[partition]
            and state.in_play[broker]
            and (partition, broker) not in state.lagging
        )

    def _best(self, heavy: int) -> LeaderExchange | None:
        """Return the exchange after which both brokers are nearest to their level."""
        above = self.out[heavy] - self.mean
        offers = self._offers(heavy)
        best: LeaderExchange | None = None
        for partition in self._state.on_broker[heavy]:
            replicas = self._state.replicas[partition]
            if replicas[0] != heavy or not self.rates[partition]:
                continue
            for light in replicas[1:]:
                if self.out[light] >= self.out[heavy] or not self._may_lead(partition, light):
                    continue
                for back in self._backs(partition, heavy, light, offers.get(light, [])):
                    relief = self.rates[partition] - (0 if back is None else self.rates[back])
                    below = self.out[light] - self.mean
                    distance = (above - relief) ** 2 + (below + relief) ** 2
                    # In whole numbers: rounding could favour a trade of places again and again.
                    helps = 0 < relief < self.out[heavy] - self.out[light]
                    is_worth_it = relief * _EXCHANGES_MAX >= above
                    if helps and is_worth_it and (best is None or distance < best.distance):
                        best = LeaderExchange(partition, heavy, light, back, distance)
        return best

    def _offers(self, heavy: int) -> dict[int, list[tuple[int, int]]]:
        """Return the partitions that `heavy` could lead, by their leader, sorted by rate."""
        offers: dict[int, list[tuple[int, int]]] = {}
        for partition in self._state.on_broker[heavy]:
            replicas = self._state.replicas[partition]
            if replicas[0] != heavy and self._may_lead(partition, heavy):
                offers.setdefault(replicas[0], []).append((self.rates[partition], partition))
        for offered in offers.values():
            offered.sort()
        return offers

    def _backs(
        self, partition: int, heavy: int, light: int, offered: list[tuple[int, int]]
    ) -> Iterator[int | None]:
        """Yield leaderships to take in exchange, the nearest by rate; None for none."""
        if not self._keeps_counts or self.leads[heavy] > self.leads[light]:
            yield None
        wanted = (self.out[heavy] - self.out[light]) / 2
        at = bisect_left(offered, (int(self.rates[partition] - wanted), -1))
        for place in range(max(0, at - _NEIGHBOURS), min(len(offered), at + _NEIGHBOURS)):
            yield offered[place][1]

    def _apply(self, exchange: LeaderExchange) -> None:
        """Move one partition's leadership to the light broker, and the exchanged one back."""
        self._lead(exchange.there, exchange.light)
        if exchange.back is not None:
            self._lead(exchange.back, exchange.heavy)

    def _lead(self, partition: int, broker: int) -> None:
        """Make a broker the leader of a partition, and update bytes out and counts."""
        replicas = self._state.replicas[partition]
        leader = replicas[0]
        self.out[leader] -= self.rates[partition]
        self.out[broker] += self.rates[partition]
        self.leads[leader] -= 1
        self.leads[broker] += 1
        at = replicas.index(broker)
        replicas[0], replicas[at] = broker, leader
