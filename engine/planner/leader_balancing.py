"""Choose preferred leaders so that brokers lead about the same number of partitions.

A broker that leads too many hands the leadership of a partition to a follower. If that follower
leads enough, it hands another partition to one of its followers, and so on: a path over brokers.

```
a leads 4, b 3, c 2;  a has no partition with c, b has       a → b → c: two partitions change
```

If no path leads from any broker to one that leads two fewer, no assignment of leaders to these
replicas is more level. Partitions whose leader lost its replica are assigned first; other leaders
stay unless a path changes them.

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
        """Create the search; only the leaders of the partitions in `free` may change.

        Brokers in `demoted` should lead only partitions without another choice.
        """
        self._state = state
        self._demoted = set(demoted)
        count = len(state.brokers)
        #: Number of partitions that each broker leads.
        self.leads = [0] * count
        #: For each leader and follower the partitions whose leadership may move between them.
        #: Entries may be stale: `_find_transferable` removes those.
        self._edges: list[dict[int, list[int]]] = [{} for _ in range(count)]
        for replicas in state.replicas:
            self.leads[replicas[0]] += 1
        #: Partitions with several replicas whose leader may change.
        self._free = [partition for partition in free if len(state.replicas[partition]) > 1]

    def may_lead(self, broker: int) -> bool:
        """Return True if a broker may get leaderships: it takes part and is not demoted."""
        return self._state.in_play[broker] and broker not in self._demoted

    def level(self) -> None:
        """Choose leaders for the free partitions, as level as their replicas permit.

        Leaderships are moved along chains of brokers, one at each step.
        """
        self._choose_first_leaders()
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
            path = self._shortest_path(giver)
            if path is None:
                stuck.add(giver)
            else:
                self._transfer_along(path)

    def _may_lose_leaders(self, broker: int) -> bool:
        """Return True if a broker may lose leaders: it is demoted, or takes part in balancing."""
        return broker in self._demoted or self._state.in_play[broker]

    def _height(self, broker: int) -> int:
        """Return the number of a broker's leaderships.

        A demoted broker ranks above all other ones.
        """
        above_all = len(self._state.partitions) + 2 if broker in self._demoted else 0
        return self.leads[broker] + above_all

    def _choose_first_leaders(self) -> None:
        """Choose leaders for partitions whose first replica has changed, among the old replicas.

        The old leader is chosen if it may lead, else the candidate that leads fewest partitions.
        """
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
                self._set_leader(partition, min(candidates, key=lambda b: (self.leads[b], b)))

    def _set_leader(self, partition: int, broker: int) -> None:
        """Make a broker the preferred leader of a partition of which it has a replica."""
        replicas = self._state.replicas[partition]
        if replicas[0] == broker:
            return
        self.leads[replicas[0]] -= 1
        self.leads[broker] += 1
        at = replicas.index(broker)
        replicas[0], replicas[at] = broker, replicas[0]

    def _add_edges(self, partition: int) -> None:
        """Add the followers to which a partition's leader may transfer it."""
        replicas = self._state.replicas[partition]
        edges = self._edges[replicas[0]]
        for follower in replicas[1:]:
            if self.may_lead(follower) and (partition, follower) not in self._state.lagging:
                edges.setdefault(follower, []).append(partition)

    def _find_transferable(self, leader: int, follower: int) -> int | None:
        """Return a partition that `leader` leads and `follower` may lead, None without one.

        Entries that are not valid any more are removed.
        """
        waiting = self._edges[leader].get(follower)
        while waiting:
            partition = waiting[-1]
            replicas = self._state.replicas[partition]
            if replicas[0] == leader and follower in replicas:
                return partition
            waiting.pop()
        self._edges[leader].pop(follower, None)
        return None

    def _shortest_path(self, giver: int) -> list[int] | None:
        """Return the shortest chain of brokers from `giver` to one that leads at least two fewer.

        None if there is no chain.
        """
        height = self._height(giver)
        came_from = {giver: giver}
        waiting = deque([giver])
        while waiting:
            broker = waiting.popleft()
            for follower in sorted(self._edges[broker], key=lambda b: (self.leads[b], b)):
                if follower in came_from or self._find_transferable(broker, follower) is None:
                    continue
                came_from[follower] = broker
                if self.leads[follower] <= height - 2:
                    return _path_to(came_from, follower)
                waiting.append(follower)
        return None

    def _transfer_along(self, path: list[int]) -> None:
        """Transfer one leadership at each step of a chain, until its ends are level.

        Ends early if a step has no partition left whose leader may change.
        """
        first, last = path[0], path[-1]
        while True:
            steps = [self._find_transferable(a, b) for a, b in pairwise(path)]
            if self.leads[last] > self._height(first) - 2 or not self.leads[first]:
                return
            if None in steps:
                return
            for partition, target in zip(steps, path[1:], strict=True):
                assert partition is not None
                self._set_leader(partition, target)
                self._add_edges(partition)


def _path_to(came_from: dict[int, int], last: int) -> list[int]:
    """Return the path from its first broker, whose predecessor is itself, to `last`."""
    path = [last]
    while came_from[path[-1]] != path[-1]:
        path.append(came_from[path[-1]])
    path.reverse()
    return path
