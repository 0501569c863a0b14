"""Plan the recovery of files that an interrupted replacement of segments left.

A replacement writes `.cleaned` files, renames them to `.swap` from the highest base offset down,
renames the replaced segments to `.deleted`, and renames `.swap` to live names. So after a crash:

```
.deleted                                  remove: replaced, or past retention
.cleaned                                  remove: no replaced segment was changed yet
.swap at or above the lowest .cleaned     remove: other files of the replacement are still .cleaned
other .swap                               finish: remove the live files from the lowest .swap's base
                                          to the highest .swap's end, remove the suffix .swap
.tmp                                      remove
index without .log after all that         remove
```

A KRaft snapshot waiting as `.checkpoint.deleted` is left to its owner.

Source: Kafka's LogLoader.load and LocalLog.replaceSegments; L8.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable
from typing import NamedTuple

from engine.errors import CorruptRecord
from engine.host.ports import Files
from engine.log.batch_scan import scan_batches
from engine.log.segment_files import INDEX_KINDS, PartitionFiles
from engine.naming import FileKind, FileState, SegmentFileName, parse_segment_file


class SwapPlan(NamedTuple):
    """The files to remove (with reasons) and then to rename.

    `present` maps the name that each segment file has afterwards to its current name, `logs` the
    base offset of each .log to its current name and size in bytes.
    """

    removed: tuple[tuple[str, str], ...]
    renamed: tuple[tuple[str, str], ...]
    present: dict[str, str]
    logs: dict[int, tuple[str, int]]


def plan_swaps(partition: PartitionFiles, end_of: Callable[[str], int]) -> SwapPlan:
    """Return the plan for the leftover files of cleanings that a crash interrupted; change no file.

    `end_of` takes the name of a .log, and returns the offset after its last batch, or its base
    offset without a batch. Source: L8.
    """
    removed, swaps = _sort_leftovers(partition)
    sizes = _live_sizes(partition)
    present = {parsed: parsed.name for parsed in sizes}
    for parsed in _replaced_files(present, swaps, end_of):
        removed[present.pop(parsed)] = "replaced by a finished cleaning"
    live = set(present.values())
    for swap, size in swaps.items():
        target = swap._replace(state=FileState.LIVE)
        present[target] = swap.name
        sizes[target] = size
    logs = {parsed.base_offset for parsed in present if parsed.kind is FileKind.LOG}
    for parsed in [p for p in present if p.kind in INDEX_KINDS and p.base_offset not in logs]:
        for name in {present.pop(parsed), *({parsed.name} & live)}:
            removed[name] = "an index without its .log"
    renamed = [(now, parsed.name) for parsed, now in present.items() if now != parsed.name]
    # A file that another one is renamed over is not removed first: a rename replaces it.
    targets = {target for _, target in renamed}
    return SwapPlan(
        tuple((name, reason) for name, reason in removed.items() if name not in targets),
        tuple(sorted(renamed)),
        {parsed.name: now for parsed, now in present.items()},
        {
            parsed.base_offset: (present[parsed], sizes[parsed])
            for parsed in sorted(present, key=lambda parsed: parsed.base_offset)
            if parsed.kind is FileKind.LOG
        },
    )


def read_end_offset(files: Files, path: str) -> int:
    """Return the offset after the last batch of a .log, its base offset without one."""
    end = parse_segment_file(posixpath.basename(path)).base_offset
    file = files.open(path)
    try:
        for _, batch in scan_batches(file):
            end = batch.next_offset
    except CorruptRecord:
        pass  # no batch follows, so the end is where it was
    finally:
        file.close()
    return end


def _sort_leftovers(
    partition: PartitionFiles,
) -> tuple[dict[str, str], dict[SegmentFileName, int]]:
    """Return (leftover files to remove, each with the reason; .swap files to finish, with sizes).

    A .swap file is finished unless a `.cleaned` file of the same or a lower base offset exists:
    then its cleaning had not completed all renames.
    """
    removed: dict[str, str] = {}
    swaps: dict[SegmentFileName, int] = {}
    cleaned = [
        leftover.parsed.base_offset
        for leftover in partition.leftovers
        if leftover.parsed and leftover.parsed.state is FileState.CLEANED
    ]
    lowest_cleaned = min(cleaned, default=None)
    for name, size, parsed in partition.leftovers:
        if parsed is None:
            removed[name] = "an unfinished replacement"
        elif parsed.state is FileState.CLEANED:
            removed[name] = "an unfinished cleaning"
        elif parsed.state is FileState.DELETED and parsed.kind is not FileKind.CHECKPOINT:
            removed[name] = "deleted already"
        elif parsed.state is FileState.SWAP:
            if lowest_cleaned is not None and parsed.base_offset >= lowest_cleaned:
                removed[name] = "part of an unfinished cleaning"
            else:
                swaps[parsed] = size
    return removed, swaps


def _live_sizes(partition: PartitionFiles) -> dict[SegmentFileName, int]:
    """Return the size in bytes of each file without suffix.

    Orphans, which are indexes without a .log, have size 0.
    """
    sizes = {
        SegmentFileName(segment.base_offset, kind): size
        for segment in partition.segments
        for kind, size in segment.sizes.items()
    }
    for offset, size in partition.snapshots.items():
        sizes[SegmentFileName(offset, FileKind.SNAPSHOT)] = size
    return sizes | dict.fromkeys(partition.orphans, 0)


def _replaced_files(
    live: Iterable[SegmentFileName],
    swaps: Iterable[SegmentFileName],
    end_of: Callable[[str], int],
) -> list[SegmentFileName]:
    """Return the live files that are replaced by the .swap segments to finish.

    These are the files with base offsets in the range of the .swap segments.
    """
    logs = [swap for swap in swaps if swap.kind is FileKind.LOG]
    if not logs:
        return []
    start = min(swap.base_offset for swap in logs)
    end = max(end_of(swap.name) for swap in logs)
    return [parsed for parsed in live if start <= parsed.base_offset < end]
