"""The connection of brokers to other brokers: calls on the engine's loop, each a promise.

```
send ─ no connection? connect, handshake ──> sent in order ── response ─────────────> kept
                                               └─ lost, silent, not Kafka ──> all calls fail
```

The next call after the end of a connection opens another one; requests are not repeated here. One
timer runs for the earliest deadline of the pending calls. Before a SASL session expires, the client
authenticates again ahead of its next request.

Differs from `broker_connections`, the driver of commands: the network port passes whole frames,
and nothing blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from engine.client.connection import (
    READY,
    BrokerConnection,
    Call,
    Response,
    reauthentication_ms,
)
from engine.client.errors import ConnectionLost, TimedOut, Unreachable
from engine.client.settings import Address
from engine.errors import EngineError
from engine.host import ports
from engine.host.promise import Promise
from engine.host.stream_layer import LayerOf
from engine.model import new_tuple


class _PendingCall(NamedTuple):
    """A call without a response."""

    call: Call
    deadline_ms: int
    promise: Promise[Response]


class LoopConnection:
    """The calls to one address; `make_connection` creates the protocol side of each connection."""

    def __init__(
        self,
        network: ports.Network,
        timers: ports.Timers,
        clock: ports.Clock,
        address: Address,
        make_connection: Callable[[], BrokerConnection],
        *,
        timeout_ms: int,
        receive_buffer_bytes: int = -1,
        layer: LayerOf | None = None,
    ) -> None:
        """Create without a connection; `timeout_ms` bounds each call with connecting and handshake.

        `receive_buffer_bytes` is the kernel's buffer for responses, −1 its own size; `layer`
        encrypts connections.
        """
        self._network = network
        self._timers = timers
        self._clock = clock
        self._address = address
        self._make_connection = make_connection
        self._timeout_ms = timeout_ms
        self._receive_buffer_bytes = receive_buffer_bytes
        self._layer = layer
        #: The protocol side and the socket of the current connection. None: the next call connects.
        self._connection: BrokerConnection | None = None
        self._wire: ports.Connection | None = None
        #: Whether a response came over the connection: a loss is then ConnectionLost, not
        #: Unreachable.
        self._has_responded = False
        #: When to authenticate again (monotonic), None where sessions do not end.
        self._again_ms: int | None = None
        #: Calls without a result by token, in the order of `send`.
        self._pending_calls: dict[object, _PendingCall] = {}
        #: Tokens of calls that wait for the handshake.
        self._unsent: list[object] = []
        #: Cancels the timer of the next deadline; None without calls.
        self._cancel: Callable[[], None] | None = None

    @property
    def pending_count(self) -> int:
        """Return the number of calls that were sent or queued and have no response yet."""
        return len(self._pending_calls)

    def send(self, call: Call) -> Promise[Response]:
        """Send a call, after connecting if needed; return the promise of its response.

        The promise fails with Unreachable, ConnectionLost, TimedOut, NoCommonVersion, or an error
        in the broker's responses.
        """
        promise: Promise[Response] = Promise()
        token = object()
        deadline_ms = self._clock.monotonic_ms() + self._timeout_ms
        self._pending_calls[token] = _PendingCall(call, deadline_ms, promise)
        self._unsent.append(token)
        if self._cancel is None:
            self._cancel = self._timers.call_at(deadline_ms, self._expire)
        if self._wire is None:
            self._connect()
        elif self._connection is not None and self._connection.state == READY:
            self._send_unsent()
        return promise

    def close(self, reason: str) -> None:
        """Close the connection; calls without a response fail with `reason`."""
        if self._wire is not None:
            self._wire.close(reason)
        self._on_closed(self._wire, reason)

    def _connect(self) -> None:
        """Open a new connection and start its handshake; calls wait until it is READY."""
        self._has_responded = False
        self._again_ms = None
        wire = self._wire = self._network.connect(
            *self._address, receive_buffer_bytes=self._receive_buffer_bytes, layer=self._layer
        )
        self._connection = self._make_connection()
        wire.on_frame = lambda frame: self._take_frame(wire, frame)
        wire.on_close = lambda reason: self._on_closed(wire, reason)
        self._connection.on_opened()
        self._flush()

    def _flush(self) -> None:
        """Hand the frames that the connection has encoded to the socket."""
        assert self._connection is not None
        assert self._wire is not None
        for frame in self._connection.take_frames():
            self._wire.send([frame])

    def _send_unsent(self) -> None:
        """Send the calls that waited for the handshake; a call that cannot be sent fails alone.

        If the SASL session ends soon, authentication comes first, and the calls wait further.
        """
        assert self._connection is not None
        if self._is_session_ending():
            self._again_ms = None
            self._connection.authenticate()
            self._flush()
            return
        unsent, self._unsent = self._unsent, []
        failed: list[tuple[Promise[Response], EngineError]] = []
        for token in unsent:
            call = self._pending_calls[token].call
            try:
                version = self._connection.version_of(
                    call.api_name, call.lowest, call.highest, call.release
                )
                self._connection.send(
                    call.api_name, call.message, version=version, token=token, release=call.release
                )
            except EngineError as error:
                failed.append((self._pending_calls.pop(token).promise, error))
        self._flush()
        for promise, refusal in failed:
            promise.fail(refusal)

    def _take_frame(self, wire: ports.Connection, frame: memoryview) -> None:
        """Handle one frame: complete the promise of a call, or continue the handshake.

        Wrong bytes close the connection and fail all its calls.
        """
        connection = self._connection
        if connection is None or wire is not self._wire:
            # A frame of an earlier connection may arrive after it was closed.
            return
        self._has_responded = True
        if self._take_fast(connection, wire, frame):
            return
        try:
            # Copy the frame: its buffer is reused after this call, and the response has views of
            # it.
            response = connection.take_frame(bytes(frame))
        except EngineError as error:
            self._on_wrong_bytes(error)
            return
        if response is not None:
            owed = self._pending_calls.pop(response.token)
            self._cancel_timer_if_idle()
            owed.promise.keep(response)
        elif connection.state == READY:
            lifetime_ms = connection.session_lifetime_ms
            if lifetime_ms:
                self._again_ms = reauthentication_ms(self._clock.monotonic_ms(), lifetime_ms)
            self._send_unsent()
        else:
            self._flush()

    def _is_session_ending(self) -> bool:
        """True if the SASL session has to be renewed before the next call is sent."""
        return self._again_ms is not None and self._clock.monotonic_ms() >= self._again_ms

    def _take_fast(
        self, connection: BrokerConnection, wire: ports.Connection, frame: memoryview
    ) -> bool:
        """Process a response by the fast path of its call, and send the next request of that call.

        Returns True if it was processed. False, with nothing changed, if the response is not of the
        fast form: the caller then decodes it in general.
        """
        sent = connection.answered(frame)
        if sent is None:
            return False
        owed = self._pending_calls[sent.token]
        fast = owed.call.fast
        if fast is None or self._is_session_ending():
            return False
        read = fast.read(frame, sent.version)
        if read is None:
            return False
        connection.drop_answered()
        goes_on = fast.take(read)
        if wire is not self._wire:
            # The connection was closed while the response was processed, and the call has failed.
            return True
        if goes_on:
            deadline_ms = self._clock.monotonic_ms() + self._timeout_ms
            self._pending_calls[sent.token] = new_tuple(
                _PendingCall, (owed.call, deadline_ms, owed.promise)
            )
            wire.send((connection.send_again(sent, fast.request),))
        else:
            del self._pending_calls[sent.token]
            self._cancel_timer_if_idle()
            owed.promise.keep(Response(sent.token, sent.version, None))
        return True

    def _on_wrong_bytes(self, error: EngineError) -> None:
        """Close a connection whose peer sent wrong bytes; all calls fail with the error."""
        wire = self._wire
        self._forget_connection()
        assert wire is not None
        wire.close(str(error))
        self._fail_all(lambda _pending_calls: error)

    def _on_closed(self, wire: ports.Connection | None, reason: str) -> None:
        """Fail all calls because `wire` was closed; ignore it if it is an earlier connection's."""
        if wire is None or wire is not self._wire:
            return
        self._forget_connection()
        host, port = self._address
        kind = ConnectionLost if self._has_responded else Unreachable
        self._fail_all(lambda _pending_calls: kind(host, port, reason))

    def _forget_connection(self) -> None:
        """Drop the connection without closing it: the next call opens a new one."""
        self._wire = self._connection = None

    def _fail_all(self, error_of: Callable[[_PendingCall], EngineError]) -> None:
        """Fail all calls without a response, also unsent ones.

        `error_of` returns the error of a call.
        """
        owed, self._pending_calls = self._pending_calls, {}
        self._unsent = []
        self._cancel_timer_if_idle()
        for call in owed.values():
            call.promise.fail(error_of(call))

    def _cancel_timer_if_idle(self) -> None:
        """Cancel the deadline timer if no call waits for a response."""
        if not self._pending_calls and self._cancel is not None:
            self._cancel()
            self._cancel = None

    def _expire(self) -> None:
        """Check the calls' deadlines, when the timer ends.

        If a call is late, closes the connection and fails all calls. The response to a late call
        would delay those of later calls. If no call is late, the timer is set to the next deadline.
        """
        self._cancel = None
        deadlines = [owed.deadline_ms for owed in self._pending_calls.values()]
        if not deadlines:
            return
        now_ms = self._clock.monotonic_ms()
        if min(deadlines) > now_ms:
            self._cancel = self._timers.call_at(min(deadlines), self._expire)
            return
        wire = self._wire
        self._forget_connection()
        if wire is not None:
            wire.close("no answer in time")
        self._fail_all(self._expired_error)

    def _expired_error(self, owed: _PendingCall) -> EngineError:
        """Return the error of a call that got no response in time."""
        what = f"{owed.call.api_name} to {self._address}"
        return TimedOut(what, self._timeout_ms)


def message_of(response: Response) -> object:
    """Return the decoded message of a response, without its token and version."""
    return response.message
