"""The table of the APIs that are served: one row each.

Exactly the APIs in the table are advertised. A row has the served versions, the rule of which
clients may call it, and whether only brokers do; a test fails for a row without a rule.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from engine.api.admission import Admission, Rule, Session
from engine.api.denied import denied_response
from engine.api.exchange import EncodedResponse, Exchange, Handled, Handler
from engine.api.request_metrics import RequestMetrics
from engine.host.promise import Promise
from engine.wire.headers import api
from engine.wire.structs import Message

__all__ = [
    "ApiRow",
    "DispatchTable",
    "FastHandler",
    "FastResponse",
    "RequestDecoder",
    "Rule",
    "serve",
]


_FETCH = api("Fetch").key

#: Decodes a request body (a view of the frame) of a version; raises WireError.
RequestDecoder: TypeAlias = Callable[[memoryview, int], object]


#: Returns whether a request of a version is measured under a second name.
KindOfRequest: TypeAlias = Callable[[Message, int], bool]


#: A response with its header.
FastResponse: TypeAlias = bytes | EncodedResponse
#: Serves a complete frame on the fast path and returns the response, or a promise of it. None, with
#: nothing done, for a frame of the general path.
FastHandler: TypeAlias = Callable[
    [memoryview, Session], FastResponse | Promise[FastResponse] | None
]


class ApiRow(NamedTuple):
    """One API as it is served; versions are inclusive.

    `decode` reads requests in place of the table codec, for a handler that decodes the bytes. A
    row that is not advertised is served to all clients, and ApiVersions leaves it out.
    `is_of_others` finds requests that Kafka measures under another name.
    """

    key: int
    name: str
    lowest: int
    highest: int
    rule: Rule
    handler: Handler
    is_inter_broker: bool = False
    decode: RequestDecoder | None = None
    is_advertised: bool = True
    is_of_others: KindOfRequest | None = None


class DispatchTable:
    """The row of each API by its key, and the admission that is asked before a row's handler."""

    def __init__(self, admission: Admission) -> None:
        """Create without APIs; `serve` adds them before the first request."""
        self.admission = admission
        #: The rows that `serve` has added, by API key.
        self._rows: dict[int, ApiRow] = {}
        #: Rows for brokers of this process, which pass values in place of bytes.
        self._local_rows: dict[int, ApiRow] = {}
        #: Fast paths by API key. Called before the row, for clients to whom nothing can be denied.
        self.serve_fast: dict[int, FastHandler] = {}
        #: Sizes and times of requests that came over listeners, without those of brokers in this
        #: process.
        self.request_metrics = RequestMetrics()

    def serve(
        self,
        name: str,
        handler: Handler,
        rule: Rule,
        *,
        highest: int | None = None,
        is_inter_broker: bool = False,
        decode: RequestDecoder | None = None,
        is_advertised: bool = True,
        serve_fast: FastHandler | None = None,
    ) -> None:
        """Add an API: a handler for all its stable versions, or for those up to `highest`.

        `rule` is the right that a client needs. `serve_fast` is a fast path that is tried before
        the handler.
        """
        key, stable = api(name).key, api(name).stable
        assert key not in self._rows, name
        top = stable.highest if highest is None else highest
        self._rows[key] = ApiRow(
            key,
            name,
            stable.lowest,
            top,
            rule,
            handler,
            is_inter_broker,
            decode,
            is_advertised,
        )
        if serve_fast is not None:
            self.serve_fast[key] = serve_fast

    def measure_apart(self, name: str, is_of_others: KindOfRequest) -> None:
        """Count some requests of an API under a second name in the metrics, as Kafka does.

        These are the requests for which `is_of_others` returns True, for instance followers'
        fetches.
        """
        key = api(name).key
        self._rows[key] = self._rows[key]._replace(is_of_others=is_of_others)

    def row(self, key: int) -> ApiRow | None:
        """Return the row of an API key, None if the API is not served."""
        return self._rows.get(key)

    def serve_local(self, name: str, handler: Handler) -> None:
        """Set a second handler of an API for brokers of this process, which pass values."""
        key = api(name).key
        self._local_rows[key] = self._rows[key]._replace(handler=handler, decode=None)

    def local_row(self, key: int) -> ApiRow:
        """Return the row of an API for brokers of this process, which pass values, not bytes."""
        return self._local_rows[key]

    def rows(self) -> list[ApiRow]:
        """Return the rows of all served APIs, sorted by API key."""
        return [self._rows[key] for key in sorted(self._rows)]


def serve(row: ApiRow, request: object, exchange: Exchange) -> tuple[Handled, int]:
    """Serve a request by the handler of its API's row, if its client is admitted.

    Returns the response, and the connection's throttle time in ms; raises as handlers do. A denied
    request gets its API's error response. The handler's time counts for the request quota.
    """
    session = exchange.session
    if session.may_take_fast_path:
        # Nothing can be denied or delayed, so that no time of work counts.
        session.api_key = row.key
        return row.handler(request, exchange), 0
    quotas = session.admission.quotas
    is_free = row.is_inter_broker or _is_of_follower(row, request)
    session.api_key = row.key
    began_ns = quotas.work_ns()
    verdict = session.admission.admit(
        session,
        row.rule,
        api_key=row.key,
        client_id=exchange.client_id,
        is_inter_broker=row.is_inter_broker,
        is_free=is_free,
    )
    if verdict.delay_ms:
        exchange = exchange._replace(throttle_ms=verdict.delay_ms)
    if verdict.error_code:
        # A denied client is not a broker: its time counts for every API.
        is_free = False
        handled: Handled = denied_response(
            row.name, request, exchange.api_version, verdict.error_code
        )
    else:
        handled = row.handler(request, exchange)
    if not is_free:
        quotas.count_work(session, exchange.client_id, quotas.work_ns() - began_ns)
    return handled, verdict.delay_ms


def _is_of_follower(row: ApiRow, request: object) -> bool:
    """Return True for a follower's fetch: no request quota counts its time."""
    return row.key == _FETCH and getattr(request, "replica_id", -1) >= 0
