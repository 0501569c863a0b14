"""Any int64 may be a record's time: it is shown exactly, and as a time where it is one."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from engine.analysis.columns import VIEWS
from engine.analysis.record_batches import view_batches
from engine.analysis.splits import Selection, plan_splits
from engine.analysis.table_values import plain_rows
from engine.records.batch_header import set_crc
from engine.records.crc import crc32c
from tests.unit.log.logs import batch, log_of

YEAR_1_MS, YEAR_10000_MS = -62_135_596_800_000, 253_402_300_800_000
TIMES = [
    (1_767_225_600_123, datetime(2026, 1, 1, 0, 0, 0, 123_000, UTC)),
    # Nanoseconds, as some producers send them: times a thousand they wrap around in 64 bits.
    (1_700_000_000_000_000_000, None),
    (YEAR_10000_MS - 1, datetime(9999, 12, 31, 23, 59, 59, 999_000, UTC)),
    (YEAR_10000_MS, None),
    (YEAR_1_MS, datetime(1, 1, 1, tzinfo=UTC)),
    (YEAR_1_MS - 1, None),
    ((1 << 63) - 1, None),
    (-(1 << 63), None),
    (-1, datetime(1969, 12, 31, 23, 59, 59, 999_000, UTC)),
]


def _batch_at(time_ms: int) -> bytes:
    """Return a batch of one record with any time, also one that a producer may not send."""
    raw = bytearray(batch(0, at_ms=0))
    raw[27:43] = time_ms.to_bytes(8, "big", signed=True) * 2
    set_crc(raw, 0, crc32c(raw[21:]))
    return bytes(raw)


def _rows(view: str, time_ms: int) -> list[dict[str, Any]]:
    files = log_of({0: _batch_at(time_ms)}, interval_bytes=1 << 20)
    (split,) = plan_splits(files, ["/data"], Selection())
    batches = view_batches(files, view, VIEWS[view], split, control=False)
    return [row for part in batches for row in part.to_pylist()]


@pytest.mark.parametrize(("time_ms", "time"), TIMES)
def test_every_view_shows_any_time_exactly(time_ms: int, time: datetime | None) -> None:
    (record,) = _rows("records", time_ms)
    assert (time_ms, time) == (record["timestampMs"], record["timestamp"])
    (found,) = _rows("batches", time_ms)
    assert (time_ms, time) == (found["maxTimestampMs"], found["maxTimestamp"])
    (segment,) = _rows("segments", time_ms)
    assert [time_ms, time] * 2 == [
        segment[name]
        for name in ("firstTimestampMs", "firstTimestamp", "lastTimestampMs", "lastTimestamp")
    ]


@pytest.mark.parametrize(
    ("microseconds", "shown"),
    [
        (0, datetime(1970, 1, 1, tzinfo=UTC)),
        (YEAR_10000_MS * 1000, "+10000-01-01T00:00:00+00:00"),
        (YEAR_1_MS * 1000 - 1, "+0000-12-31T23:59:59.999999+00:00"),
        ((1 << 63) - 1, "+294247-01-10T04:00:54.775807+00:00"),
        (-(1 << 63), "-290308-12-21T19:59:05.224192+00:00"),
    ],
)
def test_a_result_shows_times_that_python_has_not(microseconds: int, shown: object) -> None:
    times = pa.array([microseconds, None], pa.timestamp("us", "UTC"))
    table = pa.table({"t": times, "s": pa.array([[{"n": microseconds}], None])})
    assert [shown, None] == [row["t"] for row in plain_rows(table)]
    nested = pa.table({"l": pa.array([[microseconds]], pa.list_(pa.timestamp("us", "UTC")))})
    assert [{"l": [shown]}] == plain_rows(nested)
