"""Damage that a query met in the logs it read: collected during the reads, judged at the end.

```
ViewReader, in this process or a task of Spark     of a split: problems, offsets, whether it was
      │                                            read to its end
      ▼
ReadDamage of one query                            adds offsets missing between splits, if all
      │                                            splits of a partition were read to their ends
      ▼
a warning, or DamagedData with --strict
```

| what is read | which damage is found |
|---|---|
| records, batches, segments, replicas, decoded records | everything that `batch_reader.py` finds |
| only batch headers (`header_rows.py`) | headers that do not lead to the next one; no CRC check |
| indexes, checkpoints, epochs, producers | no damage of the log: their rows have a `problem` |

A broker that cleans or deletes segments during the read leaves what looks like damage: the only
problem of its partition is then that a segment has changed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from typing import Final, NamedTuple, TypeAlias

from engine.analysis.batch_order import OffsetSpan
from engine.analysis.batch_reader import BAD_BATCH_CODES, SplitReader
from engine.analysis.gaps import add_gaps
from engine.analysis.problem import Problem
from engine.analysis.pruning import ALL_RECORDS, RecordRange
from engine.analysis.splits import Split
from engine.errors import EngineError, StorageError
from engine.host.ports import Files

#: Codes of problems without loss of committed records: an unfinished last write, replicas with
#: different ends, offsets deleted by retention.
HARMLESS_CODES = frozenset(("torn_tail", "replica", "deleted"))
#: Kind of a segment that a broker cleaned or deleted during the read: no damage, but it was not
#: read completely.
CHANGED: Final = "changed"
#: Largest number of problems kept of one split: a completely damaged one may have a million.
_KEPT_MAX: Final = 1000
#: Parses the message of `missing_offsets` in `batch_order.py`.
_MISSING: Final = re.compile(r"(some of )?offsets (\d+) to (\d+) are missing")
_MISSING_CODES: Final = ("lost", "gap", "short")


class DamagedData(EngineError):
    """Logs read with --strict have damaged batches, missing offsets or undecided transactions.

    Nothing was published.
    """

    exit_code = 4
    hint = "`kctl logs verify` shows each place; without --strict they are passed over and listed"

    def __init__(self, problem_count: int, first: str) -> None:
        noun = "problem" if problem_count == 1 else "problems"
        super().__init__(f"{problem_count} {noun} with the data, the first: {first}")
        self.problem_count = problem_count


def refuse_damage(problems: list[Problem]) -> None:
    """Raise DamagedData if a problem is not one of HARMLESS_CODES, for strict reads."""
    serious = [problem for problem in problems if problem.code not in HARMLESS_CODES]
    if serious:
        first = serious[0]
        where = f"{first.segment} at position {first.position}"
        raise DamagedData(len(serious), f"{where}: {first.message}")


class SplitDamage(NamedTuple):
    """The problems and spans of one split; `is_whole` is True if it was read from start to end."""

    problems: tuple[Problem, ...]
    spans: tuple[OffsetSpan, ...] = ()
    is_whole: bool = False


#: Damage of each split, by view, path and start. A split that is read again, for example by a
#: retried task, gets an equal entry.
Seen: TypeAlias = "dict[tuple[str, str, int], SplitDamage]"
#: Called with a reader of batches that has finished its split, or was closed early.
ReaderNote: TypeAlias = Callable[[SplitReader], None]


def split_key(view: str, split: Split) -> tuple[str, str, int]:
    """Return the key of a split in `Seen`: view, path, start position."""
    return (view, split.path, split.start)


@contextmanager
def open_noted_reader(files: Files, split: Split, note: ReaderNote) -> Iterator[SplitReader]:
    """Open a split's file for the block, and yield a reader of its batches.

    `note` is called with the reader after the block, also after an error, to collect its problems.
    """
    with closing(files.open(split.path)) as file:
        reader = SplitReader(file, split)
        try:
            yield reader
        finally:
            note(reader)


def kept(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return the distinct problems of a split, at most _KEPT_MAX, in order."""
    return tuple(dict.fromkeys(problems))[:_KEPT_MAX]


class _Expected(NamedTuple):
    """The splits of a view that a query reads, and the range of records that it needs."""

    splits: list[Split]
    wanted: RecordRange


