"""Group neighbouring segments that a cleaning merges into one. Pure.

A segment is added to a group as long as, by their sizes before cleaning,

| bound                                        | setting              |
|----------------------------------------------|----------------------|
| the .log files fit into one segment          | segment.bytes        |
| the .index and the .timeindex files each fit | segment.index.bytes  |
| offsets fit into an index                    | 2^31 above the first |

Source: CMP-6; Kafka's Cleaner.groupSegmentsBySize.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from engine.log.log_config import LogConfig

_INT_MAX = (1 << 31) - 1


class GroupedSegment(NamedTuple):
    """The sizes of a segment that the bounds apply to; in bytes."""

    base_offset: int
    log_bytes: int
    index_bytes: int
    time_index_bytes: int


def group_segments(
    segments: Sequence[GroupedSegment], config: LogConfig, first_uncleanable_offset: int
) -> list[list[int]]:
    """Return the base offsets of the segments of each group, groups and segments in log order.

    The cleaner merges each group into one segment, whose log and indexes must not exceed their size
    limits. Source: Cleaner.groupSegmentsBySize.
    """
    groups: list[list[int]] = []
    log_bytes = index_bytes = time_index_bytes = 0
    for number, segment in enumerate(segments):
        log_bytes += segment.log_bytes
        index_bytes += segment.index_bytes
        time_index_bytes += segment.time_index_bytes
        fits = (
            groups
            and log_bytes <= config.segment_bytes
            and max(index_bytes, time_index_bytes) <= config.segment_index_bytes
            and _has_int32_offsets(segments, number, groups[-1][0], first_uncleanable_offset)
        )
        if fits:
            groups[-1].append(segment.base_offset)
            continue
        groups.append([segment.base_offset])
        _, log_bytes, index_bytes, time_index_bytes = segment
    return groups


def _has_int32_offsets(
    segments: Sequence[GroupedSegment], number: int, base_offset: int, first_uncleanable: int
) -> bool:
    """Return True if a segment's offsets, relative to its group's base, fit the group's index.

    An index stores offsets as int32. `number` is the segment's index in `segments`; `base_offset`
    is the base offset of the group.
    """
    if not segments[number].log_bytes:
        # Else an empty segment would remain every 2^31 offsets.
        return True
    is_last = number + 1 == len(segments)
    end = first_uncleanable if is_last else segments[number + 1].base_offset
    return end - 1 - base_offset <= _INT_MAX
