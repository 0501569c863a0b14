"""Implementation of `kctl leaders list`, `elect` and `balance`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.leader_admin import Election
from engine.client.leader_admin import elect_leaders as send_elect_leaders
from engine.client.metadata import ClusterView, PartitionView, leader_of
from engine.errors import EngineError
from engine.kafka_errors import ELECTION_NOT_NEEDED
from engine.model import TopicPartition
from kctl import exits
from kctl.arguments import UnreadableArgument, counted
from kctl.command_results import end_with
from kctl.connect import ClusterOptions, cluster_named, connect
from kctl.console import confirm, report_error
from kctl.render import Column, check_format, write_rows
from kctl.selection import matching_topics, select_partitions

LEADER_COLUMNS = (
    Column("topic", "TOPIC", is_name=True),
    Column("partition", "PARTITION", right=True),
    Column("leader", "LEADER", right=True, kind="integer?"),
    Column("preferred", "PREFERRED", right=True, kind="integer?"),
    Column("is_preferred", "LEADS", kind="boolean"),
    Column("isr", "ISR", kind="integer[]"),
    Column("replicas", "REPLICAS", wide=True, kind="integer[]"),
)
BROKER_COLUMNS = (
    Column("broker_id", "BROKER", right=True, is_name=True),
    Column("leaders", "LEADS", right=True),
    Column("preferred", "PREFERRED", right=True),
    Column("away", "AWAY", right=True),
    Column("away_percentage", "AWAY%", right=True),
    Column("skew_percentage", "SKEW%", right=True),
)
ELECTION_COLUMNS = (
    Column("topic", "TOPIC", is_name=True),
    Column("partition", "PARTITION", right=True),
    Column("old_leader", "LEADER", right=True, kind="integer?"),
    Column("new_leader", "NEW-LEADER", right=True, kind="integer?"),
    Column("result", "RESULT"),
)
_KINDS = {"preferred": Election.PREFERRED, "unclean": Election.UNCLEAN}


class ListRequest(NamedTuple):
    """The options of `kctl leaders list`."""

    selectors: list[str]
    match: str | None
    not_preferred: bool
    by_broker: bool
    check: bool
    output: str


class ElectRequest(NamedTuple):
    """The options of `kctl leaders elect` and `balance`."""

    kind: str
    selectors: list[str]
    match: str | None
    dry_run: bool
    yes: bool
    output: str


def list_leaders(options: ClusterOptions, request: ListRequest) -> int:
    """Print leaders and preferred leaders, a row for each partition or broker.

    Returns the exit code; with --check it is PROBLEMS_FOUND if a leader is not the preferred one.
    """
    check_format(request.output)
    with connect(options) as client:
        view, keys, errors = _select_partitions(
            client, request.selectors, request.match or _pattern_of_all(request.selectors)
        )
    for error in errors:
        report_error(error)
    partitions = _existing_partitions(view, keys)
    away = [key for key, partition in partitions.items() if not _has_preferred_leader(partition)]
    if request.by_broker:
        rows = _broker_rows(view, partitions.values())
        end_with(BROKER_COLUMNS, rows, request.output, failures=len(errors))
    else:
        shown = away if request.not_preferred else list(partitions)
        rows = [_leader_row(key, partitions[key]) for key in shown]
        end_with(LEADER_COLUMNS, rows, request.output, failures=len(errors))
    if errors:
        return exits.FAILED
    return exits.PROBLEMS_FOUND if request.check and away else exits.OK


def _pattern_of_all(selectors: Sequence[str]) -> str | None:
    """Return a pattern that matches all topics if no partition is selected, else None."""
    return None if selectors else ".*"


def _select_partitions(
    client: KafkaClient, selectors: list[str], match: str | None
) -> tuple[ClusterView, list[TopicPartition], list[EngineError]]:
    """Select partitions by TOPIC[:PARTITIONS] and by a pattern of topic names.

    Returns the cluster's metadata, the existing partitions, and an error for each missing one.
    """
    if match == ".*" and not selectors:
        # A cluster without topics is not an error.
        view = client.view(None)
        keys = [
            TopicPartition(t.name, p.partition) for t in view.topics.values() for p in t.partitions
        ]
        return view, sorted(keys), []
    view, keys, errors = select_partitions(client, matching_topics(client, selectors, match))
    there, absent = [], []
    for key in keys:
        found = leader_of(view, key)
        if view.partition(key) is None and isinstance(found, EngineError):
            absent.append(found)
        else:
            there.append(key)
    return view, there, [*errors, *absent]


def _existing_partitions(
    view: ClusterView, keys: Iterable[TopicPartition]
) -> dict[TopicPartition, PartitionView]:
    """Return the metadata of the partitions; partitions that do not exist are left out."""
    found = ((key, view.partition(key)) for key in keys)
    return {key: partition for key, partition in found if partition is not None}


def _preferred_leader(partition: PartitionView) -> int | None:
    """Return the preferred leader, which is the first replica; None without replicas."""
    return partition.replicas[0] if partition.replicas else None


def _has_preferred_leader(partition: PartitionView) -> bool:
    """Return True if the partition's leader is its preferred one, the first replica."""
    return partition.leader == _preferred_leader(partition)


