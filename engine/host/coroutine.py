"""Coroutines without a loop: admin work is written in steps, and runs on the engine's one thread.

A coroutine is stepped until it waits for a `Promise` that is not kept yet; the one who keeps that
steps it on. Where everything answers at once (the embedded metadata store) `drive` returns with
the work done. Produce, fetch and heartbeats never come this way (they cost less than a step).
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, TypeVar

from engine.errors import EngineError
from engine.host.ports import Clock, Timers
from engine.host.promise import Promise

T = TypeVar("T")


def drive(work: Coroutine[Any, None, T]) -> Promise[T]:
    """Run a coroutine as far as it goes; the promise has its value, or its EngineError.

    Any other exception is a fault of the code and goes to the one who took the step. A promise that
    is abandoned ends no work: its waits for others' progress end at once, and its steps go on.
    """
    promise: Promise[T] = Promise()
    _step(work, promise)
    return promise


async def together(works: Sequence[Coroutine[Any, None, T]]) -> list[T]:
    """Run coroutines at the same time and return their values in order.

    Each is begun before any is waited for. Raises the first error in order; the others run on.
    """
    promises = [drive(work) for work in works]
    return [await promise for promise in promises]


async def until(is_so: Callable[[], bool], timers: Timers, clock: Clock, *, period_ms: int) -> None:
    """Return once something is so, which is looked at so often."""
    while not is_so():
        looked: Promise[None] = Promise()
        timers.call_at(clock.monotonic_ms() + period_ms, partial(looked.keep, None))
        await looked


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
            # What is abandoned while it waits for one thing does not wait for the next either.
            if promise.is_abandoned:
                waits_for.abandon()
            else:
                promise.source = waits_for
            return
