"""Choose the leaders of partitions, first in each list of replicas, so that brokers lead alike.

A broker that leads too many hands a partition to one of its followers; where no follower needs
one, that follower hands on another partition of its own, and so on: a path over brokers.

```
a leads 4, b 3, c 2;  a has no partition with c, b has       a → b → c: two partitions change
```

When no such path leads from a broker to one that leads two less, no assignment of leaders to
these replicas is more level. Partitions whose leader's replica went away are given first, and
other leaders stay unless a path needs them to change.

Source: the theory of semi-matchings (Harvey, Ladner, Lovász, Tamir 2006).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable
from itertools import pairwise

from engine.planner.placement_state import PlacementState


class LeaderBalancing:
    """The search for leaders; `free` are the partitions whose leader may change."""

    def __init__(
        self, state: PlacementState, free: Iterable[int], *, demoted: Collection[int] = ()
    ) -> None:
        """Brokers in `demoted` shall lead nothing that another can."""
        self._state = state
        self._demoted = set(demoted)
        count = len(state.brokers)
        #: How many partitions each broker leads.
        self.leads = [0] * count
        #: By leader, then by follower: partitions whose leadership may move between them. Entries
        #: may be stale: `_next` drops those.
        self._edges: list[dict[int, list[int]]] = [{} for _ in range(count)]
        for replicas in state.replicas:
            self.leads[replicas[0]] += 1
        #: Partitions with several replicas whose leader may change.
        self._free = [partition for partition in free if len(state.replicas[partition]) > 1]

    def may_lead(self, broker: int) -> bool:
        """Return whether a broker may be given leadership."""
        return self._state.in_play[broker] and broker not in self._demoted

    def level(self) -> None:
        """Choose leaders for the free partitions, as level as their replicas allow."""
        self._hand_out()
        for partition in self._free:
            self._add_edges(partition)
        stuck: set[int] = set()
        while True:
            givers = [
                b
                for b, edges in enumerate(self._edges)
                if edges and b not in stuck and self.leads[b] and self._may_lose_leaders(b)
            ]
            if not givers:
                return
            giver = max(givers, key=lambda b: (self._height(b), -b))
            path = self._path(giver)
            if path is None:
                stuck.add(giver)
            else:
                self._push(path)

    def _may_lose_leaders(self, broker: int) -> bool:
        """Return whether leaders may go from a broker: one demoted, or one that takes part."""
        return broker in self._demoted or self._state.in_play[broker]

    def _height(self, broker: int) -> int:
        """Return how many a broker leads; one that should lead none stands above all."""
        above_all = len(self._state.partitions) + 2 if broker in self._demoted else 0
        return self.leads[broker] + above_all

    def _hand_out(self) -> None:
        """Give partitions whose first replica went to old replicas on brokers that lead least."""
        state = self._state
        for partition in self._free:
            original = state.original[partition]
            replicas = state.replicas[partition]
            if replicas[0] == original[0]:
                continue
            candidates = [
                b
                for b in replicas
                if b in original and self.may_lead(b) and (partition, b) not in state.lagging
            ]
            if original[0] in candidates:
                candidates = [original[0]]
            if candidates:
                self._lead(partition, min(candidates, key=lambda b: (self.leads[b], b)))

    def _lead(self, partition: int, broker: int) -> None:
        """Make a broker the preferred leader of a partition that it has a replica of."""
        replicas = self._state.replicas[partition]
        if replicas[0] == broker:
            return
        self.leads[replicas[0]] -= 1
        self.leads[broker] += 1
        at = replicas.index(broker)
        replicas[0], replicas[at] = broker, replicas[0]

    def _add_edges(self, partition: int) -> None:
        """Note to which followers the leader may hand the partition."""
        replicas = self._state.replicas[partition]
        edges = self._edges[replicas[0]]
        for follower in replicas[1:]:
            if self.may_lead(follower) and (partition, follower) not in self._state.lagging:
                edges.setdefault(follower, []).append(partition)

    def _next(self, leader: int, follower: int) -> int | None:
        """Return a partition whose leadership may move between two brokers; drop stale ones."""
        waiting = self._edges[leader].get(follower)
        while waiting:
            partition = waiting[-1]
            replicas = self._state.replicas[partition]
            if replicas[0] == leader and follower in replicas:
                return partition
            waiting.pop()
        self._edges[leader].pop(follower, None)
        return None

    def _path(self, giver: int) -> list[int] | None:
        """Return a path of brokers from one that leads many to the nearest that leads two fewer."""
        height = self._height(giver)
        came_from = {giver: giver}
        waiting = deque([giver])
        while waiting:
            broker = waiting.popleft()
            for follower in sorted(self._edges[broker], key=lambda b: (self.leads[b], b)):
                if follower in came_from or self._next(broker, follower) is None:
                    continue
                came_from[follower] = broker
                if self.leads[follower] <= height - 2:
                    return _walk(came_from, follower)
                waiting.append(follower)
        return None

    def _push(self, path: list[int]) -> None:
        """Hand on as many partitions along a path as level its ends, and as there are."""
        first, last = path[0], path[-1]
        while True:
            steps = [self._next(a, b) for a, b in pairwise(path)]
            if self.leads[last] > self._height(first) - 2 or not self.leads[first]:
                return
            if None in steps:
                return
            for partition, target in zip(steps, path[1:], strict=True):
                assert partition is not None
                self._lead(partition, target)
                self._add_edges(partition)


def _walk(came_from: dict[int, int], last: int) -> list[int]:
    """Return the path from its first broker, which came from itself, to `last`."""
    path = [last]
    while came_from[path[-1]] != path[-1]:
        path.append(came_from[path[-1]])
    path.reverse()
    return path
