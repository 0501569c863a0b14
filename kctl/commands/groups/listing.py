"""What `kctl groups` shows: groups, their members, offsets and how far behind they are."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.groups import (
    CommitView,
    GroupDescription,
    MemberView,
    commits,
    committed_offsets,
    describe_group,
    list_groups,
)
from engine.client.lag_verdicts import LagSample, LagVerdict, judge_lag
from engine.client.offsets import LATEST, FoundOffset, list_offsets
from engine.client.unread_times import unread_times_ms
from engine.errors import EngineError, api_error
from engine.kafka_errors import GROUP_ID_NOT_FOUND
from engine.model import TopicPartition
from kctl import exits
from kctl.command_results import end_with
from kctl.connect import ClusterOptions, connect
from kctl.console import report_error
from kctl.render import Column, check_format
from kctl.render.rows import OutputRow

LIST_COLUMNS = (
    Column("group", "GROUP", is_name=True),
    Column("state", "STATE", kind="string?"),
    Column("type", "TYPE", kind="string?"),
    Column("protocol_type", "PROTOCOL"),
    Column("coordinator_id", "COORDINATOR", right=True),
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
LAG_COLUMNS = (
    Column("group", "GROUP", is_name=True),
    Column("topic", "TOPIC", is_name=True),
    Column("partition", "PARTITION", right=True),
    Column("committed_offset", "COMMITTED", right=True, kind="integer?"),
    Column("end_offset", "END", right=True, kind="integer?"),
    Column("lag", "LAG", right=True, kind="integer?"),
    Column("client_id", "CLIENT", is_name=True, kind="string?"),
    Column("client_host", "HOST", kind="string?"),
    Column("member_id", "MEMBER", wide=True, kind="string?"),
)
LAG_TIME_COLUMN = Column("lag_ms", "LAG-MS", right=True, kind="integer?")
VERDICT_COLUMNS = (
    Column("verdict", "VERDICT", kind="string?"),
    Column("reason", "REASON", kind="string?"),
)
_DEAD = "Dead"
#: For so long first unread records are waited for.
_TIMES_MS = 5_000


def list_all(options: ClusterOptions, states: list[str], output: str) -> int:
    """Print a row for each group; returns the exit code."""
    check_format(output)
    with connect(options) as client:
        groups, failures = list_groups(client)
    for broker_id, error in failures.items():
        report_error(error, f"broker {broker_id}")
    wanted = {state.lower() for state in states}
    rows: list[OutputRow] = [
        {
            "group": group.group_id,
            "state": group.state,
            "type": group.group_type,
            "protocol_type": group.protocol_type,
            "coordinator_id": group.coordinator_id,
        }
        for group in sorted(groups)
        if not wanted or (group.state or "").lower() in wanted
    ]
    return end_with(LIST_COLUMNS, rows, output, failures=len(failures))


def show_members(options: ClusterOptions, group_ids: list[str], output: str) -> int:
    """Print a row for each member; returns the exit code."""
    check_format(output)
    rows: list[OutputRow] = []
    failures = 0
    with connect(options) as client:
        for group_id in dict.fromkeys(group_ids):
            try:
                rows += member_rows(existing_group(client, group_id))
            except EngineError as error:
                report_error(error, group_id)
                failures += 1
    return end_with(MEMBER_COLUMNS, rows, output, failures=failures)


def member_rows(group: GroupDescription) -> list[OutputRow]:
    """Return a row for each member of a group, by client and id."""
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


def describe(options: ClusterOptions, group_ids: list[str], output: str) -> int:
    """Print a row for each group; returns the exit code."""
    check_format(output)
    rows: list[OutputRow] = []
    failures = 0
    with connect(options) as client:
        for group_id in dict.fromkeys(group_ids):
            try:
                rows.append(_description_row(client, group_id))
            except EngineError as error:
                report_error(error, group_id)
                failures += 1
    return end_with(DESCRIBE_COLUMNS, rows, output, failures=failures)


def _description_row(client: KafkaClient, group_id: str) -> OutputRow:
    group = existing_group(client, group_id)
    committed = committed_offsets(client, group_id)
    partitions = {*committed, *_owners(group)}
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
        # Partitions without an end are left out, so that there is no sum that is too small.
        "lag": sum(lags) if len(lags) == len(committed) else None,
    }


def show_offsets(options: ClusterOptions, group_ids: list[str], output: str) -> int:
    """Print a row for each partition that a group has committed for; returns the exit code."""
    check_format(output)
    rows: list[OutputRow] = []
    failures = 0
    with connect(options) as client:
        for group_id in dict.fromkeys(group_ids):
            try:
                existing_group(client, group_id)
                rows += [
                    _offset_row(group_id, partition, committed)
                    for partition, committed in sorted(commits(client, group_id).items())
                ]
            except EngineError as error:
                report_error(error, group_id)
                failures += 1
    return end_with(OFFSET_COLUMNS, rows, output, failures=failures)


def _offset_row(group_id: str, partition: TopicPartition, committed: CommitView) -> OutputRow:
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
    """Return the address of a member's client, without the slash of a Java broker."""
    return member.client_host.lstrip("/")


class LagRequest(NamedTuple):
    """The options of `kctl groups lag`."""

    groups: list[str]
    with_time: bool
    watch_s: float | None
    every_s: float
    output: str


