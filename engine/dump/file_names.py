"""Kind and base offset of a dumped file, from its name."""

from __future__ import annotations

import re

from engine.errors import StorageError

_NUMBER = re.compile(r"[+-]?[0-9]+")
_INT64_MAX = (1 << 63) - 1


class UnreadableFileName(StorageError):
    """The name of a file lacks the base offset or id that Kafka's tool needs."""

    hint = "Kafka names segment files after their base offset, such as 00000000000000000042.log"

    def __init__(self, path: str, expected: str) -> None:
        super().__init__(f"{path}: expected {expected} in the file's name")
        self.path = path
        self.expected = expected


def normal_path(path: str) -> str:
    """Return a path without double and trailing slashes, as java.io.File has it."""
    shorter = re.sub("/+", "/", path)
    return shorter[:-1] if len(shorter) > 1 and shorter.endswith("/") else shorter


def name_of(path: str) -> str:
    """Return the last part of a path: the file's name."""
    return path.rsplit("/", 1)[-1]


def suffix_of(path: str) -> str | None:
    """Return the end of a file's name from its last dot on, None without a dot."""
    name = name_of(path)
    dot = name.rfind(".")
    return None if dot < 0 else name[dot:]


def stem_of(path: str) -> str:
    """Return a file's name up to its first dot."""
    return name_of(path).split(".", 1)[0]


def base_offset_of(path: str) -> int:
    """Return the base offset in a segment file's name; raises UnreadableFileName."""
    return _int64(stem_of(path), path)


def parse_snapshot_id(path: str) -> tuple[int, int]:
    """Return (end offset, epoch) in a metadata snapshot's name (`%020d-%010d.checkpoint`).

    Errors: UnreadableFileName.
    """
    name = name_of(path)
    if len(name) < 31:
        raise UnreadableFileName(path, "20 digits, a dash and 10 digits")
    return _int64(name[:20], path), _int64(name[21:31], path)


def _int64(text: str, path: str) -> int:
    """Parse part of a file's name as Long.parseLong does; raises UnreadableFileName."""
    if not _NUMBER.fullmatch(text) or not -_INT64_MAX - 1 <= int(text) <= _INT64_MAX:
        raise UnreadableFileName(path, "a base offset")
    return int(text)
