"""How far a log is durable: segments, snapshots and names, now or beside the loop."""

from __future__ import annotations

from engine.host.memory import MemoryFiles
from engine.log.producer_snapshot import read_producer_snapshot
from tests.unit.log.hooks import hooks_of
from tests.unit.log.test_local_log import SMALL, HeldTasks
from tests.unit.log.writing import NOW_MS, open_log, sent_by

SNAPSHOT = "00000000000000000010.snapshot"


def test_a_roll_makes_the_producers_snapshot_durable_with_its_segment() -> None:
    files, tasks = MemoryFiles(), HeldTasks()
    log, _ = open_log(files, SMALL, hooks_of(tasks))
    files.sync_everything()
    log.append_as_leader(sent_by(1, 0, 10), 0, NOW_MS)
    log.roll(NOW_MS)
    path = f"{log.directory}/{SNAPSHOT}"
    assert not files.after_crash().exists(path)
    for work in tasks.held:
        work()
    (producer,) = read_producer_snapshot(files.after_crash(), path)
    assert (1, 9) == (producer.producer_id, producer.last_sequence)
    assert 10 == log.recovery_point


def test_a_flush_without_new_records_only_notes_the_time() -> None:
    files = MemoryFiles()
    log, _ = open_log(files, SMALL, hooks_of())
    log.append_as_leader(sent_by(1, 0, 10), 0, NOW_MS)
    log.flush(NOW_MS)
    files.fail("sync", 5, times=99)
    log.flush(NOW_MS + 5)
    assert (10, NOW_MS + 5) == (log.recovery_point, log.last_flush_ms)


def test_a_recovery_point_follows_a_cut_down_and_never_rises_above_the_end() -> None:
    files, tasks = MemoryFiles(), HeldTasks()
    log, _ = open_log(files, SMALL, hooks_of(tasks))
    log.append_as_leader(sent_by(1, 0, 10), 0, NOW_MS)
    log.append_as_leader(sent_by(1, 10, 10), 0, NOW_MS)
    log.roll(NOW_MS)
    log.truncate_to(10, NOW_MS)
    for work in tasks.held:
        work()
    assert 10 == log.recovery_point
