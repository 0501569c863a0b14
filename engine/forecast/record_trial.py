"""Tries a cleaning on a partition that is read twice by a consumer: for keys, then for the rest.

| what | how |
|---|---|
| records to keep | the cleaner's own rules: its map, its filter of batches |
| clean up to | the end of the last batch that lacks an offset: only a cleaning makes holes |
| producers | those whose last batch is younger than producer.id.expiration.ms |

Source: CMP-1, CMP-4, CMP-5, CMP-7, CMP-8.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from engine.client.batch_reading import StoredBatches
from engine.client.fetched_records import AbortedProducer
from engine.log.cleaner.batch_filter import BatchFilter, CleaningTime, opened_records
from engine.log.cleaner.cleaning_facts import CleaningSettings, ProducerEnd
from engine.log.cleaner.offset_map import OffsetMap
from engine.log.cleaner.segment_cleaner import iter_keys
from engine.log.cleaner.transactions import CleanedTransactions
from engine.log.log_config import LogConfig
from engine.log.txn_index import AbortedTransaction
from engine.records.batch import BatchView
from engine.records.view import RecordBatch

#: Reads the batches in [start, end) at each call.
ReadBatches = Callable[[int, int], Iterator[StoredBatches]]


class TrialRange(NamedTuple):
    """The start of a log, the offset up to which it may be cleaned, and its end (exclusive)."""

    log_start_offset: int
    first_uncleanable_offset: int
    log_end_offset: int


class RecordTrial(NamedTuple):
    """What was read below the first uncleanable offset, and what of it a cleaning would keep.

    `first_dirty_offset` is the offset up to which the log was certainly cleaned before, and
    `clean_bytes` is the size of that part; it is above the first uncleanable offset if that was
    estimated too low. `mapped_offset` is below the first uncleanable offset if the keys did not all
    fit: further passes would then remove more.
    """

    first_dirty_offset: int
    mapped_offset: int
    clean_bytes: int
    read_bytes: int
    kept_bytes: int
    read_records: int
    kept_records: int

    @property
    def dirty_ratio(self) -> float:
        """The share of the cleanable bytes not cleaned before, 0.0 without any."""
        return self.dirty_bytes / self.read_bytes if self.read_bytes else 0.0

    @property
    def dirty_bytes(self) -> int:
        """The cleanable bytes that were not cleaned before."""
        return max(self.read_bytes - self.clean_bytes, 0)


def try_records(
    read: ReadBatches,
    offsets: TrialRange,
    config: LogConfig,
    settings: CleaningSettings,
    now_ms: int,
) -> RecordTrial:
    """Return the records and bytes of a partition that a cleaning would keep; nothing is changed.

    The records are read twice by `read`: for the keys, and for the filter. Raises CorruptRecord
    and the errors of `read`.
    """
    first = _KeyReading(offsets, config, settings, now_ms)
    for stored in read(offsets.log_start_offset, offsets.log_end_offset):
        first.take(stored)
    keys = first.finished()
    moment = CleaningTime(now_ms, config.delete_retention_ms)
    aborted = _Aborted()
    batch_filter = BatchFilter(keys, aborted.transactions, first.producers, moment, config=config)
    read_bytes = kept_bytes = kept_records = 0
    for stored in read(offsets.log_start_offset, offsets.first_uncleanable_offset):
        aborted.learn(stored.aborted)
        for batch in stored.batches:
            if batch.next_offset > offsets.first_uncleanable_offset:
                break
            read_bytes += batch.size_bytes
            kept = batch_filter.filter_batch(batch)
            if kept is not None:
                kept_bytes += len(kept.content)
                kept_records += kept.record_count
    return RecordTrial(
        first.first_dirty_offset,
        keys.latest_offset + 1,
        first.clean_bytes,
        read_bytes,
        kept_bytes,
        batch_filter.records_read,
        kept_records,
    )


class _Aborted:
    """Aborted transactions as fetch responses name them, each once."""

    def __init__(self) -> None:
        self.transactions = CleanedTransactions()
        self._known: set[AbortedProducer] = set()

    def learn(self, named: list[AbortedProducer]) -> None:
        """Add the aborted transactions in `named` that are new.

        Their ends are found by their markers.
        """
        new = [producer for producer in named if producer not in self._known]
        self._known.update(new)
        # Its end is known once its marker is read.
        self.transactions.add_aborted(
            AbortedTransaction(producer.producer_id, producer.first_offset, -1, -1)
            for producer in new
        )


class _KeyReading:
    """The first reading, for keys, holes and producers."""

    def __init__(
        self, offsets: TrialRange, config: LogConfig, settings: CleaningSettings, now_ms: int
    ) -> None:
        """Create the reader of the keys; `settings` are those of the broker's cleaner."""
        self._config = config
        #: Offset up to which a cleaning may go (exclusive).
        self._end = offsets.first_uncleanable_offset
        keys_max = max(self._end - offsets.log_start_offset, 1)
        #: Map from keys to offsets, filled as by the cleaner.
        self._keys = OffsetMap(settings.map_bytes, settings.load_factor, keys_max=keys_max)
        self._keys.note_offset(offsets.log_start_offset - 1)
        #: Aborted transactions known so far, whose records a cleaning removes.
        self._aborted = _Aborted()
        #: True once `_keys` is full: a pass of the cleaner would end there.
        self._is_full = False
        #: Producers without a batch since this time have expired.
        self._oldest_ms = now_ms - config.producer_id_expiration_ms
        self._next_offset = offsets.log_start_offset
        #: Bytes of the batches read so far.
        self._read_bytes = 0
        #: Last batch of each live producer: a cleaning keeps it, possibly empty.
        self.producers: dict[int, ProducerEnd] = {}
        #: End of the part that was cleaned before, which missing offsets show, and its size.
        self.first_dirty_offset = offsets.log_start_offset
        self.clean_bytes = 0

    def take(self, stored: StoredBatches) -> None:
        """Read the next batches.

        Notes producers, missing offsets, and the keys below the end of cleaning.
        """
        self._aborted.learn(stored.aborted)
        for batch in stored.batches:
            if isinstance(batch, BatchView) and batch.has_producer_id:
                self._keep_last_batch(batch)
            self._mark_clean_before_hole(batch)
            if batch.next_offset <= self._end:
                self._map_keys(batch)

    def finished(self) -> OffsetMap:
        """Return the map of keys after the last batch; empty offsets at the end count as mapped."""
        if not self._is_full:
            self._keys.note_offset(self._end - 1)
        return self._keys

    def _keep_last_batch(self, batch: BatchView) -> None:
        """Record the last data batch of each live producer, which a cleaning keeps."""
        producer_id, epoch = batch.producer_id, batch.producer_epoch
        if batch.max_timestamp_ms <= self._oldest_ms:
            self.producers.pop(producer_id, None)
            return
        if not batch.is_control:
            self.producers[producer_id] = ProducerEnd(epoch, batch.last_offset)
            return
        known = self.producers.get(producer_id)
        if known is None or known.epoch != epoch:
            self.producers[producer_id] = ProducerEnd(epoch, None)

    def _mark_clean_before_hole(self, batch: RecordBatch) -> None:
        """Treat everything before a missing offset as clean, since only a cleaning makes gaps."""
        self._read_bytes += batch.size_bytes
        lacks = isinstance(batch, BatchView) and (
            batch.record_count <= batch.last_offset - batch.base_offset
        )
        if lacks:
            self.first_dirty_offset, self.clean_bytes = batch.next_offset, self._read_bytes
        elif batch.base_offset > self._next_offset:
            self.first_dirty_offset = batch.base_offset
            self.clean_bytes = self._read_bytes - batch.size_bytes
        self._next_offset = batch.next_offset

    def _map_keys(self, batch: RecordBatch) -> None:
        """Add the keys of a batch to the map, until it is full."""
        may_go = self._aborted.transactions.may_discard(batch)
        if self._is_full:
            return
        if not may_go and not batch.is_control:
            opened = opened_records(batch, self._config) if isinstance(batch, BatchView) else b""
            for key, offset in iter_keys(batch, opened, self._config):
                if key is None:
                    continue
                if self._keys.size >= self._keys.limit:
                    self._is_full = True
                    break
                self._keys.put(key, offset)
        self._keys.end_batch(batch.last_offset)
        if not self._is_full:
            self._keys.note_offset(batch.last_offset)
