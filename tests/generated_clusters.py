"""Small clusters of every shape for tests of plans, and what a plan makes of them."""

from __future__ import annotations

from random import Random

from hypothesis import strategies as st

from engine.planner.cluster_model import BrokerModel, ClusterModel, LogDirModel, PartitionModel
from engine.planner.plan import ReassignmentPlan


@st.composite
def clusters(draw: st.DrawFn, *, has_dead: bool = True) -> ClusterModel:
    """Draw a cluster: unequal racks or none, dirty starts, mixed factors, capacities, a giant."""
    broker_count = draw(st.integers(2, 9))
    rack_count = draw(st.integers(0, 4))
    partition_count = draw(st.integers(1, 40))
    random = Random(draw(st.integers(0, 2**32)))
    racks = [
        f"r{random.randrange(rack_count)}" if rack_count else None for _ in range(broker_count)
    ]
    ids = random.sample(range(1, 50), broker_count)
    dead = {
        broker_id
        for broker_id in ids[1:]
        if has_dead and random.random() < draw(st.sampled_from((0.0, 0.0, 0.2)))
    }
    kind = draw(st.sampled_from(("equal", "spread", "giant", "empty")))
    partitions = [_partition(random, number, ids, dead, kind) for number in range(partition_count)]
    if draw(st.booleans()):
        partitions = with_failed_directories(partitions, random)
    has_capacity = draw(st.booleans())
    held = dict.fromkeys(ids, 0)
    for partition in partitions:
        for broker_id in partition.replicas:
            held[broker_id] += partition.size_on(broker_id)
    mean = sum(held.values()) // broker_count + 1
    brokers = [
        BrokerModel(
            broker_id,
            rack,
            capacity_bytes=int(max(held[broker_id], mean) * random.uniform(0.9, 1.6))
            if has_capacity
            else None,
            is_alive=broker_id not in dead,
        )
        for broker_id, rack in zip(ids, racks, strict=True)
    ]
    return ClusterModel(brokers, partitions)


def _partition(
    random: Random, number: int, ids: list[int], dead: set[int], kind: str
) -> PartitionModel:
    factor = random.randint(1, min(4, len(ids)))
    # Some brokers hold more than others.
    weights = [
        (random.random() ** (1 + place % 3), broker_id) for place, broker_id in enumerate(ids)
    ]
    replicas = tuple(broker_id for _, broker_id in sorted(weights)[:factor])
    size = {"equal": 1000, "spread": int(random.paretovariate(1.1) * 1000), "empty": 0}.get(
        kind, 200_000 if number == 0 else random.randint(1, 2000)
    )
    alive = [broker_id for broker_id in replicas if broker_id not in dead]
    isr = tuple(b for b in alive if random.random() < 0.9) or tuple(alive)
    leader = random.choice(isr) if isr else None
    return PartitionModel(
        f"t{number % 5}",
        number // 5,
        replicas,
        leader if random.random() < 0.3 or replicas[0] not in isr else replicas[0],
        size_bytes=size,
        replica_sizes=tuple(size if b in isr else size // 2 for b in replicas),
        isr=isr,
    )


def with_failed_directories(
    partitions: list[PartitionModel], random: Random
) -> list[PartitionModel]:
    """Return partitions of which brokers have lost replicas with a directory, others not.

    The last in-sync replica stays in sync on paper when its directory fails, and leads no more.
    """
    holders = sorted({broker_id for partition in partitions for broker_id in partition.isr})
    failing = {broker_id for broker_id in holders if random.random() < 0.4}
    failed = []
    for partition in partitions:
        offline = tuple(b for b in partition.isr if b in failing and random.random() < 0.5)
        isr = tuple(b for b in partition.isr if b not in offline)
        leader = partition.leader if partition.leader in isr else next(iter(isr), None)
        failed.append(
            partition._replace(offline=offline, isr=isr or partition.isr[:1], leader=leader)
        )
    return failed


def after(model: ClusterModel, plan: ReassignmentPlan) -> ClusterModel:
    """Return the cluster once a plan is carried out, preferred leaders elected where it says."""
    changes = {change.name: change for change in plan.changes}
    partitions = []
    for partition in model.partitions:
        change = changes.get(partition.name)
        if change is None:
            partitions.append(partition)
            continue
        replicas = change.new_replicas
        log_dirs = change.new_log_dirs or partition.log_dirs
        partitions.append(
            partition._replace(
                replicas=replicas,
                leader=change.new_leader,
                replica_sizes=tuple(partition.size_on(b) for b in replicas)
                if partition.replica_sizes
                else (),
                isr=tuple(b for b in replicas if b in partition.isr or b not in partition.replicas)
                if partition.isr
                else (),
                offline=tuple(b for b in partition.offline if b in replicas),
                log_dirs=log_dirs if len(log_dirs) == len(replicas) else (),
            )
        )
    return ClusterModel(model.brokers, partitions)


def with_log_dirs(model: ClusterModel, random: Random) -> ClusterModel:
    """Return a cluster whose replicas stand in directories, two or three for each broker."""
    brokers = [
        broker._replace(log_dirs=tuple(LogDirModel(f"/d{n}") for n in range(random.randint(1, 3))))
        for broker in model.brokers
    ]
    dirs = {broker.broker_id: broker.log_dirs for broker in brokers}
    partitions = [
        partition._replace(log_dirs=tuple(random.choice(dirs[b]).path for b in partition.replicas))
        for partition in model.partitions
    ]
    return ClusterModel(brokers, partitions)


def with_rates(model: ClusterModel, random: Random) -> ClusterModel:
    """Return a cluster whose partitions are written to, some much more than others."""
    partitions = [
        partition._replace(
            write_bytes_per_s=int(random.paretovariate(0.8) * 1000) if random.random() < 0.8 else 0
        )
        for partition in model.partitions
    ]
    return ClusterModel(model.brokers, partitions)
