"""Runs of records for tests."""

from __future__ import annotations

from engine.records.record import Record
from engine.records.record_run import RecordRun


def run_of(*records: Record, leader_epoch: int = 0) -> RecordRun:
    """Return the run of records of one timestamp type."""
    return RecordRun(
        leader_epoch,
        records[0].timestamp_type,
        [record.offset for record in records],
        [record.timestamp_ms for record in records],
        [record.key for record in records],
        [record.value for record in records],
        [record.headers for record in records],
    )
