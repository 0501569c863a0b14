"""Implementation of `kctl offsets get` and `kctl records delete`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.offsets import EARLIEST, LATEST
from engine.errors import EngineError, api_error
from engine.kafka_errors import OFFSET_OUT_OF_RANGE
from engine.model import TopicPartition
from kctl.arguments import counted
from kctl.command_results import end_with
from kctl.connect import ClusterOptions, cluster_named, connect
from kctl.console import confirm, report_error
from kctl.offset_points import OffsetLookup, Point, PointKind, parse_point
from kctl.render import Column, check_format
from kctl.render.rows import OutputRow
from kctl.selection import matching_topics, select_partitions

_START = Point(PointKind.TIMESTAMP, EARLIEST)
_END = Point(PointKind.TIMESTAMP, LATEST)

RANGE_COLUMNS = (
    Column("topic", "TOPIC"),
    Column("partition", "PARTITION", right=True),
    Column("start_offset", "START", right=True),
    Column("end_offset", "END", right=True),
    Column("distance", "DISTANCE", right=True),
)
POINT_COLUMNS = (
    Column("topic", "TOPIC"),
    Column("partition", "PARTITION", right=True),
    Column("offset", "OFFSET", right=True, kind="integer?"),
)
DELETE_COLUMNS = (
    Column("topic", "TOPIC"),
    Column("partition", "PARTITION", right=True),
    Column("start_offset", "START", right=True),
    Column("end_offset", "END", right=True),
    Column("before_offset", "BEFORE", right=True),
    Column("offsets_lost", "LOST", right=True),
    Column("result", "RESULT"),
)


class OffsetsRequest(NamedTuple):
    """The options of `kctl offsets get`."""

    selectors: list[str]
    match: str | None
    at: str | None
    read_committed: bool
    output: str


class DeleteRequest(NamedTuple):
    """The options of `kctl records delete`."""

    selectors: list[str]
    before: str
    dry_run: bool
    yes: bool
    output: str


def get_offsets(options: ClusterOptions, request: OffsetsRequest) -> int:
    """Print the start and end offset of each partition, or with --at that of one point.

    Returns the exit code. The point is a time, an offset, or a word such as `end`.
    """
    check_format(request.output)
    with connect(options) as client:
        now_ms = client.clock.wall_ms()
        point = None if request.at is None else parse_point(request.at, now_ms)
        selectors = matching_topics(client, request.selectors, request.match)
        _, partitions, errors = select_partitions(client, selectors)
        for error in errors:
            report_error(error)
        lookup = OffsetLookup(client, partitions, read_committed=request.read_committed)
        columns: tuple[Column, ...]
        results_by_column: dict[str, dict[TopicPartition, int | EngineError | None]]
        if point is not None:
            columns, results_by_column = POINT_COLUMNS, {"offset": lookup.find(point)}
        else:
            starts, ends = lookup.resolve(_START), lookup.resolve(_END)
            columns = RANGE_COLUMNS
            results_by_column = {"start_offset": {**starts}, "end_offset": {**ends}}
    rows, failures = _offset_rows(partitions, results_by_column)
    return end_with(columns, rows, request.output, failures=failures + len(errors))


def _offset_rows(
    partitions: list[TopicPartition],
    results_by_column: Mapping[str, Mapping[TopicPartition, int | EngineError | None]],
) -> tuple[list[OutputRow], int]:
    """Return a row for each partition without an error; print and count the errors."""
    rows = []
    failures = 0
    for partition in partitions:
        row: OutputRow = {"topic": partition.topic, "partition": partition.partition}
        error = None
        for key, results in results_by_column.items():
            result = results[partition]
            if isinstance(result, EngineError):
                error = result
            else:
                row[key] = result
        if error is not None:
            report_error(error, str(partition))
            failures += 1
            continue
        if "start_offset" in row and "end_offset" in row:
            row["distance"] = row["end_offset"] - row["start_offset"]
        rows.append(row)
    return rows, failures


def delete_records(options: ClusterOptions, request: DeleteRequest) -> int:
    """Delete the records before a point, after confirmation; print a row for each partition.

    Returns the exit code. A partition whose log ends before the point is refused.
    """
    check_format(request.output)
    with connect(options) as client:
        point = parse_point(request.before, client.clock.wall_ms())
        _, partitions, errors = select_partitions(client, request.selectors)
        for error in errors:
            report_error(error)
        lookup = OffsetLookup(client, partitions)
        # Resolve the point before the end, so that its offset is not above the end.
        before = lookup.resolve(point)
        results_by_column = {
            "start_offset": lookup.resolve(_START),
            "end_offset": lookup.resolve(_END),
            "before_offset": before,
        }
        rows, failures = _offset_rows(partitions, results_by_column)
        rows, beyond = _drop_beyond_end(rows)
        failures += beyond
        for row in rows:
            row["offsets_lost"] = max(row["before_offset"] - row["start_offset"], 0)
            row["result"] = "would be deleted"
        if rows and not request.dry_run:
            lost = sum(row["offsets_lost"] for row in rows)
            count = f"{counted(lost, 'record')} of {counted(len(rows), 'partition')}"
            what = f"Delete up to {count} of {cluster_named(client)}"
            confirm(what, yes=request.yes)
            rows, lost_rows = _send_delete_records(client, rows)
            failures += lost_rows
    return end_with(DELETE_COLUMNS, rows, request.output, failures=failures + len(errors))


def _drop_beyond_end(rows: list[OutputRow]) -> tuple[list[OutputRow], int]:
    """Return the rows whose offset is not above the log end; print and count the others."""
    kept = []
    for row in rows:
        if row["before_offset"] <= row["end_offset"]:
            kept.append(row)
            continue
        detail = f"{row['before_offset']} lies after the end, {row['end_offset']}"
        partition = TopicPartition(row["topic"], row["partition"])
        report_error(api_error(OFFSET_OUT_OF_RANGE, detail), str(partition))
    return kept, len(rows) - len(kept)


def _send_delete_records(client: KafkaClient, rows: list[OutputRow]) -> tuple[list[OutputRow], int]:
    """Send DeleteRecords for the rows; return the successful rows and the number of failures."""
    from engine.client.topic_admin import delete_records

    before = {TopicPartition(row["topic"], row["partition"]): row["before_offset"] for row in rows}
    results = delete_records(client, before)
    done = []
    failures = 0
    for row in rows:
        partition = TopicPartition(row["topic"], row["partition"])
        result = results[partition]
        if isinstance(result, EngineError):
            report_error(result, str(partition))
            failures += 1
        else:
            done.append(row | {"start_offset": result, "result": "deleted"})
    return done, failures
