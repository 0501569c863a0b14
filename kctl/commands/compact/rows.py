"""Output rows of `kctl compact`: dirty ranges, freed bytes, progress of cleaners."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kctl import exits
from kctl.arguments import counted
from kctl.console import notify
from kctl.render import Column
from kctl.render.bars import bar
from kctl.render.rows import OutputRow
from kctl.render.table import size_text

if TYPE_CHECKING:
    from engine.forecast.dirtiness import CompactedLog
    from engine.log.cleaner.compaction_state import LogCompaction

_BAR_CELLS = 24

_LOG = (
    Column("topic", "TOPIC", is_name=True),
    Column("partition", "PARTITION", right=True),
)
_PLACES = (
    Column("first_dirty_offset", "FIRST-DIRTY", right=True),
    Column("first_uncleanable_offset", "CLEANABLE-TO", right=True),
    Column("log_end_offset", "END", right=True),
    Column("cleanable_bytes", "CLEANABLE", right=True, is_size=True),
    Column("dirty_ratio", "RATIO", right=True, kind="number"),
)
_SIZE = Column("size_bytes", "SIZE", right=True, is_size=True)
_WAITS = Column("waits_for", "WAITS-FOR", kind="string?")

PLAN_COLUMNS = (
    *_LOG,
    _SIZE,
    _PLACES[0]._replace(kind="integer?"),
    *_PLACES[1:4],
    _PLACES[4]._replace(kind="number?"),
    Column("is_due", "DUE", kind="boolean?"),
    _WAITS,
    Column("is_estimated", "ESTIMATED", wide=True, kind="boolean"),
)
EXACT_COLUMNS = (
    Column("freed_bytes", "FREED", right=True, is_size=True, kind="integer?", is_optional=True),
    Column("left_bytes", "LEFT", right=True, is_size=True, kind="integer?", is_optional=True),
    Column("freed_records", "RECORDS", right=True, kind="integer?", is_optional=True),
)
CHART_COLUMN = Column("chart", "GOES OF WHAT IS THERE", is_optional=True)
#: Columns of `run` in a log directory.
RUN_COLUMNS = (
    *_LOG,
    _SIZE,
    *_PLACES,
    Column("passes", "PASSES", right=True),
    Column("freed_bytes", "FREED", right=True, is_size=True),
    Column("freed_records", "RECORDS", right=True),
)
_REPLICA = (*_LOG, Column("broker", "BROKER", right=True))
#: Columns of `run` on a cluster.
CLUSTER_RUN_COLUMNS = (
    *_REPLICA,
    _SIZE,
    *_PLACES,
    _WAITS,
    Column("freed_bytes", "FREED", right=True, is_size=True),
    Column("freed_records", "RECORDS", right=True),
    Column("elapsed_ms", "MS", right=True, kind="integer?"),
    Column("bytes_per_s", "A-SECOND", right=True, is_size=True, kind="integer?"),
)
STATUS_COLUMNS = (
    *_REPLICA,
    Column("state", "STATE"),
    _SIZE,
    *_PLACES,
    Column("is_due", "DUE", wide=True, kind="boolean"),
    _WAITS,
    Column("done_bytes", "DONE", right=True, is_size=True, kind="integer?"),
    Column("total_bytes", "OF", right=True, is_size=True, kind="integer?"),
    Column("bytes_per_s", "A-SECOND", right=True, is_size=True, kind="integer?"),
    Column("last_ended_ms", "CLEANED", is_time=True, kind="integer?"),
    Column("last_elapsed_ms", "MS", right=True, wide=True, kind="integer?"),
    Column("last_start_offset", "FROM", right=True, wide=True, kind="integer?"),
    Column("last_end_offset", "TO", right=True, wide=True, kind="integer?"),
    Column("last_before_bytes", "BEFORE", right=True, is_size=True, kind="integer?"),
    Column("last_after_bytes", "AFTER", right=True, is_size=True, kind="integer?"),
    Column("last_before_records", "RECORDS-BEFORE", right=True, wide=True, kind="integer?"),
    Column("last_after_records", "RECORDS-AFTER", right=True, wide=True, kind="integer?"),
    Column("last_bytes_per_s", "RATE-THEN", right=True, wide=True, is_size=True, kind="integer?"),
    Column("fault", "FAULT", beneath=True, kind="string?"),
)


class Freed(NamedTuple):
    """Bytes and records that a cleaning frees; None if that was not measured."""

    size_bytes: int | None = None
    record_count: int | None = None


def dirty_row(log: CompactedLog) -> OutputRow:
    """Return the row of a log read from a directory: its dirty range and ratio."""
    return {
        **log.topic_partition._asdict(),
        "size_bytes": log.size_bytes,
        "first_dirty_offset": log.first_dirty_offset,
        "first_uncleanable_offset": log.first_uncleanable_offset,
        "log_end_offset": log.log_end_offset,
        "cleanable_bytes": log.cleanable_bytes,
        "dirty_ratio": round(log.dirty_ratio, 4),
    }


def with_freed(row: OutputRow, freed: Freed) -> dict[str, object]:
    """Return `row` with the columns on what a cleaning frees, and the bytes left after it.

    The values are None if no trial cleaning counted them.
    """
    left = None if freed.size_bytes is None else row["size_bytes"] - freed.size_bytes
    return {
        **row,
        "freed_bytes": freed.size_bytes,
        "left_bytes": left,
        "freed_records": freed.record_count,
    }


def draw_bars(rows: Sequence[OutputRow], *, is_exact: bool) -> None:
    """Add column `chart`: a bar with the share of the log that a cleaning frees, or at most frees.

    `is_exact`: the bytes freed are counted; else the cleanable bytes are the maximum.
    """
    largest = max((row["size_bytes"] for row in rows), default=0)
    for row in rows:
        gone = row["freed_bytes"] if is_exact else row["cleanable_bytes"]
        row["chart"] = bar(gone or 0, row["size_bytes"], largest, _BAR_CELLS)


def plan_columns(*, is_exact: bool, has_chart: bool) -> tuple[Column, ...]:
    """Return the columns of `kctl compact plan`."""
    chart = CHART_COLUMN if is_exact else CHART_COLUMN._replace(heading="MAY GO OF WHAT IS THERE")
    return (*PLAN_COLUMNS, *(EXACT_COLUMNS if is_exact else ()), *((chart,) if has_chart else ()))


def print_sum(rows: Sequence[OutputRow], *, is_exact: bool) -> None:
    """Print the total bytes that a cleaning frees, or the maximum without an exact count."""
    if not rows:
        return
    size = sum(row["size_bytes"] for row in rows)
    key = "freed_bytes" if is_exact else "cleanable_bytes"
    gone = sum(row[key] or 0 for row in rows)
    share = f" ({gone * 100 / size:.1f} %)" if size else ""
    logs = counted(len(rows), "partition")
    verb = "go by a cleaning" if is_exact else "at most may go by a cleaning"
    about = "about " if any(row["is_estimated"] for row in rows) else ""
    notify(f"{about}{size_text(gone)} of {size_text(size)}{share} {verb}, of {logs}")
    if not is_exact:
        notify("how much goes depends on the records: --exact reads them")


def status_row(broker_id: int, log: LogCompaction) -> dict[str, object]:
    """Return the row of a replica with the state, progress and last run of its cleaner."""
    now, last = log.now, log.last
    return {
        **replica_row(broker_id, log),
        "state": log.phase.value,
        "is_due": log.is_due,
        "done_bytes": None if now is None else now.done_bytes,
        "total_bytes": None if now is None else now.total_bytes,
        "bytes_per_s": None if now is None else round(now.bytes_per_s),
        "last_ended_ms": None if last is None else last.ended_ms,
        "last_elapsed_ms": None if last is None else last.elapsed_ms,
        "last_start_offset": None if last is None else last.start_offset,
        "last_end_offset": None if last is None else last.end_offset,
        "last_before_bytes": None if last is None else last.before_bytes,
        "last_after_bytes": None if last is None else last.after_bytes,
        "last_before_records": None if last is None else last.before_records,
        "last_after_records": None if last is None else last.after_records,
        "last_bytes_per_s": None if last is None else round(last.bytes_per_s),
        "fault": log.fault,
    }


def replica_row(broker_id: int, log: LogCompaction) -> OutputRow:
    """Return the row of a replica's log: its dirty range, and whether it can be cleaned."""
    return {
        "topic": log.topic,
        "partition": log.partition,
        "broker": broker_id,
        "size_bytes": log.size_bytes,
        "first_dirty_offset": log.first_dirty_offset,
        "first_uncleanable_offset": log.first_uncleanable_offset,
        "log_end_offset": log.log_end_offset,
        "cleanable_bytes": log.cleanable_bytes,
        "dirty_ratio": round(log.dirty_ratio, 4),
        "waits_for": None if log.waits_for is None else log.waits_for.value,
    }


def check_code(logs: Iterable[LogCompaction], *, is_check: bool) -> int:
    """Return PROBLEMS_FOUND with --check if a log cannot be read or is uncleanable, else OK."""
    found = is_check and any(log.fault is not None for log in logs)
    return exits.PROBLEMS_FOUND if found else exits.OK
