"""Compacts a log directory that no broker uses.

Source: CMP-1 … CMP-8; Kafka's LogCleaner.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from engine.errors import CorruptRecord, EngineError
from engine.forecast.dirtiness import CompactedLog, compacted_log
from engine.forecast.opened_directory import DirectoryHost, OpenedDirectory, opened_directory
from engine.limits import CLEANER_PROCESS_BYTES_MIN
from engine.log.cleaner.cleanable import CleanableLog, CleanableRange, find_cleanable_range
from engine.log.cleaner.cleaning import CleaningRun
from engine.log.cleaner.cleaning_facts import CleaningSettings
from engine.log.cleaner.log_facts import collect_cleanable_log
from engine.log.local_log import LocalLog
from engine.log.log_config import LogConfig
from engine.native.clean_records import load_or_compile_cleaner


class BufferTooSmall(EngineError):
    """The memory for keys has no room for those of a single batch, so no pass could advance."""

    hint = "give more: a key takes 24 bytes, and a tenth stays free"

    def __init__(self, map_bytes: int) -> None:
        self.map_bytes = map_bytes
        super().__init__(f"{map_bytes} bytes are too few for the keys of one batch")


def run_compaction(
    host: DirectoryHost,
    path: str,
    config_of: Callable[[str], LogConfig],
    is_wanted: Callable[[str], bool],
    settings: CleaningSettings,
    *,
    passes_max: int | None = None,
) -> Iterator[CompactedLog]:
    """Clean the wanted compacted logs of a directory at any dirty ratio, and yield each result.

    With `passes_max` the remainder of a log is not cleaned after that many passes. A log with
    damaged bytes is left unchanged and reported. Raises BufferTooSmall, and the errors of
    `opened_directory`.
    """
    with opened_directory(host, path, config_of) as opened:
        for log in _compacted_logs(opened, is_wanted):
            yield _clean_log(host, opened, log, settings, passes_max)


def _compacted_logs(opened: OpenedDirectory, is_wanted: Callable[[str], bool]) -> list[LocalLog]:
    """Return the wanted logs whose cleanup.policy includes compact."""
    return [log for log in opened.logs(is_wanted) if log.config.is_compacted]


def _cleanable_facts(opened: OpenedDirectory, log: LocalLog) -> CleanableLog:
    """Return the facts about a log from which the cleaner's rules find the cleanable range."""
    return collect_cleanable_log(
        log,
        high_watermark=opened.high_watermark(log),
        checkpoint_offset=opened.manager.first_dirty_offset(log),
    )


def _cleanable_range(opened: OpenedDirectory, log: LocalLog, now_ms: int) -> CleanableRange:
    """Return the offsets that may be cleaned now, by the log's settings."""
    return find_cleanable_range(_cleanable_facts(opened, log), log.config, now_ms)


def _clean_log(
    host: DirectoryHost,
    opened: OpenedDirectory,
    log: LocalLog,
    settings: CleaningSettings,
    passes_max: int | None,
) -> CompactedLog:
    """Clean a log in as many passes as its keys need, and return the result."""
    before_bytes, passes, freed_records = log.size_bytes, 0, 0
    fault = None
    now_ms = host.clock.wall_ms()
    cleanable = _cleanable_range(opened, log, now_ms)
    if cleanable.cleanable_bytes >= CLEANER_PROCESS_BYTES_MIN:
        load_or_compile_cleaner()
    while cleanable.cleanable_bytes and fault is None and passes != passes_max:
        run = CleaningRun(host.files, log, cleanable, settings, now_ms=now_ms)
        try:
            end_offset = run.clean_inline()
            if end_offset <= cleanable.first_dirty_offset:
                raise BufferTooSmall(settings.map_bytes)
            opened.manager.write_first_dirty_offset(log, end_offset)
        except CorruptRecord as error:
            fault = error
        else:
            passes += 1
            freed_records += run.counts.read_records - run.counts.kept_records
            cleanable = _cleanable_range(opened, log, now_ms)
    return compacted_log(_cleanable_facts(opened, log), log.config, now_ms)._replace(
        pass_count=passes,
        freed_bytes=before_bytes - log.size_bytes,
        freed_records=freed_records,
        fault=fault,
    )
