"""Which logs a broker's cleaner takes, and what becomes of a cleaning."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from engine.errors import InvariantBroken
from engine.host.memory import MemoryFiles
from engine.log.cleaner.cleaning_facts import SegmentGroup, WorkSteps
from engine.log.cleaner.log_cleaner import CleanerConfig, CleanerPorts, LogCleaner
from engine.log.cleaner.offset_map import OffsetMap
from engine.log.cleaner.segment_cleaner import SegmentCleaner
from engine.log.cleaner.work_processes import StartProcess
from engine.log.directory.log_manager import LogManager
from engine.log.directory.offset_checkpoint import CLEANER_POINTS, read_offsets
from engine.log.local_log import LocalLog
from engine.log.tasks import Steps, take_all
from engine.model import TopicPartition
from engine.naming import FileKind
from tests.unit.log.cleaner.cleaned_logs import CONFIG, pairs_of, put
from tests.unit.log.managing import T0, T1, U0, A, B, Host
from tests.unit.log.writing import NOW_MS

ROUNDS_MAX = 50
BACKOFF_MS = CleanerConfig().backoff_ms


class Stage:
    """A broker's logs on a disk in memory, and their cleaner."""

    def __init__(
        self,
        host: Host | None = None,
        *,
        dirs: tuple[str, ...] = (A,),
        start_process: StartProcess | None = None,
        **config: Any,
    ):
        self.host = host or Host()
        self.host.configs.setdefault("t", CONFIG)
        self.host.configs.setdefault("u", CONFIG)
        self.logs: LogManager = self.host.started(dirs=dirs)
        self.cleaner = LogCleaner(
            self.logs,
            CleanerPorts(
                self.host.files,
                self.host.tasks,
                self.host.clock,
                lambda key: min(self.logs.logs[key].log_end_offset, self.watermark(key)),
                start_process,
            ),
            CleanerConfig(**{"dedupe_buffer_bytes": 1 << 20, **config}),
        )

    def watermark(self, key: TopicPartition) -> int:
        return self.host.high_watermarks.get(key, 1 << 60)

    def log(self, key: TopicPartition, *values: bytes) -> LocalLog:
        """Return a log with values of one key, one in each closed segment."""
        log = self.logs.get_or_create(key, is_new=True)
        for value in values:
            put(log, (b"k", value))
            log.roll(NOW_MS)
        return log

    def clean(self) -> None:
        """Run the cleaner until it has nothing to do."""
        self.cleaner.check()
        self.run_due()

    def run_due(self) -> None:
        """Run what the cleaner is to do before its next round."""
        for _ in range(ROUNDS_MAX):
            due = [
                task
                for task in self.host.tasks.waiting
                if task[0] == "kafka-log-cleaner" and task[1] != BACKOFF_MS
            ]
            if not due:
                return
            for task in due:
                self.host.tasks.waiting.remove(task)
                task[2]()

    def points(self, directory: str = A) -> dict[TopicPartition, int]:
        return read_offsets(self.host.files, f"{directory}/{CLEANER_POINTS}")


def values(log: LocalLog) -> list[bytes | None]:
    return [value for _, _, value in pairs_of(log)]


def test_dirty_logs_are_cleaned_and_checkpointed() -> None:
    stage = Stage()
    first, second = stage.log(T0, b"1", b"2"), stage.log(U0, b"3", b"4")
    stage.clean()
    assert ([b"2"], [b"4"]) == (values(first), values(second))
    assert {T0: 2, U0: 2} == stage.points()


def test_the_dirtiest_log_comes_first() -> None:
    stage = Stage()
    half = stage.log(T0, b"1")
    stage.clean()
    put(half, (b"k", b"2"))
    half.roll(NOW_MS)
    stage.log(U0, b"3")
    ranges = {found.topic_partition: found.dirty_ratio for found in stage.cleaner.iter_ranges()}
    assert ranges[U0] == 1.0
    assert ranges[T0] == 0.5
    with_lines = _Began()
    stage.clean()
    assert [str(U0), str(T0)] == with_lines.partitions()


