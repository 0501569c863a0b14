"""How far a cleaner is with its logs, as it tells others."""

from __future__ import annotations

import json
from errno import EIO

from engine.log.cleaner.compaction_report import CleanerLogs, compaction_states
from engine.log.cleaner.compaction_state import (
    CompactionPhase,
    LogCompaction,
    decode_states,
    encode_states,
)
from engine.log.cleaner.compaction_wait import CompactionWait
from tests.unit.log.cleaner.cleaned_logs import CONFIG, put
from tests.unit.log.cleaner.test_log_cleaner import LateTasks, Stage
from tests.unit.log.managing import T0, U0
from tests.unit.log.writing import NOW_MS


def states(stage: Stage) -> list[LogCompaction]:
    around = CleanerLogs(stage.logs.logs, stage.logs.first_dirty_offset, lambda _: 1 << 60)
    return list(compaction_states(stage.cleaner, around, NOW_MS))


def test_dirty_clean_and_other_logs() -> None:
    stage = Stage()
    log = stage.log(T0, b"1", b"2")
    stage.host.configs["u"] = CONFIG._replace(is_compacted=False)
    stage.log(U0, b"3")
    (before,) = states(stage)
    size = log.size_bytes
    assert ("t", 0, CompactionPhase.IDLE) == before[:3]
    assert (size, 0, 2, 2, size, 1.0, True, None) == before[3:11]
    assert (None, None, None) == before[11:]
    stage.clean()
    (after,) = states(stage)
    assert (2, 2, 2, 0, 0.0, False, None) == after[4:11]
    last = after.last
    assert last is not None
    assert (0, 2, size, log.size_bytes, 2, 1) == last[:6]
    assert 2 * size == last.read_bytes
    assert last.bytes_per_s == last.read_bytes * 1000
    put(log, (b"k", b"3"))
    (waiting,) = states(stage)
    assert waiting.waits_for is CompactionWait.ACTIVE_SEGMENT


def test_a_cleaning_under_way_and_those_that_wait_for_their_turn() -> None:
    stage = Stage()
    log, other = stage.log(T0, b"1", b"2"), stage.log(U0, b"3", b"4")
    late = LateTasks(stage)
    stage.cleaner.check()
    stage.cleaner.request_cleaning([U0])
    stage.host.clock.advance(500)
    first, second = states(stage)
    assert (CompactionPhase.CLEANING, CompactionPhase.WAITING) == (first.phase, second.phase)
    now = first.now
    assert now is not None
    # Its keys are read, then all of it.
    assert (500, 2 * log.size_bytes) == (now.elapsed_ms, now.total_bytes)
    assert now.bytes_per_s == now.done_bytes * 2
    assert second.now is None
    late.run()
    stage.clean()
    late.run()
    assert other.size_bytes < second.size_bytes
    assert [CompactionPhase.IDLE] * 2 == [state.phase for state in states(stage)]


def test_what_cannot_be_cleaned_says_why() -> None:
    stage = Stage()
    log = stage.log(T0, b"1", b"2")
    log.segments.first.file.write_at(65, b"\xff")
    stage.clean()
    (state,) = states(stage)
    assert (CompactionPhase.UNCLEANABLE, False) == (state.phase, state.is_due)
    assert "CRC" in (state.fault or "")


def test_a_file_that_cannot_be_read_is_a_fault() -> None:
    stage = Stage()
    stage.host.configs["t"] = CONFIG._replace(max_compaction_lag_ms=1000)
    stage.log(T0, b"1", b"2")
    stage.logs.stop()
    again = Stage(stage.host)
    stage.host.files.fail("read", EIO, path_end="00.log")
    (state,) = states(again)
    assert CompactionPhase.UNCLEANABLE is state.phase
    assert (0, 0, 0) == (
        state.first_dirty_offset,
        state.first_uncleanable_offset,
        state.cleanable_bytes,
    )


def test_states_come_through_json_as_they_are() -> None:
    stage = Stage()
    stage.log(T0, b"1", b"2")
    stage.log(U0, b"3", b"4")
    stage.clean()
    late = LateTasks(stage)
    put(stage.logs.logs[T0], (b"k", b"5"))
    stage.logs.logs[T0].roll(NOW_MS)
    stage.cleaner.request_cleaning([T0])
    stage.cleaner.check()
    told = states(stage)
    assert told == decode_states(json.loads(json.dumps(encode_states(told))))
    late.run()
