"""TLS below a connection: the same frames, and nothing of them changed."""

from __future__ import annotations

import os
import select
import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from engine.api.admission import allow_all
from engine.api.api_versions import ApiVersions
from engine.api.dispatch import DispatchTable, Rule
from engine.host.event_loop import EventLoop
from engine.host.memory import ManualClock
from engine.host.ports import Connection, ConnectionLimits, FileRegion, FrameBound, PauseReason
from engine.host.real import RealClock
from engine.host.real_network import RealNetwork
from engine.host.stream_layer import WantsRead, WantsWrite
from engine.host.tls_layer import TlsLayer
from engine.host.turns import no_time
from engine.limits import (
    HALF_FRAME_DEADLINE_MS,
    TLS_BULK_READ_BYTES,
    TLS_READ_BYTES,
    TLS_RECORDS_MAX,
    TLS_SMALL_READ_BYTES,
    TURN_MS_MAX,
)
from engine.server import RequestServer, ServerEvents
from engine.wire.codec import message_codec
from engine.wire.headers import encode_request_header
from engine.wire.structs import message_class
from tests.unit.host.listening import Told

CERTIFICATE = Path(__file__).with_name("certificate.pem")


def _server_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    return context


class Served:
    """A network on a thread of its own, with TLS below its connections."""

    def __init__(self) -> None:
        self.loop = EventLoop()
        self.network = RealNetwork(self.loop, RealClock())
        self.told = Told()
        context = _server_context()
        limits = ConnectionLimits(frame_bytes_max=50_000_000)
        self.options = self.told.options(limits=limits, layer=lambda sock: TlsLayer(context, sock))
        self.closed: list[str] = []
        self._thread = threading.Thread(target=self.loop.run)

    def start(self) -> None:
        self._thread.start()

    def echo(self) -> int:
        """Answer every frame by itself; returns the port."""

        def accept(connection: Connection) -> None:
            connection.on_frame = lambda frame: connection.send([bytes(frame)])
            connection.on_close = self.closed.append

        return self.network.listen("127.0.0.1", 0, accept, self.options).port

    def call(self, work: object) -> None:
        """Run on the loop's thread and wait for it."""
        assert callable(work)
        done = threading.Event()

        def run() -> None:
            work()
            done.set()

        self.loop.call_from_thread(run)
        assert done.wait(20)

    def stop(self) -> None:
        self.call(self.network.close)
        self.loop.stop()
        self._thread.join()
        self.loop.close()


@contextmanager
def _served() -> Iterator[Served]:
    served = Served()
    try:
        yield served
    finally:
        served.stop()


def _connected(port: int) -> ssl.SSLSocket:
    context = ssl.create_default_context(cafile=str(CERTIFICATE))
    sock = socket.create_connection(("127.0.0.1", port))
    sock.settimeout(20)
    return context.wrap_socket(sock, server_hostname="localhost")


