"""Implementation of `kctl groups lag`: lag in records and in time, and a verdict on it.

A separate module: only the times of unread records need `engine.records`.
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.groups import MemberView, committed_offsets
from engine.client.lag_verdicts import LagSample, LagVerdict, judge_lag
from engine.client.offsets import LATEST, FoundOffset, list_offsets
from engine.client.time_lag import request_unread_times_ms
from engine.errors import EngineError
from engine.model import TopicPartition
from kctl import exits
from kctl.command_results import ItemFailures
from kctl.commands.groups.listing import describe_existing_group, host_text, member_by_partition
from kctl.connect import ClusterOptions, connect
from kctl.render import Column, check_format
from kctl.render.rows import OutputRow

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
#: Maximum time to wait for the first unread records.
_TIMES_MS = 5_000


class LagRequest(NamedTuple):
    """The options of `kctl groups lag`."""

    groups: list[str]
    with_time: bool
    watch_s: float | None
    every_s: float
    output: str


def show_lag(options: ClusterOptions, request: LagRequest) -> int:
    """Print a group's lag, a row for each partition with a committed offset or a member.

    With --watch, the lag is sampled, and a verdict added. Returns the exit code: PROBLEMS_FOUND if
    a verdict is not OK.
    """
    check_format(request.output)
    rows: list[OutputRow] = []
    failures = ItemFailures()
    columns = [*LAG_COLUMNS]
    if request.with_time:
        columns.append(LAG_TIME_COLUMN)
    with connect(options) as client:
        samples: Samples = {}
        if request.watch_s is not None:
            columns += VERDICT_COLUMNS
            samples = _sample_until_last(client, request)
        for group_id in dict.fromkeys(request.groups):
            try:
                found, errors = _read_lag_rows(client, group_id)
            except EngineError as error:
                failures.report(error, group_id)
                continue
            for partition, failed in errors.items():
                failures.report(failed, f"{group_id} {partition}")
            if request.with_time:
                _add_times(client, found)
            if request.watch_s is not None:
                _add_verdicts(found, samples)
            rows += found.values()
    code = failures.end_with(columns, rows, request.output)
    is_bad = any(row.get("verdict") not in (None, LagVerdict.OK.value) for row in rows)
    return code or (exits.PROBLEMS_FOUND if is_bad else exits.OK)


def _read_lag_rows(
    client: KafkaClient, group_id: str
) -> tuple[dict[TopicPartition, OutputRow], dict[TopicPartition, EngineError]]:
    """Return a group's rows by partition, and the errors of partitions without a known log end.

    The rows of the latter have no lag.
    """
    members = member_by_partition(describe_existing_group(client, group_id))
    committed = committed_offsets(client, group_id)
    partitions = sorted({*committed, *members})
    ends = list_offsets(client, dict.fromkeys(partitions, LATEST))
    rows = {
        key: lag_row(group_id, key, committed.get(key), ends[key], members.get(key))
        for key in partitions
    }
    return rows, {key: end for key, end in ends.items() if isinstance(end, EngineError)}


#: Samples by group and partition, oldest first.
Samples = dict[tuple[str, TopicPartition], list[LagSample]]


def _sample_until_last(client: KafkaClient, request: LagRequest) -> Samples:
    """Sample the lag of the groups for the time of --watch; return all samples but the last.

    The caller takes the last sample, which is the one that is printed. Failures are ignored here.
    """
    samples: Samples = {}
    end_ms = client.clock.monotonic_ms() + round((request.watch_s or 0) * 1000)
    while client.clock.monotonic_ms() < end_ms:
        for group_id in dict.fromkeys(request.groups):
            # Ignore failures here: the last sample reports errors.
            with suppress(EngineError):
                _take_samples(_read_lag_rows(client, group_id)[0], samples)
        left_ms = end_ms - client.clock.monotonic_ms()
        client.connections.pause(max(min(round(request.every_s * 1000), left_ms), 0))
    return samples


def _take_samples(rows: dict[TopicPartition, OutputRow], samples: Samples) -> None:
    """Append each partition's committed offset and log end to its samples, if both are known."""
    for key, row in rows.items():
        if row["lag"] is not None:
            sample = LagSample(row["committed_offset"], row["end_offset"])
            samples.setdefault((row["group"], key), []).append(sample)


def _add_verdicts(rows: dict[TopicPartition, OutputRow], samples: Samples) -> None:
    """Sample the rows, and add the verdict on each partition's lag and its reason.

    Both are None for a partition without samples.
    """
    _take_samples(rows, samples)
    for key, row in rows.items():
        taken = samples.get((row["group"], key))
        judged = taken and judge_lag(taken, has_member=row["member_id"] is not None)
        row["verdict"] = judged.verdict.value if judged else None
        row["reason"] = judged.reason if judged else None


def _add_times(client: KafkaClient, rows: dict[TopicPartition, OutputRow]) -> None:
    """Add `lag_ms` to the rows: the age of the first unread record.

    It is 0 without lag, None if the lag or the record's time is unknown.
    """
    unread = {key: row["committed_offset"] for key, row in rows.items() if row["lag"]}
    times = request_unread_times_ms(client, unread, min(client.timeout_ms, _TIMES_MS))
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
    """Return the row of a partition; lag is None without a committed offset or a log end."""
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
