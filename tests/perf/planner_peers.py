"""How other tools would move replicas: written again from what their authors say of them.

Kafka: round robin from a random start (`engine/planner/kafka_assignment.py`).

kafka-utils (kafka-cluster-manager, `rebalance` and `decommission`): replicas of a partition over
racks, counts over racks, then over the brokers of a rack, one replica at a time from those with
more to those with fewer, so that topics are spread; leaders by a depth-first search.

topicmappr (`rebuild` and `rebalance`): what is legal stays, the rest goes to the least used
broker; by storage, the largest partitions of each broker go to where most is free, with each of 98
tolerances, and the plan with the least range of free storage is taken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from random import Random

from engine.model import TopicPartition
from engine.planner.cluster_model import ClusterModel
from engine.planner.kafka_assignment import generate_assignment

Placement = dict[TopicPartition, list[int]]


def kafka_generate(model: ClusterModel, targets: list[int], seed: int) -> Placement:
    topics = sorted({partition.topic for partition in model.partitions})
    # A topic whose partitions differ in their number of replicas gets that of its first.
    placed = generate_assignment(model, targets, topics, Random(seed))
    return {name: list(replicas) for name, replicas in placed.items()}


class KafkaUtils:
    """Counts only; a rack is a replication group."""

    def __init__(self, model: ClusterModel, leaving: Iterable[int] = ()) -> None:
        self.rack = {b.broker_id: b.rack or "" for b in model.brokers}
        self.leaving = set(leaving)
        self.active = [b.broker_id for b in model.brokers if b.broker_id not in self.leaving]
        self.placed: Placement = {p.name: list(p.replicas) for p in model.partitions}
        self.held: dict[int, dict[TopicPartition, None]] = {b: {} for b in self.rack}
        self.topics: dict[int, Counter[str]] = {b: Counter() for b in self.rack}
        for name, replicas in self.placed.items():
            for broker in replicas:
                self.held[broker][name] = None
                self.topics[broker][name.topic] += 1
        self.groups = sorted({self.rack[b] for b in self.active})

    def rebalance(self) -> Placement:
        self._replicas_over_groups()
        self._counts_over_groups()
        for group in self.groups:
            self._brokers_of(group)
        self._leaders()
        return self.placed

    def decommission(self) -> Placement:
        for group in sorted({self.rack[b] for b in self.leaving}):
            self._brokers_of(group)
        for broker in sorted(self.leaving):
            for name in list(self.held[broker]):
                groups = sorted(self.groups, key=lambda g: (self._in_group(name, g), g))
                for target in (self._emptiest(g, name) for g in groups):
                    if target is not None:
                        self._move(name, broker, target)
                        break
        return self.placed

    def _members(self, group: str) -> list[int]:
        return [b for b in self.active if self.rack[b] == group]

    def _in_group(self, name: TopicPartition, group: str) -> int:
        return sum(self.rack[b] == group for b in self.placed[name])

    def _move(self, name: TopicPartition, source: int, target: int) -> None:
        replicas = self.placed[name]
        replicas[replicas.index(source)] = target
        del self.held[source][name]
        self.held[target][name] = None
        self.topics[source][name.topic] -= 1
        self.topics[target][name.topic] += 1

    def _emptiest(self, group: str, name: TopicPartition) -> int | None:
        free = [b for b in self._members(group) if name not in self.held[b]]
        return min(
            free, key=lambda b: (self.topics[b][name.topic], len(self.held[b])), default=None
        )

    def _replicas_over_groups(self) -> None:
        """Spread each partition over groups: none has two more than another."""
        for name, replicas in self.placed.items():
            least = len(replicas) // len(self.groups)
            for _ in replicas:
                counts = {g: self._in_group(name, g) for g in self.groups}
                most = max(self.groups, key=lambda g: (counts[g], g))
                fewest = min(self.groups, key=lambda g: (counts[g], g))
                if counts[most] <= least or counts[fewest] > least - (least > 0):
                    break
                if counts[most] - counts[fewest] < 2:
                    break
                source = max(
                    (b for b in replicas if self.rack[b] == most), key=lambda b: len(self.held[b])
                )
                target = self._emptiest(fewest, name)
                if target is None:
                    break
                self._move(name, source, target)

    def _counts_over_groups(self) -> None:
        size = {g: sum(len(self.held[b]) for b in self._members(g)) for g in self.groups}
        mean = sum(size.values()) // len(self.groups)
        for over in [g for g in self.groups if size[g] > mean + 1]:
            for under in [g for g in self.groups if size[g] < mean]:
                for broker in self._members(over):
                    for name in list(self.held[broker]):
                        if size[over] - size[under] <= 1 or size[under] >= mean:
                            break
                        least = len(self.placed[name]) // len(self.groups)
                        if self._in_group(name, over) <= least < self._in_group(name, under):
                            continue
                        if self._in_group(name, over) > least >= self._in_group(name, under):
                            target = self._emptiest(under, name)
                            if target is not None:
                                self._move(name, broker, target)
                                size[over] -= 1
                                size[under] += 1

    def _brokers_of(self, group: str) -> None:
        members = self._members(group)
        gone = [b for b in sorted(self.leaving) if self.rack[b] == group]
        if not members:
            return
        while True:
            total = sum(len(self.held[b]) for b in (*members, *gone))
            least, extra = divmod(total, len(members))
            by_count = sorted(members, key=lambda b: (-len(self.held[b]), b))
            over = [b for b in by_count if len(self.held[b]) > least + (extra > 0)]
            over = over or [b for b in by_count if len(self.held[b]) > least]
            over += [b for b in gone if self.held[b]]
            under = [b for b in reversed(by_count) if len(self.held[b]) < least + (extra > 0)]
            best = self._best_move(over, under)
            if best is None:
                return
            self._move(*best)

    def _best_move(
        self, over: list[int], under: list[int]
    ) -> tuple[TopicPartition, int, int] | None:
        best: tuple[int, TopicPartition, int, int] | None = None
        for source in over:
            for target in under:
                gap = len(self.held[source]) - len(self.held[target])
                if gap <= 1 and source not in self.leaving:
                    break
                name = self._preferred(source, target)
                if name is None:
                    continue
                distance = self.topics[target][name.topic] - self.topics[source][name.topic]
                if best is None or distance < best[0]:
                    best = (distance, name, source, target)
        return None if best is None else best[1:]

    def _preferred(self, source: int, target: int) -> TopicPartition | None:
        there, mine, theirs = self.held[target], self.topics[source], self.topics[target]
        found, least = None, None
        for name in self.held[source]:
            if name in there:
                continue
            key = (theirs[name.topic] - mine[name.topic], self.placed[name][0] == source)
            if least is None or key < least:
                found, least = name, key
        return found

    def _leaders(self) -> None:
        """Give brokers below the mean leadership, through others where need be."""
        leads: dict[int, set[TopicPartition]] = {b: set() for b in self.rack}
        for name, replicas in self.placed.items():
            leads[replicas[0]].add(name)
        wanted = len(self.placed) // len(self.active)
        for broker in self.active:
            while len(leads[broker]) < wanted:
                path = self._leader_path(broker, leads, wanted)
                if path is None:
                    break
                for name, target in path:
                    replicas = self.placed[name]
                    leads[replicas[0]].discard(name)
                    replicas.remove(target)
                    replicas.insert(0, target)
                    leads[target].add(name)

    def _leader_path(
        self, broker: int, leads: dict[int, set[TopicPartition]], wanted: int
    ) -> list[tuple[TopicPartition, int]] | None:
        seen = {broker}
        stack: list[tuple[int, list[tuple[TopicPartition, int]]]] = [(broker, [])]
        while stack:
            at, path = stack.pop()
            for name in self.held[at]:
                leader = self.placed[name][0]
                if leader in seen:
                    continue
                seen.add(leader)
                longer = [*path, (name, at)]
                if len(leads[leader]) > wanted:
                    return longer[::-1]
                stack.append((leader, longer))
        return None


class Topicmappr:
    """Storage first; `rebalance` moves the 30 largest partitions of each broker at most."""

    LARGEST = 30
    SMALLEST_BYTES = 512 << 20

    def __init__(self, model: ClusterModel, leaving: Iterable[int] = ()) -> None:
        self.leaving = set(leaving)
        self.rack = {b.broker_id: b.rack for b in model.brokers}
        racks = {rack for rack in self.rack.values() if rack is not None}
        self.active = [b.broker_id for b in model.brokers if b.broker_id not in self.leaving]
        self.partitions = {p.name: p for p in model.partitions}
        self.placed: Placement = {p.name: list(p.replicas) for p in model.partitions}
        factor = max(len(p.replicas) for p in model.partitions)
        # --min-rack-ids where racks are fewer than replicas.
        self.racks_apart = len(racks) >= factor
        used: Counter[int] = Counter()
        for partition in model.partitions:
            for broker in partition.replicas:
                used[broker] += partition.size_bytes
        # Without capacities in the model all disks are alike, twice as large as the fullest needs.
        disk = 2 * max(used.values())
        self.free = {
            b.broker_id: (b.capacity_bytes or disk) - used[b.broker_id] for b in model.brokers
        }

    def rebuild(self) -> Placement:
        """Put what stood on leaving brokers onto the least used ones that are legal."""
        count = Counter(b for replicas in self.placed.values() for b in replicas)
        for replicas in self.placed.values():
            for place, broker in enumerate(replicas):
                if broker not in self.leaving:
                    continue
                rest = [b for b in replicas if b != broker]
                target = next(
                    (
                        b
                        for b in sorted(self.active, key=lambda b: (count[b], b))
                        if self._legal(b, rest)
                    ),
                    None,
                )
                if target is not None:
                    replicas[place] = target
                    count[target] += 1
        self._leaders()
        return self.placed

    def rebalance(self, sources: list[int]) -> Placement:
        """Try all tolerances, take the plan with the least range of free storage."""
        start = {name: list(replicas) for name, replicas in self.placed.items()}
        best: tuple[float, Placement] | None = None
        for percent in range(1, 99):
            placed = {name: list(replicas) for name, replicas in start.items()}
            free = self._relocate(placed, dict(self.free), sources, percent / 100)
            span = max(free[b] for b in self.active) - min(free[b] for b in self.active)
            if best is None or span < best[0]:
                best = (span, placed)
        assert best is not None
        self.placed = best[1]
        self._leaders()
        return self.placed

    def _legal(self, broker: int, rest: list[int]) -> bool:
        if broker in rest:
            return False
        rack = self.rack[broker]
        return rack is None or not self.racks_apart or rack not in {self.rack[b] for b in rest}

    def _relocate(
        self, placed: Placement, free: dict[int, int], sources: list[int], tolerance: float
    ) -> dict[int, int]:
        mean = sum(free[b] for b in self.active) / len(self.active)
        targets = [b for b in self.active if b not in sources]
        sources = sorted(sources, key=lambda b: (free[b], b))
        held: dict[int, list[TopicPartition]] = {b: [] for b in sources}
        for name, replicas in placed.items():
            for broker in replicas:
                if broker in held:
                    held[broker].append(name)
        for names in held.values():
            names.sort(key=lambda n: (-self.partitions[n].size_bytes, n))
        exhausted = 0
        while exhausted < len(sources):
            for source in sources:
                if not self._relocate_one(source, held, targets, placed, free, mean, tolerance):
                    exhausted += 1
        return free

    def _relocate_one(
        self,
        source: int,
        held: dict[int, list[TopicPartition]],
        targets: list[int],
        placed: Placement,
        free: dict[int, int],
        mean: float,
        tolerance: float,
    ) -> bool:
        for name in held[source][: self.LARGEST]:
            size = self.partitions[name].size_bytes
            if size < self.SMALLEST_BYTES:
                return False
            rest = [b for b in placed[name] if b != source]
            legal = [b for b in targets if self._legal(b, rest)]
            if not legal:
                continue
            target = max(legal, key=lambda b: (free[b], -b))
            if free[source] + size > mean * (1 + tolerance) or free[target] - size < mean * (
                1 - tolerance
            ):
                continue
            replicas = placed[name]
            replicas[replicas.index(source)] = target
            free[source] += size
            free[target] -= size
            held[source].remove(name)
            return True
        return False

    def _leaders(self) -> None:
        """Put that replica first whose broker leads least for what it follows."""
        leads: Counter[int] = Counter(replicas[0] for replicas in self.placed.values())
        follows: Counter[int] = Counter(b for r in self.placed.values() for b in r[1:])
        for replicas in self.placed.values():
            leads[replicas[0]] -= 1
            follows[replicas[0]] += 1
            first = min(replicas, key=lambda b: (leads[b] / max(follows[b], 1), b))
            replicas.remove(first)
            replicas.insert(0, first)
            leads[first] += 1
            follows[first] -= 1
