"""The format that all text checkpoints of Kafka share.

```
0              version
2              number of entries
orders 0 260   one entry a line, fields split by white space
orders 1 17
```

An empty file has no entries, and neither has one that ends after the version.

Source: Kafka's CheckpointFile.
"""

from __future__ import annotations

from collections.abc import Iterable

from engine.errors import CorruptFile
from engine.host.ports import Files
from engine.limits import CHECKPOINT_BYTES_MAX
from engine.log.directory.small_file import read_small_file

#: The only version of every checkpoint.
VERSION = 0

_DIGITS_MAX = 20


def parse_text_checkpoint(content: bytes, path: str, *, fields: int) -> list[list[str]]:
    """Return a checkpoint's entries as lists of fields; raises CorruptFile.

    A checkpoint has a version line, a line with the number of entries, and one line per entry with
    `fields` fields. Empty for an empty file and for a version line alone.
    """
    try:
        lines = _split_lines(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise CorruptFile(path, "UTF-8 text", "other bytes", position=error.start) from error
    if not lines:
        return []
    version = parse_integer(lines[0], path, "a version")
    if version != VERSION:
        raise CorruptFile(path, f"version {VERSION}", version)
    if len(lines) == 1:
        return []
    count = parse_integer(lines[1], path, "a number of entries")
    entries = [line.split() for line in lines[2:]]
    for line, values in zip(lines[2:], entries, strict=True):
        if len(values) != fields:
            raise CorruptFile(path, f"{fields} fields in a line", repr(line[:100]))
    if len(entries) != count:
        raise CorruptFile(path, f"{count} entries", len(entries))
    return entries


def encode_text_checkpoint(entries: Iterable[Iterable[object]]) -> bytes:
    """Return the content of a checkpoint: version, number of entries, then one entry a line."""
    lines = [" ".join(str(field) for field in numbers) for numbers in entries]
    return "".join(f"{line}\n" for line in (VERSION, len(lines), *lines)).encode()


def read_text_checkpoint(files: Files, path: str) -> bytes:
    """Return a checkpoint's content; raises CorruptFile above CHECKPOINT_BYTES_MAX."""
    return read_small_file(files, path, CHECKPOINT_BYTES_MAX)


def parse_integer(text: str, path: str, expected: str) -> int:
    """Return a decimal number of at most 20 characters; raises CorruptFile for other text.

    `expected` names the number in the error's message.
    """
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS_MAX):
        raise CorruptFile(path, expected, repr(text[:100]))
    return int(text)


def _split_lines(text: str) -> list[str]:
    """Split a text into lines like Java's readLine, which knows fewer line ends than splitlines."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def create_text_checkpoint(files: Files, path: str) -> None:
    """Create an empty checkpoint, as Kafka does; an existing one is kept.

    Source: the constructor of CheckpointFile.
    """
    files.open(path, write=True, create=True).close()
