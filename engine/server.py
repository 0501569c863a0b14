"""The request server: it reads request frames and sends responses in the order of the requests.

For each frame:

1. The header is read; an unknown API key or invalid bytes close the connection.
2. An unsupported version closes it too, except for ApiVersions, whose response has version 0.
3. The body is decoded; invalid bytes close the connection. No reference to the frame may be kept
   after the call, because it is in a buffer that all connections share.
4. Admission accepts the request, or returns an error response: `dispatch.serve`.
5. The handler returns the response, or a promise of it; the request's slot keeps its place.
6. Filled slots are sent from the front: responses keep the order of their requests.

Frames of the most frequent APIs bypass steps 1 to 5 (`DispatchTable.serve_fast`), if the client is
allowed all operations.

On a listener with SASL or TLS these steps begin once the client is authenticated; before that its
frames go to `authentication_gate.py`.

If the server is held, a client that connects before `begin` waits: a broker without an epoch could
not detect controller requests for its former life.

A connection with too many open slots is paused until some are sent. A connection with a request
that is served in several turns of the loop is paused until its last turn, so that the next request
does not overtake it.

An exception in a handler closes the connection and is passed to `on_fault`; the broker continues. A
failed assertion is reported to `on_broken` and raised to the driver of the loop, which ends the
process: the broker's state is inconsistent, and every further step may do harm.

Source: NET-2.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from engine.api.admission import Session
from engine.api.api_versions import ApiVersions
from engine.api.dispatch import ApiRow, DispatchTable, FastResponse, serve
from engine.api.exchange import (
    CloseConnection,
    EncodedResponse,
    EncodedRows,
    Exchange,
    Handled,
    Response,
)
from engine.api.request_metrics import (
    NOTED_NS,
    OF_OTHERS,
    VERSION_BITS,
    OpenRequest,
    number_of_frame,
)
from engine.api.response_errors import ErrorCounts, error_counts
from engine.api.sasl_authenticator import SaslAuthenticator
from engine.authentication_gate import Authentication, AuthenticationGate, CertificateGate
from engine.errors import WireError
from engine.host.ports import (
    Clock,
    Connection,
    Listener,
    ListenOptions,
    Network,
    PauseReason,
    SendPart,
)
from engine.host.promise import Abandonable, Promise
from engine.limits import JOINED_SEND_BYTES_MAX, OPEN_REQUESTS_PER_CONNECTION_MAX
from engine.model import new_tuple
from engine.wire.codec import message_codec
from engine.wire.headers import (
    API_VERSIONS_KEY,
    read_request_header,
    response_header_bytes,
)
from engine.wire.row_bytes import insert_rows
from engine.wire.structs import Struct

#: The API key and the version of a frame, as one number.
_api_of: Final = struct.Struct(">i").unpack_from
#: Bytes of a fast-path frame's header without the client id, and the position of the client id's
#: length byte (the lower one: client ids are short).
_FAST_HEADER_BYTES: Final = 11
_CLIENT_ID_BYTES_AT: Final = 9
_NO_ERRORS: Final[ErrorCounts] = {}


class ServerEvents(NamedTuple):
    """Callbacks for events of connections; called on the loop's thread, and must not raise."""

    on_bad_request: Callable[[str, str], None]
    on_fault: Callable[[ApiRow, Exception], None]
    #: Called when a handler broke an invariant of the broker, before the error is raised to the
    #: loop.
    on_broken: Callable[[ApiRow, AssertionError], None]


