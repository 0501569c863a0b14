"""The cleaner of one broker: it decides which logs are cleaned when, and ends each cleaning.

```
every log.cleaner.backoff.ms, and after each cleaning
    while fewer than log.cleaner.threads cleanings run: start a requested log, else the dirtiest
    then apply retention to compacted logs: those with compact,delete by time and size too
a cleaning    see `cleaning.py`; `LogTasks` runs its parts on a worker thread, one after another
its end       first dirty offset to memory and cleaner-offset-checkpoint, after syncing the folder
its failure   invalid records,            the partition is uncleanable until the next start
              a fault of the cleaner
              its process has ended       a line in the log; retried after the backoff
              an I/O error                the directory goes offline
              the log has changed         no message; retried after the backoff
```

The check of all logs runs in steps, so the dirtiest log is checked again before its cleaning
starts. A check that is requested during another check runs after it.

After every cleaning, however it ended, its slot is free, and other logs come before it is retried.
A crash before the checkpoint is written leaves the old checkpoint: the next cleaning finds little
to remove.

Source: CMP-2, SCH-10; Kafka's LogCleaner, LogCleanerManager.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from engine.errors import EngineError, StorageError
from engine.host.ports import Clock, Files, SideProcess, SideProcessGone
from engine.log.cleaner import log_messages
from engine.log.cleaner.cleanable import CleanableRange, dirtiest_range, find_cleanable_range
from engine.log.cleaner.cleaning import CleaningAborted, CleaningRun
from engine.log.cleaner.cleaning_facts import CleaningCounts, CleaningSettings, WorkSteps
from engine.log.cleaner.log_facts import collect_cleanable_log
from engine.log.cleaner.throttle import CleanerThrottle
from engine.log.cleaner.uncleanable import UncleanableLogs
from engine.log.cleaner.work_processes import StartProcess, WorkProcesses
from engine.log.directory.log_directory import is_failure_of_directory
from engine.log.local_log import LocalLog
from engine.log.tasks import LogTasks, Steps
from engine.model import TopicPartition

_TASK = "kafka-log-cleaner"


class CleanerConfig(NamedTuple):
    """The broker's settings of the cleaner, with Kafka's defaults; sizes in bytes."""

    is_enabled: bool = True
    thread_count: int = 1
    backoff_ms: int = 15_000
    dedupe_buffer_bytes: int = 128 << 20
    load_factor: float = 0.9
    io_buffer_bytes: int = 512 << 10
    io_bytes_per_second: float = 1.7976931348623157e308
    message_bytes_max: int = 1_048_588

    @property
    def settings(self) -> CleaningSettings:
        """Return the memory sizes of one cleaner thread: its share of the broker's buffers.

        Half of a thread's I/O buffer is for reading.
        """
        return CleaningSettings(
            self.dedupe_buffer_bytes // self.thread_count,
            self.load_factor,
            max(self.io_buffer_bytes // self.thread_count // 2, 1),
            self.message_bytes_max,
        )


class CleanedLogs(Protocol):
    """The functions of the broker's log manager that the cleaner uses."""

    @property
    def logs(self) -> Mapping[TopicPartition, LocalLog]:
        """Return the current log of each partition."""
        ...

    @property
    def futures(self) -> Mapping[TopicPartition, LocalLog]:
        """Return the future logs, to which partitions are being moved."""
        ...

    def first_dirty_offset(self, log: LocalLog) -> int | None:
        """Return the offset up to which a log was cleaned (exclusive), None if it never was."""
        ...

    def write_first_dirty_offset(self, log: LocalLog, first_dirty_offset: int) -> None:
        """Sync the log's folder, then write its first dirty offset to the cleaner checkpoint."""
        ...

    def directory_of(self, log: LocalLog) -> str:
        """Return the log directory that contains a log."""
        ...

    def take_offline(self, path: str, error: StorageError) -> None:
        """Stop using a log directory after an I/O error on `path` in it."""
        ...


