r"""Functions and casts with another meaning in DuckDB than in Spark, and their replacements.

| Spark | DuckDB gives | is replaced by |
|---|---|---|
| a number with a fraction, cast to an integer | the nearest | `trunc` |
| a time, cast to a number; `unix_timestamp(time)` | null, an error | `epoch`, seconds since 1970 |
| a number, cast to a time | null | the time after so many seconds: `make_timestamp` |
| `timestamp_seconds`, `timestamp_millis`, `timestamp_micros` | an error | `make_timestamp` |
| `dayofweek`, `extract(dow …)`: 1 is Sunday | 0 is Sunday | one more |
| `weekday`: 0 is Monday | 0 is Sunday | `isodow` and one less |
| `SSS` and `'…'` in patterns of times | the same letters | milliseconds; the text without quotes |
| `percentile_approx`: one of the values | one between two | `quantile_disc` |
| `max_by`, `min_by`: also a null | the last value that is none | `arg_max_null`, `arg_min_null` |
| `count_if` of nulls, or of no row: 0 | null | `count` of what is true |
| `get_json_object` of what is no JSON | an error | null |
| `like` with `\_` or `\%` | none that matches | the same with `escape '\'` |
| text with a fraction, cast to an integer | the nearest | null, as of other text |
| `timestampdiff`, `datediff(unit, …)`: whole units | limits of units passed | `date_sub` |
| `date_add`, `date_sub`, `add_months`: dates | times | dates |
| `format_string` | the pattern | `printf` |
| `kurtosis` of all values | of a sample | `kurtosis_pop` |
| `hash`, `skewness` | other numbers | refused |
| `substring(text, 0)` | a character less | as from 1 on |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING

from engine.analysis.statements import QueryFailed

if TYPE_CHECKING:
    from sqlglot import exp

_MICROSECONDS = {"timestamp_seconds": 1_000_000, "timestamp_millis": 1000, "timestamp_micros": 1}
#: Functions with different results for which sqlglot has no class: they are refused.
_OTHERS = ("hash",)
_INTEGER = r"^\s*[+-]?[0-9]+\s*$"
_DAY_OF_WEEK = ("dow", "dayofweek")
_QUOTED = re.compile(r"'((?:[^']|'')*)'")
_MILLISECONDS = re.compile(r"(?<!%)S{3}(?!S)")
_FIELD = re.compile(r"%-?[A-Za-z](?:strict)?")


def replace_difference(node: exp.Expression) -> bool:
    """Replace an expression in the query if DuckDB evaluates it differently from Spark.

    Returns True if it was replaced. Raises QueryFailed for a function that cannot be made the same.
    """
    from sqlglot import exp

    pattern = node.args.get("format")
    if isinstance(pattern, exp.Literal) and pattern.is_string:
        pattern.set("this", translate_pattern(pattern.name))
    replace = _REPLACEMENTS.get(type(node).__name__)
    return replace is not None and replace(node)


def translate_pattern(pattern: str) -> str:
    """Translate a time pattern, which sqlglot has read as Spark's, to strftime's."""
    parts = _QUOTED.split(pattern)
    plain = (_MILLISECONDS.sub("%g", part) for part in parts[::2])
    quoted = [_unread(part).replace("''", "'") if part else "'" for part in parts[1::2]]
    return "".join(a + b for a, b in zip(plain, [*quoted, ""], strict=True))


def _unread(text: str) -> str:
    """Return the quoted text of a time pattern as it was written.

    sqlglot took its letters for time fields.
    """
    letters = _spark_letters()
    return _FIELD.sub(lambda field: letters.get(field[0], field[0]), text)


@cache
def _spark_letters() -> Mapping[str, str]:
    """Return Spark's pattern letters for each field of sqlglot's time formats."""
    from sqlglot.dialects import Spark

    # Of several patterns for a field the shortest lower-case one comes last and wins.
    pairs = sorted(Spark.TIME_MAPPING.items(), key=lambda pair: (-len(pair[0]), pair[0].islower()))
    return {field: letters for letters, field in pairs}


# Casts


def _replace_cast(cast: exp.Cast) -> bool:
    """Make a cast to a number or time give Spark's result; return False if DuckDB's is equal."""
    from sqlglot import exp

    value, to = cast.this, cast.to
    is_integer = to.is_type(*exp.DataType.INTEGER_TYPES)
    is_real = to.is_type(*exp.DataType.REAL_TYPES)
    if is_integer and value.is_type(*exp.DataType.REAL_TYPES):
        cast.set("this", _call("trunc", value))
    elif is_integer and value.is_type(*exp.DataType.TEXT_TYPES):
        cast.set("this", _call("regexp_extract", value, exp.Literal.string(_INTEGER)))
    elif (is_integer or is_real) and is_time(value):
        seconds = _call("epoch", value)
        cast.set("this", _call("floor", seconds) if is_integer else seconds)
    elif to.this in time_types() and value.is_type(*exp.DataType.NUMERIC_TYPES):
        cast.replace(_time_after(value, 1_000_000))
    else:
        return False
    return True


def _time_after(value: exp.Expression, microseconds: int) -> exp.Expression:
    """Return the expression for the time `value` units of `microseconds` after 1970."""
    from sqlglot import exp

    kinds = exp.DataType.Type
    if not value.is_type(*exp.DataType.REAL_TYPES):
        # The product may exceed 64 bits.
        value = exp.Cast(this=value, to=exp.DataType(this=kinds.INT128))
    product = exp.Mul(this=exp.Paren(this=value), expression=exp.Literal.number(microseconds))
    whole = exp.TryCast(this=_call("trunc", product), to=exp.DataType(this=kinds.BIGINT))
    return _call("make_timestamp", whole)


def is_time(value: exp.Expression) -> bool:
    """Return True if an expression is a timestamp; sqlglot knows no type for some functions."""
    from sqlglot import exp

    if isinstance(value, exp.TimestampTrunc):
        return True
    return value.type is not None and value.type.this in time_types()


def time_types() -> tuple[exp.DataType.Type, ...]:
    """Return sqlglot's types for Spark's timestamps."""
    from sqlglot import exp

    # TIMESTAMP is the type of `to_timestamp`; the type of `timestamp_ntz` is not included.
    of = exp.DataType.Type
    return of.TIMESTAMPTZ, of.TIMESTAMPLTZ, of.TIMESTAMP


# Functions


def _replace_named(function: exp.Anonymous) -> bool:
    """Replace a function for which sqlglot has no class, by its name.

    Returns False if DuckDB's results are equal.
    """
    name, arguments = function.name.lower(), function.expressions
    if name in _MICROSECONDS and len(arguments) == 1:
        function.replace(_time_after(arguments[0], _MICROSECONDS[name]))
    elif name == "weekday" and len(arguments) == 1:
        function.set("this", "isodow")
        _wrap_in_addition(function, -1)
    elif name in _OTHERS:
        _refuse(function)
    elif name in ("date_part", "datepart") and arguments and _is_day_of_week(arguments[0]):
        _wrap_in_addition(function, 1)
    else:
        return False
    return True


def _is_day_of_week(part: exp.Expression) -> bool:
    """Return True if a part of a date is the day of the week, which DuckDB counts differently."""
    return part.name.lower() in _DAY_OF_WEEK


def _replace_percentile(percentile: exp.ApproxQuantile) -> bool:
    """Replace percentile_approx with quantile_disc: like Spark, it returns one of the values."""
    return _rename(percentile, "quantile_disc", percentile.this, percentile.args["quantile"])


def _replace_most(most: exp.Expression, name: str) -> bool:
    """Replace max_by or min_by with a function of DuckDB that also returns null values."""
    found = _call(name, most.this, most.expression)
    # Later replacements need the type, for comparisons.
    found.type = most.this.type
    most.replace(found)
    return True


def _replace_count(count: exp.CountIf) -> bool:
    """Replace count_if with the count of the condition in which false is turned into null."""
    from sqlglot import exp

    is_distinct = isinstance(count.this, exp.Distinct)
    (condition,) = count.this.expressions if is_distinct else (count.this,)
    around = exp.Nullif(this=None, expression=exp.false())
    condition.replace(around)
    around.set("this", condition)
    count.replace(exp.Count(this=count.this))
    return True


def _rename(function: exp.Expression, name: str, *arguments: exp.Expression) -> bool:
    """Replace a function with a call of DuckDB's function `name`; return True."""
    function.replace(_call(name, *arguments))
    return True