class RequestServer:
    """Serves a dispatch table on listeners of a network."""

    def __init__(
        self,
        network: Network,
        clock: Clock,
        table: DispatchTable,
        events: ServerEvents,
        work_ns: Callable[[], int],
    ) -> None:
        """Create a server without listeners; `work_ns` is a clock in ns that measures requests."""
        self.work_ns = work_ns
        self.table = table
        self.clock = clock
        self.events = events
        self.api_versions = ApiVersions(table)
        self._network = network
        #: Open connections, in the order in which they came.
        self._clients: dict[ClientConnection, None] = {}
        self._listeners: list[Listener] = []
        #: Whether connections are accepted without reading their requests, until the broker is
        #: ready.
        self._is_held = False

    def hold(self) -> None:
        """Accept connections from now on, but read no requests of them until `begin`."""
        self._is_held = True

    def begin(self) -> None:
        """Read the requests of the connections accepted since `hold`, and of all later ones."""
        self._is_held = False
        for client in list(self._clients):
            client.begin()

    def listen(
        self,
        host: str,
        port: int,
        listener: str,
        options: ListenOptions,
        on_client: Callable[[ClientConnection], None] | None = None,
    ) -> Listener:
        """Listen on an address and serve its clients, until `close`; raises the network's errors.

        `on_client` is called with each connection before any of its frames is read: it may require
        authentication first.
        """

        def accept(connection: Connection) -> None:
            """Serve a new connection; if the server is held, pause it until `begin`."""
            client = ClientConnection(self, connection, listener)
            if on_client is not None:
                on_client(client)
            self._clients[client] = None
            if self._is_held:
                connection.pause(PauseReason.OPENING)

        opened = self._network.listen(host, port, accept, options)
        self._listeners.append(opened)
        return opened

    def close(self, reason: str) -> None:
        """Close the listeners and the clients' connections."""
        listeners, self._listeners = self._listeners, []
        for listener in listeners:
            listener.close()
        for client in list(self._clients):
            client.close(reason)

    def forget(self, client: ClientConnection) -> None:
        """Remove a closed connection from the connected clients; the connection calls it."""
        self._clients.pop(client, None)

    @property
    def client_count(self) -> int:
        """Return how many clients are connected."""
        return len(self._clients)


class _Slot:
    """The place of one request in the order of its connection's responses."""

    __slots__ = ("close_reason", "is_filled", "on_sent", "parts", "promise", "request")

    def __init__(
        self, promise: Abandonable | None = None, request: OpenRequest | None = None
    ) -> None:
        """Create the place of a response; responses are sent in the order of the requests.

        `promise` is the promise of the response, None if the response exists already. `request` is
        None for a place without a request, as in authentication.
        """
        #: The promise of the response; None if the response exists already.
        self.promise = promise
        #: The request, for its metrics; None for a place without one, as in an authentication.
        self.request = request
        #: Whether the response or the close reason is set: it is sent once all earlier places were
        #: sent.
        self.is_filled = False
        #: The reason why the connection is closed instead of a response; None for a response.
        self.close_reason: str | None = None
        self.parts: Sequence[SendPart] | None = None
        self.on_sent: Callable[[], None] | None = None