def show_lag(options: ClusterOptions, request: LagRequest) -> int:
    """Print a row for each partition that a group reads or has read; returns the exit code."""
    check_format(request.output)
    rows: list[OutputRow] = []
    failures = 0
    columns = [*LAG_COLUMNS]
    if request.with_time:
        columns.append(LAG_TIME_COLUMN)
    with connect(options) as client:
        samples: Samples = {}
        if request.watch_s is not None:
            columns += VERDICT_COLUMNS
            samples = _sampled(client, request)
        for group_id in dict.fromkeys(request.groups):
            try:
                found, errors = _lag_rows(client, group_id)
            except EngineError as error:
                report_error(error, group_id)
                failures += 1
                continue
            for partition, failed in errors.items():
                report_error(failed, f"{group_id} {partition}")
            failures += len(errors)
            if request.with_time:
                _add_times(client, found)
            if request.watch_s is not None:
                _add_verdicts(found, samples)
            rows += found.values()
    code = end_with(columns, rows, request.output, failures=failures)
    is_bad = any(row.get("verdict") not in (None, LagVerdict.OK.value) for row in rows)
    return code or (exits.PROBLEMS_FOUND if is_bad else exits.OK)


def _lag_rows(
    client: KafkaClient, group_id: str
) -> tuple[dict[TopicPartition, OutputRow], dict[TopicPartition, EngineError]]:
    """Return the rows of a group, and the partitions whose ends are not known."""
    members = _owners(existing_group(client, group_id))
    committed = committed_offsets(client, group_id)
    partitions = sorted({*committed, *members})
    ends = list_offsets(client, dict.fromkeys(partitions, LATEST))
    rows = {
        key: lag_row(group_id, key, committed.get(key), ends[key], members.get(key))
        for key in partitions
    }
    return rows, {key: end for key, end in ends.items() if isinstance(end, EngineError)}


#: By group and partition, in the order of time.
Samples = dict[tuple[str, TopicPartition], list[LagSample]]


def _sampled(client: KafkaClient, request: LagRequest) -> Samples:
    """Return samples until the time is up; the one that is printed is the last."""
    samples: Samples = {}
    end_ms = client.clock.monotonic_ms() + round((request.watch_s or 0) * 1000)
    while client.clock.monotonic_ms() < end_ms:
        for group_id in dict.fromkeys(request.groups):
            # What cannot be asked now is told once, at the end.
            with suppress(EngineError):
                _take_samples(_lag_rows(client, group_id)[0], samples)
        left_ms = end_ms - client.clock.monotonic_ms()
        client.links.pause(max(min(round(request.every_s * 1000), left_ms), 0))
    return samples


def _take_samples(rows: dict[TopicPartition, OutputRow], samples: Samples) -> None:
    for key, row in rows.items():
        if row["lag"] is not None:
            sample = LagSample(row["committed_offset"], row["end_offset"])
            samples.setdefault((row["group"], key), []).append(sample)


def _add_verdicts(rows: dict[TopicPartition, OutputRow], samples: Samples) -> None:
    _take_samples(rows, samples)
    for key, row in rows.items():
        taken = samples.get((row["group"], key))
        judged = taken and judge_lag(taken, has_member=row["member_id"] is not None)
        row["verdict"] = judged.verdict.value if judged else None
        row["reason"] = judged.reason if judged else None


def _add_times(client: KafkaClient, rows: dict[TopicPartition, OutputRow]) -> None:
    unread = {key: row["committed_offset"] for key, row in rows.items() if row["lag"]}
    times = unread_times_ms(client, unread, min(client.timeout_ms, _TIMES_MS))
    now_ms = client.clock.wall_ms()
    for key, row in rows.items():
        row["lag_ms"] = 0 if row["lag"] == 0 else None
        if key in times:
            row["lag_ms"] = max(now_ms - times[key], 0)


def lag_row(
    group_id: str,
    partition: TopicPartition,
    committed: int | None,
    end: FoundOffset | EngineError,
    member: MemberView | None,
) -> OutputRow:
    """Return the row of a partition; without a committed offset, or an end, there is no lag."""
    end_offset = None if isinstance(end, EngineError) else end.offset
    has_lag = committed is not None and end_offset is not None
    return {
        "group": group_id,
        "topic": partition.topic,
        "partition": partition.partition,
        "committed_offset": committed,
        "end_offset": end_offset,
        "lag": max(0, (end_offset or 0) - (committed or 0)) if has_lag else None,
        "client_id": None if member is None else member.client_id,
        "client_host": None if member is None else host_text(member),
        "member_id": None if member is None else member.member_id,
    }


def existing_group(client: KafkaClient, group_id: str) -> GroupDescription:
    """Return a group; raises GROUP_ID_NOT_FOUND for one that nobody knows."""
    group = describe_group(client, group_id)
    if group.state == _DEAD:
        raise api_error(GROUP_ID_NOT_FOUND)
    return group


def _owners(group: GroupDescription) -> dict[TopicPartition, MemberView]:
    """Return who has each partition."""
    owned: Iterable[tuple[TopicPartition, MemberView]] = (
        (partition, member) for member in group.members for partition in member.partitions or ()
    )
    return dict(owned)