class ReadDamage:
    """The damage that one query met.

    `is_strict` is for the readers: checksums are then computed also where headers would be enough.
    """

    def __init__(self, *, is_strict: bool = False) -> None:
        self.is_strict = is_strict
        self.seen: Seen = {}
        self._expected: dict[str, _Expected] = {}

    def expect(self, view: str, splits: list[Split], wanted: RecordRange = ALL_RECORDS) -> None:
        """Register the splits that a view of the query will read, limited to `wanted` records.

        A split without a result at the end was not read, so that gaps next to it prove nothing.
        """
        self._expected[view] = _Expected(splits, wanted)

    def unread_splits(self) -> Iterator[tuple[str, list[Split]]]:
        """Yield (view, splits) for the splits of each view that have no result yet, if any."""
        for view, (splits, _) in self._expected.items():
            found = [split for split in splits if split_key(view, split) not in self.seen]
            if found:
                yield view, found

    def problems(self, files: Files) -> list[Problem]:
        """Return the problems in and between the splits that a query has read.

        They are distinct, by topic, partition and segment. If a broker changed a segment of a
        partition during the read, that is its only problem.
        """
        found = [p for view in self._expected for p in self._problems_of_view(view)]
        damaged = {(p.topic, p.partition) for p in found if p.code not in HARMLESS_CODES}
        changed = [p for p in self._changed_segments(files) if (p.topic, p.partition) in damaged]
        places = {(p.topic, p.partition) for p in changed}
        found = [p for p in found if (p.topic, p.partition) not in places] + changed
        return sorted(dict.fromkeys(found), key=lambda p: (p.topic, p.partition, p.segment))

    def _changed_segments(self, files: Files) -> Iterator[Problem]:
        """Yield the segments that are gone, or have another size than when the read was planned."""
        for splits, _ in self._expected.values():
            for split in splits:
                if split.is_last and _has_changed(files, split):
                    place = (split.topic, split.partition, split.path, 0, 0)
                    yield Problem(*place, CHANGED, "it was replaced or removed while it was read")

    def _problems_of_view(self, view: str) -> Iterator[Problem]:
        """Yield the problems in and between the splits that one view has read.

        Gaps in compacted logs are left out, and those next to a split that was not read.
        """
        splits, wanted = self._expected[view]
        unread: set[tuple[str, int]] = set()
        compacted: set[tuple[str, int]] = set()
        problems: list[Problem] = []
        spans: list[OffsetSpan] = []
        for split in splits:
            seen = self.seen.get(split_key(view, split), SplitDamage(()))
            problems += seen.problems
            spans += seen.spans
            place = (split.topic, split.partition)
            if not seen.is_whole:
                unread.add(place)
            if any(span.is_compacted for span in seen.spans):
                compacted.add(place)
        if wanted.last_offset < ALL_RECORDS.last_offset:
            # The ends of logs are not read.
            spans = [s._replace(reached_offset=None, indexed_offset=None) for s in spans]
        whole = [span for span in spans if (span.topic, span.partition) not in unread]
        for problem in add_gaps(problems, whole):
            if problem.code != "gap" or (problem.topic, problem.partition) not in compacted:
                yield problem


def _has_changed(files: Files, split: Split) -> bool:
    """Return True if a segment is not the one that the read was planned for.

    `split` is the segment's last one. The active segment may grow.
    """
    try:
        size_bytes = files.size_bytes(split.path)
    except StorageError:
        return True
    return size_bytes < split.end or (split.next_base is not None and size_bytes > split.end)


class DamageCount(NamedTuple):
    """Sums over the problems of a query, for its warning."""

    batches: int
    #: Bytes of the bad batches, and of damage between batches.
    bytes: int
    #: Missing offsets. An upper bound if a log is compacted: not all of them had a record.
    missing: int
    #: Whether `missing` is an upper bound.
    is_missing_bound: bool
    #: Unfinished last writes, and their bytes.
    torn_tails: int
    tail_bytes: int
    #: Segments that a broker replaced or removed during the read.
    changed: int
    #: Number of other problems, such as repeated offsets and wrong leader epochs.
    others: int
    partitions: tuple[str, ...]


def count_damage(problems: Iterable[Problem]) -> DamageCount:
    """Return the sums of problems for a summary line: batches, bytes, missing offsets and so on."""
    batches = size_bytes = missing = tails = tail_bytes = changed = others = 0
    is_bound = False
    partitions: dict[str, None] = {}
    for problem in problems:
        partitions[f"{problem.topic}-{problem.partition}"] = None
        found = _MISSING.search(problem.message) if problem.code in _MISSING_CODES else None
        if found is not None:
            missing += int(found[3]) - int(found[2]) + 1
            is_bound = is_bound or found[1] is not None
        elif problem.code in BAD_BATCH_CODES:
            batches += 1
            size_bytes += problem.bytes
        elif problem.code == "torn_tail":
            tails += 1
            tail_bytes += problem.bytes
        elif problem.code == CHANGED:
            changed += 1
        else:
            others += 1
    places = tuple(partitions)
    return DamageCount(
        batches, size_bytes, missing, is_bound, tails, tail_bytes, changed, others, places
    )
