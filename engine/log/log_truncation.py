"""The syncs that a truncation or a creation requires, done on a worker before the next append.

```
on the loop      1 later segments renamed, highest first   2 .log truncated   3 memory: end, epochs,
                   recovery point, producers
later            4 names synced   5 unflushed .log files synced, the truncated one last   6 epochs
                   written   7 recovery points of the directory written
next append      waits for 4 to 7, or runs those that have not begun
```

A crash leaves a prefix of 1, 2, 4 … 7 (file systems write changes of names and sizes in their
order), and any prefix is a valid log: the named files are consecutive whole segments, the loader
drops an epoch that starts above the end, and a recovery point above the end counts as the end. A
truncated segment that is durable before an earlier one would leave a gap after a power cut. Only
an append after a truncation that is not durable could be lost: the disk still has the old records.
The steps that a killed process did not run are done when the log is loaded (`loader.py`).

A new log requires two steps: its topic id is written, and the name of its folder synced. After a
crash before them there is an empty log, or none: the next LeaderAndIsr request creates it again.

Source: LOG-12; KAFKA-15046; UnifiedLog.maybeFlushMetadataFile. Differs: Kafka writes epochs later,
and syncs neither a truncation nor the name of a new folder.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from threading import Lock

from engine.errors import StorageError
from engine.log.epoch_store import EpochStore
from engine.log.log_flush import LogFlush
from engine.log.segment import Segment
from engine.log.tasks import LogHooks
from engine.model import TopicPartition


class _DurableSteps:
    """Steps that run once in order, on the first thread that calls `run`."""

    def __init__(self, steps: Sequence[Callable[[], None]]) -> None:
        """Keep `steps`, which do file operations and may raise.

        A crash may interrupt them anywhere.
        """
        self._lock = Lock()
        self._steps = list(steps)
        self._failure: Exception | None = None

    def run(self) -> None:
        """Run the remaining steps; raise the error of a step, also for later callers.

        No step is retried: the state after a failed sync is unknown (D20), as after any other
        error.
        """
        with self._lock:
            if self._failure is not None:
                raise self._failure
            while self._steps:
                try:
                    self._steps[0]()
                except Exception as error:
                    self._failure = error
                    raise
                del self._steps[0]


class LogTruncation:
    """The pending steps of a log's last truncation or of its creation."""

    __slots__ = ("_epochs", "_flush", "_hooks", "_on_settled", "_pending_steps", "_topic_partition")

    def __init__(
        self,
        topic_partition: TopicPartition,
        epochs: EpochStore,
        flush: LogFlush,
        hooks: LogHooks,
        on_settled: Callable[[], None],
    ) -> None:
        """Start without pending steps.

        `on_settled` is called on the loop when steps are durable.
        """
        self._topic_partition = topic_partition
        self._epochs = epochs
        self._flush = flush
        self._hooks = hooks
        self._on_settled = on_settled
        #: Steps that must be done before the next append. None: no steps are pending.
        self._pending_steps: _DurableSteps | None = None

    @property
    def is_settled(self) -> bool:
        """Return True if no truncation or creation waits for its syncs.

        Then appends need not call `finish_pending_steps`.
        """
        return self._pending_steps is None

    def finish_pending_steps(self) -> None:
        """Run the pending steps on this thread, or wait until a worker thread has run them.

        Called before a change that relies on a durable truncation or creation. Raises the
        StorageError of a step.
        """
        if self._pending_steps is not None:
            self._pending_steps.run()
            self._pending_steps = None
            self._on_settled()

    def drop_epochs(self, end_offset: int) -> None:
        """Remove epochs that start at or above the end of a log that needs no truncation.

        The checkpoint is written on a worker thread.
        """
        if self._epochs.truncate_from_end(end_offset):
            self._run_on_worker("truncate-log", (self._epochs.write,))

    def schedule_creation_steps(self, steps: Sequence[Callable[[], None]]) -> None:
        """Schedule the steps that make a new log durable: its topic id, its folder's sync.

        They are done before the first append.
        """
        self._run_on_worker("flush-metadata-file", steps)

    def schedule_truncation_steps(self, end_offset: int, log_files: Sequence[Segment]) -> None:
        """Lower recovery point and epochs to the new log end offset; schedule the syncs after it.

        `log_files` are the segments whose .log was truncated. Steps 4 to 7: sync the folder, the
        unflushed .log files and the truncated one, then write epochs and checkpoints.
        """
        self._flush.lower_to(end_offset)
        self._epochs.truncate_from_end(end_offset)
        unflushed = self._flush.unflushed_segments(end_offset) if log_files else []
        earlier = [segment for segment in unflushed if segment not in log_files]
        self._run_on_worker(
            "truncate-log",
            (
                self._flush.sync_names,
                *(partial(segment.sync, with_indexes=False) for segment in (*earlier, *log_files)),
                self._epochs.write,
                partial(self._hooks.on_truncated, self._topic_partition),
            ),
            earlier,
        )

    def _run_on_worker(
        self, task: str, steps: Sequence[Callable[[], None]], borrowed: Sequence[Segment] = ()
    ) -> None:
        """Run steps on a worker thread, in a task with Kafka's name; report a failure.

        Until they are done they are pending, and `finish_pending_steps` can run them earlier. The
        files of `borrowed` segments stay open until the task ends, even if the segments are
        deleted or cleaned meanwhile.
        """
        owed = self._pending_steps = _DurableSteps(steps)
        for segment in borrowed:
            segment.borrow()

        def done(failure: StorageError | None) -> None:
            """Report a failure, or note that these steps are durable; ignore superseded steps."""
            for segment in borrowed:
                segment.give_back()
            if self._pending_steps is not owed:
                # `finish_pending_steps` has run the steps on the loop meanwhile.
                return
            if failure is not None:
                self._hooks.on_failure(failure)
                return
            self._pending_steps = None
            self._on_settled()

        self._hooks.tasks.offload(task, owed.run, done)
