"""Replays the records of log directories, in the order and at the pace of their timestamps.

```
partition 0   t=1 ─── t=5 ────── t=6        each in the order of its offsets, which is never changed
partition 1   ── t=2 ───── t=5              merged by the largest time so far of each
due           first time + (time − first time) ÷ speed
```

A record that is older than one before it in its partition, or has no timestamp, is due together
with that one. Control records and the records of aborted transactions (by the transaction index)
are left out; those of a transaction that is open at the log's end are not.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

from engine.errors import CorruptFile, StorageError
from engine.host.ports import Files
from engine.limits import DECOMPRESSED_BATCH_BYTES_MAX
from engine.log.batch_scan import scan_batches
from engine.log.directory.log_dir import HoldsPartitions, LogDir, PartitionFolder
from engine.log.segment_files import SegmentFiles
from engine.log.txn_index import AbortedTransaction, read_txn_index
from engine.naming import DirectoryKind, FileKind
from engine.records.record import NO_TIMESTAMP, Header
from engine.records.view import RecordBatch


class ReplayBounds(NamedTuple):
    """Offsets and timestamps from (inclusive) and to (exclusive); None for no bound."""

    from_offset: int | None = None
    to_offset: int | None = None
    from_timestamp_ms: int | None = None
    to_timestamp_ms: int | None = None

    def has(self, offset: int, timestamp_ms: int) -> bool:
        """Return True if a record is within all bounds: lower inclusive, upper exclusive."""
        return (
            (self.from_offset is None or offset >= self.from_offset)
            and (self.to_offset is None or offset < self.to_offset)
            and (self.from_timestamp_ms is None or timestamp_ms >= self.from_timestamp_ms)
            and (self.to_timestamp_ms is None or timestamp_ms < self.to_timestamp_ms)
        )


class SourceRecord(NamedTuple):
    """A record and its place; `order_ms` is the largest timestamp up to it in its partition."""

    order_ms: int
    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]


class Pace:
    """Times at which records are due: `speed` times as fast as their timestamps; None: at once.

    Records before the first one with a timestamp are due at once.
    """

    def __init__(self, speed: float | None) -> None:
        self._speed = speed
        self._first_ms: int | None = None
        self._began_ms = 0

    def due_ms(self, order_ms: int, now_ms: int) -> int:
        """Return when a record is to be sent, in milliseconds on the clock of `now_ms`.

        The first record is due now; later ones after the difference of their `order_ms`, divided by
        the speed. Without a speed or a timestamp every record is due now.
        """
        if self._speed is None or order_ms == NO_TIMESTAMP:
            return now_ms
        if self._first_ms is None:
            self._first_ms, self._began_ms = order_ms, now_ms
        return self._began_ms + round((order_ms - self._first_ms) / self._speed)


class NoSuchTopic(StorageError):
    """A log directory has no partition of the topic."""

    def __init__(self, path: str, topic: str, topics: Sequence[str]) -> None:
        super().__init__(f"{path}: no partition of {topic}")
        self.hint = f"there is {', '.join(topics)}" if topics else None
        self.path = path
        self.topic = topic


def partitions_of(log_dir: LogDir, topic: str | None) -> list[PartitionFolder]:
    """Return the partitions of a topic, ordered by number; `topic` None means the only topic.

    Errors: NoSuchTopic if there is none of that name; HoldsPartitions if `topic` is None and there
    are several topics, or no partition.
    """
    live = [
        folder
        for folder in log_dir.partitions
        if folder.directory is None or folder.directory.kind is DirectoryKind.LIVE
    ]
    topics = sorted({folder.directory.topic for folder in live if folder.directory})
    if topic is None and (len(topics) > 1 or not live):
        error = HoldsPartitions(log_dir.path, [folder.name for folder in live])
        error.hint = f"name the topic, such as --topic {topics[0]}" if topics else None
        raise error
    chosen = [
        folder
        for folder in live
        if topic is None or (folder.directory and folder.directory.topic == topic)
    ]
    if not chosen:
        raise NoSuchTopic(log_dir.path, topic or "", topics)
    return sorted(chosen, key=number_of)


def number_of(folder: PartitionFolder) -> int:
    """Return the partition number in a folder's name, 0 if the name does not have one."""
    return folder.directory.partition if folder.directory else 0


