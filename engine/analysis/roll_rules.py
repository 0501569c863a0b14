"""Infer from the files of a copied log the rule by which a closed segment was rolled.

The settings of the topic are not in the directory. Kafka's rules are tried in this order:

| rule | condition |
|---|---|
| `offsets` | the next batch's last offset is more than 2^31 − 1 above the segment's base offset |
| `segment.index.bytes` | an index is full by Kafka's default of 10 MiB |
| `segment.ms` | the next batch is later than its first by more than Kafka's default of 7 days |
| `segment.bytes` | with the next batch it would have been larger than the log's largest segment |
| `segment.ms` | no rule above, and the next batch is later |
| `other` | no rule: DeleteRecords up to the end, compaction, or settings that changed |

Source: LogSegment.shouldRoll (LOG-6).
"""

from __future__ import annotations

from contextlib import closing
from typing import Final, NamedTuple

from engine.analysis.splits import Split
from engine.errors import CorruptRecord, StorageError
from engine.host.ports import Files
from engine.limits import HEADER_WALK_BYTES
from engine.log import offset_index, time_index
from engine.log.batch_scan import scan_batches
from engine.log.log_config import LogConfig
from engine.log.segment_files import list_partition_files
from engine.naming import FileKind, SegmentFileName

_INT32_MAX: Final = (1 << 31) - 1
_DEFAULTS: Final = LogConfig()


class ClosedSegment(NamedTuple):
    """Facts about a closed segment; an entry count is None without that index."""

    base_offset: int
    size_bytes: int
    first_timestamp_ms: int | None
    index_entries: int | None
    time_index_entries: int | None


class NextBatch(NamedTuple):
    """The first batch of the segment after the closed one."""

    last_offset: int
    size_bytes: int
    max_timestamp_ms: int


def rule_of_roll(segment: ClosedSegment, following: NextBatch, largest_bytes: int) -> str:
    """Return the setting whose limit made a broker roll a segment, as closely as files show it.

    `following` is the first batch of the next segment, `largest_bytes` the size of the log's
    largest segment. `offsets` means the range of relative offsets, `other` none of the known rules.
    """
    if following.last_offset - segment.base_offset > _INT32_MAX:
        return "offsets"
    if _has_full_index(segment):
        return "segment.index.bytes"
    first_ms = segment.first_timestamp_ms
    # Without timestamps Kafka counts from the creation of the file, which is unknown here.
    waited_ms = 0
    if first_ms is not None and first_ms >= 0:
        waited_ms = following.max_timestamp_ms - first_ms
    if waited_ms > _DEFAULTS.segment_ms:
        return "segment.ms"
    if segment.size_bytes + following.size_bytes > largest_bytes:
        return "segment.bytes"
    return "segment.ms" if waited_ms > 0 else "other"


def rule_of_split(files: Files, split: Split, segment: ClosedSegment) -> str | None:
    """Return the setting whose limit made a broker roll a segment; see `rule_of_roll`.

    None for the active segment, and if the next segment is empty or unreadable.
    """
    if split.next_base is None:
        return None
    folder = split.path.rpartition("/")[0]
    try:
        segments = list_partition_files(files, folder).segments
        following = _read_first_batch(files, folder, split.next_base)
    except (CorruptRecord, StorageError):
        return None
    if following is None:
        return None
    return rule_of_roll(segment, following, max(found.log_bytes for found in segments))


def _read_first_batch(files: Files, folder: str, base_offset: int) -> NextBatch | None:
    """Return the first batch of the segment with this base offset, None if the segment is empty."""
    path = f"{folder}/{SegmentFileName(base_offset, FileKind.LOG).name}"
    with closing(files.open(path)) as file:
        for _, batch in scan_batches(file, chunk_bytes=HEADER_WALK_BYTES):
            return NextBatch(batch.last_offset, batch.size_bytes, batch.max_timestamp_ms)
    return None


def _has_full_index(segment: ClosedSegment) -> bool:
    """Return True if an index has as many entries as the default segment.index.bytes allows."""
    limit = _DEFAULTS.segment_index_bytes
    return (segment.index_entries or 0) >= limit // offset_index.ENTRY_BYTES or (
        segment.time_index_entries or 0
    ) >= limit // time_index.ENTRY_BYTES - 1
