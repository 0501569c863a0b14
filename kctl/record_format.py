r"""Templates for records, with kcat's format letters.

| letter | value | letter | value |
|---|---|---|---|
| `%s` | value | `%S` | its size in bytes, −1 for null |
| `%k` | key | `%K` | its size in bytes, −1 for null |
| `%t` | topic | `%p` | partition |
| `%o` | offset | `%T` | timestamp in ms |
| `%h` | headers: name=value,… | `%e` | leader epoch |
| `%%` | a percent sign | `\n \t \r \0 \\ \xNN` | these bytes |

Keys and values are written byte for byte, null as nothing. A run of records is formatted by one
bytes template, so that each record costs a single `%` operation.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeAlias, cast

from engine.model import TopicPartition
from engine.records.record import Header
from engine.records.record_run import RecordRun
from kctl.arguments import UnreadableArgument
from kctl.escapes import read_escape

Rewrite: TypeAlias = Callable[[bytes], bytes]


class _Letter(NamedTuple):
    """Where the value of a letter is from: the same for a whole run, or a column of the run."""

    of_run: Callable[[TopicPartition, RecordRun], bytes] | None = None
    column: Callable[[RecordRun], Iterable[object]] | None = None
    sign: bytes = b"%b"
    is_content: bool = False


def _contents(column: Sequence[bytes | None]) -> Sequence[bytes]:
    """Return keys or values with empty bytes in place of null, as kcat prints null."""
    return [content or b"" for content in column] if None in column else column  # type: ignore[return-value]


def _sizes(column: Sequence[bytes | None]) -> Iterable[int]:
    """Return the sizes in bytes of keys or values; -1 for null, as in kcat."""
    return [-1 if content is None else len(content) for content in column]


def _headers_text(headers: tuple[Header, ...]) -> bytes:
    """Return a record's headers as NAME=VALUE separated by commas; a null value is NULL."""
    return b",".join(
        name.encode(errors="replace") + b"=" + (b"NULL" if value is None else value)
        for name, value in headers
    )


_LETTERS = {
    "s": _Letter(column=lambda run: _contents(run.values), is_content=True),
    "S": _Letter(column=lambda run: _sizes(run.values), sign=b"%d"),
    "k": _Letter(column=lambda run: _contents(run.keys), is_content=True),
    "K": _Letter(column=lambda run: _sizes(run.keys), sign=b"%d"),
    "t": _Letter(of_run=lambda partition, run: partition.topic.encode()),
    "p": _Letter(of_run=lambda partition, run: b"%d" % partition.partition),
    "o": _Letter(column=lambda run: run.offsets, sign=b"%d"),
    "T": _Letter(column=lambda run: run.timestamps_ms, sign=b"%d"),
    "h": _Letter(column=lambda run: map(_headers_text, run.headers), is_content=True),
    "e": _Letter(of_run=lambda partition, run: b"%d" % run.leader_epoch),
}


class RecordFormat:
    """A parsed template."""

    def __init__(self, template: str, rewrite: Rewrite | None = None) -> None:
        """Parse a template of kcat's format letters.

        `rewrite` is applied to each key, value and headers text.

        Errors: UnreadableArgument.
        """
        self._parts = _parse_template(template)
        self._rewrite = rewrite

    def fill(self, partition: TopicPartition, run: RecordRun) -> bytes:
        """Return the records of a partition's run, each formatted, one after the other."""
        template, columns = [], []
        for part in self._parts:
            if isinstance(part, bytes):
                template.append(part.replace(b"%", b"%%"))
            elif part.column is not None:
                template.append(part.sign)
                columns.append(self._column(part, part.column(run)))
            elif part.of_run is not None:
                template.append(part.of_run(partition, run))
        if not columns:
            return b"".join(template).replace(b"%%", b"%") * run.record_count
        return b"".join(map(b"".join(template).__mod__, zip(*columns, strict=True)))

    def _column(self, letter: _Letter, column: Iterable[object]) -> Iterable[object]:
        """Return the values of a letter for each record, rewritten if they are content.

        Keys, values and headers are content.
        """
        rewrite = self._rewrite
        if rewrite is None or not letter.is_content:
            return column
        return map(rewrite, cast("Iterable[bytes]", column))


def _parse_template(template: str) -> list[bytes | _Letter]:
    """Split a template into bytes and letters; raises UnreadableArgument for an unknown letter."""
    parts: list[bytes | _Letter] = []
    position = 0
    while position < len(template):
        sign, letter = template[position], template[position + 1 : position + 2]
        if sign == "%" and letter in _LETTERS:
            parts.append(_LETTERS[letter])
            position += 2
        elif sign == "%" and letter == "%":
            parts.append(b"%")
            position += 2
        elif sign == "%":
            raise UnreadableArgument(
                "a record format", template, "one of s k t p o T h e S K after %"
            )
        elif sign == "\\":
            raw, position = read_escape(template, position, "a record format")
            parts.append(raw)
        else:
            # Arguments that are not UTF-8 keep their original bytes.
            parts.append(os.fsencode(sign))
            position += 1
    return parts
