"""Make the rows of the views `batches`, `replicas` and `segments` from splits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sized

from engine.analysis.damage import ReaderNote, open_noted_reader
from engine.analysis.recompression import make_size_reader
from engine.analysis.roll_rules import ClosedSegment, rule_of_split
from engine.analysis.splits import Split
from engine.analysis.table_values import Row, timestamp_of
from engine.errors import CorruptRecord, StorageError
from engine.host.ports import Files
from engine.log.offset_index import read_offset_index
from engine.log.time_index import read_time_index
from engine.log.txn_index import read_txn_index
from engine.records.batch import BatchView
from engine.records.record import NO_TIMESTAMP, TimestampType
from engine.records.view import RecordBatch


def batch_rows(
    files: Files, split: Split, note: ReaderNote, names: frozenset[str] = frozenset()
) -> Iterator[Row]:
    """Yield the rows of the view `batches`, also for batches with a wrong CRC.

    `names` are the wanted size columns with other compression, which are expensive to compute.
    `note` gets the reader with the split's problems.
    """
    sizes = make_size_reader(split, names)
    with open_noted_reader(files, split, note) as reader:
        for position, batch, valid in reader.batches(keep_bad=True):
            yield _batch_row(split, position, batch, valid) | sizes(batch, valid)


def replica_rows(files: Files, split: Split, note: ReaderNote) -> Iterator[Row]:
    """Yield the rows of the view `replicas`: one for each batch of a replica.

    `isRead` is True if other views read this replica of the partition.
    """
    replica = {"dir": split.dir, "brokerId": split.broker_id, "isRead": not split.is_spare}
    return ({**replica, **row} for row in batch_rows(files, split, note))


def _batch_row(split: Split, position: int, batch: RecordBatch, valid: bool) -> Row:
    """Return the row of the view `batches`; `valid` is True if the CRC is valid.

    Batches of magic 0 and 1 have no base offset in their header: the last offset is shown for it.
    """
    first = batch.base_offset if isinstance(batch, BatchView) else batch.last_offset
    kind, max_timestamp_ms = _time_of(batch)
    return {
        "topic": split.topic,
        "partition": split.partition,
        "segment": split.path,
        "position": position,
        "baseOffset": first,
        "lastOffset": batch.last_offset,
        "count": batch.record_count,
        "size": batch.size_bytes,
        "codec": _codec_label(batch),
        "magic": batch.magic,
        "crc": batch.crc,
        "crcValid": valid,
        "leaderEpoch": batch.leader_epoch,
        "producerId": batch.producer_id,
        "producerEpoch": batch.producer_epoch,
        "baseSequence": batch.base_sequence,
        "isTransactional": batch.is_transactional,
        "isControl": batch.is_control,
        "timestampType": kind,
        "maxTimestamp": timestamp_of(max_timestamp_ms),
        "maxTimestampMs": NO_TIMESTAMP if max_timestamp_ms is None else max_timestamp_ms,
        "deleteHorizonMs": batch.delete_horizon_ms,
    }


def _time_of(batch: RecordBatch) -> tuple[int, int | None]:
    """Return a batch's timestamp type and largest timestamp in ms.

    (NONE, None) if the batch cannot be decoded.
    """
    try:
        return int(batch.timestamp_type), batch.max_timestamp_ms
    except CorruptRecord:
        return int(TimestampType.NONE), None


def _codec_label(batch: RecordBatch) -> str:
    """Return the name of the codec, "unknown" for an id that Kafka does not have."""
    try:
        return batch.codec.label
    except CorruptRecord:
        return "unknown"


def read_segment_row(files: Files, split: Split, note: ReaderNote, *, has_rule: bool = True) -> Row:
    """Read all batches of a segment, and return its row of the view `segments`.

    `has_rule` adds the rule by which it was rolled, for which other segments are read.
    """
    count, following = 0, split.base_offset
    first_ms: int | None = None
    last_ms: int | None = None
    with open_noted_reader(files, split, note) as reader:
        for _, batch, _ in reader.batches():
            count += 1
            following = batch.next_offset
            time_ms = batch.max_timestamp_ms
            first_ms = time_ms if first_ms is None else first_ms
            last_ms = time_ms if last_ms is None else max(last_ms, time_ms)
    row = {
        "dir": split.dir,
        "topic": split.topic,
        "partition": split.partition,
        "segment": split.path,
        "baseOffset": split.base_offset,
        "nextOffset": following,
        "bytes": split.end,
        "batches": count,
        "firstTimestamp": timestamp_of(first_ms),
        "lastTimestamp": timestamp_of(last_ms),
        "firstTimestampMs": first_ms,
        "lastTimestampMs": last_ms,
        **_index_sizes(files, split),
    }
    if has_rule:
        segment = ClosedSegment(
            split.base_offset, split.end, first_ms, row["indexEntries"], row["timeIndexEntries"]
        )
        row["rolledBy"] = rule_of_split(files, split, segment)
    return row


def _index_sizes(files: Files, split: Split) -> Row:
    """Return the entry counts of a segment's three indexes; null for an unreadable index."""
    stem = split.path.removesuffix(".log")
    base = split.base_offset
    return {
        "indexEntries": _count_entries(lambda: read_offset_index(files, f"{stem}.index", base)),
        "timeIndexEntries": _count_entries(
            lambda: read_time_index(files, f"{stem}.timeindex", base)
        ),
        "txnIndexEntries": _count_entries(lambda: read_txn_index(files, f"{stem}.txnindex")),
    }


def _count_entries(read: Callable[[], Sized]) -> int | None:
    """Return the number of entries that `read` returns, None if the file cannot be read."""
    try:
        return len(read())
    except StorageError:
        return None
