"""Worker processes for many items of work; they end with the process that started them.

```
parent ── item ──> worker ── result or what it raised ──> parent ── next item …
```

Ctrl-C at a terminal is sent to all processes of a command. Workers do not receive it: they inherit
a mask that blocks it. The parent kills them, as they hold nothing that must be put in order. A
worker whose parent is gone reads the end of its pipe, and ends.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from engine.errors import EngineError
from engine.host.deferred_signals import block_signals

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess

Item = TypeVar("Item")
Result = TypeVar("Result")


class WorkerDied(EngineError):
    """A worker ended during its work: it was killed, or ran out of memory."""

    hint = "fewer workers need less memory; `dmesg` tells of processes that the kernel killed"

    def __init__(self, exit_code: int | None) -> None:
        self.exit_code = exit_code
        super().__init__(f"a worker process ended by itself (exit code {exit_code})")


class _Failed:
    """The exception that a worker's work raised, as its result."""

    def __init__(self, error: Exception) -> None:
        self.error = error


def _serve_items(pipe: Connection, work: Callable[[Item], Result]) -> None:
    """Process the parent's items, one after another, until the pipe is closed."""
    # A worker has nothing to clean up: SIGTERM ends it at once.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    while True:
        try:
            item = pipe.recv()
        except (EOFError, OSError):
            return
        try:
            result: Result | _Failed = work(item)
        except Exception as error:
            result = _Failed(error)
        try:
            pipe.send(result)
        except OSError:
            return


class WorkerProcesses(Generic[Item, Result]):
    """A number of processes that do one kind of work; for the main thread, in a `with` block.

    `work`, its items and its results are pickled.
    """

    def __init__(self, work: Callable[[Item], Result], count: int) -> None:
        self._work = work
        self._count = count
        self._workers: dict[Connection, SpawnProcess] = {}

    def __enter__(self) -> WorkerProcesses[Item, Result]:
        """Start the processes; `__exit__` ends them."""
        from multiprocessing import get_context, resource_tracker

        context = get_context("spawn")
        # The first start launches the resource tracker, which unblocks the signals.
        resource_tracker.ensure_running()
        try:
            with block_signals():
                for _ in range(self._count):
                    ours, theirs = context.Pipe()
                    worker = context.Process(
                        target=_serve_items, args=(theirs, self._work), daemon=True
                    )
                    worker.start()
                    theirs.close()
                    self._workers[ours] = worker
        except BaseException:
            # Also for a signal that arrived meanwhile, and is raised at the end of the block.
            self.__exit__()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        """Kill the processes."""
        with block_signals():
            self._kill_workers()

    def _kill_workers(self) -> None:
        """Kill all workers, and wait for their end."""
        for worker in self._workers.values():
            worker.kill()
        for pipe, worker in self._workers.items():
            worker.join()
            worker.close()
            pipe.close()
        self._workers.clear()

    def run(self, items: Iterable[Item]) -> Iterator[Result]:
        """Yield each item's result as it arrives; an item is taken when a worker is free.

        An exception of an item's work is raised here. Errors: WorkerDied.
        """
        from multiprocessing.connection import wait

        left = iter(items)
        busy = [pipe for pipe in self._workers if self._send_next(pipe, left)]
        while busy:
            for pipe in cast("list[Connection]", wait(busy)):
                result = self._receive(pipe)
                busy.remove(pipe)
                yield result
                if self._send_next(pipe, left):
                    busy.append(pipe)

    def _send_next(self, pipe: Connection, left: Iterator[Item]) -> bool:
        """Send a worker its next item; return False if no item is left. Raises WorkerDied."""
        for item in left:
            try:
                pipe.send(item)
            except OSError:
                raise self._died(pipe) from None
            return True
        return False

    def _receive(self, pipe: Connection) -> Result:
        """Return a worker's result; raise the error of its work, or WorkerDied."""
        try:
            result = pipe.recv()
        except (EOFError, OSError):
            raise self._died(pipe) from None
        if isinstance(result, _Failed):
            raise result.error
        found: Result = result
        return found

    def _died(self, pipe: Connection) -> WorkerDied:
        """Wait for the end of a worker whose pipe broke; return the error with its exit code."""
        worker = self._workers[pipe]
        worker.join()
        return WorkerDied(worker.exitcode)