class _Began(logging.Handler):
    """Collects the partitions whose cleaning began."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._lines: list[str] = []
        log = logging.getLogger("kafka.log.LogCleaner")
        log.setLevel(logging.INFO)
        log.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(record.getMessage())

    def partitions(self) -> list[str]:
        logging.getLogger("kafka.log.LogCleaner").removeHandler(self)
        head = "Beginning cleaning of log "
        return [
            line.removeprefix(head).split(":")[0] for line in self._lines if line.startswith(head)
        ]


def test_a_log_below_the_dirty_ratio_is_left() -> None:
    stage = Stage()
    stage.host.configs["t"] = CONFIG._replace(min_cleanable_dirty_ratio=0.5)
    log = stage.log(T0, b"1")
    log.configure(stage.host.configs["t"])
    stage.clean()
    put(log, (b"k", b"2"))
    log.roll(NOW_MS)
    stage.clean()
    assert [b"1", b"2"] == values(log)


def test_a_log_that_is_not_compacted_is_left() -> None:
    stage = Stage()
    log = stage.log(T0, b"1", b"2")
    log.configure(CONFIG._replace(is_compacted=False))
    stage.clean()
    assert [b"1", b"2"] == values(log)


def test_nothing_above_the_high_watermark_is_cleaned() -> None:
    stage = Stage()
    stage.host.high_watermarks[T0] = 1
    log = stage.log(T0, b"1", b"2", b"3")
    stage.clean()
    assert [b"1", b"2", b"3"] == values(log)
    assert {T0: 1} == stage.points()


def test_a_bad_batch_marks_its_partition_alone() -> None:
    stage = Stage()
    bad, good = stage.log(T0, b"1", b"2"), stage.log(T1, b"3", b"4")
    bad.segments.first.file.write_at(65, b"\xff")
    stage.clean()
    assert [T0] == list(stage.cleaner.uncleanable)
    assert "CRC" in stage.cleaner.uncleanable[T0]
    assert [b"4"] == values(good)


def cleaner_failing_on(error: Exception, directory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the code that writes segments fail on one log."""
    write = SegmentCleaner.write_group

    def fail(work: SegmentCleaner, group: SegmentGroup) -> WorkSteps:
        if work._facts.directory == directory:
            yield 0
            raise error
        yield from write(work, group)

    monkeypatch.setattr(SegmentCleaner, "write_group", fail)


