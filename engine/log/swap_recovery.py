"""What becomes of the files that an interrupted change of segments left.

A change writes `.cleaned` files, renames them to `.swap` from the highest base offset down, renames
the segments they replace to `.deleted`, and renames `.swap` to live names. So, when it stopped:

```
.deleted                                  remove: replaced, or past retention
.cleaned                                  remove: the change did not get to its point of no return
.swap at or above the lowest .cleaned     remove: some of its fellows are still .cleaned
other .swap                               finish: remove the live files from the lowest .swap's base
                                          to the highest .swap's end, take the suffix away
.tmp                                      remove
index without .log after all that         remove
```

A KRaft snapshot waiting as `.checkpoint.deleted` is left to its owner.

Source: Kafka's LogLoader.load and LocalLog.replaceSegments; L8.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from engine.log.segment_files import INDEX_KINDS, PartitionFiles
from engine.naming import FileKind, FileState, SegmentFileName


class SwapPlan(NamedTuple):
    """What to remove and rename, in this order; `logs` is what the .log files are then.

    `logs` maps a base offset to the present name of its .log and its size in bytes.
    """

    removed: tuple[tuple[str, str], ...]
    renamed: tuple[tuple[str, str], ...]
    logs: dict[int, tuple[str, int]]
    live: frozenset[str]


def plan_swaps(partition: PartitionFiles, end_of: Callable[[str], int]) -> SwapPlan:
    """Return what a broker does with leftovers at start; nothing is touched.

    `end_of` gives the offset behind the last batch of a .log by its name, its base without one.
    Reasons come with the names that are removed.
    """
    removed: dict[str, str] = {}
    swaps: list[tuple[SegmentFileName, int]] = []
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
                swaps.append((parsed, size))
    live = _live_files(partition)
    for name in _replaced(live, [parsed for parsed, _ in swaps], end_of):
        removed[name] = "replaced by a finished cleaning"
        del live[name]
    renamed = []
    logs = {
        parsed.base_offset: (name, size)
        for name, (parsed, size) in live.items()
        if parsed.kind is FileKind.LOG
    }
    for parsed, size in sorted(swaps, key=lambda swap: swap[0].base_offset):
        target = parsed._replace(state=FileState.LIVE)
        renamed.append((parsed.name, target.name))
        live[target.name] = (target, size)
        if parsed.kind is FileKind.LOG:
            logs[parsed.base_offset] = (parsed.name, size)
    for name, (parsed, _) in list(live.items()):
        if parsed.kind in INDEX_KINDS and parsed.base_offset not in logs:
            removed[name] = "an index without its .log"
            del live[name]
    # A file that another one is renamed over is not removed first: a rename replaces it.
    targets = {target for _, target in renamed}
    steps = tuple((name, reason) for name, reason in removed.items() if name not in targets)
    ordered = dict(sorted(logs.items()))
    return SwapPlan(steps, tuple(renamed), ordered, frozenset(live))


def _live_files(partition: PartitionFiles) -> dict[str, tuple[SegmentFileName, int]]:
    found = {}
    for segment in partition.segments:
        for kind, size in segment.sizes.items():
            parsed = SegmentFileName(segment.base_offset, kind)
            found[parsed.name] = (parsed, size)
    for offset, size in partition.snapshots.items():
        parsed = SegmentFileName(offset, FileKind.SNAPSHOT)
        found[parsed.name] = (parsed, size)
    for parsed in partition.orphans:
        found[parsed.name] = (parsed, 0)
    return found


def _replaced(
    live: dict[str, tuple[SegmentFileName, int]],
    swaps: list[SegmentFileName],
    end_of: Callable[[str], int],
) -> list[str]:
    """Return the live files that the finished .swap logs stand for."""
    logs = [swap for swap in swaps if swap.kind is FileKind.LOG]
    if not logs:
        return []
    start = min(swap.base_offset for swap in logs)
    end = max(end_of(swap.name) for swap in logs)
    return [name for name, (parsed, _) in live.items() if start <= parsed.base_offset < end]
