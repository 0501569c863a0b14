"""Responses of handlers that take several turns: a fault in one of them keeps nobody waiting."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

from engine.errors import ApiError, EngineError
from engine.host.coroutine import drive
from engine.host.promise import Promise
from engine.kafka_errors import UNKNOWN_SERVER_ERROR

T = TypeVar("T")


class HandlerFailed(ApiError):
    """A handler has a fault, which showed in one of its turns: its connection ends."""

    def __init__(self, fault: Exception) -> None:
        super().__init__(UNKNOWN_SERVER_ERROR, f"a handler failed: {fault!r}")
        self.fault = fault


def promised(work: Coroutine[Any, None, T]) -> Promise[T]:
    """Drive a handler's work; a fault of it fails the promise with HandlerFailed.

    The server sees what the first turn raises and nothing of the later ones: without this the
    client would wait for ever. An assertion that fails ends the process, in any turn.
    """
    return drive(_caught(work))


async def _caught(work: Coroutine[Any, None, T]) -> T:
    try:
        return await work
    except (EngineError, AssertionError):
        raise
    except Exception as fault:
        raise HandlerFailed(fault) from fault
