"""The machine's sockets: against a listener of this process."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.host.real_streams import RealStreams
from engine.host.streams import StreamEvent, TlsSettings

WAIT_MS = 10_000
_HERE = str(Path(__file__).parent / "tls" / "here.pem")


@pytest.fixture
def streams() -> Iterator[RealStreams]:
    found = RealStreams()
    yield found
    found.close()


@pytest.fixture
def serve() -> Iterator[Callable[[Callable[[socket.socket], None]], int]]:
    threads: list[threading.Thread] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def start(behave: Callable[[socket.socket], None]) -> int:
        def run() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.settimeout(WAIT_MS / 1000)
                behave(connection)

        threads.append(threading.Thread(target=run))
        threads[-1].start()
        return int(listener.getsockname()[1])

    yield start
    for thread in threads:
        thread.join(WAIT_MS / 1000)
        assert not thread.is_alive()
    listener.close()


def until(streams: RealStreams, kind: str) -> list[StreamEvent]:
    found: list[StreamEvent] = []
    give_up = time.monotonic() + WAIT_MS / 1000
    while not found or found[-1].kind != kind:
        assert time.monotonic() < give_up, "nothing happened"
        found += streams.wait(WAIT_MS)
    return found


def test_bytes_go_both_ways(streams: RealStreams, serve: Callable[..., int]) -> None:
    def echo(connection: socket.socket) -> None:
        received = b""
        while len(received) < 4:
            received += connection.recv(100)
        connection.sendall(received.upper())

    stream = streams.connect("127.0.0.1", serve(echo))
    stream.send([b"ab", memoryview(b"cd")])
    events = until(streams, "closed")
    assert "opened" == events[0].kind
    assert b"ABCD" == b"".join(event.data for event in events)
    assert "the broker closed it" == events[-1].reason


def test_more_than_a_socket_takes_at_once_is_sent_in_pieces(
    streams: RealStreams, serve: Callable[..., int]
) -> None:
    size = 20_000_000

    def count(connection: socket.socket) -> None:
        left = size
        while left:
            left -= len(connection.recv(1 << 20))
        connection.sendall(b"all")

    stream = streams.connect("127.0.0.1", serve(count))
    stream.send([bytes(size)])
    assert b"all" == b"".join(event.data for event in until(streams, "closed"))


def test_small_requests_do_not_wait_for_others(
    streams: RealStreams, serve: Callable[..., int]
) -> None:
    stream = streams.connect("127.0.0.1", serve(lambda connection: connection.recv(1)))
    until(streams, "opened")
    # Nagle's algorithm would hold them back.
    assert stream._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)  # type: ignore[attr-defined]
    stream.close()


def test_more_than_a_socket_takes_at_once_is_sent_over_tls(
    streams: RealStreams, serve: Callable[..., int]
) -> None:
    content = bytes(16_000_000)

    def take(connection: socket.socket) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(_HERE)
        with context.wrap_socket(connection, server_side=True) as secured:
            received = 0
            while received < len(content):
                received += len(secured.recv(1 << 16))
            secured.sendall(b"all")
            secured.recv(1)

    port = serve(take)
    stream = streams.connect("127.0.0.1", port, TlsSettings(ca_path=_HERE))
    stream.send([content])
    assert b"all" == until(streams, "received")[-1].data
    stream.close()


def test_a_large_answer_arrives_whole(streams: RealStreams, serve: Callable[..., int]) -> None:
    answer = bytes(range(256)) * 10_000
    streams.connect("127.0.0.1", serve(lambda connection: connection.sendall(answer)))
    assert answer == b"".join(event.data for event in until(streams, "closed"))


def test_a_refused_connection_says_so(streams: RealStreams) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    streams.connect("127.0.0.1", port)
    (event,) = until(streams, "closed")
    assert "Connection refused" == event.reason


def test_an_unknown_host_says_so(streams: RealStreams) -> None:
    streams.connect("no.such.host.invalid", 1)
    (event,) = until(streams, "closed")
    assert event.reason.startswith("unknown host")


@pytest.mark.parametrize("host", ["a..b", "x" * 64])
def test_what_can_be_no_name_says_so(streams: RealStreams, host: str) -> None:
    streams.connect(host, 9092)
    (event,) = until(streams, "closed")
    assert event.reason.startswith("not the name of a host")


def test_nothing_happens_in_time(streams: RealStreams) -> None:
    assert [] == streams.wait(1)


def test_a_closed_stream_has_no_more_events(
    streams: RealStreams, serve: Callable[..., int]
) -> None:
    stream = streams.connect("127.0.0.1", serve(lambda connection: None))
    stream.close()
    assert [] == streams.wait(10)
    # Let the listener's thread go.
    other = streams.connect("127.0.0.1", stream.port)  # type: ignore[attr-defined]
    other.close()


def test_what_was_sent_while_connecting_leaves_with_the_opening(
    streams: RealStreams, serve: Callable[..., int]
) -> None:
    received: list[bytes] = []
    is_there = threading.Event()

    def take(connection: socket.socket) -> None:
        received.append(connection.recv(100))
        is_there.set()

    stream = streams.connect("127.0.0.1", serve(take))
    stream.send([b"at once"])
    assert ["opened"] == [event.kind for event in until(streams, "opened")]
    # Nobody waits for the streams from here on.
    assert is_there.wait(WAIT_MS / 1000)
    assert [b"at once"] == received


# -- names


def test_a_look_up_that_hangs_holds_up_nothing_else(
    streams: RealStreams, serve: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on = threading.Event()
    known = socket.getaddrinfo

    def resolve(host: str, *others: Any, **named: Any) -> Any:
        if host == "slow.example":
            goes_on.wait(WAIT_MS / 1000)
        return known("127.0.0.1", *others, **named)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    began_s = time.monotonic()
    port = serve(lambda connection: connection.sendall(b"here"))
    slow = streams.connect("slow.example", port)
    given_up = streams.connect("slow.example", port)
    assert [] == streams.wait(1)
    quick = streams.connect("127.0.0.1", port)
    events = until(streams, "received")
    assert {quick} == {event.stream for event in events}
    given_up.close()
    quick.close()
    assert time.monotonic() - began_s < WAIT_MS / 2000
    goes_on.set()
    assert {slow} == {event.stream for event in until(streams, "opened")}


def test_a_name_that_is_unknown_closes_its_stream(
    streams: RealStreams, monkeypatch: pytest.MonkeyPatch
) -> None:
    def resolve(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    streams.connect("nowhere.example", 9092)
    (closed,) = until(streams, "closed")
    assert "unknown host: Name or service not known" == closed.reason


def test_bytes_that_an_interrupt_left_unnoted_are_not_sent_again(
    streams: RealStreams, serve: Callable[[Callable[[socket.socket], None]], int]
) -> None:
    received: list[bytes] = []

    def read_all(connection: socket.socket) -> None:
        while data := connection.recv(100):
            received.append(data)
        is_read.set()

    is_read = threading.Event()
    stream = streams.connect("127.0.0.1", serve(read_all), None)
    until(streams, "opened")

    class Interrupted:
        """A socket whose send is interrupted once the bytes have gone."""

        def __init__(self, real: socket.socket) -> None:
            self.real = real

        def send(self, data: memoryview) -> int:
            self.real.send(data)
            raise KeyboardInterrupt

        def __getattr__(self, name: str) -> Any:
            return getattr(self.real, name)

    real: Any = stream
    streams.forget(real._socket)
    real._socket = Interrupted(real._socket)
    with pytest.raises(KeyboardInterrupt):
        stream.send([b"request"])
    (event,) = streams.wait(0)
    assert ("closed", "it was interrupted as it moved bytes") == (event.kind, event.reason)
    stream.send([b"more"])
    assert is_read.wait(WAIT_MS / 1000)
    assert [b"request"] == received
