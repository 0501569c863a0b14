"""`leader-epoch-checkpoint`: which leader epoch starts at which offset.

```
0      version
2      number of entries
0 0    epoch, its first offset
3 87
```

Epochs and start offsets rise strictly; an epoch ends where the next one starts, the last one at
the end of the log (L4).

Source: Kafka's LeaderEpochCheckpointFile and LeaderEpochFileCache; KIP-101.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from engine.errors import CorruptFile
from engine.host.ports import Files
from engine.log.text_checkpoint import (
    encode_text_checkpoint,
    parse_integer,
    parse_text_checkpoint,
    read_text_checkpoint,
)

#: The file's name in a partition directory.
FILE_NAME = "leader-epoch-checkpoint"

#: What a look-up answers for an epoch that is not known.
UNDEFINED_EPOCH = -1
UNDEFINED_EPOCH_OFFSET = -1


class EpochStart(NamedTuple):
    """A leader epoch and the offset of its first record."""

    epoch: int
    start_offset: int


def parse_leader_epochs(content: bytes, path: str) -> tuple[EpochStart, ...]:
    """Return the entries in the file's order; raises CorruptFile.

    The order itself is not checked here: `assigned` tells what a broker makes of it.
    """
    entries = []
    for epoch, start_offset in parse_text_checkpoint(content, path, fields=2):
        entry = EpochStart(
            parse_integer(epoch, path, "a leader epoch"),
            parse_integer(start_offset, path, "a start offset"),
        )
        if entry.epoch < 0 or entry.start_offset < 0:
            raise CorruptFile(path, "an epoch and a start offset of at least 0", tuple(entry))
        entries.append(entry)
    return tuple(entries)


def encode_leader_epochs(entries: Iterable[EpochStart]) -> bytes:
    """Return a file's content."""
    return encode_text_checkpoint(entries)


def read_leader_epochs(files: Files, path: str) -> tuple[EpochStart, ...]:
    """Return the entries of a file; raises CorruptFile."""
    return parse_leader_epochs(read_text_checkpoint(files, path), path)


def assigned(entries: Iterable[EpochStart], entry: EpochStart) -> tuple[EpochStart, ...]:
    """Return the entries with one more, which takes the place of all that it contradicts.

    Source: LeaderEpochFileCache.assign: the newest word wins, and entries at or above its epoch
    or its start offset go.
    """
    known = tuple(entries)
    if known and known[-1].epoch == entry.epoch and known[-1].start_offset <= entry.start_offset:
        return known
    kept = list(known)
    while kept and (kept[-1].epoch >= entry.epoch or kept[-1].start_offset >= entry.start_offset):
        kept.pop()
    return (*kept, entry)


def truncated_from_end(entries: Iterable[EpochStart], end_offset: int) -> tuple[EpochStart, ...]:
    """Return the entries that start below `end_offset`."""
    return tuple(entry for entry in entries if entry.start_offset < end_offset)


def truncated_from_start(
    entries: Iterable[EpochStart], start_offset: int
) -> tuple[EpochStart, ...]:
    """Return the entries for a log that starts at `start_offset`.

    The epoch that was valid there is moved up to it, older ones go.
    """
    known = tuple(entries)
    before = [entry for entry in known if entry.start_offset <= start_offset]
    if not before:
        return known
    return (before[-1]._replace(start_offset=start_offset), *known[len(before) :])


def end_offset_for(
    entries: Iterable[EpochStart], epoch: int, log_end_offset: int
) -> tuple[int, int]:
    """Return the largest known epoch ≤ `epoch` and its end offset (exclusive).

    (−1, −1) when nothing is known about it. Source: LeaderEpochFileCache.endOffsetFor; KIP-279.
    """
    known = tuple(entries)
    if epoch == UNDEFINED_EPOCH or not known or epoch > known[-1].epoch:
        return UNDEFINED_EPOCH, UNDEFINED_EPOCH_OFFSET
    if epoch == known[-1].epoch:
        return epoch, log_end_offset
    higher = next(entry for entry in known if entry.epoch > epoch)
    lower = [entry for entry in known if entry.epoch <= epoch]
    return (lower[-1].epoch if lower else epoch), higher.start_offset