def _refuse(function: exp.Expression) -> bool:
    """Raise QueryFailed for a function whose results differ and cannot be made the same."""
    name = function.name if function.name in _OTHERS else type(function).__name__
    reason = f"{name.lower()} has other results on this engine; --engine spark has Spark's"
    raise QueryFailed(reason)


def _replace_pattern(like: exp.Like | exp.ILike) -> bool:
    r"""Add the escape character `\` to a LIKE whose pattern may contain escapes."""
    from sqlglot import exp

    pattern = like.expression
    is_plain = isinstance(pattern, exp.Literal) and "\\" not in pattern.name
    if is_plain or isinstance(pattern, exp.Any | exp.All) or isinstance(like.parent, exp.Escape):
        return False
    around = exp.Escape(this=None, expression=exp.Literal.string("\\"))
    like.replace(around)
    around.set("this", like)
    return True


def _replace_date(date: exp.Expression) -> bool:
    """Cast the function's result to a date, which is Spark's type."""
    from sqlglot import exp

    around = exp.Cast(this=None, to=exp.DataType(this=exp.DataType.Type.DATE))
    date.replace(around)
    around.set("this", date)
    return True


def _replace_start(substring: exp.Substring) -> bool:
    """Replace the start 0 of a substring with 1, because Spark treats both alike."""
    from sqlglot import exp

    start = substring.args.get("start")
    is_zero = isinstance(start, exp.Literal) and start.name == "0"
    if is_zero:
        substring.set("start", exp.Literal.number(1))
    return is_zero


