"""Cleanings whose work a process of its own does."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from engine.errors import CorruptRecord, EngineError
from engine.host.memory import MemoryFiles
from engine.host.ports import FileMissing, LogDirOffline
from engine.host.real import RealFiles
from engine.host.side_process import PipedProcess
from engine.limits import CLEANER_PROCESS_IDLE_MS
from engine.log.cleaner import work_processes
from engine.log.cleaner.cleaner_messages import CLEANER_MODULE, ProcessWork, failure_message
from engine.log.cleaner.cleaner_process import CleanerService
from engine.log.cleaner.cleaning_facts import SegmentGroup
from engine.log.local_log import LocalLog
from tests.unit.log.cleaner.cleaned_logs import (
    CONFIG,
    cleaning_of,
    compacted_log,
    pairs_of,
    put,
)
from tests.unit.log.cleaner.local_process import HastyClock, LocalProcess, LocalProcesses
from tests.unit.log.cleaner.test_log_cleaner import LateTasks, Stage, cleaner_failing_on, values
from tests.unit.log.managing import T0, T1, U0, Host
from tests.unit.log.writing import NOW_MS, names, open_log


class ProcessStage(Stage):
    """A broker's cleaner that has processes, which small logs are worth too."""

    def __init__(self, *, dies_at: int | None = None, **config: Any) -> None:
        host = Host()
        self.processes = LocalProcesses(host.files, dies_at=dies_at)
        super().__init__(host, start_process=self.processes.start, **config)

    def round(self) -> None:
        """Look for dirty logs as after every backoff, until nothing is under way."""
        self.cleaner.start()
        self.clean()


@pytest.fixture(autouse=True)
def _small_logs_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_processes, "CLEANER_PROCESS_BYTES_MIN", 1)


def leftovers(stage: Stage, log: LocalLog) -> list[str]:
    found = stage.host.files.list_dir(log.directory)
    return [name for name in found if name.endswith((".cleaned", ".swap"))]


def test_one_process_cleans_one_log_after_the_other() -> None:
    stage = ProcessStage()
    first, second = stage.log(T0, b"1", b"2"), stage.log(U0, b"3", b"4")
    stage.clean()
    assert ([b"2"], [b"4"]) == (values(first), values(second))
    assert {T0: 2, U0: 2} == stage.points()
    assert 1 == len(stage.processes.started)
    done = stage.cleaner.last_cleanings[T0]
    assert (0, 2, 2, 1) == (
        done.start_offset, done.end_offset, done.counts.read_records, done.counts.kept_records
    )  # fmt: skip


def test_there_are_as_many_processes_as_cleanings_at_once() -> None:
    stage = ProcessStage(thread_count=2, dedupe_buffer_bytes=4 << 20)
    keys = (T0, T1, U0)
    logs = [stage.log(key, b"1", b"2") for key in keys]
    late = LateTasks(stage)
    stage.cleaner.check()
    assert 2 == len(stage.cleaner.in_progress) == len(stage.processes.started)
    late.run()
    stage.clean()
    late.run()
    assert [[b"2"]] * 3 == [values(log) for log in logs]
    assert 2 == len(stage.processes.started)


def test_a_small_log_is_not_worth_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = ProcessStage()
    log = stage.log(T0, b"1", b"2")
    size = next(stage.cleaner.iter_ranges()).cleanable_bytes
    monkeypatch.setattr(work_processes, "CLEANER_PROCESS_BYTES_MIN", size + 1)
    stage.clean()
    assert ([b"2"], 0) == (values(log), len(stage.processes.started))


