"""Promises: a value, or an error, that is available later.

Operations that may take a while return a `Promise`. The caller polls `is_kept`, watches it, chains
with `then`, or awaits it in a coroutine of `drive`. Promises have no deadline: operations with one
wait in a purgatory.

A caller that no longer needs the value abandons the promise, and with it the underlying operation:

```
 abandon ─> chained (then) ─> promise ─> operation in a purgatory ─> completed; resources released
```
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from engine.errors import ApiError, EngineError
from engine.host.each import do_each
from engine.kafka_errors import UNKNOWN_SERVER_ERROR

T = TypeVar("T")
U = TypeVar("U")


class Abandonable(Protocol):
    """Work that can be abandoned when its value is no longer needed."""

    def abandon(self) -> object:
        """Abandon the work; without effect once it is done."""
        ...


class StepFailed(ApiError):
    """A step that should compute a promised value has a fault, which is raised to its caller."""

    def __init__(self, fault: Exception) -> None:
        super().__init__(UNKNOWN_SERVER_ERROR, f"a step failed: {fault!r}")
        self.fault = fault


class Promise(Generic[T]):
    """A value, or an error, that is available later; kept exactly once.

    Watchers run in the order they were added, inside the call that keeps the promise. An error that
    they raise is a fault of the code, and is raised from that call once all have run.

    Source: D23.
    """

    # Class attributes: each waiting request has a promise, and few attributes are ever set.
    is_kept = False
    #: The error of a failed promise, else None.
    error: EngineError | None = None
    #: The value is no longer needed.
    is_abandoned = False
    #: Kept when the work has had its turns of the loop: the next request in order may start then.
    #: None if the work needs no further turn.
    turns: Promise[None] | None = None
    #: The work that keeps the promise, None if it needs no waiter or the promise is kept.
    source: Abandonable | None = None
    _value: Any = None
    _watchers: list[Callable[[], None]] | None = None

    @staticmethod
    def of(value: U) -> Promise[U]:
        """Return a promise that is already kept."""
        promise: Promise[U] = Promise()
        promise.is_kept = True
        promise._value = value
        return promise

    @staticmethod
    def failed(error: EngineError) -> Promise[U]:
        """Return a promise that has already failed."""
        promise: Promise[U] = Promise()
        promise.is_kept = True
        promise.error = error
        return promise

    def keep(self, value: T) -> None:
        """Set the value, and run the watchers."""
        assert not self.is_kept, "a promise is kept once"
        self._value = value
        self._mark_kept()

    def keep_with(self, make: Callable[[], T]) -> None:
        """Keep the promise with the result of `make`; an EngineError fails the promise.

        A fault fails it with StepFailed, so that no watcher waits for ever, and is raised here.
        After an AssertionError no watcher runs.
        """
        try:
            value = make()
        except EngineError as error:
            self.fail(error)
            return
        except AssertionError:
            raise
        except Exception as fault:
            do_each((partial(_raise, fault), partial(self.fail, StepFailed(fault))), _run)
            return
        self.keep(value)

    def fail(self, error: EngineError) -> None:
        """Set an error in place of a value: it is raised where the promise is awaited."""
        assert not self.is_kept, "a promise is kept once"
        self.error = error
        self._mark_kept()

    def _mark_kept(self) -> None:
        """Mark the promise as kept, and run its watchers."""
        self.is_kept = True
        watchers = self._watchers
        if watchers is not None:
            self._watchers = None
            if len(watchers) == 1:
                watchers[0]()
            else:
                do_each(watchers, _run)

    def watch(self, watcher: Callable[[], None]) -> None:
        """Call `watcher` when the promise is kept or has failed; at once if it already is."""
        if self.is_kept:
            watcher()
        elif self._watchers is None:
            self._watchers = [watcher]
        else:
            self._watchers.append(watcher)

    def then(self, step: Callable[[T], U]) -> Promise[U]:
        """Return a promise of `step` applied to the value; an EngineError of the step fails it.

        A fault of the step fails it too, and is raised to the caller that keeps this promise.
        """
        following: Promise[U] = Promise()
        if self.is_kept:
            # The new promise has no watchers yet.
            following.is_kept = True
            following.error = self.error
            if self.error is None:
                try:
                    following._value = step(self._value)
                except EngineError as error:
                    following.error = error
            return following
        following.source = self

        def go_on() -> None:
            """Fail the following promise with the error, or keep it with the step's result."""
            if self.error is not None:
                following.fail(self.error)
            else:
                following.keep_with(partial(step, self._value))

        self.watch(go_on)
        return following

    def unabandonable(self) -> Promise[T]:
        """Return a promise of the same value whose abandonment does not reach this one.

        For a value that other callers need too: state that changes once a record is written.
        """
        following = self.then(_identity)
        following.source = None
        return following

    def abandon(self) -> None:
        """Abandon the underlying work, because its value is no longer needed.

        The promise may then never be kept. Work that changes state runs to its end, and keeps the
        promise.
        """
        if self.is_kept:
            return
        self.is_abandoned = True
        source, self.source = self.source, None
        if source is not None:
            source.abandon()

    def result(self) -> T:
        """Return the value or raise the error of a kept promise."""
        assert self.is_kept
        if self.error is not None:
            raise self.error
        value: T = self._value
        return value

    def __await__(self) -> Generator[Promise[T], None, T]:
        """Return the value once the promise is kept, or raise its error.

        `drive` resumes the coroutine that awaits.
        """
        if not self.is_kept:
            yield self
        return self.result()


def _raise(fault: Exception) -> None:
    """Raise an error where a callback is expected, so that `do_each` reports it."""
    raise fault


def _identity(value: T) -> T:
    """Return the value itself, as the step of a promise that changes nothing."""
    return value


def _run(watcher: Callable[[], None]) -> None:
    """Call a watcher, as the function that `do_each` takes."""
    watcher()
