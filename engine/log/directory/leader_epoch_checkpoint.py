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
from engine.log.directory.text_checkpoint import (
    encode_text_checkpoint,
    parse_integer,
    parse_text_checkpoint,
    read_text_checkpoint,
)

#: The file's name in a partition directory.
FILE_NAME = "leader-epoch-checkpoint"

#: The epoch that `end_offset_for` returns if no known epoch fits.
UNDEFINED_EPOCH = -1
UNDEFINED_EPOCH_OFFSET = -1


class EpochStart(NamedTuple):
    """A leader epoch and the offset of its first record."""

    epoch: int
    start_offset: int


def parse_leader_epochs(content: bytes, path: str) -> tuple[EpochStart, ...]:
    """Return the entries in the file's order; raises CorruptFile.

    The order itself is not checked here: a broker applies the entries one by one by `assign_epoch`,
    which drops contradicting ones.
    """
    entries = []
    for epoch, start_offset in parse_text_checkpoint(content, path, fields=2):
        epoch_start = EpochStart(
            parse_integer(epoch, path, "a leader epoch"),
            parse_integer(start_offset, path, "a start offset"),
        )
        if epoch_start.epoch < 0 or epoch_start.start_offset < 0:
            raise CorruptFile(path, "an epoch and a start offset of at least 0", tuple(epoch_start))
        entries.append(epoch_start)
    return tuple(entries)


def encode_leader_epochs(entries: Iterable[EpochStart]) -> bytes:
    """Return the content of a leader-epoch-checkpoint with these entries, in this order."""
    return encode_text_checkpoint(entries)


def read_leader_epochs(files: Files, path: str) -> tuple[EpochStart, ...]:
    """Return the entries of a leader-epoch-checkpoint in the file's order; raises CorruptFile."""
    return parse_leader_epochs(read_text_checkpoint(files, path), path)


def assign_epoch(entries: Iterable[EpochStart], epoch_start: EpochStart) -> tuple[EpochStart, ...]:
    """Return the entries with one more; entries that contradict the new one are removed.

    Source: LeaderEpochFileCache.assign: the newest entry wins, and entries at or above its epoch or
    its start offset are removed.
    """
    epoch_starts = tuple(entries)
    if (
        epoch_starts
        and epoch_starts[-1].epoch == epoch_start.epoch
        and epoch_starts[-1].start_offset <= epoch_start.start_offset
    ):
        return epoch_starts
    kept = list(epoch_starts)
    while kept and (
        kept[-1].epoch >= epoch_start.epoch or kept[-1].start_offset >= epoch_start.start_offset
    ):
        kept.pop()
    return (*kept, epoch_start)


def truncated_from_end(entries: Iterable[EpochStart], end_offset: int) -> tuple[EpochStart, ...]:
    """Return the entries that start below `end_offset`."""
    return tuple(epoch_start for epoch_start in entries if epoch_start.start_offset < end_offset)


def truncate_from_start(entries: Iterable[EpochStart], start_offset: int) -> tuple[EpochStart, ...]:
    """Return the entries for a log whose log start offset is now `start_offset`.

    The epoch of the record at that offset now starts there, and older epochs are removed.
    """
    epoch_starts = tuple(entries)
    before = [
        epoch_start for epoch_start in epoch_starts if epoch_start.start_offset <= start_offset
    ]
    if not before:
        return epoch_starts
    return (before[-1]._replace(start_offset=start_offset), *epoch_starts[len(before) :])


def end_offset_for(
    entries: Iterable[EpochStart], epoch: int, log_end_offset: int
) -> tuple[int, int]:
    """Return the largest known epoch ≤ `epoch` and its end offset (exclusive).

    (−1, −1) if `epoch` is undefined or above all known epochs. Source:
    LeaderEpochFileCache.endOffsetFor; KIP-279.
    """
    epoch_starts = tuple(entries)
    if epoch == UNDEFINED_EPOCH or not epoch_starts or epoch > epoch_starts[-1].epoch:
        return UNDEFINED_EPOCH, UNDEFINED_EPOCH_OFFSET
    if epoch == epoch_starts[-1].epoch:
        return epoch, log_end_offset
    higher = next(epoch_start for epoch_start in epoch_starts if epoch_start.epoch > epoch)
    lower = [epoch_start for epoch_start in epoch_starts if epoch_start.epoch <= epoch]
    return (lower[-1].epoch if lower else epoch), higher.start_offset
