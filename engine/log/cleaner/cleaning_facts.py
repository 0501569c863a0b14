"""The facts of a log that a cleaning needs, copied so that later changes of the log do not matter.

The loop collects them. The worker, which is a thread or a separate process (`cleaner_messages.py`),
uses nothing else.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from engine.log.log_config import LogConfig
from engine.log.txn_index import AbortedTransaction

#: Work in steps: yields the bytes that each step has read and written. Its driver may pause it
#: between two steps, or end it by `close`.
WorkSteps: TypeAlias = Generator[int, None, None]


class CleaningSettings(NamedTuple):
    """The memory of one cleaner thread for its offset map and for reading, in bytes."""

    map_bytes: int = 128 << 20
    load_factor: float = 0.9
    buffer_bytes: int = 512 << 9
    batch_bytes_max: int = 1_048_588


class CleaningCounts:
    """The bytes and records that a cleaning has read and written."""

    def __init__(self) -> None:
        """Start at 0; the worker counts, and the loop reads the counts."""
        #: Bytes and records of the dirty segments that were read to build the map of offsets.
        self.map_bytes = 0
        self.map_records = 0
        #: Bytes and records that were read to be rewritten.
        self.read_bytes = 0
        self.read_records = 0
        #: Bytes and records that were written to the new segments.
        self.kept_bytes = 0
        self.kept_records = 0
        #: Used share of the map's slots, 0 to 1.
        self.map_utilization = 0.0


class ProducerEnd(NamedTuple):
    """A producer's epoch and its last batch's last offset in the producer state.

    None without a batch.
    """

    epoch: int
    last_offset: int | None


class DirtySegment(NamedTuple):
    """A segment whose keys are added to the map, from a byte position on.

    `end_offset` (exclusive) is the base offset of the next segment, or the first uncleanable
    offset.
    """

    base_offset: int
    position: int
    end_offset: int


class CleaningFacts(NamedTuple):
    """One log at the start of its cleaning.

    The dirty part is [start_offset, end_offset). Tombstones of magic 0 and 1 are removed from
    segments last modified at or before `legacy_horizon_ms`.
    """

    directory: str
    config: LogConfig
    settings: CleaningSettings
    now_ms: int
    start_offset: int
    end_offset: int
    legacy_horizon_ms: int
    dirty: Sequence[DirtySegment]
    dirty_aborted: Sequence[AbortedTransaction]


class GroupedSource(NamedTuple):
    """One segment of a group, with the aborted transactions that have records in it."""

    base_offset: int
    aborted: Sequence[AbortedTransaction]


class SegmentGroup(NamedTuple):
    """Segments that are rewritten as one segment, with the log's producer state."""

    config: LogConfig
    sources: Sequence[GroupedSource]
    producers: Mapping[int, ProducerEnd]

    @property
    def base_offset(self) -> int:
        """Return the base offset of the segment that replaces the group."""
        return self.sources[0].base_offset


class CleaningWork(Protocol):
    """The parts of one cleaning that run on a worker thread, in this order."""

    @property
    def counts(self) -> CleaningCounts:
        """Return the bytes and records read and written, as of the end of the last part."""
        ...

    @property
    def latest_offset(self) -> int:
        """Return the last offset that the map covers (inclusive)."""
        ...

    def build_map(self) -> WorkSteps:
        """Add the last offset of each key in the dirty segments to the map.

        Yields the bytes that each step has read, so that the caller can throttle or end the steps.
        """
        ...

    def write_group(self, group: SegmentGroup) -> WorkSteps:
        """Write the kept records of a group to `.cleaned` files, and sync them.

        Yields the bytes that each step has done. The files are removed at any error, and when the
        generator is closed.
        """
        ...
