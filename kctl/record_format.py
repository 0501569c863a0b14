r"""Templates of records, in the letters of kcat.

| letter | stands for | letter | stands for |
|---|---|---|---|
| `%s` | value | `%S` | its size in bytes, −1 for null |
| `%k` | key | `%K` | its size in bytes, −1 for null |
| `%t` | topic | `%p` | partition |
| `%o` | offset | `%T` | timestamp in ms |
| `%h` | headers: name=value,… | `%e` | leader epoch |
| `%%` | a percent sign | `\n \t \r \0 \\ \xNN` | these bytes |

Keys and values are written byte for byte; null is nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from engine.model import TopicPartition
from engine.records.record import Record
from kctl.escapes import read_escape
from kctl.words import UnreadableWord

Part: TypeAlias = "bytes | Callable[[TopicPartition, Record, int], bytes]"


def _number(number: int) -> bytes:
    return b"%d" % number


def _headers(record: Record) -> bytes:
    return b",".join(
        name.encode(errors="replace") + b"=" + (b"NULL" if value is None else value)
        for name, value in record.headers
    )


_LETTERS: dict[str, Callable[[TopicPartition, Record, int], bytes]] = {
    "s": lambda partition, record, epoch: record.value or b"",
    "S": lambda partition, record, epoch: _number(record.value_size),
    "k": lambda partition, record, epoch: record.key or b"",
    "K": lambda partition, record, epoch: _number(record.key_size),
    "t": lambda partition, record, epoch: partition.topic.encode(),
    "p": lambda partition, record, epoch: _number(partition.partition),
    "o": lambda partition, record, epoch: _number(record.offset),
    "T": lambda partition, record, epoch: _number(record.timestamp_ms),
    "h": lambda partition, record, epoch: _headers(record),
    "e": lambda partition, record, epoch: _number(epoch),
}


class RecordFormat:
    """A template, ready to be filled."""

    def __init__(self, template: str) -> None:
        """Read a template; raises UnreadableWord."""
        self._parts = _parse(template)

    def fill(self, partition: TopicPartition, record: Record, leader_epoch: int) -> bytes:
        """Return the text of one record."""
        return b"".join(
            part if isinstance(part, bytes) else part(partition, record, leader_epoch)
            for part in self._parts
        )


def _parse(template: str) -> list[Part]:
    parts: list[Part] = []
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
            raise UnreadableWord("a record format", template, "one of s k t p o T h e S K behind %")
        elif sign == "\\":
            raw, position = read_escape(template, position, "a record format")
            parts.append(raw)
        else:
            parts.append(sign.encode())
            position += 1
    return parts
