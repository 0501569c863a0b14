"""The connections of a client to brokers, with their streams, pending calls and deadlines.

`BrokerConnections` sends any number of calls at once and returns one result for each: a response
or an error. It does not retry; `blocking` does.

A broker answers the requests of a connection in order, so that a delayed one, such as a Fetch that
waits for records, delays all later ones. Calls that must not wait for it use a second connection
to the same address: `is_apart`. Source: AbstractCoordinator.FindCoordinatorResponseHandler of
3.9.1, which uses a made-up node id for the coordinator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from engine.client.connection import (
    READY,
    BrokerConnection,
    Call,
    Response,
    reauthentication_ms,
)
from engine.client.errors import ConnectionLost, TimedOut, Unreachable
from engine.client.settings import Address, ClientSettings
from engine.errors import EngineError
from engine.host.streams import Stream, StreamEvent, Streams, WakeableStreams

if TYPE_CHECKING:
    from engine.host.ports import Clock

CallResult: TypeAlias = "Response | EngineError"
#: The address of a connection, and whether it is the second one to it (`is_apart`).
_Place: TypeAlias = "tuple[Address, bool]"
#: The longest wait that selectors of all kinds accept; a longer pause is split.
_WAIT_MS_MAX: Final = 3_600_000


class _Waiting(NamedTuple):
    """A call whose response has not arrived."""

    call: Call
    deadline_ms: int
    timeout_ms: int


class _Channel:
    """One connection, with its calls that have no result yet."""

    def __init__(
        self,
        place: _Place,
        connection: BrokerConnection,
        stream: Stream,
        connect_deadline_ms: int,
    ) -> None:
        """Create a channel whose stream is connecting; the limit is `connect_deadline_ms`."""
        self.place = place
        self.address = place[0]
        self.connection = connection
        self.stream = stream
        self.connect_deadline_ms = connect_deadline_ms
        #: Calls that wait for the handshake or for an authentication, by token; then those sent.
        self.queued: dict[object, _Waiting] = {}
        self.in_flight: dict[object, _Waiting] = {}
        #: Whether a response came since the handshake, and when the last one came (monotonic). A
        #: broker that closes before may require authentication: the error has a hint then.
        self.has_answered = False
        self.answered_ms = 0
        #: When to authenticate again (monotonic), None where sessions do not end.
        self.again_ms: int | None = None

    @property
    def is_ready(self) -> bool:
        """True if calls can be sent: the handshake and any authentication are finished."""
        return self.connection.state == READY

    def is_idle_since_before(self, now_ms: int) -> bool:
        """Return True if the connection is ready, without calls, and idle since before `now_ms`."""
        has_calls = self.queued or self.in_flight
        return self.is_ready and not has_calls and self.answered_ms < now_ms

    def next_deadline_ms(self) -> int | None:
        """Return the earliest deadline of the connection and its calls, None without a deadline."""
        deadlines = [w.deadline_ms for w in (*self.queued.values(), *self.in_flight.values())]
        if deadlines and not self.is_ready:
            deadlines.append(self.connect_deadline_ms)
        return min(deadlines, default=None)


class BrokerConnections:
    """All connections of one client, by address and `is_apart`."""

    def __init__(
        self,
        settings: ClientSettings,
        streams: Streams,
        clock: Clock,
        make_connection: Callable[[], BrokerConnection],
        on_call: Callable[[Call], None] | None = None,
    ) -> None:
        """Create the connections of a client; none is open yet.

        `make_connection` creates the protocol side of each new connection. `on_call` is called
        before each request is sent, and may raise to prevent it.
        """
        self._on_call = on_call
        self._settings = settings
        self._streams = streams
        self._clock = clock
        self._make_connection = make_connection
        self._channels: dict[_Place, _Channel] = {}
        #: Whether `interrupt` was called since the last `proceed`: waits that allow it end at once.
        self._is_interrupted = False
        #: Results with their tokens that the next `wait` returns.
        self._results: list[tuple[object, CallResult]] = []
        #: Tokens of calls whose results are discarded when they come.
        self._abandoned: set[object] = set()
        #: Bounds every wait while the client closes. None: it is not closing.
        self.close_deadline_ms: int | None = None

    def ready_address(self) -> Address | None:
        """Return the address of a connection that is ready, None without one.

        Second connections to an address (`is_apart`) do not count.
        """
        ready = (
            a
            for (a, is_apart), channel in self._channels.items()
            if channel.is_ready and not is_apart
        )
        return next(ready, None)

    def submit(
        self,
        address: Address,
        call: Call,
        token: object,
        timeout_ms: int,
        *,
        is_apart: bool = False,
    ) -> None:
        """Send a call, after connecting if needed; `wait` returns its result.

        A call that `is_apart` has its own connection, so that it does not wait for the responses of
        other calls. `on_call` receives each call first, and its errors are raised.
        """
        if self._on_call is not None:
            self._on_call(call)
        now_ms = self._clock.monotonic_ms()
        place = (address, is_apart)
        channel = self._channels.get(place)
        if channel is not None and channel.is_idle_since_before(now_ms):
            # The broker may have closed it meanwhile: then the call takes a new one.
            self._apply_events(0)
            channel = self._channels.get(place)
        if channel is None:
            channel = self._connect(place, now_ms)
        waiting = _Waiting(call, now_ms + timeout_ms, timeout_ms)
        channel.queued[token] = waiting
        if channel.is_ready:
            self._send_queued(channel)

    def wait(
        self, timeout_ms: int, *, may_be_interrupted: bool = False, ends_as_closing: bool = False
    ) -> list[tuple[object, CallResult]]:
        """Return the results that have arrived, with their tokens; without any, wait for the first.

        Empty after `timeout_ms`. After `interrupt` a wait with `may_be_interrupted` returns at
        once; so does a wait with `ends_as_closing` after `begin_closing`.
        """
        now_ms = self._clock.monotonic_ms()
        give_up_ms = now_ms + timeout_ms
        # A wait of no time still moves bytes and takes what has arrived.
        is_over = False
        while not self._results and not is_over:
            deadlines = [
                d for channel in self._channels.values() if (d := self._deadline_ms_of(channel))
            ]
            # The byte of `interrupt` may have been read by an earlier wait that may not be
            # interrupted.
            is_over = self._is_ended(may_be_interrupted, ends_as_closing)
            pause_ms = 0 if is_over else max(min([give_up_ms, *deadlines]) - now_ms, 0)
            self._apply_events(pause_ms)
            now_ms = self._clock.monotonic_ms()
            self._expire(now_ms)
            is_over = now_ms >= give_up_ms or self._is_ended(may_be_interrupted, ends_as_closing)
        results, self._results = self._results, []
        if not self._abandoned:
            return results
        wanted = [(token, r) for token, r in results if token not in self._abandoned]
        self._abandoned.difference_update(token for token, _ in results)
        return wanted

    def _is_ended(self, may_be_interrupted: bool, ends_as_closing: bool) -> bool:
        """True if a wait with these two permissions ends early.

        It was interrupted, or the client closes.
        """
        return (may_be_interrupted and self._is_interrupted) or (
            ends_as_closing and self.close_deadline_ms is not None
        )

    def _deadline_ms_of(self, channel: _Channel) -> int | None:
        """Return when the first call of a connection times out, None if it has no calls.

        It is at most the deadline of a client that closes.
        """
        deadline_ms = channel.next_deadline_ms()
        if deadline_ms is None or self.close_deadline_ms is None:
            return deadline_ms
        return min(deadline_ms, self.close_deadline_ms)

    def abandon(self, tokens: Iterable[object]) -> None:
        """Drop calls without a response by their tokens: no later `wait` returns their results."""
        self._abandoned.update(tokens)

    def interrupt(self) -> None:
        """End the interruptible waits of a client, now and until `proceed`; any thread may call.

        The streams have to be `WakeableStreams`.
        """
        self._is_interrupted = True
        assert isinstance(self._streams, WakeableStreams)
        self._streams.wake()

    @property
    def is_interrupted(self) -> bool:
        """True between `interrupt` and `proceed`.

        Waits with `may_be_interrupted` return at once.
        """
        return self._is_interrupted

    def begin_closing(self, deadline_ms: int) -> None:
        """End the waits with `ends_as_closing`, and bound all other waits by a deadline.

        A wait in progress ends or is bounded at its next wake-up, for instance by `interrupt`.
        """
        self.close_deadline_ms = deadline_ms

    def drop(self, address: Address, *, is_apart: bool = False) -> None:
        """Close the connection to an address; its calls fail with ConnectionLost.

        Called when a response does not come: on the same connection it would delay all later ones.
        """
        channel = self._channels.get((address, is_apart))
        if channel is not None:
            channel.stream.close()
            self._fail(channel, ConnectionLost(*address, "closed here"))

    def close_streams(self) -> None:
        """Close all connections and the waker of the streams: nothing can be sent any more."""
        self.close()
        assert isinstance(self._streams, WakeableStreams)
        self._streams.close()

    def proceed(self) -> None:
        """Allow interruptible waits to wait again after `interrupt`."""
        self._is_interrupted = False

    def pause(self, duration_ms: int, *, may_be_interrupted: bool = False) -> None:
        """Wait `duration_ms`; responses that arrive are kept for the next wait."""
        until_ms = self._clock.monotonic_ms() + duration_ms
        while (left_ms := until_ms - self._clock.monotonic_ms()) > 0:
            if may_be_interrupted and self._is_interrupted:
                return
            self._apply_events(min(left_ms, _WAIT_MS_MAX))

    def close(self) -> None:
        """Close all connections; calls without a response get no result."""
        for channel in self._channels.values():
            channel.stream.close()
        self._channels.clear()

    # -- inside

    def _connect(self, place: _Place, now_ms: int) -> _Channel:
        """Begin to connect to an address; return the new connection, which later calls share."""
        address, _ = place
        stream = self._streams.connect(address.host, address.port, self._settings.tls)
        deadline_ms = now_ms + self._settings.connect_timeout_ms
        channel = _Channel(place, self._make_connection(), stream, deadline_ms)
        self._channels[place] = channel
        return channel

    def _apply_events(self, wait_ms: int) -> None:
        """Apply the events of all streams; wait up to `wait_ms` for the first."""
        for event in self._streams.wait(wait_ms):
            self._handle_event(event)

    def _handle_event(self, event: StreamEvent) -> None:
        """Apply one event of a stream (opened, bytes received, closed) to its connection.

        After an error the connection is closed, and all its calls fail with that error.
        """
        channel = next((k for k in self._channels.values() if k.stream is event.stream), None)
        if channel is None:
            return
        if event.kind == "closed":
            error = self._closed_error(channel, event.reason)
            error.hint = event.hint or error.hint
            self._fail(channel, error)
            return
        try:
            if event.kind == "opened":
                channel.connection.on_opened()
            else:
                was_ready = channel.is_ready
                self._store_responses(channel, channel.connection.receive(event.data))
                if channel.is_ready and not was_ready and channel.connection.session_lifetime_ms:
                    channel.again_ms = reauthentication_ms(
                        self._clock.monotonic_ms(), channel.connection.session_lifetime_ms
                    )
        except EngineError as failure:
            channel.stream.close()
            self._fail(channel, failure)
            return
        if channel.is_ready:
            self._send_queued(channel)
        self._flush(channel)

    def _store_responses(self, channel: _Channel, responses: list[Response]) -> None:
        """Store responses for the next wait; their calls are no longer in flight."""
        for response in responses:
            channel.has_answered = True
            channel.answered_ms = self._clock.monotonic_ms()
            channel.in_flight.pop(response.token, None)
            self._results.append((response.token, response))

    def _send_queued(self, channel: _Channel) -> None:
        """Send the calls that waited for the handshake; a call that cannot be sent fails alone.

        They wait further if the connection has to authenticate again first.
        """
        if channel.queued and self._reauthenticate_if_due(channel):
            return
        queued, channel.queued = channel.queued, {}
        for token, waiting in queued.items():
            call = waiting.call
            try:
                version = channel.connection.version_of(
                    call.api_name, call.lowest, call.highest, call.release
                )
                channel.connection.send(
                    call.api_name,
                    call.message,
                    version=version,
                    token=token,
                    has_response=call.has_response,
                    release=call.release,
                )
            except EngineError as error:
                self._results.append((token, error))
                continue
            if call.has_response:
                channel.in_flight[token] = waiting
            else:
                self._results.append((token, Response(token, version, None)))
        self._flush(channel)

    def _reauthenticate_if_due(self, channel: _Channel) -> bool:
        """Start another authentication if the session ends soon; return whether it was started.

        Queued calls wait until it has succeeded.
        """
        now_ms = self._clock.monotonic_ms()
        if channel.again_ms is None or now_ms < channel.again_ms:
            return False
        channel.again_ms = None
        channel.connect_deadline_ms = now_ms + self._settings.connect_timeout_ms
        channel.connection.authenticate()
        self._flush(channel)
        return True

    def _flush(self, channel: _Channel) -> None:
        """Pass the encoded frames of a connection to its stream."""
        output = channel.connection.take_output()
        if output:
            channel.stream.send(output)

    def _closed_error(self, channel: _Channel, reason: str) -> EngineError:
        """Return the error for calls on a connection that its peer closed.

        It is Unreachable if the connection never opened, else ConnectionLost, with a hint where the
        broker probably requires SASL.
        """
        host, port = channel.address
        if channel.connection.state == "connecting":
            return Unreachable(host, port, reason)
        lost = ConnectionLost(host, port, reason)
        if channel.is_ready and not channel.has_answered and self._settings.sasl is None:
            # A broker answers ApiVersions without authentication, and closes at the next request.
            lost.hint = (
                "a listener with SASL ends the connection so: set security.protocol to "
                "SASL_PLAINTEXT or SASL_SSL, with sasl.mechanism and sasl.jaas.config"
            )
        return lost

    def _fail(self, channel: _Channel, error: EngineError) -> None:
        """Remove a connection, and complete each of its calls with the same error."""
        del self._channels[channel.place]
        for token in (*channel.in_flight, *channel.queued):
            self._results.append((token, error))

    def _expire(self, now_ms: int) -> None:
        """Close each connection whose first deadline has passed; all its calls fail."""
        for channel in list(self._channels.values()):
            deadline_ms = self._deadline_ms_of(channel)
            if deadline_ms is None or now_ms < deadline_ms:
                continue
            channel.stream.close()
            self._fail(channel, self._expired_error(channel))

    def _expired_error(self, channel: _Channel) -> EngineError:
        """Return the error for the calls of a connection whose deadline has passed.

        Unreachable if the connection never opened, ConnectionLost before the end of the handshake,
        else TimedOut of the call with the earliest deadline.
        """
        host, port = channel.address
        if channel.connection.state == "connecting":
            return Unreachable(host, port, "no connection in time")
        if not channel.is_ready:
            return ConnectionLost(host, port, "no answer to the first request in time")
        first = min(channel.in_flight.values(), key=lambda w: w.deadline_ms)
        return TimedOut(f"{first.call.api_name} to {channel.address}", first.timeout_ms)
