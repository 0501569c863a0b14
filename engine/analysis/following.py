"""Follow growing logs: the end of each partition's whole batches, and records between two ends.

A position is the offset after the last whole batch. Bytes of a batch that is being written count as
soon as the batch is complete. If records below a known position are later missing, by retention or
truncation, RecordsGone is raised, unless the caller disables it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import closing

from engine.analysis.batch_reader import SplitReader
from engine.analysis.splits import Split
from engine.errors import EngineError
from engine.host.ports import Files

#: The offset after the last whole batch of each partition, by `topic-partition`.
LogPositions = Mapping[str, int]


class RecordsGone(EngineError):
    """Records between two positions were deleted or truncated before they were read."""

    hint = 'with the option "failOnDataLoss" "false" the records that are left are read'

    def __init__(self, place: str, wanted: int, found: int, what: str) -> None:
        super().__init__(f"{place}: offsets from {wanted} on are gone: {what} {found}")
        self.place = place
        self.wanted = wanted
        self.found = found


def place_of(split: Split) -> str:
    """Return the partition of a split as text `topic-partition`."""
    return f"{split.topic}-{split.partition}"


def read_log_positions(files: Files, splits: Iterable[Split]) -> dict[str, int]:
    """Return the offset after the last whole batch of each partition, by `topic-partition`.

    A stream's next read ends there. Only the last splits of each log are read.
    """
    by_place: dict[str, list[Split]] = {}
    for split in splits:
        by_place.setdefault(place_of(split), []).append(split)
    return {place: _read_next_offset(files, of_place) for place, of_place in by_place.items()}


def _read_next_offset(files: Files, splits: list[Split]) -> int:
    """Return the offset after the last whole batch of one partition's splits; 0 without splits."""
    for split in reversed(splits):
        with closing(files.open(split.path)) as file:
            reader = SplitReader(file, split)
            for _ in reader.batches():
                pass
        if reader.span.next_offset is not None:
            return reader.span.next_offset
        if split.start == 0:
            # A segment that was rolled and has no batch yet starts where the log ends.
            return split.base_offset
    return 0


def splits_between(
    splits: Iterable[Split], start: LogPositions, end: LogPositions, *, fail_on_loss: bool = True
) -> list[Split]:
    """Return the splits that have records from `start` (inclusive) to `end` (exclusive).

    Both have offsets by `topic-partition`; `splits` have rising offsets in each partition. The
    returned copies are limited to the range. A partition that `start` lacks is read from its log
    start offset; one that `end` lacks counts as ending at offset 0, and is not read. Raises
    RecordsGone if `fail_on_loss` and records at or above `start` are gone: the log starts above it,
    ends below it, or does not exist any more.
    """
    found = []
    seen: set[str] = set()
    for split in splits:
        place = place_of(split)
        first, last = start.get(place, 0), end.get(place, 0)
        if fail_on_loss and place not in seen and place in start:
            # The first split of a partition shows where its log starts.
            log_start = max(split.log_start_offset, split.base_offset)
            if log_start > first and last > first:
                raise RecordsGone(place, first, log_start, "the log starts at")
            if last < first:
                raise RecordsGone(place, last, last, "the log ends at")
        seen.add(place)
        is_before_range = split.next_base is not None and split.next_base <= first
        if split.base_offset < last and first < last and not is_before_range:
            served = max(split.log_start_offset, first)
            found.append(split._replace(log_start_offset=served, end_offset=last))
    if fail_on_loss and (missing := [p for p in start if p not in seen and end.get(p, 0)]):
        place = min(missing)
        raise RecordsGone(place, start[place], 0, "its log is not there, at")
    return found
