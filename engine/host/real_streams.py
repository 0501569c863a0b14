"""Streams on the sockets of this machine: non-blocking, waited for with one selector.

A host name may have several addresses (`localhost` is often ::1 and 127.0.0.1): they are tried in
turn, and the stream is closed only when the last one fails. Each name is looked up on a thread of
its own that wakes the selector when done: a name server that hangs delays only its stream.
"""

from __future__ import annotations

import os
import selectors
import socket
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias, TypeVar, cast, overload

from engine.host.name_lookup import parse_address, reason_of
from engine.host.process_guard import ProcessGuard
from engine.host.streams import Failure, Stream, StreamEvent, TlsSettings
from engine.limits import RECEIVE_BYTES

if TYPE_CHECKING:
    import ssl

    from engine.host.ports import Buffer

A = TypeVar("A")
R = TypeVar("R")

_READ = selectors.EVENT_READ
_WRITE = selectors.EVENT_WRITE


#: An address of a host: family, kind, protocol, canonical name, and the socket's address.
_Address: TypeAlias = tuple[int, int, int, str, tuple[object, ...]]
#: Addresses of a host, or the reason why there are none.
_Found: TypeAlias = list[_Address] | str


def _resolve_host(host: str, port: int) -> _Found:
    """Return the addresses of a host, or the reason why there are none as a text.

    Blocks for the system's resolver.
    """
    # A numeric address is passed as bytes: so the IDNA codec, slow to import, is not loaded.
    name = host if parse_address(host) is None else host.encode()
    try:
        return list(socket.getaddrinfo(name, port, type=socket.SOCK_STREAM))
    except (OSError, ValueError) as error:
        return reason_of(error)


def _tls_context(tls: TlsSettings) -> ssl.SSLContext:
    """Return the TLS context for a stream's settings; raises BadTlsFile.

    The module `tls` is imported only here, because it is slow to import.
    """
    from engine.host.tls import create_tls_context

    return create_tls_context(tls)


