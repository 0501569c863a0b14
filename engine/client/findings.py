"""What is wrong with a cluster, finding by finding, with the cause in words. Pure but for `ask`.

| finding | severity | when |
|---|---|---|
| offline | critical | a partition has no leader: nobody can read or write it |
| under-min-isr | critical | fewer in sync than min.insync.replicas: acks=all is refused |
| no-controller | critical | nobody elects leaders |
| unreachable | critical | a broker that counts as live does not answer |
| log-dir | critical | a log directory of a broker has failed |
| at-min-isr | warning | replicas are missing, and with one more acks=all is refused |
| under-replicated | warning | a replica is out of the in-sync set |
| impossible-min-isr | warning | min.insync.replicas is above the number of replicas |
| not-preferred | notice | another replica leads than the preferred one, which is in sync |
| move | notice | a reassignment brings replicas that are not in sync yet |
| throttle | notice | replication is throttled, which a finished move should have undone |

What a reassignment brings is not missing: a partition is under-replicated where fewer are in sync
than it has without that, as Kafka's own tool counts. A partition has one of offline, under-min-isr,
under-replicated and at-min-isr: the worst.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.cluster_admin import LogDirView, describe_log_dirs
from engine.client.config_admin import ConfigResourceType, Resource, describe_configs
from engine.client.errors import TimedOut, Unreachable
from engine.client.health import Throttle, cluster_throttles
from engine.client.metadata import ClusterView, PartitionView
from engine.client.reassignments import OngoingReassignment, with_moves
from engine.client.replica_ends import replica_offsets
from engine.errors import EngineError
from engine.model import TopicPartition

CRITICAL: Final = "critical"
WARNING: Final = "warning"
NOTICE: Final = "notice"
SEVERITIES: Final = (CRITICAL, WARNING, NOTICE)
KINDS: Final = (
    "offline",
    "under-min-isr",
    "no-controller",
    "unreachable",
    "log-dir",
    "at-min-isr",
    "under-replicated",
    "impossible-min-isr",
    "not-preferred",
    "move",
    "throttle",
)
_MIN_ISR: Final = "min.insync.replicas"


class HealthFinding(NamedTuple):
    """One thing that is not as it should be; `subject` is a partition, a broker, or the cluster.

    `partition` is the one whose in-sync set it is about.
    """

    severity: str
    kind: str
    subject: str
    cause: str
    partition: TopicPartition | None = None


class ClusterFacts(NamedTuple):
    """What findings are made from.

    `min_isr` is by topic; `ends` has the end of each replica's log, or why it is not known.
    """

    view: ClusterView
    min_isr: Mapping[str, int]
    log_dirs: Mapping[int, list[LogDirView] | EngineError]
    ends: Mapping[tuple[TopicPartition, int], int | EngineError]
    throttles: Sequence[Throttle]
    moves: Mapping[TopicPartition, OngoingReassignment] = MappingProxyType({})


def ask_facts(client: KafkaClient, topics: Sequence[str] | None) -> ClusterFacts:
    """Ask a cluster for all of it, or for some topics. Errors: those of asking for metadata."""
    view, moves = with_moves(client, client.view(topics))
    resources = [Resource(ConfigResourceType.TOPIC, name) for name in sorted(view.topics)]
    min_isr = {}
    for resource, entries in describe_configs(client, resources, names=(_MIN_ISR,)).items():
        if not isinstance(entries, EngineError):
            value = next((entry.value for entry in entries if entry.name == _MIN_ISR), None)
            min_isr[resource.name] = int(value or 1)
    brokers = sorted(view.brokers)
    return ClusterFacts(
        view,
        min_isr,
        describe_log_dirs(client, brokers),
        replica_offsets(client, _asked_replicas(view)),
        cluster_throttles(client, sorted(view.topics), brokers),
        moves,
    )


def _asked_replicas(view: ClusterView) -> dict[int, list[TopicPartition]]:
    """Return the replicas whose ends explain something: those of partitions that lack some."""
    asked: dict[int, list[TopicPartition]] = {}
    for key, partition in _partitions(view):
        if partition.is_under_replicated or not partition.has_leader:
            for broker_id in partition.replicas:
                if broker_id in view.brokers:
                    asked.setdefault(broker_id, []).append(key)
    return asked


def _partitions(view: ClusterView) -> Iterator[tuple[TopicPartition, PartitionView]]:
    for name in sorted(view.topics):
        for partition in view.topics[name].partitions:
            yield TopicPartition(name, partition.partition), partition


def findings_of(facts: ClusterFacts) -> list[HealthFinding]:
    """Return what is wrong, the worst first."""
    found = [
        *_of_cluster(facts),
        *_of_brokers(facts),
        *(
            finding
            for key, p in _partitions(facts.view)
            for finding in _of_partition(key, p, facts)
        ),
        *_of_topics(facts),
        *_of_throttles(facts.throttles),
    ]
    return sorted(found, key=lambda finding: SEVERITIES.index(finding.severity))


def _of_cluster(facts: ClusterFacts) -> Iterable[HealthFinding]:
    view = facts.view
    if view.controller_id not in view.brokers:
        cause = "no live broker is the controller: no leader is elected, no topic changes"
        yield HealthFinding(CRITICAL, "no-controller", "cluster", cause)


def _of_brokers(facts: ClusterFacts) -> Iterable[HealthFinding]:
    for broker_id, dirs in sorted(facts.log_dirs.items()):
        if isinstance(dirs, Unreachable | TimedOut):
            # The cluster hears of an end with the broker's session, some time after it.
            cause = f"it counts as live and does not answer: {dirs}"
            yield HealthFinding(CRITICAL, "unreachable", f"broker {broker_id}", cause)
        if isinstance(dirs, EngineError):
            continue
        for log_dir in dirs:
            if log_dir.error is not None:
                cause = f"{log_dir.path} is offline: {log_dir.error}"
                yield HealthFinding(CRITICAL, "log-dir", f"broker {broker_id}", cause)


def _of_partition(
    key: TopicPartition, partition: PartitionView, facts: ClusterFacts
) -> Iterable[HealthFinding]:
    subject, min_isr = str(key), facts.min_isr.get(key.topic, 1)
    awaited = {*partition.isr, *partition.adding}
    missing = [id_ for id_ in partition.replicas if id_ not in awaited]
    causes = "; ".join(_why_out(key, partition, id_, facts) for id_ in missing)
    in_sync = f"in sync: {_ids(partition.isr)} of {_ids(partition.replicas)}"
    if not partition.has_leader:
        cause = f"no leader; {_why_offline(partition, facts)}"
        yield HealthFinding(CRITICAL, "offline", subject, cause, key)
    elif len(partition.isr) < min(min_isr, len(partition.replicas)):
        cause = f"{in_sync}, acks=all needs {min_isr}; {causes}"
        yield HealthFinding(CRITICAL, "under-min-isr", subject, cause, key)
    elif partition.is_under_replicated and len(partition.isr) == min_isr:
        cause = f"{in_sync}, acks=all needs {min_isr}: none more may be lost; {causes}"
        yield HealthFinding(WARNING, "at-min-isr", subject, cause, key)
    elif partition.is_under_replicated:
        yield HealthFinding(WARNING, "under-replicated", subject, f"{in_sync}; {causes}", key)
    if key in facts.moves:
        yield HealthFinding(NOTICE, "move", subject, _how_far(key, partition, facts))
        return
    preferred = partition.replicas[0] if partition.replicas else None
    if partition.has_leader and partition.leader != preferred and preferred in partition.isr:
        cause = f"broker {partition.leader} leads, {preferred} is preferred and in sync"
        yield HealthFinding(NOTICE, "not-preferred", subject, cause)


def _how_far(key: TopicPartition, partition: PartitionView, facts: ClusterFacts) -> str:
    """Tell where a reassignment goes, and how much of it is there."""
    move = facts.moves[key]
    whole = _size_bytes(key, partition.leader, facts)
    copies = []
    for broker_id in move.adding:
        if broker_id in partition.isr:
            copies.append(f"broker {broker_id} is in sync")
            continue
        size_bytes = _size_bytes(key, broker_id, facts)
        of = "" if whole is None else f" of {whole}"
        copies.append(f"broker {broker_id} has {size_bytes or 0}{of} bytes")
    return f"{_ids(move.original)} become {_ids(move.target)}; {', '.join(copies)}"


def _size_bytes(key: TopicPartition, broker_id: int, facts: ClusterFacts) -> int | None:
    """Return the bytes of a replica, None where its broker does not tell."""
    dirs = facts.log_dirs.get(broker_id)
    if dirs is None or isinstance(dirs, EngineError):
        return None
    sizes = [
        replica.size_bytes
        for log_dir in dirs
        for replica in log_dir.replicas
        if replica.partition == key and not replica.is_future
    ]
    return sizes[0] if sizes else None


def _why_offline(partition: PartitionView, facts: ClusterFacts) -> str:
    alive = [id_ for id_ in partition.replicas if id_ in facts.view.brokers]
    if not alive:
        return f"all replicas are on brokers that are gone: {_ids(partition.replicas)}"
    return (
        f"in sync were {_ids(partition.isr)}, which are gone; "
        f"{_ids(alive)} may lack records (unclean.leader.election.enable)"
    )


def _why_out(
    key: TopicPartition, partition: PartitionView, broker_id: int, facts: ClusterFacts
) -> str:
    if broker_id not in facts.view.brokers:
        return f"broker {broker_id} is gone"
    if broker_id in partition.offline_replicas:
        return f"the replica on broker {broker_id} is offline, its log directory has failed"
    end, leader_end = facts.ends.get((key, broker_id)), facts.ends.get((key, partition.leader))
    if isinstance(end, EngineError):
        return f"broker {broker_id} does not tell of its replica: {end}"
    if end is None or not isinstance(leader_end, int):
        return f"broker {broker_id} is up, how far it is behind is not known"
    behind = leader_end - end
    if behind > 0:
        return f"broker {broker_id} is up and {behind} records behind, at {end} of {leader_end}"
    return f"broker {broker_id} has all {leader_end} records and is about to join"


def _of_topics(facts: ClusterFacts) -> Iterable[HealthFinding]:
    for name, topic in sorted(facts.view.topics.items()):
        min_isr, count = facts.min_isr.get(name, 1), topic.replication_factor
        if count and min_isr > count:
            cause = f"{_MIN_ISR} is {min_isr}, and there are {count} replicas"
            yield HealthFinding(WARNING, "impossible-min-isr", name, cause)


def _of_throttles(throttles: Sequence[Throttle]) -> Iterable[HealthFinding]:
    for throttle in throttles:
        cause = f"{throttle.setting}={throttle.value}"
        yield HealthFinding(NOTICE, "throttle", f"{throttle.kind} {throttle.name}", cause)


def _ids(broker_ids: Iterable[int]) -> str:
    return ",".join(map(str, broker_ids)) or "none"