class CleanerPorts(NamedTuple):
    """Files, clock and functions of the broker that the cleaner calls."""

    files: Files
    tasks: LogTasks
    clock: Clock
    high_watermark_of: Callable[[TopicPartition], int]
    #: Starts processes for the work of cleanings; None: threads do the work.
    start_process: StartProcess | None = None


class LastCleaning(NamedTuple):
    """The last cleaning of a log: its offsets [start, end), counts and times."""

    start_offset: int
    end_offset: int
    counts: CleaningCounts
    elapsed_ms: int
    ended_ms: int


class RunningCleaning(NamedTuple):
    """A cleaning in progress: its range, and its counts, which grow on a worker thread."""

    cleanable: CleanableRange
    counts: CleaningCounts
    elapsed_ms: int


class _Slice:
    """The result of running a part of a cleaning on a worker thread until its next pause."""

    __slots__ = ("error", "is_done", "pause_ms")

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.is_done = False
        self.pause_ms = 0


class _Cleaning:
    """A running cleaning; `steps` is the part that runs on a worker thread.

    `process` does its work, None if threads of this process do.
    """

    def __init__(self, run: CleaningRun, process: SideProcess | None, began_ms: int) -> None:
        """Create a cleaning without steps; `began_ms` is on the monotonic clock."""
        self.run = run
        self.process = process
        self.began_ms = began_ms
        #: The part that runs on a worker thread. None between two parts.
        self.steps: WorkSteps | None = None
        #: Base offsets of the segments of each group that is not rewritten yet.
        self.groups: Sequence[Sequence[int]] = ()

    @property
    def log(self) -> LocalLog:
        """Return the log that is cleaned."""
        return self.run.log