class RealStream:
    """A socket, from the first connection attempt until it is closed."""

    def __init__(self, owner: RealStreams, host: str, port: int, tls: TlsSettings | None) -> None:
        """Create a stream that is not started; raises BadTlsFile."""
        self.host = host
        self.port = port
        self._owner = owner
        self._tls = tls
        self._context = None if tls is None else _tls_context(tls)
        #: Result of the look-up of the host. Its thread sets it before it signals its end.
        self._found: _Found = "unknown host"
        #: Addresses of the host that were not tried yet.
        self._addresses: deque[_Address] = deque()
        #: The socket of the current phase; during the look-up, the one by which its thread signals.
        self._socket: socket.socket | None = None
        #: The step that has been reached: look-up, connecting, TLS, open or closed.
        self._phase = "connecting"
        self._unsent: deque[memoryview] = deque()

    # -- the port's methods

    def send(self, buffers: Sequence[Buffer]) -> None:
        """Queue bytes; the part that the socket accepts is sent at once."""
        self._owner.check_process()
        self._unsent.extend(memoryview(part) for part in buffers)
        if self._phase == "open":
            self._owner.run_operation(self, self._flush)

    def close(self) -> None:
        """Close the socket now, without an event for `wait`."""
        self._phase = "closed"
        if self._socket is not None:
            self._owner.forget(self._socket)
            self._socket.close()
            self._socket = None

    # -- opening

    def start_connecting(self) -> None:
        """Resolve the addresses of the host, a name on a thread, and try the first address."""
        if parse_address(self.host) is not None:
            self._on_resolved(_resolve_host(self.host, self.port))
            return
        self._phase = "look-up"
        self._socket, done_socket = socket.socketpair()
        self._owner.watch(self._socket, _READ, self)
        name = f"kctl-lookup-{self.host}"
        try:
            threading.Thread(
                target=self._resolve, args=(done_socket,), name=name, daemon=True
            ).start()
        except RuntimeError as error:
            done_socket.close()
            self._found = f"unknown host: {error}"

    def _resolve(self, done_socket: socket.socket) -> None:
        """Resolve the name, on a thread; closing the socket signals the end."""
        with done_socket:
            self._found = _resolve_host(self.host, self.port)

    def _on_resolved(self, found: _Found) -> None:
        """Try the addresses found; report the stream as closed if the look-up failed."""
        if isinstance(found, str):
            self._drop_socket()
            self._phase = "closed"
            self._owner.report_closed(self, found)
            return
        self._addresses.extend(found)
        self._connect_next("no address")

    def _connect_next(self, reason: str) -> None:
        """Connect to the next address of the host; report the close if none is left.

        `reason` is the failure of the previous address.
        """
        self._drop_socket()
        while self._addresses:
            family, kind, protocol, _, address = self._addresses.popleft()
            try:
                self._socket = socket.socket(family, kind, protocol)
                self._socket.setblocking(False)
                self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._socket.connect_ex(address)
            except OSError as error:
                reason = error.strerror or str(error)
                self._drop_socket()
                continue
            self._phase = "connecting"
            self._owner.watch(self._socket, _WRITE, self)
            return
        self._phase = "closed"
        self._owner.report_closed(self, reason)

    def _drop_socket(self) -> None:
        """Close the socket, if it is open, and stop watching it."""
        if self._socket is not None:
            self._owner.forget(self._socket)
            self._socket.close()
            self._socket = None

    def _finish_connecting(self) -> None:
        """Handle the end of connect: try the next address, begin TLS, or open."""
        assert self._socket is not None
        problem = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if problem:
            self._connect_next(os.strerror(problem))
        elif self._context is None:
            self._open()
        else:
            self._start_tls(self._context)

    def _start_tls(self, context: ssl.SSLContext) -> None:
        """Wrap the socket in TLS and begin the handshake, which may need several turns."""
        assert self._socket is not None
        self._phase = "handshake"
        self._owner.forget(self._socket)
        self._socket = context.wrap_socket(
            self._socket, server_hostname=self.host, do_handshake_on_connect=False
        )
        self._owner.watch(self._socket, _READ | _WRITE, self)
        self._shake_hands()

    def _shake_hands(self) -> None:
        """Continue the TLS handshake, and open the stream once it is complete."""
        secured = cast("ssl.SSLSocket", self._socket)
        if self._try_operation(secured.do_handshake) is not None:
            self._open()

    def _open(self) -> None:
        """Report the stream as opened, and send the bytes queued before."""
        self._phase = "open"
        self._addresses.clear()
        self._owner.report(StreamEvent(self, "opened"))
        self._flush()

    # -- moving bytes

    def advance(self, ready: int) -> None:
        """Continue with the operations that the socket is ready for, by the stream's phase.

        `ready` are the selector's events, which are not used.
        """
        if self._phase == "look-up":
            self._on_resolved(self._found)
        elif self._phase == "connecting":
            self._finish_connecting()
        elif self._phase == "handshake":
            self._shake_hands()
        elif self._phase == "open":
            self._flush()
            self._receive()

    def fail(self, error: OSError) -> None:
        """Close after an error of a socket call; while connecting, try the next address."""
        if self._phase == "connecting":
            self._connect_next(error.strerror or str(error))
        elif self._phase != "closed":
            failure = Failure(error.strerror or str(error))
            if self._tls is not None:
                from engine.host.tls import explain_tls_failure

                is_handshake = self._phase == "handshake"
                failure = explain_tls_failure(error, self._tls, is_handshake=is_handshake)
            self.end(failure)

    def end(self, failure: Failure) -> None:
        """Close the stream, and report the reason as the event `closed`."""
        self.close()
        self._owner.report_closed(self, failure.reason, failure.hint)

    def on_interrupt(self) -> None:
        """Close after a signal interrupted an operation, and report the close.

        The operation may have moved bytes without recording it.
        """
        if self._phase != "closed":
            self.end(Failure("it was interrupted as it moved bytes"))

    def _receive(self) -> None:
        """Report all bytes that have arrived; end the stream if the peer has closed it."""
        while self._socket is not None:
            data = self._try_operation(self._socket.recv, RECEIVE_BYTES)
            if data is None:
                return
            if not data:
                self.end(Failure("the broker closed it"))
                return
            self._owner.report(StreamEvent(self, "received", data))
            if len(data) < RECEIVE_BYTES and self._tls is None:
                return

    def _flush(self) -> None:
        """Send queued bytes until the socket is full; the rest is sent once it is writable."""
        while self._unsent and self._socket is not None:
            sent = self._try_operation(self._socket.send, self._unsent[0])
            if sent is None:
                return
            remaining = self._unsent.popleft()[sent:]
            if remaining:
                self._unsent.appendleft(remaining)
        self._watch(_READ)

    @overload
    def _try_operation(self, operate: Callable[[], None]) -> bool | None: ...
    @overload
    def _try_operation(self, operate: Callable[[A], R], argument: A, /) -> R | None: ...
    def _try_operation(self, operate: Callable[..., object], *arguments: object) -> object:
        """Return the result of a socket call, None if it must wait; the socket is then watched.

        A finished call without a result gives True. Raises the OSError of a failed call.
        """
        try:
            done = operate(*arguments)
        except BlockingIOError:
            self._watch(_READ | _WRITE if self._unsent else _READ)
            return None
        except OSError as error:
            if self._tls is None:
                raise
            import ssl

            if not isinstance(error, ssl.SSLWantReadError | ssl.SSLWantWriteError):
                raise
            # A waiting read must not end the wait of unsent bytes; a handshake has none.
            waits_to_write = isinstance(error, ssl.SSLWantWriteError) or (
                self._unsent and self._phase == "open"
            )
            self._watch(_READ | _WRITE if waits_to_write else _READ)
            return None
        return True if done is None else done

    def _watch(self, wanted: int) -> None:
        """Have the selector wait for `wanted` events of the socket, unless it is closed."""
        if self._socket is not None:
            self._owner.watch(self._socket, wanted, self)


