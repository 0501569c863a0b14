"""What is there later: a value, or an error in its place.

What may take a while is returned as a `Promise`; the caller looks (`is_kept`), watches, goes on
with `then`, or awaits it in a coroutine of `drive`. A deadline is not its business: what waits for
one lies in a purgatory.

A caller that does not want it any more abandons it, and so what it comes from:

```
 abandon ─> following (then) ─> promise ─> operation in a purgatory ─> over; what it held is free
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
    """Work that may be given up when nobody wants its value."""

    def abandon(self) -> object:
        """Give it up; without effect once it is done."""
        ...


class StepFailed(ApiError):
    """What was to make a promised value has a fault; it is told to the one who took the step."""

    def __init__(self, fault: Exception) -> None:
        super().__init__(UNKNOWN_SERVER_ERROR, f"a step failed: {fault!r}")
        self.fault = fault


class Promise(Generic[T]):
    """A value, or an error, that is there later; kept exactly once.

    Watchers run in the order they came, during the work of the one who keeps it: what they raise is
    a fault of the code and goes there, once all have run.

    Source: D23.
    """

    # On the class: one is made for each request that waits, and few attributes are ever set.
    is_kept = False
    #: What it failed with, None before and for a value.
    error: EngineError | None = None
    #: Nobody wants it any more.
    is_abandoned = False
    #: Kept when the work behind it has had its turns of the loop: what comes behind it in order
    #: begins then. None where it has none to come.
    turns: Promise[None] | None = None
    #: The work that keeps it, None where that needs no waiter. It holds nothing once it has.
    source: Abandonable | None = None
    _value: Any = None
    _watchers: list[Callable[[], None]] | None = None

    @staticmethod
    def of(value: U) -> Promise[U]:
        """Return a promise that is kept already."""
        promise: Promise[U] = Promise()
        promise.is_kept = True
        promise._value = value
        return promise

    @staticmethod
    def failed(error: EngineError) -> Promise[Any]:
        """Return a promise that has failed already."""
        promise: Promise[Any] = Promise()
        promise.is_kept = True
        promise.error = error
        return promise

    def keep(self, value: T) -> None:
        """Give the value, and run those that wait."""
        assert not self.is_kept, "a promise is kept once"
        self._value = value
        self._settle()

    def keep_with(self, make: Callable[[], T]) -> None:
        """Give what is made now; an EngineError of that fails the promise.

        A fault fails it with StepFailed, so that nobody waits for ever, and is raised here.
        Nothing goes on after an assertion that failed.
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
        """Give an error in place of a value: it is raised where the promise is awaited."""
        assert not self.is_kept, "a promise is kept once"
        self.error = error
        self._settle()

    def _settle(self) -> None:
        self.is_kept = True
        watchers = self._watchers
        if watchers is not None:
            self._watchers = None
            if len(watchers) == 1:
                watchers[0]()
            else:
                do_each(watchers, _run)

    def watch(self, watcher: Callable[[], None]) -> None:
        """Run when the promise is kept or has failed, at once if it is."""
        if self.is_kept:
            watcher()
        elif self._watchers is None:
            self._watchers = [watcher]
        else:
            self._watchers.append(watcher)

    def then(self, step: Callable[[T], U]) -> Promise[U]:
        """Return the promise of what a step makes of the value; an EngineError of it fails that.

        A fault of it does, too, and goes to the one who keeps this promise.
        """
        following: Promise[U] = Promise()
        following.source = self

        def go_on() -> None:
            if self.error is not None:
                following.fail(self.error)
            else:
                following.keep_with(partial(step, self._value))

        self.watch(go_on)
        return following

    def abandon(self) -> None:
        """Give up the work behind it: nobody wants the value. It may never be kept then.

        Work that changes something goes on, and keeps it for nobody.
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
        if not self.is_kept:
            yield self
        return self.result()


def _raise(fault: Exception) -> None:
    raise fault


def _run(watcher: Callable[[], None]) -> None:
    watcher()
