"""Numbers and times in queries on the embedded engine are as Spark has them."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from engine.analysis.local_query import run_local_query
from engine.analysis.splits import Selection, Split, plan_splits
from engine.analysis.sql_differences import translate_pattern
from engine.analysis.statements import QueryFailed
from engine.host.real import RealFiles
from engine.records.builder import BatchBuilder, BatchSettings
from tests.unit.log.logs import put_segment

#: A Thursday.
_DAY_S = 1_767_225_600
_VALUES: tuple[bytes, bytes, None] = (b'{"a": 1, "n": 2.5}', b"\xff\x00", None)


@pytest.fixture(scope="module")
def splits(tmp_path_factory: pytest.TempPathFactory) -> list[Split]:
    folder = tmp_path_factory.mktemp("logs")
    Path(folder, "t_a-0").mkdir()
    builder = BatchBuilder(BatchSettings(leader_epoch=0))
    for number, value in enumerate(_VALUES):
        headers = [("h", "é".encode())] if number == 1 else []
        builder.append(_DAY_S * 1000 + number * 1_800_123, "ké".encode(), value, headers)
    put_segment(
        RealFiles(), 0, bytes(builder.build()), path=str(folder / "t_a-0"), interval_bytes=1
    )
    return plan_splits(RealFiles(), [str(folder)], Selection())


def _ask(query: str, splits: list[Split]) -> list[tuple[Any, ...]]:
    rows = run_local_query(query, splits, control=False, max_rows=0).rows
    return [tuple(row.values()) for row in rows]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        # Nothing is counted as 0.
        ("count_if(null)", 0),
        ("count_if(offset > 5)", 0),
        ("count_if(partition is null) filter (where offset > 5)", 0),
        ("count_if(distinct offset >= 0)", 1),
        ("sum(count_if(cast(offset as double) >= 0.5 or null)) over ()", 1),
        # Casts to integers cut off.
        ("cast(2.7 as int)", 2),
        ("cast(-2.7 as bigint)", -2),
        ("int(offset / 2)", 1),
        ("try_cast(avg(offset) + 0.9D as int)", 1),
        ("cast(cast(2.9 as decimal(4, 1)) as int)", 2),
        ("cast(timestampMs / 3600000 as bigint)", _DAY_S // 3600 + 1),
        # Times as numbers are seconds, and the other way round.
        ("cast(timestamp as bigint)", _DAY_S + 3600),
        ("cast(timestamp as double)", _DAY_S + 3600.246),
        ("cast(cast(-0.5D as timestamp) as bigint)", -1),
        ("cast(date_trunc('hour', timestamp) as bigint)", _DAY_S + 3600),
        ("unix_timestamp(timestamp)", _DAY_S + 3600),
        ("unix_timestamp('2026-01-01', 'yyyy-MM-dd')", _DAY_S),
        ("unix_timestamp() > 0", True),
        ("cast(offset as timestamp)", datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC)),
        ("cast(timestampMs / 1000 as timestamp)", datetime(2026, 1, 1, 1, 0, 0, 246_000, UTC)),
        ("cast(9223372036854775807 as timestamp)", None),
        ("timestamp_seconds(1.5)", datetime(1970, 1, 1, 0, 0, 1, 500_000, UTC)),
        ("timestamp_millis(timestampMs) = timestamp", True),
        ("timestamp_micros(7)", datetime(1970, 1, 1, 0, 0, 0, 7, UTC)),
        # Days of the week.
        ("dayofweek(timestamp)", 5),
        ("weekday(timestamp)", 3),
        ("extract(dow from timestamp)", 5),
        ("date_part('DAYOFWEEK', timestamp)", 5),
        # Patterns.
        ("date_format(timestamp, \"yyyy-MM-dd'T'HH:mm:ss.SSS'Z'\")", "2026-01-01T01:00:00.246Z"),
        ("to_timestamp('01:00.246', 'mm:ss.SSS') is not null", True),
        ("date_add(timestamp, 1)", date(2026, 1, 2)),
        ("date_sub(timestamp, 1)", date(2025, 12, 31)),
        ("add_months(timestamp, 1)", date(2026, 2, 1)),
        ("timestampdiff(hour, timestamp '2026-01-01 10:59:00', '2026-01-01 11:01:00Z')", 0),
        ("datediff(minute, timestamp '2026-01-01 00:59:50', timestamp)", 0),
        ("datediff(hour, timestamp '2025-12-31 22:59:00', timestamp)", 2),
        ("datediff(day, '2025-12-31 01:00:01', timestamp)", 0),
        ("datediff(timestamp, '2025-12-31')", 1),
        # Text.
        ("cast('2.7' as int)", None),
        ("cast(' -12 ' as bigint)", -12),
        (r"topic like 't\_a'", True),
        (r"topic not like 't\_b'", True),
        (r"'t_a%' ilike '%A\%'", True),
        ("topic like 't!_a' escape '!'", True),
        ("topic like concat('t', '_%')", True),
        ("key || '-' || topic", "ké-t_a"),
        ("format_string('%05d-%s', offset, topic)", "00002-t_a"),
        # Others.
        ("percentile_approx(offset, 0.4)", 1),
        ("percentile_approx(offset, array(0.1, 0.9), 100)", [0, 2]),
        ("percentile(offset, 0.25)", 0.5),
        ("max_by(value, offset)", None),
        ("min_by(offset, timestampMs)", 0),
        ("kurtosis(offset)", -1.5),
        ("substring('hello', 0, 2)", "he"),
        ("substring('hello', -2)", "lo"),
    ],
)
def test_an_expression_is_what_spark_makes_of_it(
    expression: str, expected: object, splits: list[Split]
) -> None:
    is_aggregate = expression.startswith(
        ("percentile", "try_cast(avg", "max_by", "min_by", "kurtosis")
    )
    where = "" if is_aggregate else " where offset = 2"
    assert [(expected,)] == _ask(f"select {expression} x from records{where}", splits)


def test_what_is_no_json_has_no_fields(splits: list[Split]) -> None:
    query = "select get_json_object(cast(value as string), '$.n') n from records"
    assert [("2.5",), (None,), (None,)] == _ask(query, splits)


@pytest.mark.parametrize("name", ["hash", "skewness"])
def test_what_has_other_results_is_refused(name: str, splits: list[Split]) -> None:
    with pytest.raises(QueryFailed, match=f"{name} has other results on this engine"):
        _ask(f"select {name}(offset) x from records", splits)


def test_parts_of_what_is_replaced_are_replaced_too(splits: list[Split]) -> None:
    case = "case when cast(2.7 as int) = 2 then key end"
    query = f"select upper({case}) a, length({case}) b from records where offset = 0"
    assert [("KÉ", 3)] == _ask(query, splits)
    query = "select percentile(length(key), 0.5) a, percentile(cast(2.7 as int), 1) b from records"
    assert [(3.0, 2.0)] == _ask(query, splits)


def test_bytes_of_other_expressions_are_text_where_text_is_wanted(splits: list[Split]) -> None:
    query = "select cast(h.value as string) v from records lateral view explode(headers) x as h"
    assert [("é",)] == _ask(query, splits)
    query = (
        "select transform(headers, h -> cast(h.value as string)) v from records where offset = 1"
    )
    assert [(["é"],)] == _ask(query, splits)
    query = """select cast(max_by(key, offset) as string) a, upper(min_by(key, offset)) b,
                      max_by(key, offset) = 'ké' c, length(max_by(key, offset)) d,
                      get_json_object(min_by(value, offset), '$.n') e,
                      cast(max_by(topic, offset) as string) f
               from records"""
    assert [("ké", "KÉ", True, 3, "2.5", "t_a")] == _ask(query, splits)
    query = "select cast(min_by(value, offset) over () as string) v from records where offset = 0"
    assert [(_VALUES[0].decode(),)] == _ask(query, splits)


def test_times_are_compared_as_numbers(splits: list[Split]) -> None:
    for condition in (
        f"cast(timestamp as bigint) >= {_DAY_S + 1800}",
        "cast(timestampMs / 1000 as timestamp) >= '2026-01-01 00:30:00'",
        "date_trunc('hour', timestamp) <= '2026-01-01T02:00:00+02:00' and offset < 2",
    ):
        assert [(2,)] == _ask(f"select count(*) c from records where {condition}", splits)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("%-S.SSS", "%-S.%g"),
        ("%SSSS", "%S%g"),
        ("%f", "%f"),
        ("%H 'o''clock %-d%p%Y' ''", "%H o'clock day '"),
        ("'%z'", "Z"),
    ],
)
def test_patterns_have_fields_and_text(pattern: str, expected: str) -> None:
    assert expected == translate_pattern(pattern)
