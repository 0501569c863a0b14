"""Applies retention to a log directory that no broker uses.

Source: RET-1 … RET-9.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from engine.forecast.opened_directory import DirectoryHost, opened_directory
from engine.log.local_log import LocalLog
from engine.log.log_config import LogConfig
from engine.log.retention import RetentionReason
from engine.model import TopicPartition


class RetainedLog(NamedTuple):
    """What retention deleted of a log, and what remains."""

    topic_partition: TopicPartition
    reasons: tuple[RetentionReason, ...]
    freed_segments: int
    freed_bytes: int
    left_bytes: int
    log_start_offset: int
    log_end_offset: int


def run_retention(
    host: DirectoryHost,
    path: str,
    config_of: Callable[[str], LogConfig],
    is_wanted: Callable[[str], bool],
    on_log: Callable[[RetainedLog], None],
) -> None:
    """Delete the old segments of a directory's wanted logs; `on_log` gets each result.

    Raises the errors of `opened_directory`.
    """
    with opened_directory(host, path, config_of) as opened:
        now_ms = host.clock.wall_ms()
        for log in opened.logs(is_wanted):
            # Records above the high watermark, which were not replicated, are kept.
            on_log(_delete_old_segments(log, opened.high_watermark(log), now_ms))


def _delete_old_segments(log: LocalLog, watermark: int, now_ms: int) -> RetainedLog:
    """Delete the old segments of a log; return the deleted and the remaining sizes."""
    before_bytes = log.size_bytes
    gone = log.delete_old_segments(watermark, now_ms)
    return RetainedLog(
        log.topic_partition,
        tuple(gone),
        sum(gone.values()),
        before_bytes - log.size_bytes,
        log.size_bytes,
        log.log_start_offset,
        log.log_end_offset,
    )