def _replace_seconds(seconds: exp.StrToUnix) -> bool:
    """Replace `unix_timestamp()` of a time or a text; a pattern applies only to texts."""
    from sqlglot import exp

    around = exp.Cast(this=None, to=exp.DataType(this=exp.DataType.Type.BIGINT))
    seconds.replace(around)
    found = _call("epoch", seconds.this) if is_time(seconds.this) else seconds
    around.set("this", _call("floor", found))
    return True


def _replace_duration(duration: exp.Expression) -> bool:
    """Replace the number of whole units between two times; leave days between dates unchanged."""
    from sqlglot import exp

    unit = duration.args.get("unit")
    if unit is None:
        return False
    first, last = (_as_time(duration.args[name]) for name in ("expression", "this"))
    word = exp.Literal.string(unit.name.lower().replace("dayofyear", "day"))
    return _rename(duration, "date_sub", word, first, last)


def _as_time(value: exp.Expression) -> exp.Expression:
    """Return a value as a time in UTC."""
    from sqlglot import exp

    kinds = exp.DataType.Type
    if isinstance(value, exp.TsOrDsToDate):
        value = value.this
    if value.is_type(*exp.DataType.TEXT_TYPES):
        value = exp.Cast(this=value, to=exp.DataType(this=kinds.TIMESTAMPTZ))
    return exp.Cast(this=value, to=exp.DataType(this=kinds.TIMESTAMP))


def _call(name: str, *arguments: exp.Expression) -> exp.Expression:
    """Return a function call that sqlglot writes with exactly this name."""
    from sqlglot import exp

    return exp.Anonymous(this=name, expressions=list(arguments))


def wrap_in_call(node: exp.Expression, name: str) -> bool:
    """Wrap an expression in a call of a function, in its tree; return True.

    The expression itself becomes the argument, not a copy, so that later replacements reach it.
    """
    around = _call(name)
    node.replace(around)
    around.set("expressions", [node])
    return True


def _wrap_in_addition(node: exp.Expression, number: int) -> bool:
    """Wrap an expression in an addition of a number; return True."""
    from sqlglot import exp

    around = exp.Paren(this=exp.Add(this=None, expression=exp.Literal.number(number)))
    node.replace(around)
    around.this.set("this", node)
    return True


#: Replacements by the name of the expression's class: not every release of sqlglot has all.
_REPLACEMENTS: Mapping[str, Callable[..., bool]] = {
    "Cast": _replace_cast,
    "TryCast": _replace_cast,
    "DayOfWeek": lambda day: _wrap_in_addition(day, 1),
    "Extract": lambda part: _is_day_of_week(part.this) and _wrap_in_addition(part, 1),
    "Anonymous": _replace_named,
    "ApproxQuantile": _replace_percentile,
    "ArgMax": lambda most: _replace_most(most, "arg_max_null"),
    "ArgMin": lambda least: _replace_most(least, "arg_min_null"),
    "CountIf": _replace_count,
    "Kurtosis": lambda of: _rename(of, "kurtosis_pop", of.this),
    "Skewness": _refuse,
    "Format": lambda text: _rename(text, "printf", text.this, *text.expressions),
    "Like": _replace_pattern,
    "ILike": _replace_pattern,
    "Substring": _replace_start,
    "StrToUnix": _replace_seconds,
    "TimestampDiff": _replace_duration,
    "DateDiff": _replace_duration,
    "TsOrDsAdd": _replace_date,
    "AddMonths": _replace_date,
}
