"""Implementation of `kctl groups list`, `members`, `describe` and `offsets`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from engine.client.blocking import KafkaClient
from engine.client.groups import (
    CommitView,
    GroupDescription,
    MemberView,
    committed_offsets,
    describe_group,
    list_groups,
    request_commits,
)
from engine.errors import EngineError, api_error
from engine.kafka_errors import GROUP_ID_NOT_FOUND
from engine.model import TopicPartition
from kctl.arguments import UnreadableArgument
from kctl.command_results import ItemFailures, end_with
from kctl.connect import ClusterOptions, connect
from kctl.console import report_error
from kctl.render import Column, check_format
from kctl.render.rows import OutputRow

if TYPE_CHECKING:
    from engine.client.group_lags import LagSum

LIST_COLUMNS = (
    Column("group", "GROUP", is_name=True),
    Column("state", "STATE", kind="string?"),
    Column("type", "TYPE", kind="string?"),
    Column("protocol_type", "PROTOCOL"),
    Column("coordinator_id", "COORDINATOR", right=True),
)
LAG_SUM_COLUMNS = (
    Column("topics", "TOPICS", right=True, kind="integer?"),
    Column("partitions", "PARTITIONS", right=True, kind="integer?"),
    Column("lag", "LAG", right=True, kind="integer?"),
)
MEMBER_COLUMNS = (
    Column("group", "GROUP", is_name=True),
    Column("state", "STATE"),
    Column("assignor", "ASSIGNOR"),
    Column("client_id", "CLIENT", is_name=True),
    Column("client_host", "HOST"),
    Column("instance_id", "INSTANCE", kind="string?"),
    Column("partitions", "PARTITIONS", right=True, kind="integer?"),
    Column("member_id", "MEMBER", wide=True),
)
DESCRIBE_COLUMNS = (
    Column("group", "GROUP", is_name=True),
    Column("state", "STATE"),
    Column("protocol_type", "PROTOCOL", wide=True),
    Column("assignor", "ASSIGNOR"),
    Column("coordinator", "COORDINATOR"),
    Column("members", "MEMBERS", right=True),
    Column("topics", "TOPICS", right=True),
    Column("partitions", "PARTITIONS", right=True),
    Column("uncommitted", "UNCOMMITTED", right=True),
    Column("lag", "LAG", right=True, kind="integer?"),
)
OFFSET_COLUMNS = (
    Column("group", "GROUP", is_name=True),
    Column("topic", "TOPIC", is_name=True),
    Column("partition", "PARTITION", right=True),
    Column("committed_offset", "COMMITTED", right=True),
    Column("leader_epoch", "EPOCH", right=True, kind="integer?"),
    Column("metadata", "METADATA"),
)
_DEAD = "Dead"
#: States of groups of the classic, consumer (KIP-848) and streams (KIP-1071) protocols.
_STATES = (
    "PreparingRebalance",
    "CompletingRebalance",
    "Stable",
    "Empty",
    _DEAD,
    "Assigning",
    "Reconciling",
    "NotReady",
)


def print_groups(
    options: ClusterOptions, states: list[str], output: str, *, with_lag: bool = False
) -> int:
    """Print a row for each group in `states` (empty: any state); returns the exit code.

    With `with_lag` also each group's total lag. Errors: UnreadableArgument for an unknown state.
    """
    check_format(output)
    wanted = {state.lower() for state in states}
    known = {state.lower() for state in _STATES}
    for state in states:
        if state.lower() not in known:
            raise UnreadableArgument("a state of groups", state, ", ".join(_STATES))
    lags: dict[str, LagSum | EngineError] = {}
    with connect(options) as client:
        found, failures = list_groups(client)
        found.sort(key=lambda group: (group.group_id, group.coordinator_id))
        groups = [group for group in found if not wanted or (group.state or "").lower() in wanted]
        if with_lag:
            from engine.client.group_lags import request_lags
            from kctl.render.progress import ProgressBar

            with ProgressBar("reading what groups have committed") as bar:
                lags = request_lags(client, groups, bar.update)
    for broker_id, error in failures.items():
        report_error(error, f"broker {broker_id}")
    rows: list[OutputRow] = [
        {
            "group": group.group_id,
            "state": group.state,
            "type": group.group_type,
            "protocol_type": group.protocol_type,
            "coordinator_id": group.coordinator_id,
        }
        for group in groups
    ]
    columns, failure_count = [*LIST_COLUMNS], len(failures)
    if with_lag:
        columns += LAG_SUM_COLUMNS
        failure_count += sum(_add_lag(row, lags.get(str(row["group"]))) for row in rows)
    return end_with(columns, rows, output, failures=failure_count)


def _add_lag(row: OutputRow, lag: LagSum | EngineError | None) -> bool:
    """Add a group's total lag to its row; return True if some of it is unknown.

    An error, or the number of partitions with an unknown log end, is printed. None is for a group
    whose lag was not requested.
    """
    row.update(topics=None, partitions=None, lag=None)
    if isinstance(lag, EngineError):
        report_error(lag, str(row["group"]))
        return True
    if lag is None:
        return False
    row.update(topics=lag.topic_count, partitions=lag.partition_count, lag=lag.lag)
    if lag.unknown_count:
        text = f"its lag is not known: the ends of {lag.unknown_count} partitions are not"
        report_error(EngineError(text), str(row["group"]))
    return lag.unknown_count > 0


def show_members(options: ClusterOptions, group_ids: list[str], output: str) -> int:
    """Print a row for each member of the groups; returns the exit code.

    An error of a group is printed, and the others are still shown.
    """
    check_format(output)
    rows: list[OutputRow] = []
    failures = ItemFailures()
    with connect(options) as client:
        for group_id in dict.fromkeys(group_ids):
            try:
                rows += member_rows(describe_existing_group(client, group_id))
            except EngineError as error:
                failures.report(error, group_id)
    return failures.end_with(MEMBER_COLUMNS, rows, output)


def member_rows(group: GroupDescription) -> list[OutputRow]:
    """Return a row for each member of a group, sorted by client id and member id."""
    return [
        {
            "group": group.group_id,
            "state": group.state,
            "assignor": group.protocol_name,
            "client_id": member.client_id,
            "client_host": host_text(member),
            "instance_id": member.group_instance_id,
            "partitions": None if member.partitions is None else len(member.partitions),
            "member_id": member.member_id,
        }
        for member in sorted(group.members, key=lambda m: (m.client_id, m.member_id))
    ]


def describe_groups(options: ClusterOptions, group_ids: list[str], output: str) -> int:
    """Print a row for each group: state, coordinator, members and total lag; returns the exit code.

    An error of a group is printed, and the others are still shown.
    """
    check_format(output)
    rows: list[OutputRow] = []
    failures = ItemFailures()
    with connect(options) as client:
        for group_id in dict.fromkeys(group_ids):
            try:
                rows.append(_read_description_row(client, group_id))
            except EngineError as error:
                failures.report(error, group_id)
    return failures.end_with(DESCRIBE_COLUMNS, rows, output)


def _read_description_row(client: KafkaClient, group_id: str) -> OutputRow:
    """Request a group's state, offsets and lag, and return them as a row.

    The total lag is None if the log end of a partition is unknown.
    """
    from engine.client.offsets import LATEST, list_offsets

    group = describe_existing_group(client, group_id)
    committed = committed_offsets(client, group_id)
    partitions = {*committed, *member_by_partition(group)}
    ends = list_offsets(client, dict.fromkeys(committed, LATEST))
    found = {key: end.offset for key, end in ends.items() if not isinstance(end, EngineError)}
    lags = [max(0, end - committed[key]) for key, end in found.items()]
    return {
        "group": group_id,
        "state": group.state,
        "protocol_type": group.protocol_type,
        "assignor": group.protocol_name,
        "coordinator": str(client.coordinator(group_id)),
        "members": len(group.members),
        "topics": len({partition.topic for partition in partitions}),
        "partitions": len(partitions),
        "uncommitted": len(partitions) - len(committed),
        # The total is unknown if a partition's log end is unknown.
        "lag": sum(lags) if len(lags) == len(committed) else None,
    }


def show_offsets(options: ClusterOptions, group_ids: list[str], output: str) -> int:
    """Print the committed offsets of groups, a row for each partition; returns the exit code.

    An error of a group is printed, and the others are still shown.
    """
    check_format(output)
    rows: list[OutputRow] = []
    failures = ItemFailures()
    with connect(options) as client:
        for group_id in dict.fromkeys(group_ids):
            try:
                describe_existing_group(client, group_id)
                rows += [
                    _offset_row(group_id, partition, committed)
                    for partition, committed in sorted(request_commits(client, group_id).items())
                ]
            except EngineError as error:
                failures.report(error, group_id)
    return failures.end_with(OFFSET_COLUMNS, rows, output)


def _offset_row(group_id: str, partition: TopicPartition, committed: CommitView) -> OutputRow:
    """Return the row of a committed offset; the leader epoch is None if none was stored."""
    has_epoch = committed.leader_epoch >= 0
    return {
        "group": group_id,
        "topic": partition.topic,
        "partition": partition.partition,
        "committed_offset": committed.offset,
        "leader_epoch": committed.leader_epoch if has_epoch else None,
        "metadata": committed.metadata,
    }


def host_text(member: MemberView) -> str:
    """Return the client address of a member without the leading slash of Java brokers."""
    return member.client_host.lstrip("/")


def describe_existing_group(client: KafkaClient, group_id: str) -> GroupDescription:
    """Describe a group; raises GROUP_ID_NOT_FOUND if it does not exist.

    Brokers describe a group that does not exist as Dead, without an error.
    """
    group = describe_group(client, group_id)
    if group.state == _DEAD:
        raise api_error(GROUP_ID_NOT_FOUND)
    return group


def member_by_partition(group: GroupDescription) -> dict[TopicPartition, MemberView]:
    """Return the member that each partition is assigned to; unassigned ones are missing."""
    owned: Iterable[tuple[TopicPartition, MemberView]] = (
        (partition, member) for member in group.members for partition in member.partitions or ()
    )
    return dict(owned)