def source_records(
    files: Files,
    partitions: Sequence[PartitionFolder],
    bounds: ReplayBounds,
    *,
    on_read: Callable[[int], object] | None = None,
) -> Iterator[SourceRecord]:
    """Yield the records of several partitions, merged in the order of their timestamps.

    `on_read` is called with the size of each batch read, in bytes. CorruptRecord is raised at
    damage, after all earlier records of that partition; a truncated batch at the end of the file is
    ignored.
    """
    streams = [_partition_records(files, folder, bounds, on_read) for folder in partitions]
    return heapq.merge(*streams, key=attrgetter("order_ms"))


def _partition_records(
    files: Files,
    folder: PartitionFolder,
    bounds: ReplayBounds,
    on_read: Callable[[int], object] | None,
) -> Iterator[SourceRecord]:
    """Yield a partition's records within the bounds, without aborted and control records.

    They are ordered by the largest timestamp so far, so that offsets remain in order.
    """
    number, order_ms = number_of(folder), NO_TIMESTAMP
    topic = folder.directory.topic if folder.directory else folder.name
    aborted = _read_aborted(files, folder)
    for segment in _wanted_segments(folder.files.segments, bounds):
        file = files.open(folder.files.segment_path(segment, FileKind.LOG))
        try:
            for _, batch in scan_batches(file):
                if on_read is not None:
                    on_read(batch.size_bytes)
                if bounds.to_offset is not None and batch.base_offset >= bounds.to_offset:
                    return
                if not _may_hold(batch, bounds):
                    continue
                for record in batch.records(limit_bytes=DECOMPRESSED_BATCH_BYTES_MAX):
                    order_ms = max(order_ms, record.timestamp_ms)
                    offset, timestamp_ms = record.offset, record.timestamp_ms
                    if not bounds.has(offset, timestamp_ms):
                        continue
                    if _is_aborted(aborted, batch.producer_id, offset):
                        continue
                    yield SourceRecord(
                        order_ms,
                        topic,
                        number,
                        offset,
                        timestamp_ms,
                        _bytes(record.key),
                        _bytes(record.value),
                        tuple(getattr(record, "headers", ())),
                    )
        finally:
            file.close()


def _wanted_segments(
    segments: Sequence[SegmentFiles], bounds: ReplayBounds
) -> Iterator[SegmentFiles]:
    """Yield the segments that may contain a record at or after the lower offset bound.

    A segment ends where the next one starts; the end of the last one is unknown.
    """
    for number, segment in enumerate(segments):
        is_last = number == len(segments) - 1
        end = None if is_last else segments[number + 1].base_offset
        if end is not None and bounds.from_offset is not None and end <= bounds.from_offset:
            continue
        yield segment


def _may_hold(batch: RecordBatch, bounds: ReplayBounds) -> bool:
    """Return True if a batch may contain records to replay.

    Control batches and batches below the lower offset bound contain none. CorruptRecord is raised
    if the batch is damaged.
    """
    batch.ensure_valid()
    if batch.is_control:
        return False
    return bounds.from_offset is None or batch.last_offset >= bounds.from_offset


def _read_aborted(files: Files, folder: PartitionFolder) -> dict[int, list[AbortedTransaction]]:
    """Return the aborted transactions of a partition by producer id, from its `.txnindex` files.

    Raises CorruptFile for an index that cannot be decoded: without it aborted records would be
    replayed.
    """
    found: dict[int, list[AbortedTransaction]] = {}
    for segment in folder.files.segments:
        if FileKind.TXNINDEX not in segment.sizes:
            continue
        try:
            index = read_txn_index(files, folder.files.segment_path(segment, FileKind.TXNINDEX))
        except CorruptFile as error:
            error.hint = "kctl logs repair builds it again"
            raise
        for transaction in index.entries:
            found.setdefault(transaction.producer_id, []).append(transaction)
    return found


def _is_aborted(
    aborted: dict[int, list[AbortedTransaction]], producer_id: int, offset: int
) -> bool:
    """Return True if an offset belongs to an aborted transaction of the producer."""
    return producer_id >= 0 and any(
        transaction.first_offset <= offset <= transaction.last_offset
        for transaction in aborted.get(producer_id, ())
    )


def _bytes(content: bytes | memoryview | None) -> bytes | None:
    """Copy content out of its batch, whose memory is reused; None stays None."""
    return None if content is None else bytes(content)
