"""The argument and the results of a handler.

A handler returns the response, or a `Promise` of it, or None for a request without a response (a
produce with acks=0). It never waits. A response is a message; or, if the handler has encoded the
body itself, bytes, an `EncodedResponse` of several parts, or `EncodedRows`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from engine.api.admission import Session
from engine.api.response_errors import ErrorCounts
from engine.host.ports import SendPart
from engine.host.promise import Promise
from engine.wire.structs import Message, Struct


class Exchange(NamedTuple):
    """A request during its handling, without its body.

    `throttle_ms` is the throttle time that the response reports.
    """

    session: Session
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    received_ms: int
    throttle_ms: int = 0


class EncodedResponse(NamedTuple):
    """A response's body in parts; the server writes its header and sends them.

    `on_sent` is called once, when all parts are sent or the connection is closed; the files of the
    regions may be closed only then. `errors` None means the API's most frequent response: one row
    without an error.
    """

    parts: list[SendPart]
    on_sent: Callable[[], None] | None = None
    errors: ErrorCounts | None = None


class EncodedRows(NamedTuple):
    """A response whose rows are encoded, one array of it.

    `message` is the response without the rows, `field` the name of their array, `row_count` their
    number.
    """

    message: Struct
    field: str
    row_count: int
    parts: list[bytes]
    errors: ErrorCounts

    @property
    def rows(self) -> tuple[Struct, str, int, list[bytes]]:
        """Return message, array field, number of rows and encoded rows.

        They are the arguments of `with_rows`.
        """
        return self.message, self.field, self.row_count, self.parts


class CloseConnection(Exception):
    """Raised by a handler to end the connection without a response.

    A produce with acks=0 that fails has no other way to report the error.
    """

    def __init__(self, reason: str, errors: ErrorCounts | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.errors: ErrorCounts = errors or {}


#: A response: a message, its body as bytes or in parts, or None for no response.
Response: TypeAlias = Struct | EncodedResponse | EncodedRows | bytes | None
#: The response of a handler, or a promise of one.
Handled: TypeAlias = Response | Promise[Any]
#: A handler: a function of the request that its row decodes, and the exchange.
Handler: TypeAlias = Callable[[Message, Exchange], Handled]
