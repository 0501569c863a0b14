"""Logs to clean, and cleanings of them at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.host.memory import MemoryFiles
from engine.host.ports import Files
from engine.log.cleaner.cleanable import CleanableRange, find_cleanable_range
from engine.log.cleaner.cleaning import CleaningRun
from engine.log.cleaner.cleaning_facts import CleaningSettings
from engine.log.cleaner.log_facts import collect_cleanable_log
from engine.log.local_log import LocalLog
from engine.log.log_config import LogConfig
from engine.log.producer_state import AppendOrigin
from engine.records.batch import BatchView
from engine.records.builder import BatchBuilder, BatchSettings
from engine.records.record import Record
from tests.unit.log.writing import NOW_MS, batches_of, open_log

CONFIG = LogConfig(
    segment_bytes=600,
    index_interval_bytes=100,
    is_compacted=True,
    is_deleting=False,
    min_cleanable_dirty_ratio=0.0,
    producer_id_expiration_ms=1 << 50,
)
Pair = tuple[bytes | None, bytes | None]


def compacted_log(files: Files | None = None, config: LogConfig = CONFIG) -> LocalLog:
    """Return an empty log that is compacted."""
    return open_log(files or MemoryFiles(), config)[0]


def batch_of(pairs: Iterable[Pair], at_ms: int = NOW_MS, **settings: object) -> memoryview:
    """Return a batch of keys and values."""
    builder = BatchBuilder(BatchSettings(**settings))  # type: ignore[arg-type]
    for key, value in pairs:
        builder.append(at_ms, key, value)
    return memoryview(builder.build())


def put(log: LocalLog, *pairs: Pair, at_ms: int = NOW_MS, **settings: object) -> int:
    """Append a batch and return its first offset."""
    batch = batch_of(pairs, at_ms, **settings)
    origin = AppendOrigin.COORDINATOR if BatchView(batch).is_control else AppendOrigin.CLIENT
    return log.append_as_leader(batch, 0, NOW_MS, origin).first_offset


def append_raw(log: LocalLog, batch: memoryview, epoch: int = 0) -> int:
    """Append a batch as it is, a marker too."""
    origin = AppendOrigin.COORDINATOR if BatchView(batch).is_control else AppendOrigin.CLIENT
    return log.append_as_leader(batch, epoch, NOW_MS, origin).first_offset


def range_of(
    log: LocalLog, *, checkpoint: int | None = None, now_ms: int = NOW_MS, watermark: int = 1 << 60
) -> CleanableRange:
    """Return what of a log may be cleaned; all of it is committed unless said otherwise."""
    watermark = min(watermark, log.log_end_offset)
    facts = collect_cleanable_log(log, high_watermark=watermark, checkpoint_offset=checkpoint)
    return find_cleanable_range(facts, log.config, now_ms)


def cleaning_of(
    log: LocalLog,
    files: Files,
    *,
    checkpoint: int | None = None,
    now_ms: int = NOW_MS,
    watermark: int = 1 << 60,
    settings: CleaningSettings | None = None,
) -> CleaningRun:
    """Return a cleaning that has not begun."""
    return CleaningRun(
        files,
        log,
        range_of(log, checkpoint=checkpoint, now_ms=now_ms, watermark=watermark),
        settings or CleaningSettings(map_bytes=1 << 16),
        now_ms=now_ms,
    )


def clean(log: LocalLog, files: Files, **more: object) -> int:
    """Clean a log at once, and return up to where it is clean."""
    return cleaning_of(log, files, **more).clean_inline()  # type: ignore[arg-type]


def records_of_log(log: LocalLog) -> list[Record]:
    """Return every record that is in the log, markers left out."""
    return [
        record for _, raw in batches_of(log) for record in _data_records(BatchView(memoryview(raw)))
    ]


def _data_records(batch: BatchView) -> Sequence[Record]:
    return () if batch.is_control else batch.read_records()


def pairs_of(log: LocalLog) -> list[tuple[int, bytes | None, bytes | None]]:
    """Return (offset, key, value) of every record."""
    return [(record.offset, record.key, record.value) for record in records_of_log(log)]


def last_values(records: Iterable[Record]) -> dict[bytes, bytes]:
    """Return the value that each key has in the end; deleted keys have none."""
    values: dict[bytes, bytes] = {}
    for record in records:
        if record.key is not None and record.value is not None:
            values[record.key] = record.value
        elif record.key is not None:
            values.pop(record.key, None)
    return values
