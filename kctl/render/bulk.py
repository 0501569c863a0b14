"""Many rows at once, given as columns: the same text as row by row, but much faster.

```
shared    the values that all rows have in common, as in a row
varying   key -> a sequence with one value per row: Texts, Numbers or any other
```

Each varying column is converted as a whole; the constant text between two columns is built once and
contains the shared values. All rows are then joined once. `RowWriter.write_run` prints the result,
and writes row by row in the formats that this module does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    import re

_NULL: Final = "null"
_EMPTY_LIST: Final = "[]"
_CSV_QUOTED: Final = '",\r\n'


class Texts(list[str | None]):
    """A column of only texts and nulls, whose values need no check of their type."""


class Numbers(list[int]):
    """A column of only whole numbers."""


class _Layout:
    """The varying columns, the constant text before each, and the text after the last (`tail`)."""

    def __init__(self) -> None:
        self.before: list[str] = []
        self.columns: list[Sequence[str]] = []
        self.tail = ""

    def add_text(self, text: str) -> None:
        """Append a text that is the same in all rows."""
        self.tail += text

    def add_column(self, column: Sequence[str]) -> None:
        """Append a text that varies by row, after the constant text before it."""
        self.before.append(self.tail)
        self.columns.append(column)
        self.tail = ""

    def joined(self, count: int, between: str) -> str:
        """Return the text of `count` rows, with `between` between each two.

        The pieces of all rows are placed by slices: a loop over rows would be slower.
        """
        if not self.columns:
            return between.join([self.tail] * count)
        width = 2 * len(self.columns)
        pieces = [""] * (width * count)
        for place, (before, column) in enumerate(zip(self.before, self.columns, strict=True)):
            pieces[2 * place :: width] = [before] * count
            pieces[2 * place + 1 :: width] = column
        pieces[0::width] = [self.tail + between + self.before[0]] * count
        pieces[0] = self.before[0]
        pieces.append(self.tail)
        return "".join(pieces)


def json_rows(
    keys: Sequence[str],
    shared: Mapping[str, object],
    varying: Mapping[str, Sequence[object]],
    *,
    between: str,
) -> str:
    """Return rows as JSON objects with these keys in order; a missing value is null."""
    from json import dumps

    layout = _Layout()
    for number, key in enumerate(keys):
        layout.add_text(", " if number else "{")
        layout.add_text(f"{dumps(key, ensure_ascii=False)}: ")
        if key in varying:
            _add_json_column(layout, varying[key])
        else:
            layout.add_text(dumps(shared.get(key), ensure_ascii=False))
    layout.add_text("}")
    return layout.joined(_count(varying), between)


def _count(varying: Mapping[str, Sequence[object]]) -> int:
    """Return the number of rows, which is the length of each varying column."""
    return len(next(iter(varying.values())))


def _add_json_column(layout: _Layout, values: Sequence[object]) -> None:
    """Add a column as JSON texts; numbers and texts are encoded in bulk."""
    if isinstance(values, Numbers):
        layout.add_column(list(map(str, values)))
        return
    # Quotes as `dumps` does, in C if available.
    from json import encoder

    quoted: Callable[[str], str] = encoder.encode_basestring
    if not isinstance(values, Texts):
        encode = encoder.JSONEncoder(ensure_ascii=False).encode
        # Most records have no headers: the empty list is encoded once.
        layout.add_column([_EMPTY_LIST if value == [] else encode(value) for value in values])
    elif None in values:
        layout.add_column([_NULL if text is None else quoted(text) for text in values])
    else:
        texts = cast("list[str]", values)
        whole = "".join(texts)
        if len(quoted(whole)) == len(whole) + 2:
            # No text needs escapes: the quotes are part of the constant text.
            layout.add_text('"')
            layout.add_column(texts)
            layout.add_text('"')
        else:
            layout.add_column(list(map(quoted, texts)))


def csv_rows(
    keys: Sequence[str],
    shared: Mapping[str, object],
    varying: Mapping[str, Sequence[object]],
    cell: Callable[[object], object],
) -> str:
    """Return rows as lines of CSV without a final newline; `cell` converts a value to text.

    There must be two keys or more: the empty cell of a single column would need quotes.
    """
    layout = _Layout()
    for number, key in enumerate(keys):
        layout.add_text("," if number else "")
        if key in varying:
            layout.add_column(_csv_column(varying[key], cell))
        else:
            layout.add_text(_csv_text(cell(shared.get(key))))
    return layout.joined(_count(varying), "\n")


def _csv_column(values: Sequence[object], cell: Callable[[object], object]) -> Sequence[str]:
    """Return a column as CSV fields; texts are quoted only if any of them needs it."""
    if isinstance(values, Numbers):
        return list(map(str, values))
    if not isinstance(values, Texts):
        return [_csv_text(cell(value)) for value in values]
    texts = ["" if text is None else text for text in values]
    whole = "".join(texts)
    if any(sign in whole for sign in _CSV_QUOTED):
        return list(map(_csv_text, texts))
    return texts


@cache
def _csv_quoted() -> re.Pattern[str]:
    """Return the pattern of characters for which a CSV field needs quotes."""
    from re import compile as compile_pattern

    return compile_pattern(f"[{_CSV_QUOTED}]")


def _csv_text(value: object) -> str:
    """Return a value as a CSV field: empty for None, quoted if necessary."""
    text = "" if value is None else str(value)
    return _quoted(text) if _csv_quoted().search(text) else text


def _quoted(text: str) -> str:
    """Return a CSV field in quotes, with its own quotes doubled."""
    return '"' + text.replace('"', '""') + '"'
