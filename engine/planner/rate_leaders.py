"""Balancing of the bytes per second that followers fetch from leaders.

(replicas - 1) times the writes.

```
a leads p (90) and q (10), b leads r (20) and s (20), each has a replica of all four
exchange of p and r:  a 30, b 110: rejected
other exchanges are tried: p and s, q and nothing, ...: the one that levels best is made
```

Two brokers exchange the leadership of one partition each, so that each leads as many as before. If
the count of leaders is no goal, or one broker leads more than the other, a single leadership is
transferred. No replica moves. Fetches of consumers are not counted: no request returns them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Final, NamedTuple

from engine.planner.placement_state import PlacementState

#: How many leaderships below and above the wanted rate are tried in exchange for each one.
_NEIGHBOURS: Final = 2
#: An exchange is not made if it reduces a broker's excess by less than this share.
_EXCHANGES_MAX: Final = 200


class LeaderExchange(NamedTuple):
    """A leadership that moves from a heavy to a light broker, and one that moves back, if any."""

    there: int
    heavy: int
    light: int
    back: int | None
    #: Sum of the squared differences of both brokers from the mean, after the exchange.
    distance: float


class RateLeaders:
    """The search for exchanges of leadership; the broker with the most bytes out comes first."""

    def __init__(self, state: PlacementState, *, keeps_counts: bool) -> None:
        """Create the search; with `keeps_counts` the numbers of leaders do not become less even."""
        self._state = state
        self._keeps_counts = keeps_counts
        #: Bytes per second that each partition's leader sends to followers.
        self.rates = [
            partition.write_rate * (len(replicas) - 1)
            for partition, replicas in zip(state.partitions, state.replicas, strict=True)
        ]
        count = len(state.brokers)
        #: Sum of those rates, and number of partitions that are led, by broker number.
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
        """Exchange leaders until bytes out are level.

        Returns the highest load divided by the mean.
        """
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
            exchange = self._best_exchange(heavy)
            if exchange is None:
                done.add(heavy)
            else:
                self._apply(exchange)
        return max((self.out[b] for b in self._playing), default=0) / (self.mean or 1)

    def _may_lead(self, partition: int, broker: int) -> bool:
        """Return True if a broker may get the leadership of a partition.

        It takes part and has an in-sync replica, and the plan may change the partition.
        """
        state = self._state
        return (
            state.movable[partition]
            and state.in_play[broker]
            and (partition, broker) not in state.lagging
        )

    def _best_exchange(self, heavy: int) -> LeaderExchange | None:
        """Return the exchange with which both brokers get closest to the mean, or None."""
        above = self.out[heavy] - self.mean
        offers = self._partitions_to_take(heavy)
        best: LeaderExchange | None = None
        for partition in self._state.on_broker[heavy]:
            replicas = self._state.replicas[partition]
            if replicas[0] != heavy or not self.rates[partition]:
                continue
            for light in replicas[1:]:
                if self.out[light] >= self.out[heavy] or not self._may_lead(partition, light):
                    continue
                for back in self._partitions_to_return(
                    partition, heavy, light, offers.get(light, [])
                ):
                    relief = self.rates[partition] - (0 if back is None else self.rates[back])
                    below = self.out[light] - self.mean
                    distance = (above - relief) ** 2 + (below + relief) ** 2
                    # In whole numbers: rounding errors could repeat the same exchange without end.
                    helps = 0 < relief < self.out[heavy] - self.out[light]
                    is_worth_it = relief * _EXCHANGES_MAX >= above
                    if helps and is_worth_it and (best is None or distance < best.distance):
                        best = LeaderExchange(partition, heavy, light, back, distance)
        return best

    def _partitions_to_take(self, heavy: int) -> dict[int, list[tuple[int, int]]]:
        """Return the partitions that `heavy` could lead, by their present leader.

        Each is (rate, partition); they are sorted by rate.
        """
        offers: dict[int, list[tuple[int, int]]] = {}
        for partition in self._state.on_broker[heavy]:
            replicas = self._state.replicas[partition]
            if replicas[0] != heavy and self._may_lead(partition, heavy):
                offers.setdefault(replicas[0], []).append((self.rates[partition], partition))
        for offered in offers.values():
            offered.sort()
        return offers

    def _partitions_to_return(
        self, partition: int, heavy: int, light: int, offered: list[tuple[int, int]]
    ) -> Iterator[int | None]:
        """Yield partitions that `light` could hand to `heavy` in return, with about the right rate.

        None means that nothing is handed back.
        """
        if not self._keeps_counts or self.leads[heavy] > self.leads[light]:
            yield None
        wanted = (self.out[heavy] - self.out[light]) / 2
        at = bisect_left(offered, (int(self.rates[partition] - wanted), -1))
        for place in range(max(0, at - _NEIGHBOURS), min(len(offered), at + _NEIGHBOURS)):
            yield offered[place][1]

    def _apply(self, exchange: LeaderExchange) -> None:
        """Change the leaders of the one or two partitions of an exchange."""
        self._set_leader(exchange.there, exchange.light)
        if exchange.back is not None:
            self._set_leader(exchange.back, exchange.heavy)

    def _set_leader(self, partition: int, broker: int) -> None:
        """Make a broker the leader of a partition, and update the sums of both brokers."""
        replicas = self._state.replicas[partition]
        leader = replicas[0]
        self.out[leader] -= self.rates[partition]
        self.out[broker] += self.rates[partition]
        self.leads[leader] -= 1
        self.leads[broker] += 1
        at = replicas.index(broker)
        replicas[0], replicas[at] = broker, leader