def test_any_exception_marks_its_partition_and_frees_the_slot(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stage = Stage()
    bad, good = stage.log(T0, b"1", b"2"), stage.log(U0, b"3", b"4")
    cleaner_failing_on(ValueError("7 is odd"), bad.directory, monkeypatch)
    stage.clean()
    assert {T0: "ValueError('7 is odd')"} == stage.cleaner.uncleanable
    assert ([], [b"4"], [b"1", b"2"]) == (stage.cleaner.in_progress, values(good), values(bad))
    size = bad.size_bytes
    assert f"uncleanable-partitions-count=1, uncleanable-bytes={size} in /a" in caplog.text
    assert "Traceback" in caplog.text


def test_a_broken_rule_frees_the_slot_and_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage()
    bad, _ = stage.log(T0, b"1", b"2"), stage.log(U0, b"3", b"4")
    cleaner_failing_on(InvariantBroken("a rule"), bad.directory, monkeypatch)
    with pytest.raises(InvariantBroken):
        stage.clean()
    assert [] == stage.cleaner.in_progress


def test_a_cleaning_that_has_no_memory_marks_its_partition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage()
    log = stage.log(T0, b"1", b"2")

    def refuse(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(OffsetMap, "__init__", refuse)
    stage.clean()
    assert {T0: "MemoryError()"} == stage.cleaner.uncleanable
    assert [b"1", b"2"] == values(log)


def test_a_recreated_or_moved_partition_is_cleaned_again() -> None:
    stage = Stage(dirs=(A, B))
    for recreated in (True, False):
        bad = stage.logs.get_or_create(T0, is_new=True, directory=A)
        for value in (b"1", b"2"):
            put(bad, (b"k", value))
            bad.roll(NOW_MS)
        bad.segments.first.file.write_at(65, b"\xff")
        stage.clean()
        assert [T0] == list(stage.cleaner.uncleanable)
        if recreated:
            stage.logs.delete([T0])
            fresh = stage.log(T0, b"3", b"4")
        else:
            fresh = stage.logs.get_or_create(T0, is_future=True, directory=B)
            for value in (b"3", b"4"):
                put(fresh, (b"k", value))
                fresh.roll(NOW_MS)
            stage.logs.promote_future(T0)
            stage.logs.write_first_dirty_offset(fresh, 0)
        stage.clean()
        assert ({}, [b"4"]) == (stage.cleaner.uncleanable, values(fresh))
        stage.logs.delete([T0])


def test_a_log_that_changes_under_its_cleaning_keeps_no_other_waiting() -> None:
    stage = Stage()
    late = LateTasks(stage)
    cut, other = stage.log(T0, b"1", b"2"), stage.log(U0, b"3", b"4")
    stage.cleaner.check()
    assert [T0] == stage.cleaner.in_progress
    cut.truncate_to(1, NOW_MS)
    late.run()
    stage.run_due()
    late.run()
    assert [b"4"] == values(other)


def test_a_deleted_partition_is_forgotten() -> None:
    stage = Stage()
    bad = stage.log(T0, b"1", b"2")
    bad.segments.first.file.write_at(65, b"\xff")
    stage.log(T1, b"3", b"4")
    stage.clean()
    stage.logs.delete([T0, T1])
    stage.cleaner.check()
    assert {} == stage.cleaner.uncleanable
    assert {} == stage.points()


def test_a_cleaning_of_a_log_that_is_deleted_ends_and_the_new_log_is_cleaned() -> None:
    stage = Stage()
    late = LateTasks(stage)
    stage.log(T0, b"1", b"2")
    stage.cleaner.check()
    stage.logs.delete([T0])
    fresh = stage.log(T0, b"5", b"6", b"7")
    late.run()
    stage.clean()
    late.run()
    stage.clean()
    assert [b"7"] == values(fresh)
    names = stage.host.files.list_dir(fresh.directory)
    assert [] == [name for name in names if name.endswith((".cleaned", ".swap"))]


class LateTasks:
    """Keeps the cleaner's work on a worker thread waiting until told."""

    def __init__(self, stage: Stage) -> None:
        self._late: list[tuple[Any, Any]] = []
        self._tasks = stage.host.tasks
        self._tasks.offload = self._offload  # type: ignore[method-assign]

    def _offload(self, name: str, work: Any, done: Any) -> None:
        self._late.append((work, done))

    def run(self) -> None:
        """Do the work that waits, and what follows from it."""
        while self._late:
            work, done = self._late.pop(0)
            work()
            done(None)


def test_a_truncation_lowers_the_checkpoint_to_the_active_segment() -> None:
    stage = Stage()
    log = stage.log(T0, b"1", b"2", b"3")
    put(log, (b"j", b"4"))
    stage.clean()
    assert {T0: 3} == stage.points()
    log.truncate_to(2, NOW_MS)
    assert {T0: log.active_segment.base_offset} == stage.points()


def test_a_checkpoint_beyond_the_log_counts_as_none() -> None:
    stage = Stage()
    log = stage.log(T0, b"1", b"2")
    stage.logs.write_first_dirty_offset(log, 50)
    stage.clean()
    assert [b"2"] == values(log)
    assert {T0: 2} == stage.points()


def test_a_start_goes_on_from_the_checkpoint() -> None:
    stage = Stage()
    stage.log(T0, b"1", b"2")
    stage.clean()
    stage.logs.stop()
    again = Stage(stage.host)
    (found,) = again.cleaner.iter_ranges()
    assert (2, 0) == (found.first_dirty_offset, found.cleanable_bytes)


def test_a_move_between_directories_takes_the_checkpoint_along() -> None:
    stage = Stage(dirs=(A, B))
    log = stage.logs.get_or_create(T0, is_new=True, directory=A)
    for value in (b"1", b"2"):
        put(log, (b"k", value))
        log.roll(NOW_MS)
    stage.clean()
    future = stage.logs.get_or_create(T0, is_future=True, directory=B)
    future.restart_at(1, NOW_MS)
    stage.logs.promote_future(T0)
    assert ({}, {T0: 2}) == (stage.points(A), stage.points(B))


def test_a_directory_that_fails_ends_the_cleaning_and_no_other() -> None:
    stage = Stage(dirs=(A, B))
    for key, directory in ((T0, A), (T1, B)):
        log = stage.logs.get_or_create(key, is_new=True, directory=directory)
        for value in (b"1", b"2"):
            put(log, (b"k", value))
            log.roll(NOW_MS)
    stage.host.files.fail("sync", 5, path_end=".log.cleaned")
    stage.clean()
    assert 1 == len(stage.host.offline)
    (key,) = stage.logs.logs
    assert [b"2"] == values(stage.logs.logs[key])


def stage_on_two_disks(**changes: Any) -> Stage:
    """Return a broker that has started on two logs of one disk, and one of another."""
    stage = Stage(dirs=(A, B))
    for key, directory in ((T0, A), (T1, A), (U0, B)):
        log = stage.logs.get_or_create(key, is_new=True, directory=directory)
        for value in (b"1", b"2"):
            put(log, (b"k", value))
            log.roll(NOW_MS)
    stage.logs.stop()
    for topic in ("t", "u"):
        stage.host.configs[topic] = CONFIG._replace(**changes)
    return Stage(stage.host, dirs=(A, B))


def test_a_disk_that_fails_in_a_check_leaves_the_logs_of_others_to_the_cleaner() -> None:
    stage = stage_on_two_disks(max_compaction_lag_ms=1)
    stage.host.files.fail("read", 5, path_end="0.log")
    stage.cleaner.start()
    stage.run_due()
    assert [(A, [T0, T1])] == [(path, lost) for path, _, lost in stage.host.offline]
    assert [b"2"] == values(stage.logs.logs[U0])


def test_a_disk_that_fails_in_a_deletion_leaves_the_logs_of_others_to_the_cleaner() -> None:
    stage = stage_on_two_disks(is_deleting=True, retention_ms=1000, min_cleanable_dirty_ratio=1.0)
    stage.host.clock.advance(5000)
    stage.host.files.fail("rename", 5, path_end="0.log")
    stage.cleaner.start()
    stage.run_due()
    assert [(A, [T0, T1])] == [(path, lost) for path, _, lost in stage.host.offline]
    assert 2 == stage.logs.logs[U0].log_start_offset


def test_a_disk_that_fails_as_a_cleaning_begins_ends_no_round() -> None:
    stage = stage_on_two_disks()
    stage.host.files.fail("read", 5, path_end=".txnindex")
    for key in (T0, T1, U0):
        path = stage.logs.logs[key].segments.first.path(FileKind.TXNINDEX)
        stage.host.files.open(path, write=True, create=True)
    stage.cleaner.start()
    stage.run_due()
    assert [(A, [T0, T1])] == [(path, lost) for path, _, lost in stage.host.offline]
    assert [b"2"] == values(stage.logs.logs[U0])


def test_the_next_fetch_cycle_comes_after_any_failure_of_this_one() -> None:
    stage = Stage()
    stage.log(T0, b"1", b"2")

    def fail(_key: TopicPartition) -> int:
        raise KeyError("a fault of our own")

    stage.cleaner.start()
    stage.watermark = fail  # type: ignore[method-assign]
    with pytest.raises(KeyError):
        stage.run_due()
    assert ["kafka-log-cleaner"] == [name for name, _, _ in stage.host.tasks.waiting]


def test_compact_and_delete_loses_old_segments_by_the_cleaner() -> None:
    stage = Stage()
    both = CONFIG._replace(is_deleting=True, retention_ms=1000, min_cleanable_dirty_ratio=1.0)
    stage.host.configs["t"] = both
    log = stage.log(T0, b"1", b"2")
    take_all(stage.logs.apply_retention())
    assert 0 == log.log_start_offset
    stage.host.clock.advance(5000)
    put(log, (b"k", b"3"), at_ms=NOW_MS + 5000)
    stage.clean()
    assert [b"3"] == values(log)
    assert 2 == log.log_start_offset


def test_so_many_logs_are_cleaned_at_once() -> None:
    stage = Stage(thread_count=2, dedupe_buffer_bytes=4 << 20)
    late = LateTasks(stage)
    for key in (T0, T1, U0):
        log = stage.logs.get_or_create(key, is_new=True)
        put(log, (b"k", b"1"))
        log.roll(NOW_MS)
    stage.cleaner.check()
    assert 2 == len(stage.cleaner.in_progress)
    late.run()


def test_a_cleaner_that_stops_leaves_no_file() -> None:
    stage = Stage()
    log = stage.log(T0, b"1", b"2")
    late = LateTasks(stage)
    stage.cleaner.check()
    stage.cleaner.stop()
    late.run()
    assert [] == list(stage.cleaner.in_progress)
    assert [b"1", b"2"] == values(log)


def test_a_bound_of_bytes_makes_pauses_and_not_another_result() -> None:
    stage = Stage(io_bytes_per_second=100.0, io_buffer_bytes=64)
    clock = stage.host.clock
    read = MemoryFiles.access
    log = stage.log(T0, *(b"%d" % number for number in range(8)))

    def slow(files: MemoryFiles, operation: str, path: str) -> None:
        clock.advance(10)
        read(files, operation, path)

    stage.host.files.access = lambda op, path: slow(stage.host.files, op, path)  # type: ignore[method-assign]
    stage.cleaner.check()
    pauses = [delay for name, delay, _ in stage.host.tasks.waiting if name == "kafka-log-cleaner"]
    assert [delay for delay in pauses if delay > 0]
    for _ in range(ROUNDS_MAX):
        stage.clean()
    assert [b"7"] == values(log)


@pytest.mark.parametrize("is_enabled", [True, False])
def test_a_cleaner_that_is_not_enabled_does_not_begin(is_enabled: bool) -> None:
    stage = Stage(is_enabled=is_enabled)
    stage.log(T0, b"1", b"2")
    stage.cleaner.start()
    waiting = [name for name, _, _ in stage.host.tasks.waiting]
    assert is_enabled == ("kafka-log-cleaner" in waiting)


def rarely(stage: Stage, *topics: str) -> None:
    """Have a stage's logs be dirty enough only when nothing of them is clean."""
    for topic in topics:
        stage.host.configs[topic] = CONFIG._replace(min_cleanable_dirty_ratio=1.0)


def test_what_was_requested_is_cleaned_however_dirty_and_first() -> None:
    stage = Stage()
    rarely(stage, "t", "u")
    first, second = stage.log(T0, b"1", b"2"), stage.log(U0, b"3", b"4")
    with_lines = _Began()
    stage.clean()
    assert [] == with_lines.partitions()
    stage.host.configs["t"] = CONFIG
    stage.logs.reconfigure("t")
    with_lines = _Began()
    stage.cleaner.request_cleaning([U0])
    assert {U0: 2} == stage.cleaner.wanted
    stage.clean()
    assert [str(U0), str(T0)] == with_lines.partitions()
    assert ([b"2"], [b"4"]) == (values(first), values(second))
    assert {} == stage.cleaner.wanted


def test_what_was_requested_takes_all_the_passes_that_it_needs() -> None:
    stage = Stage(dedupe_buffer_bytes=24 * 3)
    rarely(stage, "t")
    log = stage.logs.get_or_create(T0, is_new=True)
    for number in range(8):
        put(log, (b"%d" % (number % 4), b"%d" % number))
        log.roll(NOW_MS)
    with_lines = _Began()
    stage.cleaner.request_cleaning([T0])
    stage.clean()
    assert [b"4", b"5", b"6", b"7"] == values(log)
    assert len(with_lines.partitions()) > 1
    assert {} == stage.cleaner.wanted


def test_what_is_not_compacted_or_uncleanable_or_gone_is_not_taken() -> None:
    stage = Stage()
    stage.host.configs["u"] = CONFIG._replace(is_compacted=False, is_deleting=True)
    stage.log(T0, b"1", b"2")
    stage.log(U0, b"3", b"4")
    stage.logs.logs[T0].segments.first.file.write_at(65, b"\xff")
    stage.clean()
    assert [T0] == list(stage.cleaner.uncleanable)
    stage.cleaner.request_cleaning([T0, T1, U0])
    assert {} == stage.cleaner.wanted


def test_what_was_requested_is_cleaned_though_another_cannot_be() -> None:
    stage = Stage()
    rarely(stage, "t", "u")
    damaged = stage.log(T0, b"1", b"2")
    other = stage.log(U0, b"3", b"4")
    file = stage.host.files.open(next(iter(damaged.segments)).file.path, write=True)
    # The checksum.
    file.write_at(17, bytes(4))
    file.close()
    stage.cleaner.request_cleaning([T0, U0])
    stage.clean()
    assert [T0] == list(stage.cleaner.uncleanable)
    assert [b"4"] == values(other)
    assert {} == stage.cleaner.wanted


def test_a_cleaner_that_is_not_enabled_does_what_it_is_asked_and_no_more() -> None:
    stage = Stage(is_enabled=False)
    first, second = stage.log(T0, b"1", b"2"), stage.log(U0, b"3", b"4")
    stage.cleaner.request_cleaning([T0])
    stage.clean()
    assert ([b"2"], [b"3", b"4"]) == (values(first), values(second))


def test_a_cleaning_under_way_is_reported_with_its_counts() -> None:
    stage = Stage()
    stage.log(T0, b"1", b"2")
    late = LateTasks(stage)
    stage.cleaner.check()
    stage.host.clock.advance(70)
    now = stage.cleaner.running_cleanings()[T0]
    assert (0, 2, 70) == (
        now.cleanable.first_dirty_offset,
        now.cleanable.first_uncleanable_offset,
        now.elapsed_ms,
    )
    late.run()
    assert now.counts.read_records == 2
    assert {} == stage.cleaner.running_cleanings()


def test_a_log_that_is_to_keep_its_records_is_not_cleaned_to_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage()
    log = stage.log(T0, b"1", b"2", b"3")
    offload = stage.host.tasks.offload
    held: list[tuple[Any, ...]] = []
    monkeypatch.setattr(stage.host.tasks, "offload", lambda *work: held.append(work))
    stage.cleaner.check()
    assert [T0] == list(stage.cleaner.in_progress)
    stage.host.configs["t"] = CONFIG._replace(is_compacted=False, is_deleting=True)
    stage.logs.reconfigure("t")
    monkeypatch.setattr(stage.host.tasks, "offload", offload)
    for work in held:
        offload(*work)
    stage.run_due()
    assert [b"1", b"2", b"3"] == values(log)


class _HeldSteps:
    """Keeps work in steps until it is taken on."""

    def __init__(self, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
        self.held: list[tuple[Steps, Callable[[], None]]] = []
        monkeypatch.setattr(
            stage.host.tasks,
            "run_in_steps",
            lambda _name, steps, done: self.held.append((steps, done)),
        )

    def take(self, count: int | None = None) -> None:
        """Take so many steps, or all that are left."""
        steps, done = self.held[0]
        for _ in range(count or 1_000):
            if next(steps, self) is self:
                del self.held[0]
                done()
                return


def test_a_log_that_is_gone_during_a_check_is_not_cleaned(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage()
    stage.log(T0, b"1", b"2")
    stage.log(U0, b"1", b"2")
    steps = _HeldSteps(stage, monkeypatch)
    stage.cleaner.check()
    steps.take(2)
    stage.logs.delete([T0])
    steps.take()
    stage.run_due()
    assert [U0] == list(stage.cleaner.last_cleanings)


def test_a_log_that_was_truncated_during_a_check_is_checked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage()
    log = stage.log(T0, b"1", b"2")
    stage.log(U0, b"1", b"2")
    steps = _HeldSteps(stage, monkeypatch)
    stage.cleaner.check()
    steps.take(2)
    log.truncate_to(0, NOW_MS)
    steps.take()
    stage.run_due()
    assert [U0] == list(stage.cleaner.last_cleanings)


def test_one_look_is_taken_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage()
    log = stage.log(T0, b"1", b"2")
    steps = _HeldSteps(stage, monkeypatch)
    stage.cleaner.check()
    steps.take(1)
    stage.cleaner.request_cleaning([T0])
    stage.run_due()
    assert 1 == len(steps.held)
    steps.take()
    assert [b"2"] == values(log)
    stage.run_due()
    assert 1 == len(steps.held)


def test_a_cleaner_that_stops_during_a_check_begins_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage()
    stage.log(T0, b"1", b"2")
    steps = _HeldSteps(stage, monkeypatch)
    stage.cleaner.check()
    steps.take(1)
    stage.cleaner.stop()
    steps.take()
    assert ([], {}) == (stage.cleaner.in_progress, stage.cleaner.last_cleanings)


def test_a_log_that_is_moved_is_not_cleaned_until_it_is_there() -> None:
    stage = Stage(dirs=(A, B))
    log = stage.log(T0, b"1", b"2")
    stage.logs.get_or_create(T0, is_future=True, directory=B)
    stage.clean()
    assert [b"1", b"2"] == values(log)
    stage.logs.delete([T0], only_future=True)
    stage.clean()
    assert [b"2"] == values(log)


def test_a_cleaning_under_way_is_given_up_as_its_log_begins_to_move() -> None:
    stage = Stage(dirs=(A, B))
    late = LateTasks(stage)
    log = stage.log(T0, b"1", b"2")
    stage.cleaner.check()
    assert [T0] == stage.cleaner.in_progress
    stage.logs.get_or_create(T0, is_future=True, directory=B)
    stage.cleaner.abort(T0)
    late.run()
    stage.run_due()
    assert [b"1", b"2"] == values(log)
    assert [] == stage.cleaner.in_progress


def test_what_is_not_cleaned_has_nothing_to_give_up() -> None:
    Stage().cleaner.abort(T0)
