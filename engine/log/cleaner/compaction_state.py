"""The progress of a broker's cleaner in each of its compacted logs.

| state | |
|---|---|
| idle | no cleaning is planned; `is_due` and `waits_for` describe when the next one comes |
| waiting | a cleaning was requested, and waits for other cleanings |
| cleaning | `now` has its progress |
| uncleanable | not cleaned until the broker restarts, because of `fault` |

It is sent to other processes as JSON: `encode_states`, `decode_states`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import NamedTuple

from engine.json_text import JsonObject
from engine.log.cleaner.compaction_wait import CompactionWait


class CompactionPhase(Enum):
    """The state of a log in the cleaner."""

    IDLE = "idle"
    WAITING = "waiting"
    CLEANING = "cleaning"
    UNCLEANABLE = "uncleanable"


class CleaningProgress(NamedTuple):
    """A running cleaning: elapsed time, bytes read, and bytes to read in total."""

    elapsed_ms: int
    done_bytes: int
    total_bytes: int

    @property
    def bytes_per_s(self) -> float:
        """Return the mean bytes read per second since the cleaning began."""
        return self.done_bytes * 1000 / max(self.elapsed_ms, 1)


class CleaningResult(NamedTuple):
    """The last cleaning of a log: its offsets [start, end), sizes and record counts."""

    start_offset: int
    end_offset: int
    before_bytes: int
    after_bytes: int
    before_records: int
    after_records: int
    read_bytes: int
    elapsed_ms: int
    ended_ms: int

    @property
    def bytes_per_s(self) -> float:
        """Return the mean bytes read per second, both for the offset map and for the records."""
        return self.read_bytes * 1000 / max(self.elapsed_ms, 1)


class LogCompaction(NamedTuple):
    """One replica's log as its broker's cleaner sees it; offsets are exclusive at the end."""

    topic: str
    partition: int
    phase: CompactionPhase
    size_bytes: int
    first_dirty_offset: int
    first_uncleanable_offset: int
    log_end_offset: int
    cleanable_bytes: int
    dirty_ratio: float
    is_due: bool
    waits_for: CompactionWait | None
    fault: str | None
    now: CleaningProgress | None
    last: CleaningResult | None


def encode_states(states: Iterable[LogCompaction]) -> list[JsonObject]:
    """Return compaction states as JSON objects, for the console command that asks a broker."""
    return [
        {
            **state._asdict(),
            "phase": state.phase.value,
            "waits_for": None if state.waits_for is None else state.waits_for.value,
            "now": None if state.now is None else state.now._asdict(),
            "last": None if state.last is None else state.last._asdict(),
        }
        for state in states
    ]


def decode_states(rows: Sequence[JsonObject]) -> list[LogCompaction]:
    """Return the states that `encode_states` wrote; raises KeyError, TypeError and ValueError."""
    return [
        LogCompaction(
            **{
                **row,
                "phase": CompactionPhase(row["phase"]),
                "waits_for": None if row["waits_for"] is None else CompactionWait(row["waits_for"]),
                "now": None if row["now"] is None else CleaningProgress(**row["now"]),
                "last": None if row["last"] is None else CleaningResult(**row["last"]),
            }
        )
        for row in rows
    ]
