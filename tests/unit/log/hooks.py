"""What a log is given besides its files, where a test has no use for more."""

from __future__ import annotations

from collections.abc import Callable

from engine.errors import StorageError
from engine.log.flush_times import FlushTimes
from engine.log.tasks import InlineTasks, LogHooks, LogTasks
from engine.model import TopicPartition


def raised(failure: StorageError) -> None:
    """Raise a failure where it is told."""
    raise failure


def hooks_of(
    tasks: LogTasks | None = None,
    *,
    on_failure: Callable[[StorageError], None] = raised,
    on_truncated: Callable[[TopicPartition], None] = lambda _partition: None,
) -> LogHooks:
    """Return hooks that run work at once, and draw no jitter."""
    return LogHooks(
        tasks or InlineTasks(), on_failure, on_truncated, lambda _bound: 0, FlushTimes()
    )
