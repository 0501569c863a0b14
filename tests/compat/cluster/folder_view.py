"""The files of log directories as values that two clusters can have in common.

| masked | becomes |
|---|---|
| uuids in names of folders, ids of topics, clusters, directories; times in comments | a word |
| the broker's epoch in the mark of a clean shutdown | a word |
| zeros at the end of an index, the order of partitions in a checkpoint | nothing |
| files of records and indexes of coordinators' topics | their length |
| times in markers of transactional topics; their time indexes and snapshots | nothing |
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any, Final

from tests.compat.wire.masking import masked_records

_UUID: Final = re.compile(r"\.[0-9a-f]{32}-(delete|future|stray)")
_TEXTS: Final = (
    (re.compile(r"(cluster\.id|directory\.id|topic_id)(=|: )[A-Za-z0-9_-]{22}"), r"\1\2<id>"),
    (re.compile(r"^#[A-Z][a-z]{2} .*[0-9]{4}$", re.MULTILINE), "#<time>"),
    (re.compile(r'("brokerEpoch":) ?[0-9]+'), r"\1<epoch>"),
)
_BINARY: Final = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
#: What the names of topics with transactions, and of those of coordinators, begin with.
TRANSACTIONAL, _OF_COORDINATORS = "x", "__"
_EMPTY: Final = (0, hashlib.sha256(b"").hexdigest()[:12])
_CHECKPOINTS: Final = "-checkpoint"


def read_folder(folder: Path) -> dict[str, Any]:
    """Return the files below a log directory by name: text, or the size and digest of bytes."""
    out: dict[str, Any] = {}
    if not folder.exists():
        return out
    for path in sorted(folder.rglob("*")):
        name = _UUID.sub(r".<uuid>-\1", str(path.relative_to(folder)))
        try:
            if name.endswith(".tmp"):
                continue
            if path.is_dir():
                out[f"{name}/"] = ""
                continue
            raw = path.read_bytes()
        except FileNotFoundError:
            continue
        out[name] = _shown(name, raw)
    return out


def _shown(name: str, raw: bytes) -> Any:
    if name.startswith(_OF_COORDINATORS) and any(suffix in name for suffix in _BINARY):
        return len(raw.rstrip(b"\0"))
    if name.startswith(TRANSACTIONAL):
        # Markers have the time at which they were written.
        if name.endswith(".log"):
            return masked_records(raw)
        if name.endswith((".timeindex", ".snapshot")):
            return ""
    if any(suffix in name for suffix in _BINARY):
        # Kafka's files of an active segment's indexes are as long as they may become.
        used = raw.rstrip(b"\0") if "index" in name else raw
        return (len(used), hashlib.sha256(used).hexdigest()[:12])
    text = raw.decode(errors="replace")
    for pattern, word in _TEXTS:
        text = pattern.sub(word, text)
    return text


def folder_differences(real: dict[str, Any], ours: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return where two log directories differ: by name, what each has."""
    out: dict[str, tuple[Any, Any]] = {}
    for name in sorted(real.keys() | ours.keys()):
        one, other = real.get(name), ours.get(name)
        if one == other or (_is_index(name) and other == _EMPTY and _is_active(name, ours)):
            continue
        is_of_directory = name.endswith(_CHECKPOINTS) and "/" not in name
        if is_of_directory and one is not None and other is not None:
            found = [_entries(text, files) for text, files in ((one, real), (other, ours))]
            if found[0] == found[1]:
                continue
        out[name] = (one, other)
    return out


def _is_index(name: str) -> bool:
    return name.endswith((".index", ".timeindex"))


def _is_active(name: str, files: dict[str, Any]) -> bool:
    """Return whether a file is of the last segment, whose indexes we write when it is closed."""
    folder, _, file = name.rpartition("/")
    segments = [other for other in files if other.startswith(f"{folder}/") and other[-4:] == ".log"]
    return max(segments, default="") <= f"{folder}/{file.partition('.')[0]}.log"


def _entries(text: str, files: dict[str, Any]) -> list[str]:
    """Return version, count and entries of a log directory's checkpoint, the entries sorted.

    Without partitions that are not here: Kafka's order is that of a hash map, and it keeps the last
    watermarks of a directory that has no partition any more; we forget a log that is deleted. So
    the count becomes "right", where it is that of the lines in the file.
    """
    # A file that was never written has no entries either.
    version, *rest = (text or "0\n0\n").removesuffix("\n").split("\n")
    count, lines = (rest[0], rest[1:]) if rest else ("none", [])
    here = sorted(line for line in lines if not _is_gone(line, files))
    return [version, "right" if count == str(len(lines)) else count, *here]


def _is_gone(line: str, files: dict[str, Any]) -> bool:
    words = line.split(" ")
    return len(words) == 3 and f"{words[0]}-{words[1]}/" not in files
