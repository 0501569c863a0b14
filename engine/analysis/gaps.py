"""Offsets that are missing or come twice between the splits of a partition.

Each split tells which offsets it has; here they are laid side by side. In a compacted log missing
offsets say nothing, so what splits noted as a `gap` is dropped for a partition of which any split
shows signs of compaction; what damage took (`lost`) stays, in every log.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise

from engine.analysis.batch_order import OffsetSpan, missing_offsets
from engine.analysis.batch_reader import Problem


def with_gaps(problems: Iterable[Problem], spans: Iterable[OffsetSpan]) -> list[Problem]:
    """Return the problems of all splits, with those between splits, by place."""
    compacted = {(s.topic, s.partition) for s in spans if s.is_compacted}
    found = [p for p in problems if p.code != "gap" or (p.topic, p.partition) not in compacted]
    in_order = sorted(spans, key=lambda s: (s.topic, s.partition, s.base_offset, s.start))
    for key, of_partition in groupby(in_order, key=lambda s: (s.topic, s.partition)):
        found += _between(list(of_partition), is_compacted=key in compacted)
    return sorted(found, key=lambda p: (p.topic, p.partition, p.segment, p.position))


def _between(spans: Sequence[OffsetSpan], *, is_compacted: bool) -> Iterable[Problem]:
    """Yield what is missing or comes twice where one split of a partition follows another."""
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
