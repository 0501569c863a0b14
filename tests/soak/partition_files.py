"""The files of a log directory, read without a line of the engine.

A batch of format 2: 0 base offset (8), 8 length (4), 16 magic, 17 CRC-32C of all from 21 on,
23 last offset delta (4), 43 producer id (8).
"""

from __future__ import annotations

import re
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import fastcrc

from tests.soak.writers import Place

_HEAD = struct.Struct(">qiibIhi")
_NAME = re.compile(r"(.+)-(\d+)")
_SUFFIX = re.compile(r".+\.[0-9a-f]{32}-(delete|stray|future)")


class Batch(NamedTuple):
    """What a batch's header says; offsets both inclusive."""

    first: int
    last: int
    producer_id: int


def partitions(log_dir: Path) -> dict[Place, Path]:
    """Return the live partitions of a log directory."""
    found = {}
    for path in log_dir.iterdir():
        match = _NAME.fullmatch(path.name)
        if match and path.is_dir() and not _SUFFIX.fullmatch(path.name):
            found[Place(match[1], int(match[2]))] = path
    return found


def leftovers(log_dir: Path) -> list[str]:
    """Return what waits for its removal or was put aside."""
    return sorted(path.name for path in log_dir.iterdir() if _SUFFIX.fullmatch(path.name))


def batches(partition: Path) -> Iterator[Batch]:
    """Yield the batches of all segments; fails on one that is torn, damaged or out of place."""
    expected: int | None = None
    for segment in sorted(partition.glob("*.log")):
        if expected is not None:
            assert int(segment.stem) == expected, f"{segment}: a gap before it"
        data = segment.read_bytes()
        position = 0
        while position < len(data):
            first, length, _, magic, crc, _, delta = _HEAD.unpack_from(data, position)
            end = position + 12 + length
            assert magic == 2, f"{segment} at {position}: magic {magic}"
            assert end <= len(data), f"{segment} at {position}: torn"
            assert crc == fastcrc.crc32.iscsi(data[position + 21 : end]), f"{segment} at {position}"
            at = int(segment.stem) if expected is None else expected
            assert first == at, f"{segment} at {position}: offset {first}, expected {at}"
            (producer_id,) = struct.unpack_from(">q", data, position + 43)
            expected = first + delta + 1
            yield Batch(first, first + delta, producer_id)
            position = end


def copy(log_dir: Path, target: Path) -> Path:
    """Copy a log directory of a broker that may just remove old segments.

    Checkpoints come first: they say how far the logs were, which go on meanwhile.
    """
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for path in sorted(log_dir.rglob("*"), key=lambda p: (len(p.parts), p)):
        place = target / path.relative_to(log_dir)
        try:
            if path.is_dir():
                place.mkdir(parents=True, exist_ok=True)
            else:
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, place)
        except FileNotFoundError:
            continue
    return target
