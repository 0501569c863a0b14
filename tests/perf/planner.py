"""What our plans move, how level they leave a cluster and how long they take, beside peers' plans.

`python -m tests.perf.planner` prints the tables of docs/planner.md; `--sizes` the times of large
clusters; `--quick` leaves out what takes peers long. Times are of the CPU.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from random import Random
from typing import NamedTuple

from engine.model import TopicPartition
from engine.planner.cluster_model import BrokerModel, ClusterModel, PartitionModel
from engine.planner.constraints import PlanConstraints
from engine.planner.kafka_assignment import place_round_robin
from engine.planner.plan import ReassignmentPlan
from engine.planner.planner import balance, drain, repair, spread
from tests.perf.planner_peers import KafkaUtils, Topicmappr, kafka_generate

GIB = 1 << 30


class Scenario(NamedTuple):
    """A cluster and what is to be done to it."""

    name: str
    verb: str
    model: ClusterModel
    #: Added or leaving brokers.
    brokers: tuple[int, ...] = ()


def cluster(
    racks: Sequence[str | None],
    partitions: int,
    factors: Sequence[int] = (3,),
    *,
    used: int | None = None,
    seed: int = 7,
    dirty: bool = False,
    giant: bool = False,
    capacity: Callable[[int], int] | None = None,
) -> ClusterModel:
    """Return brokers 0, 1, ... and topics of 50 partitions, as Kafka would have placed them."""
    random = Random(seed)
    brokers = [BrokerModel(number, rack) for number, rack in enumerate(racks)]
    filled = list(range(used if used is not None else len(racks)))
    rack_of = {b: racks[b] for b in filled if racks[b] is not None}
    rows = []
    for topic in range(partitions // 50):
        factor = factors[topic % len(factors)]
        placed = place_round_robin(
            filled,
            {} if dirty else rack_of,
            range(50),
            factor,
            start_index=random.randrange(len(filled)),
            shift=random.randrange(len(filled)),
        )
        for number, replicas in placed.items():
            chosen = tuple(random.sample(filled, factor)) if dirty else replicas
            size = int(random.lognormvariate(0, 1.5) * GIB)
            if giant and topic == number == 0:
                size = int(1.3 * partitions * factor * 3 * GIB / len(filled))
            rows.append(PartitionModel(f"topic-{topic}", number, chosen, chosen[0], size))
    if capacity is not None:
        held: Counter[int] = Counter()
        for row in rows:
            for broker in row.replicas:
                held[broker] += row.size_bytes
        mean = sum(held.values()) // len(brokers)
        brokers = [
            b._replace(capacity_bytes=max(capacity(b.broker_id) * mean // 100, held[b.broker_id]))
            for b in brokers
        ]
    return ClusterModel(brokers, rows)


def alternated(count: int, names: str = "abc") -> list[str]:
    return [names[number % len(names)] for number in range(count)]


def with_dead(model: ClusterModel, dead: set[int]) -> ClusterModel:
    brokers = [b._replace(is_alive=b.broker_id not in dead) for b in model.brokers]
    rows = []
    for row in model.partitions:
        isr = tuple(b for b in row.replicas if b not in dead)
        rows.append(row._replace(leader=isr[0] if isr else None, isr=isr))
    return ClusterModel(brokers, rows)


def scenarios() -> list[Scenario]:
    return [
        Scenario("12 → 15, 1,000", "spread", cluster([None] * 15, 1000, used=12), (12, 13, 14)),
        Scenario(
            "12 → 15, 3 racks, 10,000",
            "spread",
            cluster(alternated(15), 10_000, used=12),
            (12, 13, 14),
        ),
        Scenario(
            "unequal racks 5 4 2, +1, RF 2",
            "spread",
            cluster([*"aaaaabbbbcc", "c"], 2000, (2,), used=11),
            (11,),
        ),
        Scenario(
            "2 racks, RF 3, 8 → 10", "spread", cluster(alternated(10, "ab"), 2000, used=8), (8, 9)
        ),
        Scenario(
            "RF 1, 2, 3, 12 → 15",
            "spread",
            cluster(alternated(15), 3000, (1, 2, 3), used=12),
            (12, 13, 14),
        ),
        Scenario(
            "capacities 110 % to 300 %, 12 → 15",
            "spread",
            cluster(alternated(15), 3000, used=12, capacity=lambda b: (110, 150, 300)[b % 3]),
            (12, 13, 14),
        ),
        Scenario("dirty start, racks broken", "balance", cluster(alternated(12), 3000, dirty=True)),
        Scenario(
            "one partition above the mean", "balance", cluster(alternated(12), 3000, giant=True)
        ),
        Scenario("drain 1 of 12, 10,000", "drain", cluster(alternated(12), 10_000), (5,)),
        Scenario(
            "2 of 12 dead", "repair", with_dead(cluster(alternated(12), 3000), {3, 7}), (3, 7)
        ),
    ]


def ours(scenario: Scenario) -> ReassignmentPlan:
    constraints = PlanConstraints()
    if scenario.verb == "spread":
        return spread(scenario.model, scenario.brokers, constraints)
    if scenario.verb == "drain":
        return drain(scenario.model, scenario.brokers, constraints)
    if scenario.verb == "repair":
        return repair(scenario.model, constraints)
    return balance(scenario.model, constraints=constraints)


def placed_by(scenario: Scenario, peer: str) -> Mapping[TopicPartition, Sequence[int]]:
    model, brokers = scenario.model, list(scenario.brokers)
    leaving = brokers if scenario.verb in ("drain", "repair") else []
    ids = [b.broker_id for b in model.brokers if b.broker_id not in leaving]
    if peer == "Kafka":
        return kafka_generate(model, ids, 7)
    if peer == "kafka-utils":
        tool = KafkaUtils(model, leaving)
        return tool.decommission() if leaving else tool.rebalance()
    mapper = Topicmappr(model, leaving)
    if leaving:
        return mapper.rebuild()
    if scenario.verb == "spread":
        return mapper.rebalance([b for b in ids if b not in brokers])
    # Those below the harmonic mean of free storage by 20 % give, the rest takes.
    mean = len(ids) / sum(1 / max(mapper.free[b], 1) for b in ids)
    return mapper.rebalance([b for b in ids if mapper.free[b] < 0.8 * mean] or ids[:1])


class Row(NamedTuple):
    moves: int
    bytes_share: float
    count_spread: int
    leader_spread: int
    bytes_max: float
    faults: int
    over: int
    seconds: float


def measure(
    scenario: Scenario, placed: Mapping[TopicPartition, Sequence[int]], seconds: float
) -> Row:
    model = scenario.model
    gone = set(scenario.brokers) if scenario.verb in ("drain", "repair") else set()
    ids = [b.broker_id for b in model.brokers if b.broker_id not in gone]
    rack = {b.broker_id: b.rack for b in model.brokers}
    counts, leads, held = (
        Counter(dict.fromkeys(ids, 0)),
        Counter(dict.fromkeys(ids, 0)),
        Counter(dict.fromkeys(ids, 0)),
    )
    moves = moved = faults = total = 0
    sizes = Counter(rack[b] for b in ids)
    for partition in model.partitions:
        replicas = placed.get(partition.name, partition.replicas)
        added = len(set(replicas) - set(partition.replicas))
        moves += added
        moved += added * partition.size_bytes
        total += len(partition.replicas) * partition.size_bytes
        leads[replicas[0]] += 1
        for broker in replicas:
            counts[broker] += 1
            held[broker] += partition.size_bytes
        if len(sizes) > 1:
            limit = next(
                n for n in range(1, 9) if sum(min(n, s) for s in sizes.values()) >= len(replicas)
            )
            faults += sum(max(0, n - limit) for n in Counter(rack[b] for b in replicas).values())
    by_rack: dict[str | None, list[int]] = {}
    for broker in ids:
        by_rack.setdefault(rack[broker], []).append(counts[broker])
    capacity = {b.broker_id: b.capacity_bytes for b in model.brokers}
    over = sum((bound := capacity[b]) is not None and held[b] > bound for b in ids)
    return Row(
        moves,
        moved / total,
        max(max(n) - min(n) for n in by_rack.values()),
        max(leads[b] for b in ids) - min(leads[b] for b in ids),
        max(held[b] for b in ids) / statistics.mean(held[b] for b in ids),
        faults,
        over,
        seconds,
    )


def print_line(cells: Sequence[object]) -> None:
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def table(quick: bool) -> None:
    heads = ("cluster", "plan", "moves", "bytes", "counts", "leaders", "max/mean", "faults", "over")
    print_line((*heads, "s"))
    print_line(["---"] * (len(heads) + 1))
    for scenario in scenarios():
        start = time.process_time()
        plan = ours(scenario)
        row = measure(scenario, plan.targets(), time.process_time() - start)
        name = f"{scenario.verb}: {scenario.name}"
        print_row(name, "kctl", row, f"{row.moves} ({plan.bound_moves})")
        for peer in ("Kafka", "kafka-utils", "topicmappr"):
            if quick and peer != "Kafka" and len(scenario.model.partitions) > 3000:
                continue
            start = time.process_time()
            placed = placed_by(scenario, peer)
            row = measure(scenario, placed, time.process_time() - start)
            ratio = f", {row.moves / plan.moves:.2f} ×" if plan.moves else ""
            print_row("", peer, row, f"{row.moves}{ratio}")


def print_row(name: str, who: str, row: Row, moves: str) -> None:
    share = f"{100 * row.bytes_share:.0f} %"
    level = (row.count_spread, row.leader_spread, f"{row.bytes_max:.3f}", row.faults, row.over)
    print_line((name, who, moves, share, *level, f"{row.seconds:.2f}"))


def sizes() -> None:
    heads = ("partitions", "brokers", "verb", "moves (bound)", "max/mean", "max/level", "CPU s")
    print_line((*heads, "peak MiB"))
    print_line(["---"] * (len(heads) + 1))
    for partitions, old, new in ((10_000, 12, 15), (100_000, 60, 75), (330_000, 200, 220)):
        added = cluster(alternated(new), partitions, used=old)
        whole = cluster(alternated(old), partitions)
        verbs: list[tuple[str, Callable[[], ReassignmentPlan]]] = [
            ("spread", partial(spread, added, range(old, new))),
            ("drain 1", partial(drain, whole, [1])),
            ("balance", partial(balance, whole)),
        ]
        for verb, make in verbs:
            start = time.process_time()
            plan = make()
            seconds = time.process_time() - start
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
            brokers = f"{old} → {new}" if verb == "spread" else old
            moves = f"{plan.moves} ({plan.bound_moves})"
            level = (plan.after.bytes_max_over_mean, plan.after.bytes_max_over_level)
            figures = (*(f"{ratio:.3f}" for ratio in level), f"{seconds:.2f}", peak)
            print_line((f"{partitions:,}", brokers, verb, moves, *figures))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", action="store_true")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    if options.sizes:
        sizes()
    else:
        table(options.quick)


if __name__ == "__main__":
    main()
