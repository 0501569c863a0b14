"""Responses of handlers that take several turns: an unexpected error fails their promise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from engine.api.exchange import CloseConnection
from engine.errors import ApiError, EngineError
from engine.host.coroutine import PromiseCoroutine, drive
from engine.host.promise import Promise
from engine.kafka_errors import UNKNOWN_SERVER_ERROR

T = TypeVar("T")
U = TypeVar("U")


class HandlerFailed(ApiError):
    """A handler raised an unexpected error after its first turn: its connection is closed."""

    def __init__(self, fault: Exception) -> None:
        super().__init__(UNKNOWN_SERVER_ERROR, f"a handler failed: {fault!r}")
        self.fault = fault


def promised(work: PromiseCoroutine[T]) -> Promise[T]:
    """Run a handler's coroutine and promise its result; an unexpected error is HandlerFailed.

    The server catches only errors of the first turn. Without this the client of a later error would
    wait for ever. A failed assertion ends the process, in any turn.
    """
    return drive(_await_handler(work))


def in_order(response: Promise[T], over: Promise[None] | None = None) -> Promise[T]:
    """Start the connection's next request when `over` is kept, None for when `response` is kept.

    For requests served in several turns: Kafka serves one request of a connection at a time.
    Returns `response`.
    """
    if response.is_kept:
        return response
    turns = Promise[None]() if over is None else over
    response.turns = turns

    def end() -> None:
        """Let the next request start, if it has not started yet."""
        if not turns.is_kept:
            turns.keep(None)

    response.watch(end)
    return response


def when_all(promises: Sequence[Promise[T]], make: Callable[[list[T]], U]) -> Promise[U]:
    """Return a promise of `make` applied to the values of all promises.

    If promises fail, it fails with the first error in order, once all promises are kept. Abandoning
    it does not abandon the promises.
    """
    made: Promise[U] = Promise()
    missing = len(promises)

    def came() -> None:
        """Count one kept promise; after the last promise build the result, or fail."""
        nonlocal missing
        missing -= 1
        if not missing:
            made.keep_with(lambda: make([promise.result() for promise in promises]))

    for promise in promises:
        promise.watch(came)
    if not promises:
        made.keep_with(lambda: make([]))
    return made


async def _await_handler(work: PromiseCoroutine[T]) -> Any:
    """Await a handler's coroutine; raise HandlerFailed for any error that is not its own.

    CloseConnection is returned as a value, since a promise can fail only with an EngineError.
    """
    try:
        return await work
    except (EngineError, AssertionError):
        raise
    except CloseConnection as order:
        # Returned as a value for the server: a promise can fail only with an EngineError.
        return order
    except Exception as fault:
        raise HandlerFailed(fault) from fault