class LogCleaner:
    """Cleans the compacted logs of a broker."""

    def __init__(self, logs: CleanedLogs, ports: CleanerPorts, config: CleanerConfig) -> None:
        """Create a cleaner without cleanings; `logs` reflects the broker's current partitions."""
        self._logs = logs
        self._ports = ports
        self._config = config
        #: Limits the I/O of all cleanings together to log.cleaner.io.max.bytes.per.second.
        self._throttle = CleanerThrottle(ports.clock, config.io_bytes_per_second)
        #: Idle worker processes, which later cleanings reuse.
        self._processes = WorkProcesses(ports.start_process)
        #: Running cleanings; aborted ones too until their worker has stopped.
        self._in_progress: dict[TopicPartition, _Cleaning] = {}
        self._is_stopped = False
        #: Whether a pass over the logs runs; a check requested meanwhile sets the next flag, so
        #: that another pass follows.
        self._is_checking = False
        self._is_check_pending = False
        #: The offsets up to which logs are to be cleaned at any dirty ratio, as requested.
        self.wanted: dict[TopicPartition, int] = {}
        #: Logs that are left out of cleaning after an error, while this broker has them.
        self._uncleanable = UncleanableLogs()
        #: Logs whose cleaning has failed since the last pass. Other logs are chosen before them.
        self._passed_over: dict[TopicPartition, LocalLog] = {}
        #: The last successful cleaning of each log, for reports; dropped when the log leaves this
        #: broker.
        self.last_cleanings: dict[TopicPartition, LastCleaning] = {}

    @property
    def uncleanable(self) -> Mapping[TopicPartition, str]:
        """Return the uncleanable partitions, each with its reason."""
        return self._uncleanable.reasons()

    @property
    def in_progress(self) -> Sequence[TopicPartition]:
        """Return the partitions whose cleaning is running."""
        return list(self._in_progress)

    def running_cleanings(self) -> dict[TopicPartition, RunningCleaning]:
        """Return the progress of the running cleanings."""
        now_ms = self._ports.clock.monotonic_ms()
        return {
            key: RunningCleaning(
                cleaning.run.cleanable, cleaning.run.counts, now_ms - cleaning.began_ms
            )
            for key, cleaning in self._in_progress.items()
        }

    def start(self) -> None:
        """Schedule the first check for dirty logs, unless `log.cleaner.enable` is false."""
        if self._config.is_enabled:
            self._ports.tasks.once(_TASK, 0, self._run_round)

    def stop(self) -> None:
        """Start no further cleaning, and make running ones abort soon; their files are removed."""
        self._is_stopped = True
        for cleaning in self._in_progress.values():
            cleaning.run.stop()

    def abort(self, topic_partition: TopicPartition) -> None:
        """Abort the running cleaning of a partition, if any, before its log moves elsewhere."""
        cleaning = self._in_progress.get(topic_partition)
        if cleaning is not None:
            cleaning.run.stop()

    def close(self) -> None:
        """End all running cleanings and processes; no worker thread may run a cleaning any more."""
        for cleaning in list(self._in_progress.values()):
            self._end_cleaning(cleaning, CleaningAborted("the cleaner stops"))
        self._processes.close()

    def reconfigure(self, config: CleanerConfig) -> None:
        """Apply new settings: the byte rate immediately, other settings at the next cleaning."""
        self._config = config
        self._throttle.bytes_per_second = config.io_bytes_per_second

    # The choice of the next log

    def _run_round(self) -> None:
        """Check for dirty logs, end idle cleaner processes, and schedule the next round.

        Runs every `log.cleaner.backoff.ms`.
        """
        try:
            self._passed_over.clear()
            self.check()
            for process in self._processes.remove_unused(self._ports.clock.monotonic_ms()):
                self._end(process)
        finally:
            # An error of this pass does not prevent the next one.
            if not self._is_stopped:
                self._ports.tasks.once(_TASK, self._config.backoff_ms, self._run_round)

    def check(self) -> None:
        """Start to clean dirty logs, one per free thread; apply retention to the other logs.

        The check may continue after the call has returned.
        """
        if self._is_stopped:
            return
        if self._is_checking:
            self._is_check_pending = True
            return
        self._is_checking = True
        self._ports.tasks.run_in_steps(_TASK, self._check_steps(), self._end_check)

    def _end_check(self) -> None:
        """End a check; start another check if one was requested during this one.

        Runs after the last step of `_check_steps`.
        """
        self._is_checking = False
        if self._is_check_pending and not self._is_stopped:
            self._is_check_pending = False
            self._ports.tasks.once(_TASK, 0, self.check)

    def _check_steps(self) -> Steps:
        """Begin cleanings until no thread is free, then apply retention to idle compacted logs."""
        while len(self._in_progress) < self._config.thread_count:
            chosen = yield from self._choose_log()
            if chosen is None or self._is_stopped:
                break
            self._begin_cleaning(chosen)
        if self._config.is_enabled:
            yield from self._delete_old_segments()

    def request_cleaning(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Clean these logs before all others, up to their current cleanable offset.

        A console command requests this. The logs are cleaned at any dirty ratio, and even if
        `log.cleaner.enable` is off. Uncleanable logs remain uncleanable.
        """
        now_ms = self._ports.clock.wall_ms()
        for key in topic_partitions:
            log = self._logs.logs.get(key)
            if log is None or not log.config.is_compacted or self._uncleanable.has(log):
                continue
            cleanable = self._try_range(log, now_ms)
            if cleanable is not None:
                self.wanted[key] = cleanable.first_uncleanable_offset
                self._passed_over.pop(key, None)
        self._ports.tasks.once(_TASK, 0, self.check)

    def _choose_log(self) -> Generator[None, None, CleanableRange | None]:
        """Return the next log to clean: a requested one, else the dirtiest; None if none is due.

        Yields after each log, so that the check of many logs does not block the event loop.
        """
        due = []
        for found in self.iter_ranges():
            if self._choose_range([found]) is not None:
                due.append(found)
            yield
        # Logs that were checked in earlier steps may have gone offline since.
        while due := [found for found in due if self._is_still_idle(found)]:
            chosen = self._choose_range(due)
            if chosen is None:
                return None
            # It may have been truncated since the check, or have new settings.
            log = self._logs.logs[chosen.topic_partition]
            now = self._try_range(log, self._ports.clock.wall_ms())
            if now is not None and self._choose_range([now]) is not None:
                return now
            due.remove(chosen)
        return None

    def _is_still_idle(self, found: CleanableRange) -> bool:
        """Return True if a log that was checked in an earlier step still exists and is idle."""
        log = self._logs.logs.get(found.topic_partition)
        return log is not None and self._is_idle(log)

    def _choose_range(self, ranges: Iterable[CleanableRange]) -> CleanableRange | None:
        """Return the range requested by users, else the dirtiest that is due, else None."""
        for cleanable in ranges:
            wanted_offset = self.wanted.get(cleanable.topic_partition, -1)
            if cleanable.cleanable_bytes and cleanable.first_dirty_offset < wanted_offset:
                return cleanable
        if not self._config.is_enabled:
            return None
        return dirtiest_range(ranges, lambda key: self._logs.logs[key].config)

    def iter_ranges(self) -> Iterator[CleanableRange]:
        """Yield the cleanable range of each idle compacted log.

        Logs whose last cleaning in this round failed are left out.
        """
        for log in self._iter_idle():
            if self._passed_over.get(log.topic_partition) is not log:
                found = self._try_range(log, self._ports.clock.wall_ms())
                if found is not None:
                    yield found

    def _try_range(self, log: LocalLog, now_ms: int) -> CleanableRange | None:
        """Return the cleanable range of a log, None if the log is deleted or cannot be read.

        A failure takes the directory offline or makes the log uncleanable.
        """
        if not self._is_here(log):
            return None
        try:
            return self._find_range(log, now_ms)
        except StorageError as error:
            self._handle_failure(log, error)
            return None

    def _is_here(self, log: LocalLog) -> bool:
        """Return True if this log is still the broker's log of its partition.

        False if it was deleted or moved, or if its disk has failed.
        """
        return self._logs.logs.get(log.topic_partition) is log

    def _find_range(self, log: LocalLog, now_ms: int) -> CleanableRange:
        """Return the cleanable range of a log; write an invalid checkpoint's correction first.

        An invalid checkpoint is one outside of the log: the log start offset replaces it.
        """
        facts = collect_cleanable_log(
            log,
            high_watermark=self._ports.high_watermark_of(log.topic_partition),
            checkpoint_offset=self._logs.first_dirty_offset(log),
        )
        cleanable = find_cleanable_range(facts, log.config, now_ms)
        if cleanable.checkpoint_fault is not None:
            if not log.config.is_deleting:
                # With compact,delete retention often moves the log start above the checkpoint.
                log_messages.log_reset(cleanable)
            self._logs.write_first_dirty_offset(log, cleanable.first_dirty_offset)
        return cleanable

    def _iter_idle(self) -> Iterator[LocalLog]:
        """Yield the idle compacted logs; each is checked when the iterator reaches the log."""
        self._forget_removed_logs()
        for log in list(self._logs.logs.values()):
            if self._is_here(log) and self._is_idle(log):
                yield log

    def _is_idle(self, log: LocalLog) -> bool:
        """Return True for a compacted log that is not being cleaned or moved, nor uncleanable."""
        # Values that a cleaning removes from a log being copied would stay in the copy, without
        # their tombstones. Source: ReplicaManager.alterReplicaLogDirs pauses cleanings.
        return (
            log.config.is_compacted
            and log.topic_partition not in self._logs.futures
            and log.topic_partition not in self._in_progress
            and not self._uncleanable.has(log)
        )

    def _forget_removed_logs(self) -> None:
        """Drop the cleaner's state about partitions that have no log on this broker any more."""
        self._uncleanable.keep(self._logs.logs)
        known: dict[TopicPartition, LastCleaning] | dict[TopicPartition, int]
        for known in (self.last_cleanings, self.wanted):
            for key in [key for key in known if key not in self._logs.logs]:
                del known[key]

    def _delete_old_segments(self) -> Steps:
        """Apply retention to each idle compacted log.

        A failure affects only that log or its directory. The log manager's own retention task
        leaves compacted logs to the cleaner.
        """
        for log in self._iter_idle():
            high_watermark = self._ports.high_watermark_of(log.topic_partition)
            try:
                log.delete_old_segments(high_watermark, self._ports.clock.wall_ms())
            except StorageError as error:
                self._handle_failure(log, error)
            yield

    # One cleaning

    def _begin_cleaning(self, cleanable: CleanableRange) -> None:
        """Start the cleaning of one log: create its run, and start to build the map of keys."""
        log = self._logs.logs[cleanable.topic_partition]
        log_messages.log_begin(cleanable)
        try:
            run = CleaningRun(
                self._ports.files,
                log,
                cleanable,
                self._config.settings,
                now_ms=self._ports.clock.wall_ms(),
            )
            process = self._processes.take(run)
        except AssertionError:
            raise
        except Exception as error:
            self._handle_failure(log, error)
            return
        cleaning = _Cleaning(run, process, self._ports.clock.monotonic_ms())
        self._in_progress[log.topic_partition] = cleaning
        cleaning.steps = run.work.build_map()
        self._run_steps(cleaning, lambda: self._group_and_clean(cleaning))

    def _run_steps(self, cleaning: _Cleaning, then: Callable[[], None]) -> None:
        """Run a cleaning's current steps on a worker thread, with the throttle's pauses.

        Then call `then` on the event loop. An error ends the cleaning with that error.
        """
        part, steps = _Slice(), cleaning.steps
        assert steps is not None

        def done(_failure: StorageError | None) -> None:
            """Continue after a worker's return: raise its error, pause, or call `then`."""
            try:
                if part.error is not None:
                    raise part.error
                if part.is_done:
                    then()
                else:
                    self._pause(cleaning, part.pause_ms, then)
            except Exception as error:
                self._end_cleaning(cleaning, error)
                if isinstance(error, AssertionError):
                    # A broken rule ends the process (D22); the slot is free where it does not.
                    raise

        run = cleaning.run
        self._ports.tasks.offload(_TASK, lambda: self._run_until_pause(run, steps, part), done)

    def _run_until_pause(self, run: CleaningRun, steps: WorkSteps, part: _Slice) -> None:
        """Run steps up to the next pause or their end; an exception is stored in `part`.

        Runs on a worker thread.
        """
        try:
            run.ensure_unchanged()
            for done_bytes in steps:
                run.ensure_unchanged()
                part.pause_ms = self._throttle.count_bytes(done_bytes)
                if part.pause_ms > 0:
                    return
            part.is_done = True
        except Exception as error:
            part.error = error
            # The files are removed here, and not on the loop.
            _close_steps(steps, part)

    def _pause(self, cleaning: _Cleaning, pause_ms: int, then: Callable[[], None]) -> None:
        """Continue a cleaning after `pause_ms`, which the limit of bytes per second requires.

        Raises CleaningAborted after `stop`.
        """
        if self._is_stopped:
            raise CleaningAborted("the cleaner stops")
        self._ports.tasks.once(_TASK, pause_ms, lambda: self._run_steps(cleaning, then))

    def _group_and_clean(self, cleaning: _Cleaning) -> None:
        """Group the segments once the map of keys is complete, and rewrite the first group."""
        cleaning.groups = cleaning.run.group_segments()
        self._clean_next_group(cleaning)

    def _clean_next_group(self, cleaning: _Cleaning) -> None:
        """Rewrite the next group of segments; after the last, write the cleaner checkpoint."""
        run = cleaning.run
        if not cleaning.groups:
            run.ensure_unchanged()
            self._logs.write_first_dirty_offset(run.log, run.end_offset)
            self._end_cleaning(cleaning, None)
            return
        bases, *cleaning.groups = cleaning.groups

        def replace() -> None:
            """Replace the group's segments by the rewritten one, then begin the next group."""
            run.replace_group()
            self._clean_next_group(cleaning)

        cleaning.steps = run.work.write_group(run.begin_group(bases))
        self._run_steps(cleaning, replace)

    def _end_cleaning(self, cleaning: _Cleaning, error: Exception | None) -> None:
        """End a cleaning: free its slot, discard its files after an error, and log the result.

        `error` is None if the cleaning is complete. Other errors than an abort make the log
        uncleanable or its directory offline.
        """
        run, key = cleaning.run, cleaning.log.topic_partition
        if self._in_progress.get(key) is not cleaning:
            return
        del self._in_progress[key]
        if cleaning.steps is not None:
            cleaning.steps.close()
        if cleaning.process is not None:
            self._release_process(cleaning.process, error)
        is_here = self._is_here(cleaning.log)
        if error is not None:
            # A process that has ended has removed nothing.
            run.discard()
            self._passed_over[key] = cleaning.log
        is_further = error is None and run.cleanable.first_dirty_offset < run.end_offset
        if not is_further or run.end_offset >= self.wanted.get(key, 0):
            self.wanted.pop(key, None)
        if error is None:
            self._record_result(cleaning)
        elif isinstance(error, CleaningAborted) or not (is_here and run.is_still_valid):
            # A change of the log during the cleaning may have looked like damage.
            log_messages.log_aborted(key, error)
        elif isinstance(error, SideProcessGone):
            log_messages.log_process_gone(key, error)
        else:
            self._handle_failure(cleaning.log, error)
        if not self._is_stopped:
            self._ports.tasks.once(_TASK, 0, self.check)

    def _release_process(self, process: SideProcess, error: Exception | None) -> None:
        """Return a cleaning's process to the pool of idle processes.

        A process that died or is still working is ended instead. `error` is the cleaning's, None
        without one.
        """
        is_ready = error is None or isinstance(error, EngineError)
        if isinstance(error, SideProcessGone) or not is_ready:
            self._end(process)
        else:
            self._processes.give_back(process, self._ports.clock.monotonic_ms())

    def _end(self, process: SideProcess) -> None:
        """End a cleaner process on a worker thread, because its end blocks the caller."""
        self._ports.tasks.offload(_TASK, process.close, lambda _: None)

    def _record_result(self, cleaning: _Cleaning) -> None:
        """Store the figures of a finished cleaning for metrics, and log them."""
        run, clock = cleaning.run, self._ports.clock
        elapsed_ms = clock.monotonic_ms() - cleaning.began_ms
        start = run.cleanable.first_dirty_offset
        key = cleaning.log.topic_partition
        self.last_cleanings[key] = LastCleaning(
            start, run.end_offset, run.counts, elapsed_ms, clock.wall_ms()
        )
        log_messages.log_end(key, (start, run.end_offset), run.counts, elapsed_ms)

    def _handle_failure(self, log: LocalLog, error: Exception) -> None:
        """Take the directory offline after an I/O error; otherwise mark the log uncleanable."""
        directory = self._logs.directory_of(log)
        if isinstance(error, StorageError) and is_failure_of_directory(error):
            self._logs.take_offline(directory, error)
            return
        self._uncleanable.mark(log, directory, _text(error))
        count = self._uncleanable.counts()[directory]
        log_messages.log_uncleanable(log.topic_partition, error, directory, count)


def _close_steps(steps: WorkSteps, part: _Slice) -> None:
    """Close the generator of a cleaning on its thread; store its error in `part`."""
    try:
        steps.close()
    except Exception as error:
        part.error = error


def _text(error: Exception) -> str:
    """Return an error's message for the list of uncleanable logs.

    The message has the type of an error that is no EngineError.
    """
    return str(error) if isinstance(error, EngineError) else repr(error)
