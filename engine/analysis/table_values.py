"""Convert times: ms of records to timestamp columns, and times of results to Python values.

A record's time may be any int64. A timestamp column has the times of the years 1 to 9999, which SQL
and Python can represent, and is null for other times; a column of ms next to it has every time.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import pyarrow as pa

#: A row of a view: Python values by column name.
Row: TypeAlias = dict[str, Any]

#: The first and the last ms of the years 1 to 9999, which a timestamp column can have.
FIRST_SHOWN_MS = -62_135_596_800_000
LAST_SHOWN_MS = 253_402_300_799_999

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: The Gregorian calendar repeats itself after 400 years.
_CYCLE_YEARS = 400
_CYCLE_MICROSECONDS = 146_097 * 86_400 * 1_000_000


def timestamp_of(time_ms: int | None) -> int | None:
    """Return a time in µs for a timestamp column, None for None or a year outside of 1 to 9999."""
    if time_ms is None or not FIRST_SHOWN_MS <= time_ms <= LAST_SHOWN_MS:
        return None
    return time_ms * 1000


def timestamps_of(times_ms: pa.Array, arrow_type: pa.DataType) -> pa.Array:
    """Return times in ms as Arrow timestamps; null for years outside of 1 to 9999."""
    import pyarrow as pa
    import pyarrow.compute as pc

    is_shown = pc.and_(
        pc.greater_equal(times_ms, FIRST_SHOWN_MS), pc.less_equal(times_ms, LAST_SHOWN_MS)
    )
    shown = pc.if_else(is_shown, times_ms, pa.scalar(None, pa.int64()))
    return pc.multiply_checked(shown, 1000).cast(arrow_type)


def plain_rows(table: pa.Table) -> list[Row]:
    """Return the rows of an Arrow table; a time outside of Python's datetime becomes text."""
    columns = [_python_values(column.combine_chunks()) for column in table.columns]
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def _python_values(array: pa.Array) -> list[object]:
    """Return an Arrow array as Python values; times outside of Python's datetime become text."""
    import pyarrow as pa

    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        return _python_texts(array)
    try:
        return list(array.to_pylist())
    except (OverflowError, ValueError):
        return (
            [_python_value(scalar) for scalar in array]
            if pa.types.is_nested(array.type)
            else _python_times(array)
        )


def _python_texts(array: pa.Array) -> list[object]:
    """Return strings; invalid UTF-8, which Spark's casts can produce, becomes U+FFFD."""
    import pyarrow as pa

    try:
        return list(array.to_pylist())
    except UnicodeDecodeError:
        contents = array.cast(pa.large_binary()).to_pylist()
        return [None if text is None else text.decode("utf-8", "replace") for text in contents]


def _python_value(scalar: pa.Scalar) -> object:
    """Return one Arrow value, which may contain times, as a Python value."""
    import pyarrow as pa

    kind = scalar.type
    if not scalar.is_valid:
        return None
    if pa.types.is_struct(kind):
        return {kind.field(n).name: _python_value(scalar[n]) for n in range(kind.num_fields)}
    if pa.types.is_map(kind):
        return [
            (_python_value(pair["key"]), _python_value(pair["value"])) for pair in scalar.values
        ]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [_python_value(item) for item in scalar.values]
    return _python_values(pa.array([scalar.as_py()] if not _is_time(kind) else [scalar], kind))[0]


def _is_time(kind: pa.DataType) -> bool:
    """Return True if an Arrow type is a timestamp or a date."""
    import pyarrow as pa

    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def _python_times(array: pa.Array) -> list[object]:
    """Return a column of dates or timestamps as Python values; text if `datetime` lacks them."""
    import pyarrow as pa

    kind = array.type
    if pa.types.is_date(kind):
        days = array.cast(pa.int32()).to_pylist()
        return [None if d is None else time_text(d * 86_400_000_000)[: -len("T00:00:00+00:00")]
                for d in days]  # fmt: skip
    microseconds = array.cast(pa.int64()).to_pylist()
    return [
        None if n is None else _python_time(n, has_zone=kind.tz is not None) for n in microseconds
    ]


def _python_time(microseconds: int, *, has_zone: bool) -> datetime | str:
    """Return µs since 1970 as `datetime`, as text for years outside of 1 to 9999."""
    if FIRST_SHOWN_MS * 1000 <= microseconds < (LAST_SHOWN_MS + 1) * 1000:
        time = _EPOCH + timedelta(microseconds=microseconds)
        return time if has_zone else time.replace(tzinfo=None)
    text = time_text(microseconds)
    return text if has_zone else text.removesuffix("+00:00")


def time_text(microseconds: int) -> str:
    """Return µs since 1970 as ISO 8601 in UTC; a year outside of 1 to 9999 gets a sign."""
    cycles = microseconds // _CYCLE_MICROSECONDS
    time = _EPOCH + timedelta(microseconds=microseconds - cycles * _CYCLE_MICROSECONDS)
    year = time.year + cycles * _CYCLE_YEARS
    text = time.isoformat()[len("1970") :]
    if 1 <= year <= 9999:
        return f"{year:04d}{text}"
    return f"{'-' if year < 0 else '+'}{abs(year):04d}{text}"
