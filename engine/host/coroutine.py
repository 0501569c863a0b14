"""Coroutines without a loop: admin work is written in steps, and runs on the engine's one thread.

A coroutine is stepped until it waits for a `Promise` that is not kept yet; whoever keeps that
steps it on. Where everything answers at once (the embedded metadata store) `drive` returns with
the work done. Produce, fetch and heartbeats never come this way (they cost less than a step).
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

from engine.errors import EngineError

T = TypeVar("T")


class Promise(Generic[T]):
    """A value, or an error, that is there later; kept exactly once."""

    __slots__ = ("_error", "_value", "_watchers", "is_kept")

    def __init__(self) -> None:
        self.is_kept = False
        self._value: T | None = None
        self._error: EngineError | None = None
        self._watchers: list[Callable[[], None]] = []

    def keep(self, value: T) -> None:
        """Give the value, and run those that wait."""
        self._value = value
        self._settle()

    def fail(self, error: EngineError) -> None:
        """Give an error in place of a value: it is raised where the promise is awaited."""
        self._error = error
        self._settle()

    def _settle(self) -> None:
        assert not self.is_kept, "a promise is kept once"
        self.is_kept = True
        watchers, self._watchers = self._watchers, []
        for watcher in watchers:
            watcher()

    def watch(self, watcher: Callable[[], None]) -> None:
        """Run when the promise is kept, at once if it is."""
        if self.is_kept:
            watcher()
        else:
            self._watchers.append(watcher)

    def result(self) -> T:
        """Return the value or raise the error of a kept promise."""
        assert self.is_kept
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]

    def __await__(self) -> Generator[Promise[T], None, T]:
        if not self.is_kept:
            yield self
        return self.result()


def drive(work: Coroutine[Any, None, T]) -> Promise[T]:
    """Run a coroutine as far as it goes; the promise has its value, or its EngineError.

    Any other exception is a fault of the code and goes to whoever took the step.
    """
    promise: Promise[T] = Promise()
    _step(work, promise)
    return promise


def _step(work: Coroutine[Any, None, T], promise: Promise[T]) -> None:
    while True:
        try:
            waits_for: Promise[Any] = work.send(None)
        except StopIteration as stop:
            promise.keep(stop.value)
            return
        except EngineError as error:
            promise.fail(error)
            return
        if not waits_for.is_kept:
            waits_for.watch(lambda: _step(work, promise))
            return
