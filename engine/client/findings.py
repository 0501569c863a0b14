"""Findings about a cluster: problems of its brokers and partitions, with their causes. Pure.

| finding | severity | when |
|---|---|---|
| offline | critical | a partition has no leader: nobody can read or write it |
| silent-leader | critical | its leader does not answer: nobody can read or write it |
| under-min-isr | critical | fewer in sync than min.insync.replicas: acks=all is refused |
| no-controller | critical | nobody elects leaders, or who should does not answer |
| store | critical | the metadata store does not answer |
| unreachable | critical | a broker that counts as live does not answer |
| log-dir | critical | a log directory of a broker has failed |
| unasked | warning | something could not be asked; a notice if we may not ask |
| at-min-isr | warning | replicas are missing, and with one more acks=all is refused |
| under-replicated | warning | a replica is out of the in-sync set |
| impossible-min-isr | warning | min.insync.replicas is above the number of replicas |
| not-preferred | notice | another replica leads than the preferred one, which is in sync |
| move | notice | a reassignment is under way |
| throttle | notice | replication is throttled, which a finished move should have undone |

Findings about readers (transactions, groups) are in `reader_findings`.

Adding replicas of a reassignment do not count: a partition is under-replicated if fewer replicas
are in sync than it has without those, as Kafka's own tool counts. A partition has one of offline,
silent-leader, under-min-isr, under-replicated and at-min-isr: the worst.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from engine.client.cluster_admin import LogDirView
from engine.client.health import Throttle
from engine.client.metadata import ClusterView, PartitionView
from engine.client.move_progress import MoveFigures, move_figures, replica_size_bytes
from engine.client.reassignments import OngoingReassignment
from engine.errors import ApiError, EngineError
from engine.kafka_errors import CLUSTER_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED
from engine.model import TopicPartition

CRITICAL: Final = "critical"
WARNING: Final = "warning"
NOTICE: Final = "notice"
SEVERITIES: Final = (CRITICAL, WARNING, NOTICE)
KINDS: Final = (
    "offline",
    "silent-leader",
    "under-min-isr",
    "no-controller",
    "store",
    "unreachable",
    "log-dir",
    "unasked",
    "at-min-isr",
    "under-replicated",
    "impossible-min-isr",
    "not-preferred",
    "move",
    "throttle",
    # Findings of `reader_findings`.
    "hanging-transaction",
    "long-transaction",
    "idle-group",
)
MIN_ISR: Final = "min.insync.replicas"
_REFUSALS: Final = (CLUSTER_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED)


class HealthFinding(NamedTuple):
    """One problem of a cluster; `subject` is a partition, a broker, or the cluster.

    `partition` is set if the finding is about its in-sync replicas.
    """

    severity: str
    kind: str
    subject: str
    cause: str
    partition: TopicPartition | None = None
    #: The progress, if the finding is a reassignment.
    move: MoveFigures | None = None
    #: The cause without details of the partition, to group findings by; None if not grouped.
    shared_cause: str | None = None


class Unanswered(NamedTuple):
    """A fact that a broker, or the cluster, did not report: `what` names it, with the error."""

    subject: str
    what: str
    error: EngineError


class ClusterFacts(NamedTuple):
    """The facts from which findings are made.

    `min_isr` is by topic; `ends` has each replica's log end offset, or the error. `silent` are
    brokers that count as live and answer nothing, with the reason; `rates` are the bytes a second
    that reassignments copy.
    """

    view: ClusterView
    min_isr: Mapping[str, int]
    log_dirs: Mapping[int, list[LogDirView] | EngineError]
    ends: Mapping[tuple[TopicPartition, int], int | EngineError]
    throttles: Sequence[Throttle]
    moves: Mapping[TopicPartition, OngoingReassignment] = MappingProxyType({})
    silent: Mapping[int, EngineError] = MappingProxyType({})
    unanswered: Sequence[Unanswered] = ()
    rates: Mapping[TopicPartition, float] = MappingProxyType({})


def _iter_partitions(view: ClusterView) -> Iterator[tuple[TopicPartition, PartitionView]]:
    """Yield each partition with its metadata, topics in the order of their names."""
    for name in sorted(view.topics):
        for partition in view.topics[name].partitions:
            yield TopicPartition(name, partition.partition), partition


def findings_of(facts: ClusterFacts) -> list[HealthFinding]:
    """Return the problems of a cluster as findings, the most severe first.

    The rules are those of `kctl check`: controller, brokers, log directories, partitions, topics.
    """
    found = [
        *_cluster_findings(facts),
        *_broker_findings(facts),
        *_missing_fact_findings(facts),
        *(
            finding
            for key, p in _iter_partitions(facts.view)
            for finding in _partition_findings(key, p, facts)
        ),
        *_topic_findings(facts),
        *_throttle_findings(facts.throttles),
    ]
    return sorted(found, key=lambda finding: SEVERITIES.index(finding.severity))


def _cluster_findings(facts: ClusterFacts) -> Iterable[HealthFinding]:
    """Yield a critical finding if the controller is not alive, or does not respond."""
    view = facts.view
    if view.controller_id not in view.brokers:
        cause = "no live broker is the controller: no leader is elected, no topic changes"
        yield HealthFinding(CRITICAL, "no-controller", "cluster", cause)
    elif view.is_controller_known and view.controller_id in facts.silent:
        cause = f"broker {view.controller_id} is the controller and does not answer: no leader"
        cause += " is elected, no topic changes"
        yield HealthFinding(CRITICAL, "no-controller", "cluster", cause)


def _missing_fact_findings(facts: ClusterFacts) -> Iterable[HealthFinding]:
    """Yield a finding for each fact that a broker did not return: a notice if it refused."""
    for unanswered in facts.unanswered:
        error = unanswered.error
        is_refused = isinstance(error, ApiError) and error.code in _REFUSALS
        cause = f"{unanswered.what} are not known: {error}"
        severity = NOTICE if is_refused else WARNING
        yield HealthFinding(severity, "unasked", unanswered.subject, cause)


def _broker_findings(facts: ClusterFacts) -> Iterable[HealthFinding]:
    """Yield a finding for each broker that does not respond, and for each offline log directory."""
    for broker_id, error in sorted(facts.silent.items()):
        # The cluster notices a dead broker only when its session times out.
        led = sum(p.leader == broker_id for _, p in _iter_partitions(facts.view))
        leads = f" and leads {led} partition{'s' * (led != 1)}" if led else ""
        cause = f"it counts as live{leads}, and does not answer: {error}"
        yield HealthFinding(CRITICAL, "unreachable", f"broker {broker_id}", cause)
    for broker_id, dirs in sorted(facts.log_dirs.items()):
        if isinstance(dirs, EngineError):
            continue
        for log_dir in dirs:
            if log_dir.error is not None:
                cause = f"{log_dir.path} is offline: {log_dir.error}"
                yield HealthFinding(CRITICAL, "log-dir", f"broker {broker_id}", cause)


def _partition_findings(
    key: TopicPartition, partition: PartitionView, facts: ClusterFacts
) -> Iterable[HealthFinding]:
    """Yield findings about one partition: the worst one about its leader or ISR, if any.

    After it comes a notice of a reassignment, or of a leader that is not the preferred replica.
    Findings with equal `shared_cause` have the same cause and are grouped in the output.
    """
    subject, min_isr = str(key), facts.min_isr.get(key.topic, 1)
    awaited = {*partition.isr, *partition.adding}
    missing = [id_ for id_ in partition.replicas if id_ not in awaited]
    why_out = [_out_of_sync_cause(key, partition, id_, facts) for id_ in missing]
    causes = "; ".join(why.text for why in why_out)
    shared = "; ".join(sorted({why.shared for why in why_out}))
    in_sync = f"in sync: {_ids_text(partition.isr)} of {_ids_text(partition.replicas)}"
    if not partition.has_leader:
        why = _offline_cause(partition, facts)
        shared = f"no leader; {why.shared}"
        cause = f"no leader; {why.text}"
        yield HealthFinding(CRITICAL, "offline", subject, cause, key, shared_cause=shared)
    elif partition.leader in facts.silent:
        shared = f"broker {partition.leader} leads and does not answer"
        cause = f"{shared}; {in_sync}"
        yield HealthFinding(CRITICAL, "silent-leader", subject, cause, key, shared_cause=shared)
    elif len(partition.isr) < min(min_isr, len(partition.replicas)):
        cause = f"{in_sync}, acks=all needs {min_isr}; {causes}"
        shared = f"fewer in sync than the {min_isr} that acks=all needs; {shared}"
        yield HealthFinding(CRITICAL, "under-min-isr", subject, cause, key, shared_cause=shared)
    elif partition.is_under_replicated and len(partition.isr) == min_isr:
        cause = f"{in_sync}, acks=all needs {min_isr}: none more may be lost; {causes}"
        shared = f"acks=all needs the {min_isr} in sync: none more may be lost; {shared}"
        yield HealthFinding(WARNING, "at-min-isr", subject, cause, key, shared_cause=shared)
    elif partition.is_under_replicated:
        cause = f"{in_sync}; {causes}"
        yield HealthFinding(WARNING, "under-replicated", subject, cause, key, shared_cause=shared)
    if key in facts.moves:
        move = facts.moves[key]
        figures = move_figures(key, partition, move, facts.log_dirs, facts.rates.get(key))
        cause = _progress_text(key, partition, facts)
        yield HealthFinding(NOTICE, "move", subject, cause, move=figures)
        return
    preferred = partition.replicas[0] if partition.replicas else None
    if partition.has_leader and partition.leader != preferred and preferred in partition.isr:
        cause = f"broker {partition.leader} leads, {preferred} is preferred and in sync"
        shared = f"{preferred} is preferred and in sync, and another broker leads"
        yield HealthFinding(NOTICE, "not-preferred", subject, cause, shared_cause=shared)


def _progress_text(key: TopicPartition, partition: PartitionView, facts: ClusterFacts) -> str:
    """Return the progress of a partition's reassignment as text: its replicas, and bytes copied."""
    move = facts.moves[key]
    whole = replica_size_bytes(key, partition.leader, facts.log_dirs)
    copies = []
    for broker_id in move.adding:
        if broker_id in partition.isr:
            copies.append(f"broker {broker_id} is in sync")
            continue
        there = replica_size_bytes(key, broker_id, facts.log_dirs)
        of = "" if whole is None else f" of {whole}"
        copies.append(f"broker {broker_id} has {there or 0}{of} bytes")
    # A reassignment that only removes replicas copies nothing.
    copied = f"; {', '.join(copies)}" if copies else ""
    return f"{_ids_text(move.original)} become {_ids_text(move.target)}{copied}"