class _Waker:
    """A pair of sockets by which another thread ends a wait."""

    def __init__(self) -> None:
        self.received, self._sent = socket.socketpair()
        self.received.setblocking(False)
        self._sent.setblocking(False)

    def wake(self) -> None:
        """Make the receiving socket ready by one byte.

        A socket with a full buffer is ready already.
        """
        with suppress(BlockingIOError):
            self._sent.send(b"\0")

    def advance(self, _ready: int) -> None:
        """Discard the bytes that woke the selector."""
        with suppress(BlockingIOError):
            while self.received.recv(RECEIVE_BYTES):
                pass

    def fail(self, error: OSError) -> None:
        """Raise the error: the waker's own sockets do not fail because of a peer."""
        raise error

    def on_interrupt(self) -> None:
        """Do nothing after a signal: a byte that was read has woken the thread."""

    def close(self) -> None:
        """Close both sockets."""
        self.received.close()
        self._sent.close()


class RealStreams:
    """All streams of one client, on one selector. Errors of a forked child: UsedAfterFork."""

    def __init__(self) -> None:
        """Create without streams; another thread can end waits of `create_wakeable`."""
        #: Refuses calls in a forked child process, which shares the sockets.
        self._guard = ProcessGuard()
        self._selector = selectors.DefaultSelector()
        #: Events that the next wait returns first.
        self._events: list[StreamEvent] = []
        #: Ends a wait from another thread; None unless made by `create_wakeable`.
        self._waker: _Waker | None = None

    @classmethod
    def create_wakeable(cls) -> RealStreams:
        """Return streams whose `wait` another thread may end by `wake`."""
        streams = cls()
        streams._waker = _Waker()
        streams._selector.register(streams._waker.received, _READ, streams._waker)
        return streams

    def wake(self) -> None:
        """End the current wait, or the next one; for any thread."""
        self._guard.check()
        assert self._waker is not None, "made by wakeable()"
        self._waker.wake()

    def connect(self, host: str, port: int, tls: TlsSettings | None = None) -> Stream:
        """Start connecting; failures arrive as a `closed` event. Raises BadTlsFile."""
        self._guard.check()
        stream = RealStream(self, host, port, tls)
        self.run_operation(stream, stream.start_connecting)
        return stream

    def wait(self, timeout_ms: int) -> list[StreamEvent]:
        """Return the events since the last call; without any, wait up to `timeout_ms`."""
        self._guard.check()
        if not self._events:
            for key, ready in self._selector.select(max(timeout_ms, 0) / 1000):
                self.run_operation(key.data, lambda key=key, ready=ready: key.data.advance(ready))
        events, self._events = self._events, []
        return events

    def close(self) -> None:
        """Close all streams, without events."""
        for key in list(self._selector.get_map().values()):
            key.data.close()
        self._selector.close()

    # -- for RealStream

    def run_operation(self, stream: RealStream | _Waker, operate: Callable[..., object]) -> None:
        """Run an operation of a stream; an `OSError` or a signal's interrupt closes the stream.

        An on_interrupt operation may have moved bytes without recording it: they would be sent
        twice.
        """
        try:
            operate()
        except OSError as error:
            stream.fail(error)
        except KeyboardInterrupt:
            stream.on_interrupt()
            raise

    def check_process(self) -> None:
        """Raise UsedAfterFork in a child of the process that made the streams."""
        self._guard.check()

    def report(self, event: StreamEvent) -> None:
        """Queue an event for the next call of `wait`."""
        self._events.append(event)

    def report_closed(self, stream: RealStream, reason: str, hint: str | None = None) -> None:
        """Queue the event of a stream's end."""
        self.report(StreamEvent(stream, "closed", reason=reason, hint=hint))

    def watch(self, watched: socket.socket, wanted: int, stream: RealStream) -> None:
        """Have the selector wait for the `wanted` events of a socket, for `stream`."""
        registration = self._selector.get_map().get(watched)
        if registration is None:
            self._selector.register(watched, wanted, stream)
        elif registration.events != wanted:
            self._selector.modify(watched, wanted, stream)

    def forget(self, watched: socket.socket) -> None:
        """Stop watching a socket; a forked child leaves it to the selector that both share."""
        if self._guard.is_in_creating_process and watched in self._selector.get_map():
            self._selector.unregister(watched)