def _leader_row(key: TopicPartition, partition: PartitionView) -> dict[str, object]:
    """Return the row of a partition; its leader is None if it has none."""
    return {
        "topic": key.topic,
        "partition": key.partition,
        "leader": partition.leader if partition.has_leader else None,
        "preferred": _preferred_leader(partition),
        "is_preferred": _has_preferred_leader(partition),
        "isr": list(partition.isr),
        "replicas": list(partition.replicas),
    }


def _broker_rows(view: ClusterView, partitions: Iterable[PartitionView]) -> list[dict[str, object]]:
    """Return a row for each broker, alive or a preferred leader: its share of the leaders.

    `away` is the number of partitions that prefer it and are led by another broker.
    `skew_percentage` compares its leaders with the mean of the live brokers.
    """
    leaders: Counter[int] = Counter()
    preferred: Counter[int] = Counter()
    away: Counter[int] = Counter()
    for partition in partitions:
        leaders[partition.leader] += 1
        first = _preferred_leader(partition)
        if first is not None:
            preferred[first] += 1
            away[first] += not _has_preferred_leader(partition)
    mean = sum(leaders[id_] for id_ in view.brokers) / max(len(view.brokers), 1)
    return [
        {
            "broker_id": broker_id,
            "leaders": leaders[broker_id],
            "preferred": preferred[broker_id],
            "away": away[broker_id],
            "away_percentage": round(100 * away[broker_id] / max(preferred[broker_id], 1)),
            "skew_percentage": round(100 * (leaders[broker_id] / mean - 1)) if mean else 0,
        }
        for broker_id in sorted({*view.brokers, *preferred})
    ]


# -- elections


def elect_leaders(options: ClusterOptions, request: ElectRequest) -> int:
    """Request elections, and print a row for each partition whose election succeeds.

    In a dry run they are only shown, and the exit code is CHANGES_PENDING if there are any. Returns
    the exit code. Errors: UnreadableArgument for an unknown kind.
    """
    check_format(request.output)
    election = _KINDS.get(request.kind)
    if election is None:
        raise UnreadableArgument("an election", request.kind, "preferred or unclean")
    with connect(options) as client:
        view, keys, errors = _select_partitions(client, request.selectors, request.match)
        for error in errors:
            report_error(error)
        wanted = _needed_elections(view, _existing_partitions(view, keys), election)
        if request.dry_run or not wanted:
            rows = [
                _election_row(key, p, new, "would be elected") for key, (p, new) in wanted.items()
            ]
            write_rows(ELECTION_COLUMNS, rows, request.output, failures=len(errors))
            if errors:
                return exits.FAILED
            return exits.CHANGES_PENDING if wanted else exits.OK
        confirm(_confirmation_text(client, election, len(wanted)), yes=request.yes)
        failures = len(errors)
        results = send_elect_leaders(client, election, list(wanted))
        now = _existing_partitions(client.view({key.topic for key in wanted}), wanted)
    rows = []
    for key, (partition, _) in wanted.items():
        failure = results.get(key)
        if failure is not None and failure.code != ELECTION_NOT_NEEDED:
            report_error(failure, str(key))
            failures += 1
            continue
        result = "elected" if failure is None else "not needed"
        leader = now[key].leader if key in now else None
        rows.append(_election_row(key, partition, leader, result))
    return end_with(ELECTION_COLUMNS, rows, request.output, failures=failures)


def _needed_elections(
    view: ClusterView, partitions: dict[TopicPartition, PartitionView], election: Election
) -> dict[TopicPartition, tuple[PartitionView, int | None]]:
    """Return the partitions that an election would change: metadata and expected new leader.

    An unclean election needs a partition without a leader and a live replica; a preferred one, a
    preferred replica in the ISR that does not lead.
    """
    wanted: dict[TopicPartition, tuple[PartitionView, int | None]] = {}
    for key, partition in partitions.items():
        if election is Election.UNCLEAN:
            alive = [id_ for id_ in partition.replicas if id_ in view.brokers]
            if not partition.has_leader and alive:
                wanted[key] = partition, alive[0]
        elif not _has_preferred_leader(partition) and _preferred_leader(partition) in partition.isr:
            wanted[key] = partition, _preferred_leader(partition)
    return wanted


def _confirmation_text(client: KafkaClient, election: Election, count: int) -> str:
    """Return the confirmation prompt of an election; that of an unclean one names the data loss."""
    what = counted(count, "partition")
    if election is Election.UNCLEAN:
        return (
            f"elect leaders of {what} that may lack records, of {cluster_named(client)}: "
            "what only other replicas have is lost"
        )
    return f"have the preferred replica lead {what} of {cluster_named(client)}"


def _election_row(
    key: TopicPartition, partition: PartitionView, new_leader: int | None, result: str
) -> dict[str, object]:
    """Return the row of an election; a leader is None if there is none."""
    return {
        "topic": key.topic,
        "partition": key.partition,
        "old_leader": partition.leader if partition.has_leader else None,
        "new_leader": new_leader,
        "result": result,
    }