class _Cause(NamedTuple):
    """A cause, and the part of its text that is the same for other partitions of that cause."""

    text: str
    shared: str


def _offline_cause(partition: PartitionView, facts: ClusterFacts) -> _Cause:
    """Return the reason for a missing leader: all replicas, or all in-sync replicas, are down."""
    alive = [id_ for id_ in partition.replicas if id_ in facts.view.brokers]
    if not alive:
        text = "all replicas are on brokers that are gone: {}"
        replicas = partition.replicas
        return _Cause(text.format(_ids_text(replicas)), text.format(_ids_text(sorted(replicas))))
    text = "in sync were {}, which are gone"
    others = f"; {_ids_text(alive)} may lack records (unclean.leader.election.enable)"
    isr = partition.isr
    return _Cause(text.format(_ids_text(isr)) + others, text.format(_ids_text(sorted(isr))))


def _out_of_sync_cause(
    key: TopicPartition, partition: PartitionView, broker_id: int, facts: ClusterFacts
) -> _Cause:
    """Return why a replica is out of sync: broker gone, directory failed, behind, catching up."""
    if broker_id not in facts.view.brokers:
        text = f"broker {broker_id} is gone"
        return _Cause(text, text)
    if broker_id in partition.offline_replicas:
        text = f"the replica on broker {broker_id} is offline, its log directory has failed"
        return _Cause(text, text)
    end, leader_end = facts.ends.get((key, broker_id)), facts.ends.get((key, partition.leader))
    if isinstance(end, EngineError):
        text = f"broker {broker_id} does not return the end of its replica: {end}"
        return _Cause(text, text)
    if end is None or not isinstance(leader_end, int):
        text = f"broker {broker_id} is up, how far it is behind is not known"
        return _Cause(text, text)
    behind = leader_end - end
    if behind > 0:
        text = f"broker {broker_id} is up and {behind} records behind, at {end} of {leader_end}"
        return _Cause(text, f"broker {broker_id} is up and behind")
    text = f"broker {broker_id} has all {leader_end} records and is about to join"
    return _Cause(text, f"broker {broker_id} has all records and is about to join")


def _topic_findings(facts: ClusterFacts) -> Iterable[HealthFinding]:
    """Yield a warning for each topic with min.insync.replicas above its replication factor."""
    for name, topic in sorted(facts.view.topics.items()):
        min_isr, count = facts.min_isr.get(name, 1), topic.replication_factor
        if count and min_isr > count:
            cause = f"{MIN_ISR} is {min_isr}, and there are {count} replicas"
            yield HealthFinding(WARNING, "impossible-min-isr", name, cause)


def _throttle_findings(throttles: Sequence[Throttle]) -> Iterable[HealthFinding]:
    """Yield a notice for each throttle that is set: it may be left over from a reassignment."""
    for throttle in throttles:
        cause = f"{throttle.setting}={throttle.value}"
        yield HealthFinding(NOTICE, "throttle", f"{throttle.kind} {throttle.name}", cause)


def _ids_text(broker_ids: Iterable[int]) -> str:
    """Return broker ids as text, separated by commas."""
    return ",".join(map(str, broker_ids)) or "none"
