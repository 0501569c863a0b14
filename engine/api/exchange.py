"""The argument and the results of a handler.

A handler returns the response, or a `Promise` of it, or None for a request that is owed none (a
produce with acks=0). It never waits. A response is a message; or where the
handler has written its body itself, the bytes, or an `EncodedResponse` of several parts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from engine.api.admission import Session
from engine.api.response_errors import ErrorCounts
from engine.host.ports import SendPart
from engine.host.promise import Promise
from engine.wire.structs import Struct


class Exchange(NamedTuple):
    """One request on its way through a handler: all but its body.

    `throttle_ms` is the connection's throttle time, as the response has it.
    """

    session: Session
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    received_ms: int
    throttle_ms: int = 0


class EncodedResponse(NamedTuple):
    """A response's body in parts, which the server sends after the header that it writes.

    `on_sent` is run once, when all of it is sent or the connection is closed: only then may the
    files of its regions be closed. Without `errors` it is the most frequent response of its API,
    as bytes alone are: of one row, and no error.
    """

    parts: list[SendPart]
    on_sent: Callable[[], None] | None = None
    errors: ErrorCounts | None = None


class EncodedRows(NamedTuple):
    """A response whose rows are encoded: the message without them, their field and count."""

    message: Any
    field: str
    row_count: int
    parts: list[bytes]
    errors: ErrorCounts

    @property
    def rows(self) -> tuple[Any, str, int, list[bytes]]:
        """Return what the response is written of."""
        return self.message, self.field, self.row_count, self.parts


class CloseConnection(Exception):
    """Raised by a handler to end the connection without a response.

    A produce with acks=0 that fails has no other way to report the error.
    """

    def __init__(self, reason: str, errors: ErrorCounts | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.errors: ErrorCounts = errors or {}


#: A response: a message, its body as bytes or in parts, or None where none is owed.
Response: TypeAlias = Struct | EncodedResponse | EncodedRows | bytes | None
#: The response of a handler, or a promise of one.
Handled: TypeAlias = Response | Promise[Any]
#: A handler takes the request that its row decodes: a message of its API, or another tuple.
Handler: TypeAlias = Callable[[Any, Exchange], Handled]