class ClientConnection:
    """One client: its session and its open requests. Source: NET-1, P2."""

    def __init__(self, server: RequestServer, connection: Connection, listener: str) -> None:
        """Handle the frames of `connection` from now on; a SASL listener adds a gate before it."""
        self._server = server
        #: Parts of the dispatch table, bound here because each request uses them.
        self._row_of = server.table.row
        self._fast = server.table.serve_fast
        self._metrics = server.table.request_metrics
        self._fast_sizes = self._metrics.fast
        self._note_size = self._metrics.note_size
        self._now_ns = server.work_ns
        self._connection = connection
        self._session = Session(connection.peer, server.table.admission, listener)
        self._session.on_throttle = self._throttle
        #: Places of pending responses, in the order of the requests.
        self._slots: deque[_Slot] = deque()
        #: Whether reading is paused because too many requests have no response.
        self._is_paused = False
        #: Number of throttle times in progress, and the longest one since the last response.
        self._mutes = 0
        self._throttled_ms = 0
        self._is_closed = False
        #: The authentication of a listener with SASL; None on others.
        self._gate: AuthenticationGate | None = None
        connection.on_frame = self.serve_frame
        connection.on_close = self._on_closed

    def authenticate(self, authentication: Authentication) -> None:
        """Require SASL authentication before the client's first request.

        It is called before any frame is read; see `authentication_gate.py`.
        """
        server = self._server
        authenticator = SaslAuthenticator(
            self._session,
            authentication.listener,
            server.api_versions,
            server.clock.monotonic_ms,
        )
        self._gate = AuthenticationGate(self._connection, self, authenticator, authentication)

    def identify(self, principal_of: Callable[[bytes | None], str]) -> None:
        """Take the client's principal from its TLS certificate at the first frame.

        `principal_of` returns the principal for a certificate; see `authentication_gate.py`.
        """
        CertificateGate(self._connection, self, self._session, principal_of)

    def serve_frame(self, frame: memoryview) -> None:
        """Serve one request frame (steps 1 to 5): on the fast path of its API if possible.

        If the client can be denied operations, the fast path checks the session's grants itself.
        """
        session, began_ns = self._session, self._now_ns()
        if not (session.may_take_fast_path or session.is_undelayed):
            self._serve_generally(frame, began_ns)
            return
        try:
            (api,) = _api_of(frame)
            serve_fast = self._fast[api >> VERSION_BITS]
        except (KeyError, struct.error):
            self._serve_generally(frame, began_ns)
            return
        try:
            response = serve_fast(frame, session)
        except Exception as error:
            self._fault_of(api >> VERSION_BITS, error)
            return
        if response is None:
            self._serve_generally(frame, began_ns)
            return
        size_bytes = len(frame) - frame[_CLIENT_ID_BYTES_AT] - _FAST_HEADER_BYTES
        if type(response) is not bytes or self._slots:
            self._reserve_fast(api, size_bytes, response, began_ns)
            return
        self._connection.send((response,), None)
        try:
            self._fast_sizes[api].append(size_bytes)
        except KeyError:
            self._fast_sizes[api] = [size_bytes]
        if (now_ns := self._now_ns()) - began_ns >= NOTED_NS:
            self._metrics.note_frame(api, now_ns - began_ns)

    def _reserve_fast(
        self,
        api: int,
        size_bytes: int,
        response: FastResponse | Promise[FastResponse],
        began_ns: int,
    ) -> None:
        """Reserve the slot of a fast-path response that cannot be sent at once as plain bytes.

        It is a promise, has parts or a callback, or must wait for the responses of earlier
        requests.
        """
        request = OpenRequest(number_of_frame(api), size_bytes, began_ns, self._now_ns())
        if isinstance(response, Promise):
            self._await_fast(api >> VERSION_BITS, response, request)
        else:
            self._fill_fast(self._reserve_slot(None, request), request, response)

    def _serve_generally(self, frame: memoryview, began_ns: int) -> None:
        """Serve a request frame by the dispatch table's row of its API, without the fast path.

        An unknown API, an unsupported version or invalid bytes close the connection.
        """
        may_take_fast_path = self._session.may_take_fast_path
        try:
            key, version, correlation_id, client_id, position = read_request_header(frame)
            row = self._row_of(key)
            if row is None:
                self._end(f"API key {key} is not served")
                return
            if not may_take_fast_path:
                self._session.request_bytes = len(frame)
            is_served = row.lowest <= version <= row.highest
            if not is_served and key != API_VERSIONS_KEY:
                self._end(f"version {version} of {row.name} is not served")
                return
            exchange = new_tuple(
                Exchange,
                (
                    self._session,
                    key,
                    version if is_served else 0,
                    correlation_id,
                    client_id,
                    self._server.clock.monotonic_ms(),
                    0,
                ),
            )
            if is_served:
                self._handle_request(
                    row,
                    exchange,
                    frame[position:],
                    began_ns,
                    may_take_fast_path=may_take_fast_path,
                )
            else:
                request = OpenRequest(key << VERSION_BITS, len(frame) - position, began_ns)
                self._send_or_reserve(row, exchange, self._server.api_versions.refusal(), request)
        except WireError as error:
            self._end(str(error))
        except CloseConnection as order:
            self._close_in_turn(order.reason)

    def _reserve_slot(
        self, promise: Abandonable | None = None, request: OpenRequest | None = None
    ) -> _Slot:
        """Append a slot for a response, which keeps its place in the order of the requests.

        With too many slots the connection is paused until some responses are sent.
        """
        slot = _Slot(promise, request)
        self._slots.append(slot)
        if len(self._slots) >= OPEN_REQUESTS_PER_CONNECTION_MAX and not self._is_paused:
            self._is_paused = True
            self._connection.pause(PauseReason.SLOTS)
        return slot

    def _await_fast(self, key: int, promise: Promise[FastResponse], request: OpenRequest) -> None:
        """Reserve the slot of a promised fast-path response, to be filled when it is kept."""
        slot = self._reserve_slot(promise, request)

        def kept() -> None:
            """Fill the slot with the response, or handle the error."""
            if promise.error is not None:
                self._fault_of(key, promise.error)
            else:
                self._fill_fast(slot, request, promise.result())

        promise.watch(kept)

    def _fill_fast(self, slot: _Slot, request: OpenRequest, response: FastResponse) -> None:
        """Fill a slot with a fast-path response: plain bytes, or parts with a callback."""
        if isinstance(response, bytes):
            self._fill_and_send(slot, (response,), None)
            return
        parts, on_sent, request.errors = response
        self._fill_and_send(slot, parts, on_sent)

    def _fault_of(self, key: int, error: Exception) -> None:
        """Close the connection after an exception on the fast path.

        The fast path knows only the API key of its request.
        """
        row = self._row_of(key)
        assert row is not None
        self._close_on_fault(row, error)

    def respond(self, content: bytes) -> None:
        """Send an encoded response after those of earlier requests; authentication calls it."""
        if not self._slots:
            self._connection.send((content,), None)
            return
        self._fill_and_send(self._reserve_slot(), (content,), None)

    def end_unauthenticated(self, reason: str) -> None:
        """Report a failed authentication, and close the connection after the pending responses."""
        self._server.events.on_bad_request(self._connection.peer, reason)
        self._close_in_turn(reason)

    def _close_in_turn(self, reason: str) -> None:
        """Close the connection after the pending responses; nothing more is read."""
        if not self._slots:
            self._connection.close(reason)
            return
        last = _Slot()
        last.is_filled = True
        last.close_reason = reason
        self._slots.append(last)
        self._connection.pause(PauseReason.CLOSING)

    def _handle_request(
        self,
        row: ApiRow,
        exchange: Exchange,
        body: memoryview,
        began_ns: int,
        *,
        may_take_fast_path: bool,
    ) -> None:
        """Decode a request, call its handler, and send the response or fill its slot.

        Without `may_take_fast_path` admission decides on the request first (step 4).
        """
        version, decode = exchange.api_version, row.decode
        request: object
        if decode is not None:
            request = decode(body, version)
        else:
            # Bytes after the message are ignored, as in Kafka: librdkafka sends some.
            request, _ = message_codec(f"{row.name}Request", version).decode_at(body, 0)
        number, is_of_others = row.key << VERSION_BITS | version, row.is_of_others
        if is_of_others is not None and is_of_others(request, version):
            number |= OF_OTHERS
        try:
            note_size = self._note_size[number]
        except KeyError:
            note_size = self._begin_size(number)
        try:
            if may_take_fast_path:
                handled, throttle_ms = row.handler(request, exchange), 0
            else:
                handled, throttle_ms = serve(row, request, exchange)
        except Exception as error:
            self._count_failure(row, OpenRequest(number, len(body), began_ns), error)
            return
        if (type(handled) is bytes or type(handled) is EncodedResponse) and not (
            throttle_ms or self._slots or self._throttled_ms
        ):
            head = response_header_bytes(row.key, version, exchange.correlation_id)
            if type(handled) is bytes:
                self._connection.send((head + handled,), None)
            elif type(handled) is EncodedResponse:
                parts, on_sent, errors = handled
                self._connection.send(_join_header(head, parts), on_sent)
                if errors is not None:
                    self._metrics.report(row.key, errors)
            note_size(len(body))
            if (now_ns := self._now_ns()) - began_ns >= NOTED_NS:
                self._metrics.note_time(number, now_ns - began_ns)
            return
        opened = OpenRequest(number, len(body), began_ns, self._now_ns())
        if throttle_ms:
            self._throttled_ms = max(self._throttled_ms, throttle_ms)
            self._send_or_reserve(row, exchange._replace(throttle_ms=throttle_ms), handled, opened)
            self._pause_for_quota(throttle_ms)
        else:
            self._send_or_reserve(row, exchange, handled, opened)

    def _count_failure(self, row: ApiRow, request: OpenRequest, error: Exception) -> None:
        """Count a request that failed without a response; close its connection or report an error.

        A malformed request or CloseConnection is raised again: the caller closes the connection.
        """
        request.errors = getattr(error, "errors", _NO_ERRORS)
        self._metrics.end(request, self._now_ns())
        if isinstance(error, WireError | CloseConnection):
            raise error
        self._close_on_fault(row, error)

    def _begin_size(self, number: int) -> Callable[[int], None]:
        """Return the function that records the sizes of requests with an API and version.

        `number` contains both. It is called at the first request of a kind, and at each one of a
        deprecated version, which it also counts.
        """
        session = self._session
        names = session.client_software_name, session.client_software_version
        return self._metrics.size_recorder(number, *names)

    def _pause_until_over(self, turns: Promise[None]) -> None:
        """Read no more requests of the client until `turns` is over.

        It is the last turn of a request that is served in several turns of the loop: the next
        request must not overtake it.
        """

        def over() -> None:
            if not self._is_closed:
                self._connection.resume(PauseReason.TURNS)

        if not turns.is_kept:
            self._connection.pause(PauseReason.TURNS)
            turns.watch(over)

    def _throttle(self, throttle_ms: int) -> None:
        """Mute the connection for a quota; the next response reports the throttle time."""
        self._throttled_ms = max(self._throttled_ms, throttle_ms)
        self._pause_for_quota(throttle_ms)

    def _pause_for_quota(self, throttle_ms: int) -> None:
        """Read no requests for `throttle_ms`; several throttle times may overlap."""

        def over() -> None:
            self._mutes -= 1
            if not self._mutes and not self._is_closed:
                self._connection.resume(PauseReason.QUOTA)

        self._mutes += 1
        self._connection.pause(PauseReason.QUOTA)
        self._session.admission.quotas.call_later(throttle_ms, over)

    def _close_on_fault(self, row: ApiRow, error: Exception) -> None:
        """Close the connection after an unexpected exception of a handler.

        A failed assertion is raised again and ends the process, as the broker's state is
        inconsistent.
        """
        if isinstance(error, AssertionError):
            self._server.events.on_broken(row, error)
            raise error
        self._server.events.on_fault(row, error)
        self._connection.close("the broker failed to serve a request")

    def _send_or_reserve(
        self, row: ApiRow, exchange: Exchange, handled: Handled, request: OpenRequest
    ) -> None:
        """Send a response, or reserve its slot if it cannot be sent yet.

        It cannot if it is a promise that is not kept, or if earlier requests have no response.
        """
        if isinstance(handled, Promise) and handled.is_kept and handled.turns is None:
            handled = _unwrap_response(handled)
        if isinstance(handled, Promise):
            slot = self._reserve_slot(handled, request)
            handled.watch(lambda: self._on_kept(slot, request, row, exchange, handled))
            if handled.turns is not None:
                self._pause_until_over(handled.turns)
        elif self._slots:
            self._fill_slot(self._reserve_slot(None, request), request, row, exchange, handled)
        else:
            request.errors = _collect_errors(row, handled)
            if handled is not None:
                parts, on_sent = _build_parts(row, exchange, handled)
                self._connection.send(parts, on_sent)
            self._end_request(request)

    def _end_request(self, request: OpenRequest) -> None:
        """Record the metrics of a request whose response was passed to the connection."""
        request.throttle_ms, self._throttled_ms = self._throttled_ms, 0
        self._metrics.end(request, self._now_ns())

    def _on_kept(
        self,
        slot: _Slot,
        request: OpenRequest,
        row: ApiRow,
        exchange: Exchange,
        promise: Promise[Response | CloseConnection],
    ) -> None:
        """Fill the slot with the result of a promise; a CloseConnection closes the connection."""
        if promise.error is not None:
            # Expected errors are responses of the handler, so this one is unexpected.
            self._close_on_fault(row, promise.error)
            return
        response = promise.result()
        if isinstance(response, CloseConnection):
            slot.close_reason = response.reason
            request.errors = response.errors
            if not self._is_closed:
                self._connection.pause(PauseReason.CLOSING)
            self._fill_and_send(slot, None, None)
        else:
            self._fill_slot(slot, request, row, exchange, response)

    def _fill_slot(
        self,
        slot: _Slot,
        request: OpenRequest,
        row: ApiRow,
        exchange: Exchange,
        response: Response,
    ) -> None:
        """Set the response of a slot and send the slots that are ready (step 6)."""
        request.errors = _collect_errors(row, response)
        if response is None:
            self._fill_and_send(slot, None, None)
        else:
            self._fill_and_send(slot, *_build_parts(row, exchange, response))

    def _fill_and_send(
        self, slot: _Slot, parts: Sequence[SendPart] | None, on_sent: Callable[[], None] | None
    ) -> None:
        """Fill a slot, then send all filled slots at the front, in the order of the requests.

        `parts` None means no response. On a closed connection only `on_sent` is called, which
        releases what the parts refer to.
        """
        if self._is_closed:
            if on_sent is not None:
                on_sent()
            return
        slot.is_filled = True
        slot.parts, slot.on_sent = parts, on_sent
        if slot is not self._slots[0] and slot.request is not None:
            slot.request.filled_ns = self._now_ns()
        while self._slots and self._slots[0].is_filled:
            first = self._slots.popleft()
            if first.parts is not None:
                self._connection.send(first.parts, first.on_sent)
            if first.request is not None:
                self._end_request(first.request)
            if first.close_reason is not None:
                self._connection.close(first.close_reason)
                return
        if self._is_paused and len(self._slots) < OPEN_REQUESTS_PER_CONNECTION_MAX:
            self._is_paused = False
            self._connection.resume(PauseReason.SLOTS)

    def begin(self) -> None:
        """Serve the frames that the client sent while the server read no requests (`hold`)."""
        self._connection.resume(PauseReason.OPENING)

    def close(self, reason: str) -> None:
        """Close the connection without sending pending responses."""
        self._connection.close(reason)

    def _end(self, reason: str) -> None:
        """Report a client that breaks the protocol, and close its connection at once."""
        self._server.events.on_bad_request(self._connection.peer, reason)
        self._connection.close(reason)

    def _on_closed(self, _reason: str) -> None:
        """Release the open requests of a closed connection, and end its session.

        The connection calls it, for any reason of the end.
        """
        self._is_closed = True
        if self._gate is not None:
            self._gate.close()
        slots, self._slots = self._slots, deque()
        for slot in slots:
            if slot.request is not None:
                end = self._metrics.end if slot.is_filled else self._metrics.end_unanswered
                end(slot.request, self._now_ns())
            if slot.on_sent is not None:
                slot.on_sent()
            elif slot.promise is not None:
                # There is no client any more for the response.
                slot.promise.abandon()
        self._session.end()
        self._server.forget(self)


