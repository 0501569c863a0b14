"""What a log tells operators: first words and figures as a real broker writes them."""

from __future__ import annotations

import logging

import pytest

from engine.log.log_config import LogConfig
from engine.log.log_messages import LogStartReason
from tests.unit.log.test_local_log import SMALL, fill, new_log
from tests.unit.log.writing import NOW_MS, PARTITION

HEAD = f"[UnifiedLog partition={PARTITION}, dir=/data]"


def _said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_a_roll_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    log = new_log()
    fill(log, [3])
    caplog.set_level(logging.INFO, "kafka.log")
    log.roll(NOW_MS)
    head = f"[LocalLog partition={PARTITION}, dir=/data]"
    assert [f"{head} Rolled new log segment at offset 3"] == _said(caplog)
    assert ["kafka.log.LocalLog"] == [record.name for record in caplog.records]


def test_truncations_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    log = new_log()
    fill(log, [3, 3])
    caplog.set_level(logging.INFO, "kafka.log")
    log.truncate_to(3, NOW_MS)
    log.truncate_to(3, NOW_MS)
    log.restart_at(9, NOW_MS)
    assert [
        f"{HEAD} Truncating to offset 3",
        f"{HEAD} Truncate and start at offset 9",
    ] == _said(caplog)


def test_a_moved_start_is_reported_with_its_cause(caplog: pytest.LogCaptureFixture) -> None:
    log = new_log()
    fill(log, [3, 3])
    caplog.set_level(logging.INFO, "kafka.log")
    log.maybe_increment_log_start_offset(2, 6, LogStartReason.DELETE_RECORDS)
    log.maybe_increment_log_start_offset(2, 6, LogStartReason.DELETE_RECORDS)
    log.maybe_increment_log_start_offset(4, 6, LogStartReason.LEADER_START)
    start = f"{HEAD} Incremented log start offset to"
    assert [
        f"{start} 2 due to client delete records request",
        f"{start} 4 due to leader offset increment",
    ] == _said(caplog)


def test_retention_logs_each_segment_and_the_rule(caplog: pytest.LogCaptureFixture) -> None:
    log = new_log()
    fill(log, [10] * 8)
    assert (0, 20, 40, 60) == log.segments.bases
    first, second, third, last = (segment.size_bytes for segment in log.segments)
    times = [segment.largest_timestamp_ms for segment in log.segments]
    log.maybe_increment_log_start_offset(25, 80, LogStartReason.DELETE_RECORDS)
    left = third + last
    log.configure(SMALL._replace(retention_bytes=left, retention_ms=1))
    caplog.set_level(logging.INFO, "kafka.log")
    log.delete_old_segments(60, max(times) + 5)

    def shown(number: int, size: int) -> str:
        return (
            f"LogSegment(baseOffset={20 * number}, size={size},"
            f" largestRecordTimestamp={times[number]})"
        )

    assert [
        f"{HEAD} Deleting segments due to log start offset 25 breach: {shown(0, first)}",
        f"{HEAD} Deleting segment {shown(1, second)} due to log retention size {left} breach."
        f" Log size after deletion will be {left}.",
        f"{HEAD} Deleting segment {shown(2, third)} due to log retention time 1ms breach based on"
        " the largest record timestamp in the segment",
        f"{HEAD} Incremented log start offset to 60 due to segment deletion",
    ] == _said(caplog)


def test_a_log_that_keeps_everything_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    log = new_log()
    fill(log, [10] * 8)
    log.configure(LogConfig(retention_ms=-1))
    caplog.set_level(logging.INFO, "kafka.log")
    log.delete_old_segments(80, NOW_MS)
    assert [] == _said(caplog)