def _frame(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content


def _read_frame(sock: socket.socket) -> bytes:
    (size,) = struct.unpack(">i", _exactly(sock, 4))
    return _exactly(sock, size)


def _exactly(sock: socket.socket, size: int) -> bytes:
    pieces = []
    while size:
        piece = sock.recv(min(size, 1 << 20))
        assert piece
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def _echoed(sock: ssl.SSLSocket, plain: bytes) -> bytes:
    """Send all, and read as much as it comes back.

    On one thread: a TLS socket of Python before 3.13.1 may not be read and written by two at once.
    """
    sock.setblocking(False)
    unsent, received = memoryview(plain), bytearray()
    while len(received) < len(plain):
        progress = False
        with suppress(ssl.SSLWantWriteError, ssl.SSLWantReadError):
            if unsent:
                unsent = unsent[sock.send(unsent[: 1 << 18]) :]
                progress = True
        with suppress(ssl.SSLWantWriteError, ssl.SSLWantReadError):
            piece = sock.recv(1 << 18)
            assert piece
            received += piece
            progress = True
        if not progress:
            readable, writable, _ = select.select([sock], [sock] if unsent else [], [], 20)
            assert readable or writable
    return bytes(received)


def test_an_api_versions_request_is_answered_over_tls() -> None:
    with _served() as served:
        table = DispatchTable(allow_all())
        bad: list[str] = []
        events = ServerEvents(
            lambda _peer, reason: bad.append(reason),
            lambda _row, _error: None,
            lambda _row, _error: None,
        )
        server = RequestServer(served.network, RealClock(), table, events, no_time)
        table.serve("ApiVersions", ApiVersions(table).handle, Rule.ANYONE)
        port = server.listen("127.0.0.1", 0, "SSL", served.options).port
        served.start()
        request = message_class("ApiVersionsRequest")(
            client_software_name="tester", client_software_version="1"
        )
        body = message_codec("ApiVersionsRequest", 3).encode(request)
        with _connected(port) as sock:
            sock.sendall(_frame(encode_request_header(18, 3, 7, "tester") + body))
            answer = _read_frame(sock)
        assert struct.pack(">i", 7) == answer[:4]
        reply = message_codec("ApiVersionsResponse", 3).decode(answer[4:])
        assert (0, [18]) == (reply.error_code, [row.api_key for row in reply.api_keys])
        assert [] == bad


def test_large_and_small_frames_pass_both_ways_over_tls() -> None:
    with _served() as served:
        port = served.echo()
        served.start()
        sizes = (0, 1, 16_000, 20_000_000, 5, 100_000, 1_048_572, 3_000_000, 7)
        frames = [os.urandom(size) for size in sizes]
        with _connected(port) as sock:
            plain = b"".join(_frame(frame) for frame in frames)
            assert plain == _echoed(sock, plain)
        assert [] == served.told.refused


def test_file_regions_are_sent_through_the_layer(tmp_path: Path) -> None:
    path = tmp_path / "data"
    content = os.urandom(3_000_000)
    path.write_bytes(content)
    descriptor = os.open(path, os.O_RDONLY)
    sent = threading.Event()

    def accept(connection: Connection) -> None:
        parts = [b"head", FileRegion(descriptor, 0, 0), FileRegion(descriptor, 5, 2_999_990), b"t"]
        connection.on_frame = lambda _frame: connection.send(parts, sent.set)

    with _served() as served:
        port = served.network.listen("127.0.0.1", 0, accept, served.options).port
        served.start()
        with _connected(port) as sock:
            sock.sendall(_frame(b"?"))
            assert b"head" + content[5:-5] + b"t" == _read_frame(sock)
            assert sent.wait(20)
    os.close(descriptor)


def test_frames_that_the_layer_holds_are_taken_after_a_pause() -> None:
    taken: list[bytes] = []
    done = threading.Event()
    with _served() as served:

        def accept(connection: Connection) -> None:
            def take(frame: memoryview) -> None:
                taken.append(bytes(frame))
                if len(taken) == 20:
                    done.set()
                elif len(taken) % 3 == 0:
                    connection.pause(PauseReason.QUOTA)
                    resume = lambda: connection.resume(PauseReason.QUOTA)  # noqa: E731
                    served.loop.call_soon(resume)

            connection.on_frame = take

        port = served.network.listen("127.0.0.1", 0, accept, served.options).port
        served.start()
        frames = [bytes([number]) * (number * 7001) for number in range(20)]
        with _connected(port) as sock:
            sock.sendall(b"".join(_frame(frame) for frame in frames))
            assert done.wait(20)
    assert frames == taken


def test_frames_are_bounded_over_tls_too() -> None:
    larger: list[int] = []
    with _served() as served:

        def accept(connection: Connection) -> None:
            def on_larger(size: int) -> None:
                larger.append(size)
                connection.close("too large")

            connection.bound_frames(FrameBound(10, on_larger))
            connection.on_frame = lambda frame: connection.send([bytes(frame)])

        port = served.network.listen("127.0.0.1", 0, accept, served.options).port
        served.start()
        with _connected(port) as sock:
            sock.sendall(_frame(b"x" * 10))
            assert b"x" * 10 == _read_frame(sock)
            sock.sendall(_frame(b"x" * 11))
            assert b"" == sock.recv(1)
    assert [11] == larger


def test_what_is_sent_before_the_handshake_leaves_behind_it() -> None:
    with _served() as served:

        def accept(connection: Connection) -> None:
            connection.send([b"welcome"])

        port = served.network.listen("127.0.0.1", 0, accept, served.options).port
        served.start()
        with _connected(port) as sock:
            assert b"welcome" == _read_frame(sock)


def test_who_speaks_plain_text_is_refused_and_the_others_are_served() -> None:
    with _served() as served:
        port = served.echo()
        served.start()
        with socket.create_connection(("127.0.0.1", port)) as plain, _connected(port) as sock:
            plain.settimeout(20)
            plain.sendall(_frame(b"hello, is this plain text?"))
            try:
                while plain.recv(100):
                    pass
            except ConnectionResetError:
                pass
            sock.sendall(_frame(b"?"))
            assert b"?" == _read_frame(sock)
        (refused,) = served.told.refused
        assert refused.startswith("handshake failed")


def test_a_handshake_that_does_not_end_is_overdue() -> None:
    reasons: list[str | None] = []
    with _served() as served:
        port = served.echo()
        served.start()
        with socket.create_connection(("127.0.0.1", port)) as silent, _connected(port) as sock:
            sock.sendall(_frame(b"?"))
            assert b"?" == _read_frame(sock)

            def look() -> None:
                for connection in served.network.connections:
                    late_ms = connection.last_active_ms + HALF_FRAME_DEADLINE_MS + 1
                    reasons.append(connection.overdue(late_ms))

            served.call(look)
            silent.close()
    assert {None, "its handshake does not end"} == set(reasons)


class _CostlyLayer(TlsLayer):
    """A handshake that takes a turn's share, and goes on with each byte of its peer."""

    def __init__(self, sock: socket.socket, clock: ManualClock, calls: list[object]) -> None:
        super().__init__(_server_context(), sock)
        self._clock, self._calls = clock, calls

    def handshake(self) -> None:
        """Take the time."""
        self._calls.append(self)
        self._clock.advance(TURN_MS_MAX)
        with suppress(BlockingIOError):
            self._sock.recv(1)
        raise WantsRead


def test_one_turn_of_the_loop_has_a_share_of_handshakes() -> None:
    loop, clock, told = EventLoop(), ManualClock(), Told()
    network = RealNetwork(loop, clock)
    calls: list[object] = []
    options = told.options(layer=lambda sock: _CostlyLayer(sock, clock, calls))
    port = network.listen("127.0.0.1", 0, lambda _connection: None, options).port
    clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(10)]

    def turns_until(count: int) -> int:
        turns = 0

        def turn() -> None:
            nonlocal turns
            turns += 1
            if len(calls) >= count:
                loop.stop()
            else:
                loop.call_soon(turn)

        loop.call_soon(turn)
        loop.run()
        return turns

    assert turns_until(len(clients)) >= len(clients)
    for client in clients:
        client.send(b"x")
    assert turns_until(2 * len(clients)) >= len(clients)
    # Each had its turn before one had another, and none has one more until its peer goes on.
    assert set(calls[: len(clients)]) == set(calls[len(clients) :])
    for _ in clients:
        turns_until(0)
    assert 2 * len(clients) == len(calls)
    for client in clients:
        client.close()
    network.close()
    loop.close()


