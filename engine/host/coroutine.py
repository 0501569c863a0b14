"""Coroutines without an event loop of their own: admin operations written as steps of one thread.

A coroutine runs until it awaits a `Promise` that is not kept yet; keeping that promise runs its
next step. If every promise is kept already (as with the embedded metadata store), `drive` returns
with the work done. Produce, fetch and heartbeat use no coroutine: a step costs more than they do.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import TypeAlias, TypeVar

from engine.errors import EngineError
from engine.host.ports import Clock, Timers
from engine.host.promise import Promise

T = TypeVar("T")
#: A coroutine that awaits promises alone, as `drive` runs them.
PromiseCoroutine: TypeAlias = Coroutine[Promise[object], None, T]


def drive(work: PromiseCoroutine[T]) -> Promise[T]:
    """Run a coroutine to its first wait; return a promise of its value, or of its EngineError.

    Any other exception is a bug and is raised to the caller of the step. Abandoning the promise
    does not stop the coroutine: promises that it awaits are abandoned, and its remaining steps run.
    """
    promise: Promise[T] = Promise()
    _run_until_wait(work, promise)
    return promise


async def together(works: Sequence[PromiseCoroutine[T]]) -> list[T]:
    """Run coroutines concurrently and return their values, in the order of `works`.

    All are started before the first is awaited. Raises the first error in order; the others
    continue.
    """
    promises = [drive(work) for work in works]
    return [await promise for promise in promises]


async def wait_until(
    is_so: Callable[[], bool], timers: Timers, clock: Clock, *, period_ms: int
) -> None:
    """Return once `is_so` returns True; it is called every `period_ms`."""
    while not is_so():
        elapsed: Promise[None] = Promise()
        timers.call_at(clock.monotonic_ms() + period_ms, partial(elapsed.keep, None))
        await elapsed


def _run_until_wait(work: PromiseCoroutine[T], promise: Promise[T]) -> None:
    """Run a coroutine until it ends or awaits a promise that is not kept.

    That promise calls this function again once it is kept.
    """
    while True:
        try:
            waits_for: Promise[object] = work.send(None)
        except StopIteration as stop:
            promise.keep(stop.value)
            return
        except EngineError as error:
            promise.fail(error)
            return
        if not waits_for.is_kept:
            waits_for.watch(lambda: _run_until_wait(work, promise))
            # Once the promise is abandoned, later waits of the coroutine are abandoned too.
            if promise.is_abandoned:
                waits_for.abandon()
            else:
                promise.source = waits_for
            return
