"""Offsets that are missing or repeated between the splits of a partition.

Each split reports which offsets it covers; this module compares the splits of a partition. In a
compacted log missing offsets are normal, so a split's problems `gap` are dropped if any split of
the partition shows signs of compaction. Offsets that damage took (`lost`) stay in every log, and so
does `short`: a log that ends below its recovery point or high watermark, or a compacted segment
that ends below the last offset of its indexes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise

from engine.analysis.batch_order import OffsetSpan, missing_offsets
from engine.analysis.problem import Problem


def add_gaps(problems: Iterable[Problem], spans: Iterable[OffsetSpan]) -> list[Problem]:
    """Return the problems within splits and those between them, sorted by place.

    `spans` are the offsets that were read of each split. Gaps in compacted logs are left out.
    """
    compacted = {(s.topic, s.partition) for s in spans if s.is_compacted}
    found = [p for p in problems if p.code != "gap" or (p.topic, p.partition) not in compacted]
    in_order = sorted(spans, key=lambda s: (s.topic, s.partition, s.base_offset, s.start))
    for key, of_partition in groupby(in_order, key=lambda s: (s.topic, s.partition)):
        in_partition = list(of_partition)
        found += _problems_between(in_partition, is_compacted=key in compacted)
        found += _short_log_problems(in_partition)
        for _, of_segment in groupby(in_partition, key=lambda s: s.base_offset):
            found += _short_segment_problems(list(of_segment))
    return sorted(found, key=lambda p: (p.topic, p.partition, p.segment, p.position))


def _problems_between(spans: Sequence[OffsetSpan], *, is_compacted: bool) -> Iterable[Problem]:
    """Yield a problem for offsets missing or repeated between consecutive splits of a log."""
    expected: int | None = None
    is_damaged = False
    for before, span in pairwise((None, *spans)):
        assert span is not None
        first = span.base_offset if span.start == 0 else span.first_offset
        if before is not None:
            is_damaged = is_damaged or before.ends_in_damage
            if before.next_offset is not None:
                expected = max(expected or 0, before.next_offset)
                is_damaged = before.ends_in_damage
            elif before.start == 0 and expected is None:
                expected = before.base_offset
        if first is None or expected is None or first == expected:
            continue
        place = (span.topic, span.partition, span.path, span.start, 0)
        if first < expected:
            message = f"base offset {first} was there before; the next is {expected}"
            yield Problem(*place, "overlap", message)
            continue
        missing = missing_offsets(expected, first, is_compacted=is_compacted)
        expected = first
        if is_damaged or (span.start > 0 and span.after_damage):
            yield Problem(*place, "lost", f"{missing}, lost to the damage before")
        elif not is_compacted:
            yield Problem(*place, "gap", missing)


def _short_log_problems(spans: Sequence[OffsetSpan]) -> Iterable[Problem]:
    """Yield a problem if a log ends below an offset in the checkpoints of its directory.

    `spans` are all splits of the log, in order.
    """
    last, end_offset = spans[-1], _end_of(spans)
    if last.reached_offset is not None and last.reached_offset > end_offset:
        message = (
            f"offsets {end_offset} to {last.reached_offset - 1} are missing at the end: by the"
            " checkpoints of its directory the log had them"
        )
        yield Problem(last.topic, last.partition, last.path, last.start, 0, "short", message)


def _short_segment_problems(spans: Sequence[OffsetSpan]) -> Iterable[Problem]:
    """Yield a problem if a segment ends at or below the last offset of its indexes.

    `spans` are all splits of the segment, in order.
    """
    last, end_offset = spans[-1], _end_of(spans)
    if last.indexed_offset is not None and last.indexed_offset >= end_offset:
        message = (
            f"some of offsets {end_offset} to {last.indexed_offset} are missing at the end: the"
            " indexes of the segment have them"
        )
        yield Problem(last.topic, last.partition, last.path, last.start, 0, "short", message)


def _end_of(spans: Sequence[OffsetSpan]) -> int:
    """Return the offset after the splits' last batch, at least the last split's base offset."""
    ends = [span.next_offset for span in spans if span.next_offset is not None]
    return max([*ends, spans[-1].base_offset])