class _SlowLayer(TlsLayer):
    """A handshake that waits for a writable socket once, and then for the peer."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(_server_context(), sock)
        self.calls = 0

    def handshake(self) -> None:
        """Count the call."""
        self.calls += 1
        raise WantsWrite if self.calls == 1 else WantsRead


def test_a_handshake_that_waits_for_the_peer_costs_nothing_meanwhile() -> None:
    layers: list[_SlowLayer] = []
    with _served() as served:

        def layer_of(sock: socket.socket) -> _SlowLayer:
            layers.append(_SlowLayer(sock))
            return layers[-1]

        served.options = served.options._replace(layer=layer_of)
        port = served.echo()
        served.start()
        with socket.create_connection(("127.0.0.1", port)):
            turns = 0
            while turns < 20:
                served.call(lambda: None)
                # The turns count from the handshake's wait for the peer.
                turns += bool(layers and layers[0].calls >= 2)
            assert 2 == layers[0].calls


def test_a_peer_that_leaves_during_the_handshake_leaves_nothing() -> None:
    with _served() as served:
        port = served.echo()
        served.start()
        socket.create_connection(("127.0.0.1", port)).close()
        with _connected(port) as sock:
            sock.sendall(_frame(b"?"))
            assert b"?" == _read_frame(sock)
    assert 0 == served.network.connection_count


@pytest.mark.parametrize("size", [10, 3_000_000])
def test_an_end_in_order_is_an_end(size: int) -> None:
    with _served() as served:
        port = served.echo()
        served.start()
        with _connected(port) as sock:
            sock.sendall(_frame(bytes(size)))
            assert bytes(size) == _read_frame(sock)
            sock.unwrap()
    assert ["closed by the peer"] == served.closed


def _layers() -> tuple[TlsLayer, TlsLayer]:
    """Return two ends of one connection behind their handshake."""
    ours, theirs = socket.socketpair()
    ends = (
        TlsLayer(_server_context(), ours),
        TlsLayer(ssl.create_default_context(cafile=str(CERTIFICATE)), theirs, "localhost"),
    )
    for sock in (ours, theirs):
        sock.setblocking(False)
    left = list(ends)
    while left:
        for end in tuple(left):
            with suppress(BlockingIOError):
                end.handshake()
                left.remove(end)
    return ends


def test_all_records_that_have_come_are_read_at_once() -> None:
    server, client = _layers()
    pieces = [bytes([number]) * 10_000 for number in range(4)]
    for piece in pieces:
        assert len(piece) == client.send(piece)
    client.close()
    buffer = bytearray(1 << 16)
    whole = b"".join(pieces)
    assert len(whole) == server.recv_into(memoryview(buffer))
    assert whole == buffer[: len(whole)]
    # The end comes by itself, not in place of the bytes before it.
    assert 0 == server.recv_into(memoryview(buffer))
    server.close()


def test_no_more_is_read_than_the_buffer_takes() -> None:
    server, client = _layers()
    for number in range(3):
        client.send(bytes([number]) * 10_000)
    buffer = bytearray(15_000)
    assert [15_000, 15_000] == [server.recv_into(memoryview(buffer)) for _ in range(2)]
    assert bytes([1]) * 5_000 + bytes([2]) * 10_000 == bytes(buffer)
    client.close()
    server.close()


def test_small_records_have_a_share_of_a_turn() -> None:
    server, client = _layers()
    for _ in range(TLS_RECORDS_MAX + 5):
        client._tls.write(b"x")
    client.flush()
    buffer = memoryview(bytearray(1 << 16))
    assert (TLS_RECORDS_MAX, True) == (server.recv_into(buffer), server.has_more())
    assert (5, False) == (server.recv_into(buffer), server.has_more())
    client.close()
    server.close()


@pytest.mark.parametrize(
    ("came", "answered"),
    [
        # As Kafka's listener: ApiVersions in plain text, HTTP, and a record of TLS that is none.
        (bytes.fromhex("0000001700120003000000010004746573740005746573740531"), "15030300020250"),
        (b"GET / HTTP/1.1\r\n\r\n", "15030300020250"),
        (b"\x16\x03\x01\0\x05hello", "1503030002020a"),
    ],
)
def test_who_sends_no_tls_gets_javas_alert(came: bytes, answered: str) -> None:
    ours, theirs = socket.socketpair()
    server = TlsLayer(_server_context(), ours)
    theirs.sendall(came)
    ours.setblocking(False)
    with pytest.raises(ssl.SSLError):
        server.handshake()
    server.close()
    assert bytes.fromhex(answered) == theirs.recv(100)
    assert theirs.recv(100) == b""
    theirs.close()


def test_a_client_of_plain_text_sends_no_alert() -> None:
    ours, theirs = socket.socketpair()
    context = ssl.create_default_context(cafile=str(CERTIFICATE))
    client = TlsLayer(context, ours, "localhost")
    theirs.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    ours.setblocking(False)
    with pytest.raises(ssl.SSLError):
        client.handshake()
    client.close()
    # Its greeting has gone out before, and nothing behind that.
    assert theirs.recv(1 << 16).startswith(b"\x16\x03\x01")
    assert theirs.recv(100) == b""
    theirs.close()


def test_the_end_that_comes_with_the_last_record_is_met_without_the_socket() -> None:
    server, client = _layers()
    client.send(b"last")
    # The peer sends its closing message and waits for ours: it keeps its socket open.
    with suppress(ssl.SSLWantReadError):
        client._tls.unwrap()
    client.flush()
    buffer = memoryview(bytearray(100))
    assert (4, True) == (server.recv_into(buffer), server.has_more())
    assert 0 == server.recv_into(buffer)
    client.close()
    server.close()


def test_a_damaged_record_behind_another_is_met_as_damage() -> None:
    server, client = _layers()
    client.send(b"whole")
    client._tls.write(b"damaged")
    damaged = bytearray(client._outgoing.read())
    damaged[-1] ^= 1
    client._sock.send(damaged)
    buffer = memoryview(bytearray(100))
    assert (5, True) == (server.recv_into(buffer), server.has_more())
    with pytest.raises(ssl.SSLError, match="BAD_RECORD_MAC"):
        server.recv_into(buffer)
    client.close()
    server.close()


def test_little_is_read_of_a_client_that_is_not_known() -> None:
    """OpenSSL keeps buffers as large as the largest read."""
    theirs, ours = socket.socketpair()
    with theirs, ours:
        reads = _Reads(ours)
        layer = TlsLayer(_server_context(), reads)  # type: ignore[arg-type]
        theirs.sendall(b"\x16\x03\x01\x40\x00\x01" + bytes(15_000))
        ours.setblocking(False)
        with suppress(WantsRead):
            layer.handshake()
    assert {TLS_SMALL_READ_BYTES} == set(reads.sizes)


def test_more_is_read_at_once_of_a_peer_that_sends_as_much_as_is_read() -> None:
    server, client = _layers()
    reads = server._sock = _Reads(server._sock)  # type: ignore[assignment]
    buffer = memoryview(bytearray(1 << 18))
    client.send(b"little")
    assert 6 == server.recv_into(buffer)
    sent = sum(client.send(bytes(16_000)) for _ in range(5))
    while sent:
        sent -= server.recv_into(buffer)
    assert [TLS_READ_BYTES, TLS_READ_BYTES, TLS_BULK_READ_BYTES] == reads.sizes
    client.close()
    server.close()


class _Reads:
    """A socket that notes how much is read of it at once."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self.sizes: list[int] = []

    def recv(self, size: int) -> bytes:
        """Read and note."""
        self.sizes.append(size)
        return self._sock.recv(size)

    def send(self, data: bytes) -> int:
        """Send."""
        return self._sock.send(data)

    def close(self) -> None:
        """Close."""
        self._sock.close()
