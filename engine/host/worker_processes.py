"""Work on many items in processes of their own, which end with the one that began them.

```
parent ── item ──> worker ── result or what it raised ──> parent ── next item …
```

Ctrl-C of a terminal goes to all processes of a command. Workers never hear it: it is blocked
while they start, which they inherit. The parent kills them, for they hold nothing that has to be
put in order. A worker whose parent is gone reads the end of its pipe, and ends.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from engine.errors import EngineError
from engine.host.deferred_signals import signals_blocked

Item = TypeVar("Item")
Result = TypeVar("Result")


class WorkerDied(EngineError):
    """A worker ended in the midst of its work: it was killed, or ran out of memory."""

    hint = "fewer workers need less memory; `dmesg` tells of processes that the kernel killed"

    def __init__(self, exit_code: int | None) -> None:
        self.exit_code = exit_code
        super().__init__(f"a worker process ended by itself (exit code {exit_code})")


class _Failed:
    """What a worker's work has raised."""

    def __init__(self, error: Exception) -> None:
        self.error = error


def _serve(pipe: Any, work: Callable[[Any], Any]) -> None:
    """Do what the parent sends, one item after the other, until it is gone."""
    # A worker has nothing to put in order: SIGTERM ends it at once.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    while True:
        try:
            item = pipe.recv()
        except (EOFError, OSError):
            return
        try:
            result = work(item)
        except Exception as error:
            result = _Failed(error)
        try:
            pipe.send(result)
        except OSError:
            return


class WorkerProcesses(Generic[Item, Result]):
    """So many processes that do one kind of work; for the main thread, in a `with` block.

    `work` and its items and results are pickled.
    """

    def __init__(self, work: Callable[[Item], Result], count: int) -> None:
        self._work = work
        self._count = count
        self._workers: dict[Any, Any] = {}

    def __enter__(self) -> WorkerProcesses[Item, Result]:
        """Start the processes."""
        from multiprocessing import get_context, resource_tracker

        context = get_context("spawn")
        # The first start begins the tracker, and with it lets the signals come again.
        resource_tracker.ensure_running()
        try:
            with signals_blocked():
                for _ in range(self._count):
                    ours, theirs = context.Pipe()
                    worker = context.Process(target=_serve, args=(theirs, self._work), daemon=True)
                    worker.start()
                    theirs.close()
                    self._workers[ours] = worker
        except BaseException:
            # Also for a signal that came meanwhile, and is raised as the block ends.
            self.__exit__()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        """Kill the processes."""
        with signals_blocked():
            self._end()

    def _end(self) -> None:
        for worker in self._workers.values():
            worker.kill()
        for pipe, worker in self._workers.items():
            worker.join()
            worker.close()
            pipe.close()
        self._workers.clear()

    def run(self, items: Iterable[Item]) -> Iterator[Result]:
        """Yield the result of each item as it comes; an item is taken when a worker is free.

        What the work of an item raises is raised here. Errors: WorkerDied.
        """
        from multiprocessing.connection import wait

        left = iter(items)
        busy = [pipe for pipe in self._workers if self._give(pipe, left)]
        while busy:
            for pipe in wait(busy):
                result = self._take(pipe)
                busy.remove(pipe)
                yield result
                if self._give(pipe, left):
                    busy.append(pipe)

    def _give(self, pipe: Any, left: Iterator[Item]) -> bool:
        for item in left:
            try:
                pipe.send(item)
            except OSError:
                raise self._died(pipe) from None
            return True
        return False

    def _take(self, pipe: Any) -> Result:
        try:
            result = pipe.recv()
        except (EOFError, OSError):
            raise self._died(pipe) from None
        if isinstance(result, _Failed):
            raise result.error
        found: Result = result
        return found

    def _died(self, pipe: Any) -> WorkerDied:
        worker = self._workers[pipe]
        worker.join()
        return WorkerDied(worker.exitcode)
