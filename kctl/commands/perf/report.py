"""Output of `kctl perf`: one object with rates, latencies and intervals of a measurement."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Final, NamedTuple

from engine.measuring.measurement import Interval, Measurement
from kctl.console import notify
from kctl.render import TABLES, Column, write_object, write_rows
from kctl.render.rows import OutputRow

_LATENCY_COLUMNS: Final = (
    Column("mean_ms", "MEAN-MS", right=True, kind="number?"),
    Column("p50_ms", "P50-MS", right=True, kind="number?"),
    Column("p95_ms", "P95-MS", right=True, kind="number?"),
    Column("p99_ms", "P99-MS", right=True, kind="number?"),
    Column("p999_ms", "P99.9-MS", right=True, kind="number?"),
    Column("max_ms", "MAX-MS", right=True, kind="number?"),
)
_RATE_COLUMNS: Final = (
    Column("records", "RECORDS", right=True),
    Column("records_per_s", "RECORDS/S", right=True, kind="number?"),
    Column("bytes_per_s", "BYTES/S", right=True, is_size=True, kind="integer?"),
)
INTERVAL_COLUMNS: Final = (
    Column("start_s", "FROM-S", right=True, kind="number"),
    Column("end_s", "TO-S", right=True, kind="number"),
    *_RATE_COLUMNS,
    *_LATENCY_COLUMNS,
)
RESULT_COLUMNS: Final = (
    Column("measured", "MEASURED", is_name=True),
    Column("topic", "TOPIC", wide=True),
    Column("partitions", "PARTITIONS", right=True, wide=True),
    *_RATE_COLUMNS,
    Column("elapsed_s", "SECONDS", right=True, kind="number"),
    *_LATENCY_COLUMNS,
    Column("size_bytes", "SIZE", right=True, is_size=True, wide=True),
    Column("warm_up_records", "WARM-UP", right=True, wide=True),
    Column("failed_records", "FAILED", right=True, wide=True),
    Column("is_complete", "COMPLETE", kind="boolean"),
    Column("client", "CLIENT", wide=True),
    Column("settings", "SETTINGS", wide=True, kind="string{}"),
    Column("intervals", "INTERVALS", kind="object[]", fields=INTERVAL_COLUMNS),
)
#: Name of the measured client, that of `kctl produce` and `kctl consume`.
CLIENT: Final = "kctl's own client (Python), as of kctl produce and consume"


class Measured(NamedTuple):
    """A measured run with its settings; `is_complete` is false if it ended early."""

    measured: str
    topic: str
    partitions: int
    measurement: Measurement
    warm_up_records: int
    failed_records: int
    is_complete: bool
    settings: Mapping[str, str]


def print_result(result: Measured, output: str) -> None:
    """Print a measurement as one object; in tables its intervals follow below.

    Settings and the size of the warm-up go to stderr.
    """
    row = result_row(result)
    if output not in TABLES:
        write_object(RESULT_COLUMNS, row, output)
        return
    columns = [column for column in RESULT_COLUMNS if column.key != "intervals"]
    write_object(columns, row, output)
    if len(row["intervals"]) > 1:
        sys.stdout.write("\n")
        write_rows(INTERVAL_COLUMNS, row["intervals"], output)
    settings = ", ".join(f"{key}={value}" for key, value in result.settings.items())
    notify(f"by {CLIENT}; {settings}")
    notify(f"{result.warm_up_records} records before, and all of start-up, are not counted")


def result_row(result: Measured) -> OutputRow:
    """Return a measurement as an output row: totals, settings, and a row for each interval."""
    measurement = result.measurement
    total = measurement.total
    return {
        "measured": result.measured,
        "topic": result.topic,
        "partitions": result.partitions,
        **_rate_columns(total),
        "elapsed_s": round(total.end_s, 3),
        "size_bytes": total.size_bytes,
        "warm_up_records": result.warm_up_records,
        "failed_records": result.failed_records,
        "is_complete": result.is_complete,
        "client": CLIENT,
        "settings": dict(result.settings),
        "intervals": [
            {"start_s": one.start_s, "end_s": one.end_s, **_rate_columns(one)}
            for one in measurement.intervals
        ],
    }


def _rate_columns(interval: Interval) -> OutputRow:
    """Return records, rates per second and latencies in ms of an interval."""
    latencies = interval.latencies.percentiles_ms()
    return {
        "records": interval.records,
        "records_per_s": interval.records_per_s,
        "bytes_per_s": interval.bytes_per_s,
        **{f"{name}_ms": value for name, value in latencies.items()},
    }