def test_a_log_is_cleaned_by_a_thread_when_no_process_starts(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stage = ProcessStage()
    stage.processes.refuses = True
    log = stage.log(T0, b"1", b"2")
    stage.clean()
    assert [b"2"] == values(log)
    assert "cannot start it" in caplog.text


@pytest.mark.parametrize("dies_at", range(40))
def test_a_process_that_dies_costs_no_record_and_the_next_round_tries_again(
    dies_at: int, caplog: pytest.LogCaptureFixture
) -> None:
    stage = ProcessStage(dies_at=dies_at)
    log = stage.log(T0, b"1", b"2")
    put(log, (b"k", b"3"), (b"j", b"4"))
    late = LateTasks(stage)
    stage.cleaner.check()
    late.run()
    (first,) = stage.processes.started
    assert first.is_gone == ("is tried again" in caplog.text)
    if first.is_gone:
        assert ([b"1", b"2", b"3", b"4"], []) == (values(log), leftovers(stage, log))
        assert first.is_closed
        assert ([], {}) == (stage.cleaner.in_progress, stage.cleaner.uncleanable)
        stage.round()
        late.run()
        assert 2 == len(stage.processes.started)
    assert [b"2", b"3", b"4"] == values(log)
    assert {T0: 2} == stage.points()


def test_a_log_that_ends_its_process_keeps_no_other_waiting() -> None:
    stage = ProcessStage(dies_at=8)
    deadly, other = stage.log(T0, b"1", b"2"), stage.log(U0, b"3", b"4")
    stage.clean()
    assert ([b"1", b"2"], [b"4"]) == (values(deadly), values(other))
    assert [True, False] == [process.is_gone for process in stage.processes.started]


def test_a_process_that_dies_leaves_no_file_to_a_topic_that_takes_the_name_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = ProcessStage()
    stage.log(T0, b"1", b"2")
    requested, fresh = LocalProcess.request, []

    def request(process: LocalProcess, message: bytes) -> bytes:
        if not fresh and isinstance(pickle.loads(message), SegmentGroup):
            stage.logs.delete([T0])
            fresh.append(stage.log(T0, b"5", b"6"))
            process.dies_before(3)
        return requested(process, message)

    monkeypatch.setattr(LocalProcess, "request", request)
    late = LateTasks(stage)
    stage.cleaner.check()
    late.run()
    assert [True] == [process.is_gone for process in stage.processes.started]
    assert [] == leftovers(stage, fresh[0])


def test_a_fault_in_a_process_marks_the_partition_and_the_process_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = ProcessStage()
    bad, good = stage.log(T0, b"1", b"2"), stage.log(U0, b"3", b"4")
    cleaner_failing_on(ValueError("7 is odd"), bad.directory, monkeypatch)
    stage.clean()
    assert [T0] == list(stage.cleaner.uncleanable)
    assert stage.cleaner.uncleanable[T0].endswith("ValueError: 7 is odd")
    assert ([b"4"], 1) == (values(good), len(stage.processes.started))


def test_a_process_that_answers_nonsense_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = ProcessStage()
    stage.log(T0, b"1", b"2")
    monkeypatch.setattr(LocalProcess, "request", lambda *_: b"?")
    stage.clean()
    assert [T0] == list(stage.cleaner.uncleanable)
    assert [True] == [process.is_closed for process in stage.processes.started]


def test_some_of_these_deaths_are_during_the_work() -> None:
    stage = ProcessStage()
    stage.log(T0, b"1", b"2")
    before = stage.host.files.operations
    stage.cleaner.check()
    assert 10 < stage.host.files.operations - before


def test_unused_processes_are_ended_after_a_while() -> None:
    stage = ProcessStage()
    stage.log(T0, b"1", b"2")
    stage.round()
    (process,) = stage.processes.started
    assert not process.is_closed
    stage.host.clock.advance(CLEANER_PROCESS_IDLE_MS - 1)
    stage.round()
    assert not process.is_closed
    stage.host.clock.advance(1)
    stage.round()
    assert process.is_closed


def test_a_cleaner_that_is_closed_ends_what_is_under_way_and_its_processes() -> None:
    stage = ProcessStage(io_bytes_per_second=1.0)
    log = stage.log(T0, b"1", b"2", b"3")
    throttle_pauses(stage)
    stage.cleaner.check()
    assert [T0] == stage.cleaner.in_progress
    stage.cleaner.stop()
    stage.cleaner.close()
    assert [] == stage.cleaner.in_progress
    assert all(process.is_closed for process in stage.processes.started)
    assert ([], [b"1", b"2", b"3"]) == (leftovers(stage, log), values(log))


def throttle_pauses(stage: Stage) -> None:
    """Let the next bytes that are counted be too many."""
    stage.host.clock.advance(1000)


def test_the_bound_of_bytes_holds_for_processes() -> None:
    stage = ProcessStage(io_bytes_per_second=1.0)
    log = stage.log(T0, b"1", b"2", b"3")
    throttle_pauses(stage)
    stage.cleaner.check()
    tasks = stage.host.tasks.waiting
    (pause_ms,) = [delay for name, delay, _ in tasks if name == "kafka-log-cleaner"]
    size = log.segments.first.size_bytes
    assert pause_ms >= 1000 * size - 1000
    stage.clean()
    assert [b"3"] == values(log)


def test_a_truncation_meanwhile_ends_the_work() -> None:
    files = MemoryFiles()
    log = compacted_log(files)
    for number in range(3):
        put(log, (b"a", b"%d" % number))
        log.roll(NOW_MS)
    run = cleaning_of(log, files)
    run.work = ProcessWork(LocalProcess(files), run.facts)
    list(run.work.build_map())
    steps = run.work.write_group(run.begin_group(run.group_segments()[0]))
    assert next(steps) > 0
    assert [name for name in names(files) if name.endswith(".cleaned")]
    steps.close()
    assert [] == [name for name in names(files) if name.endswith(".cleaned")]
    assert 3 == len(pairs_of(log))


def test_work_goes_on_after_it_was_stopped() -> None:
    files = MemoryFiles()
    log = compacted_log(files)
    put(log, (b"a", b"1"), (b"a", b"2"))
    log.roll(NOW_MS)
    process = LocalProcess(files)
    for is_stopped in (True, False):
        run = cleaning_of(log, files)
        run.work = ProcessWork(process, run.facts)
        steps = run.work.build_map()
        next(steps)
        if is_stopped:
            steps.close()
    list(steps)
    assert (2, 2) == (run.end_offset, run.counts.map_records)


@pytest.mark.parametrize(
    "error",
    [
        CorruptRecord("CRC 1", 2, path="/a/b.log", position=7),
        LogDirOffline("/a/b.log.cleaned", "write", "No space left on device", 28),
        FileMissing("/a/b.log"),
    ],
)
def test_errors_come_as_they_were_raised(error: EngineError) -> None:
    told = pickle.loads(pickle.dumps(failure_message(error))).error()
    assert type(error) is type(told)
    assert (str(error), vars(error)) == (str(told), vars(told))


def test_bytes_that_are_no_records_mark_the_partition_alone() -> None:
    stage = ProcessStage()
    bad, good = stage.log(T0, b"1", b"2"), stage.log(T1, b"3", b"4")
    bad.segments.first.file.write_at(65, b"\xff")
    stage.clean()
    assert [T0] == list(stage.cleaner.uncleanable)
    assert "CRC" in stage.cleaner.uncleanable[T0]
    assert [b"4"] == values(good)


@pytest.mark.parametrize("operation", ["write", "sync"])
def test_a_full_disk_takes_the_directory_offline(operation: str) -> None:
    stage = ProcessStage()
    stage.log(T0, b"1", b"2")
    stage.host.files.fail(operation, 28, path_end=".log.cleaned")
    stage.clean()
    ((path, error, lost),) = stage.host.offline
    assert "/a" == path
    assert isinstance(error, LogDirOffline)
    assert [T0] == lost


def test_what_looks_like_damage_in_a_log_that_was_cut_is_none() -> None:
    stage = ProcessStage()
    log = stage.log(T0, b"1", b"2")
    late = LateTasks(stage)
    stage.cleaner.check()
    log.truncate_to(1, NOW_MS)
    log.segments.first.file.write_at(65, b"\xff")
    late.run()
    assert {} == stage.cleaner.uncleanable
    assert [] == stage.cleaner.in_progress


@pytest.mark.slow
def test_a_process_of_this_machine_cleans_as_a_thread_does(tmp_path: Path) -> None:
    files, contents = RealFiles(), []
    for by_process in (False, True):
        folder = tmp_path / str(by_process) / "t-0"
        folder.mkdir(parents=True)
        log, _ = open_log(files, CONFIG, directory=str(folder))
        for number in range(30):
            put(log, (b"k%d" % (number % 7), b"%d" % number), (b"t%d" % (number % 3), None))
        log.roll(NOW_MS)
        run = cleaning_of(log, files)
        process = PipedProcess(CLEANER_MODULE)
        if by_process:
            run.work = ProcessWork(process, run.facts)
        assert 60 == run.clean_inline()
        process.close()
        log.close(NOW_MS)
        contents.append({p.name: p.read_bytes() for p in folder.iterdir() if ".del" not in p.name})
    assert contents[0] == contents[1]


def test_a_service_looks_up_compiled_code_before_each_cleaning() -> None:
    files, looks = MemoryFiles(), []
    log = compacted_log(files)
    put(log, (b"a", b"1"), (b"a", b"2"))
    log.roll(NOW_MS)
    service = CleanerService(files, HastyClock(), lambda: looks.append(True))
    for _ in range(2):
        service.answer_to(pickle.dumps(cleaning_of(log, files).facts))
    assert [True, True] == looks
