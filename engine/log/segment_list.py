"""The segments of one log in order of their base offsets; the last one is active. LOG-13."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from engine.log.retention import RetainedSegment
from engine.log.segment import Segment


class SegmentList:
    """Segments by base offset, with lookups in O(log n)."""

    __slots__ = ("_bases", "_segments")

    def __init__(self, segments: Iterable[Segment] = ()) -> None:
        self._segments = sorted(segments, key=lambda segment: segment.base_offset)
        self._bases = [segment.base_offset for segment in self._segments]

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    @property
    def bases(self) -> tuple[int, ...]:
        """Return the base offsets, lowest first."""
        return tuple(self._bases)

    @property
    def first(self) -> Segment:
        """Return the oldest segment."""
        return self._segments[0]

    @property
    def active(self) -> Segment:
        """Return the segment that is appended to."""
        return self._segments[-1]

    @property
    def size_bytes(self) -> int:
        """Return the summed size of the segments' .log files."""
        return sum(segment.size_bytes for segment in self._segments)

    def floor(self, offset: int) -> Segment | None:
        """Return the segment that contains `offset`, or would; None if all begin above it.

        Its base offset is the greatest at or below `offset`.
        """
        number = bisect_right(self._bases, offset) - 1
        return self._segments[number] if number >= 0 else None

    def higher(self, base_offset: int) -> Segment | None:
        """Return the segment that follows a base offset, None if no segment begins above it."""
        number = bisect_right(self._bases, base_offset)
        return self._segments[number] if number < len(self._segments) else None

    def between(self, start: int, end: int) -> list[Segment]:
        """Return the segment that contains `start`, and the later ones with a base below `end`."""
        first = max(bisect_right(self._bases, start) - 1, 0)
        return self._segments[first : bisect_left(self._bases, end)]

    def from_base(self, base_offset: int) -> list[Segment]:
        """Return the segments with a base offset at or above `base_offset`, lowest first."""
        return self._segments[bisect_left(self._bases, base_offset) :]

    def add(self, segment: Segment) -> None:
        """Add a segment, or replace the segment with the same base offset."""
        number = bisect_left(self._bases, segment.base_offset)
        if number < len(self._bases) and self._bases[number] == segment.base_offset:
            self._segments[number] = segment
            return
        self._bases.insert(number, segment.base_offset)
        self._segments.insert(number, segment)

    def remove(self, segment: Segment) -> None:
        """Remove a segment from the list; its files remain."""
        number = self._segments.index(segment)
        del self._segments[number]
        del self._bases[number]

    def retention_facts(self, log_end_offset: int) -> list[RetainedSegment]:
        """Return each segment's values for the retention rules, oldest first.

        Timestamps are read from files on access, so that rules without times read none.
        """
        ends = (*self._bases[1:], log_end_offset)
        active = self._segments[-1]
        return [
            _LiveFacts(segment, end, segment is active)
            for segment, end in zip(self._segments, ends, strict=True)
        ]


class _LiveFacts(NamedTuple):
    """The facts of an open segment for retention."""

    segment: Segment
    end_offset: int
    is_active: bool

    @property
    def base_offset(self) -> int:
        return self.segment.base_offset

    @property
    def size_bytes(self) -> int:
        return self.segment.size_bytes

    @property
    def largest_timestamp_ms(self) -> int:
        return self.segment.largest_timestamp_ms