def _unwrap_response(kept: Promise[Response | CloseConnection]) -> Handled:
    """Return the response in a kept promise, so that it is sent without a slot.

    The promise itself is returned if it has an error or CloseConnection.
    """
    response = None if kept.error is not None else kept.result()
    if kept.error is not None or isinstance(response, CloseConnection):
        return kept
    return response


def _collect_errors(row: ApiRow, response: Response) -> ErrorCounts | None:
    """Return the number of each error code in a response, for the error metrics.

    None means the counts that are most frequent for the API.
    """
    if response is None:
        return _NO_ERRORS
    if isinstance(response, bytes):
        return None
    if isinstance(response, EncodedResponse | EncodedRows):
        return response.errors
    return error_counts(row.name, response)


def _build_parts(
    row: ApiRow, exchange: Exchange, response: Struct | EncodedResponse | EncodedRows | bytes
) -> tuple[Sequence[SendPart], Callable[[], None] | None]:
    """Return the parts to send, including the header, and the callback for when they are sent.

    A throttle time is set in the message, if it has the field. The callback is None if there is
    nothing to release.
    """
    _, key, version, correlation_id, _, _, throttle_ms = exchange
    head = response_header_bytes(key, version, correlation_id)
    if isinstance(response, bytes):
        return (head + response,), None
    if isinstance(response, EncodedResponse):
        return _join_header(head, response.parts), response.on_sent
    message = response.message if isinstance(response, EncodedRows) else response
    if throttle_ms and hasattr(message, "throttle_time_ms"):
        message.throttle_time_ms = max(message.throttle_time_ms, throttle_ms)
    if isinstance(response, EncodedRows):
        return [head, *insert_rows(row.name, version, *response.rows)], None
    return (head, message_codec(f"{row.name}Response", version).encode(response)), None


def _join_header(head: bytes, parts: list[SendPart]) -> Sequence[SendPart]:
    """Return the parts to send: a response header, then the response's parts.

    The header is joined with a short first part, to send one buffer less.
    """
    first = parts[0]
    if type(first) is bytes and len(first) <= JOINED_SEND_BYTES_MAX:
        return [head + first, *parts[1:]]
    return [head, *parts]
