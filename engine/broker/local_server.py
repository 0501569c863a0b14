"""Serve the requests of brokers in the same process, without a connection.

Differs: Kafka has one broker per process. D12.
"""

from __future__ import annotations

from engine.api.admission import Session
from engine.api.dispatch import ApiRow, serve
from engine.api.exchange import Exchange
from engine.api.promised import HandlerFailed
from engine.broker.local_messages import message_of_response, request_for
from engine.broker.local_requests import LocalRequests
from engine.errors import EngineError, api_error
from engine.host.promise import Promise
from engine.kafka_errors import UNKNOWN_SERVER_ERROR
from engine.server import RequestServer
from engine.wire.headers import api
from engine.wire.structs import Message, Struct


class LocalServer:
    """Serves one broker's APIs to other brokers in its process."""

    def __init__(self, server: RequestServer, listener: str, requests: LocalRequests) -> None:
        """Create the server of requests from brokers in this process, which need no connection.

        Handlers see `listener`, the inter-broker listener, in the session.
        """
        self._server = server
        self._listener = listener
        self._requests = requests
        # The shared session of calls with values, which keep no state in it; None before the first.
        self._session: Session | None = None

    def _session_for(self, *, is_message: bool) -> Session:
        """Return the session for a request: a new one for a message, the shared one for values.

        Handlers of messages may keep state in their session, which callers must not share.
        """
        if self._session is not None and not is_message:
            return self._session
        session = Session(
            "broker of this process",
            self._server.table.admission,
            self._listener,
            is_own_broker=True,
        )
        if not is_message:
            self._session = session
        return session

    def serve(self, name: str, version: int, request: object) -> Promise[Message]:
        """Serve a request of a broker in this process; promise the response.

        A request that is not a message has the values of an API (see `Row.local`). An exception in
        a handler fails the request with UNKNOWN_SERVER_ERROR, as in Kafka.
        """
        is_message = isinstance(request, Struct)
        row = self._api_row(name, is_message=is_message)
        session = self._session_for(is_message=is_message)
        exchange = Exchange(session, row.key, version, 0, None, self._server.clock.monotonic_ms())
        try:
            handled, _ = serve(row, request_for(row, version, request), exchange)
            if isinstance(handled, Promise):
                if handled.is_kept and handled.error is None and not is_message:
                    # The response to values is a value too.
                    return handled
                return self._promise_response(row, version, handled)
            return Promise.of(message_of_response(row, version, handled))
        except AssertionError as error:
            self._server.events.on_broken(row, error)
            raise
        except Exception as error:
            self._server.events.on_fault(row, error)
            return Promise.failed(api_error(UNKNOWN_SERVER_ERROR))

    def _api_row(self, name: str, *, is_message: bool) -> ApiRow:
        """Return the dispatch table's row of an API: that for messages, or that for values."""
        key = api(name).key
        row = self._server.table.row(key) if is_message else self._server.table.local_row(key)
        assert row is not None, name
        return row

    def _promise_response(
        self, row: ApiRow, version: int, handled: Promise[Message]
    ) -> Promise[Message]:
        """Return a promise of a response that is not there yet; `LocalRequests.end` fails it."""
        if row.is_inter_broker:
            handled.watch(lambda: self._report_fault(row, handled.error))
        return self._requests.add(handled).then(
            lambda response: message_of_response(row, version, response)
        )

    def _report_fault(self, row: ApiRow, error: EngineError | None) -> None:
        """Report the exception of a handler that failed after its first turn."""
        if isinstance(error, HandlerFailed):
            self._server.events.on_fault(row, error.fault)
