"""Many rows at once, given as columns: the text of row by row, at a fraction of its cost.

```
shared    what all rows have in common, as in a row
varying   key -> one value a row: Texts, Numbers, or any other sequence
```

Each varying column is made text as a whole. One template, which the shared values are part of,
takes the texts of a row: a row costs one call of C, whatever its columns. `RowWriter.write_run`
prints what comes back, and writes row by row where a format needs the rows themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Final

_NULL: Final = "null"
_EMPTY_LIST: Final = "[]"


class Texts(list[str | None]):
    """A column that has nothing but texts and nulls, so that nobody looks at each value."""


class Numbers(list[int]):
    """A column of whole numbers, none of them null."""


def json_rows(
    keys: Sequence[str], shared: Mapping[str, Any], varying: Mapping[str, Sequence[Any]]
) -> list[str]:
    """Return each row as a JSON object with these keys in order; what is nowhere is null."""
    from json import dumps

    parts: list[str] = []
    columns: list[Iterable[Any]] = []
    for key in keys:
        name = dumps(key, ensure_ascii=False)
        if key in varying:
            columns.append(_json_column(varying[key]))
            parts.append(f"{_literal(name)}: %s")
        else:
            value = dumps(shared.get(key), ensure_ascii=False)
            parts.append(_literal(f"{name}: {value}"))
    return _filled("{" + ", ".join(parts) + "}", columns)


def _json_column(values: Sequence[Any]) -> Iterable[Any]:
    if isinstance(values, Numbers):
        return values
    # Quotes as `dumps` does, in C where there is C.
    from json import encoder

    quoted: Callable[[Any], str] = encoder.encode_basestring
    if isinstance(values, Texts):
        if None in values:
            return [_NULL if text is None else quoted(text) for text in values]
        return map(quoted, values)
    encode = encoder.JSONEncoder(ensure_ascii=False).encode
    # Most records have no headers.
    return [_EMPTY_LIST if value == [] else encode(value) for value in values]


def csv_rows(
    keys: Sequence[str],
    shared: Mapping[str, Any],
    varying: Mapping[str, Sequence[Any]],
    cell: Callable[[Any], Any],
) -> list[str]:
    """Return each row as a line of CSV without its end; `cell` gives what stands for a value.

    There are two keys or more: a lone empty cell would have to be quoted.
    """
    parts: list[str] = []
    columns: list[Iterable[Any]] = []
    for key in keys:
        if key in varying:
            columns.append(_csv_column(varying[key], cell))
            parts.append("%s")
        else:
            parts.append(_literal(_csv_text(cell(shared.get(key)))))
    return _filled(",".join(parts), columns)


def _csv_column(values: Sequence[Any], cell: Callable[[Any], Any]) -> Iterable[Any]:
    if isinstance(values, Numbers):
        return values
    if not isinstance(values, Texts):
        return [_csv_text(cell(value)) for value in values]
    must_quote = _csv_quoted().search
    return [
        "" if text is None else text if must_quote(text) is None else _quoted(text)
        for text in values
    ]


@cache
def _csv_quoted() -> Any:
    from re import compile as compile_pattern

    return compile_pattern('[",\r\n]')


def _csv_text(value: Any) -> str:
    text = "" if value is None else str(value)
    return _quoted(text) if _csv_quoted().search(text) else text


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return text.replace("%", "%%")


def _filled(template: str, columns: list[Iterable[Any]]) -> list[str]:
    return list(map(template.__mod__, zip(*columns, strict=True)))
