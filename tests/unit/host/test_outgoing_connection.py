"""Connections that this process opens: every failure is reported, and no look-up is waited for."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator

import pytest

from engine.host.event_loop import EventLoop
from engine.host.name_lookup import HostAddress, resolve
from engine.host.ports import Connection
from engine.host.real import RealClock
from engine.host.real_network import CannotListen, RealNetwork
from tests.unit.host.listening import Told

_V4 = HostAddress(socket.AF_INET, "127.0.0.1")
_V6 = HostAddress(socket.AF_INET6, "::1")


class Stage:
    """A network whose names are looked up by a function of the test."""

    def __init__(self) -> None:
        self.resolve: Callable[[str], list[HostAddress]] = resolve
        self.looked_up: list[str] = []
        self.loop = EventLoop()
        self.network = RealNetwork(self.loop, RealClock(), resolve=self._resolve)
        self.ended: list[str] = []
        self.answers: list[bytes] = []

    def _resolve(self, host: str) -> list[HostAddress]:
        self.looked_up.append(host)
        return self.resolve(host)

    def echo(self, host: str = "127.0.0.1", port: int = 0) -> int:
        """Listen, and send every frame back; returns the port."""

        def accept(connection: Connection) -> None:
            connection.on_frame = lambda frame: connection.send([bytes(frame)])

        return self.network.listen(host, port, accept, Told().options()).port

    def connect(self, host: str, port: int, *frames: bytes) -> Connection:
        connection = self.network.connect(host, port)
        connection.on_close = self.ended.append
        connection.on_frame = lambda frame: self.answers.append(bytes(frame))
        for frame in frames:
            connection.send([frame])
        return connection

    def turn_until(self, is_so: Callable[[], object]) -> None:
        for _ in range(1_000_000):
            self.loop.call_soon(self.loop.stop)
            self.loop.run()
            if is_so():
                return
        raise AssertionError("it never was so")

    def close(self) -> None:
        self.network.close()
        self.loop.close()


@pytest.fixture
def stage() -> Iterator[Stage]:
    made = Stage()
    yield made
    made.close()


def _fails(error: Exception) -> Callable[[str], list[HostAddress]]:
    def resolve_nothing(_host: str) -> list[HostAddress]:
        raise error

    return resolve_nothing


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (socket.gaierror(-3, "Temporary failure"), "unknown host: Temporary failure"),
        (TimeoutError("too late"), "unknown host: too late"),
        (UnicodeError("label empty"), "not the name of a host: label empty"),
    ],
)
def test_a_look_up_that_fails_ends_the_connection_on_a_later_turn(
    stage: Stage, error: Exception, reason: str
) -> None:
    stage.resolve = _fails(error)
    stage.connect("broker-7", 9092, b"hello")
    assert [] == stage.ended
    stage.turn_until(lambda: stage.ended)
    assert [reason] == stage.ended
    assert 0 == stage.network.connection_count


@pytest.mark.parametrize("host", ["a..b", "x" * 64 + ".example", "nul\0byte"])
def test_what_can_be_no_name_ends_the_connection(stage: Stage, host: str) -> None:
    stage.connect(host, 9092)
    stage.turn_until(lambda: stage.ended)
    assert 1 == len(stage.ended)


def test_a_port_that_is_none_ends_the_connection(stage: Stage) -> None:
    stage.connect("127.0.0.1", 70_000)
    assert [] == stage.ended
    stage.turn_until(lambda: stage.ended)
    assert 1 == len(stage.ended)


def test_a_name_without_an_address_ends_the_connection(stage: Stage) -> None:
    stage.resolve = lambda _host: []
    stage.connect("broker-7", 9092)
    stage.turn_until(lambda: stage.ended)
    assert ["no address"] == stage.ended


def test_the_loop_goes_on_while_a_name_is_looked_up(stage: Stage) -> None:
    may_end = threading.Event()

    def slowly(_host: str) -> list[HostAddress]:
        assert may_end.wait(20)
        return [_V4]

    stage.resolve = slowly
    port = stage.echo()
    stage.connect("slow-name", port, b"late")
    stage.connect("127.0.0.1", port, b"at once")
    stage.turn_until(lambda: stage.answers)
    assert [b"at once"] == stage.answers
    may_end.set()
    stage.turn_until(lambda: len(stage.answers) == 2)
    assert b"late" == stage.answers[1]


def test_one_look_up_serves_all_who_wait_for_a_name(stage: Stage) -> None:
    may_end = threading.Event()

    def slowly(_host: str) -> list[HostAddress]:
        assert may_end.wait(20)
        return [_V4]

    stage.resolve = slowly
    port = stage.echo()
    for number in range(5):
        stage.connect("slow-name", port, bytes((number,)))
    may_end.set()
    stage.turn_until(lambda: len(stage.answers) == 5)
    assert ["slow-name"] == stage.looked_up
    stage.connect("slow-name", port, b"again")
    stage.turn_until(lambda: len(stage.answers) == 6)
    assert ["slow-name"] * 2 == stage.looked_up


def test_who_closes_while_its_name_is_looked_up_hears_of_it_once(stage: Stage) -> None:
    may_end = threading.Event()

    def slowly(_host: str) -> list[HostAddress]:
        assert may_end.wait(20)
        return [_V4]

    stage.resolve = slowly
    connection = stage.connect("slow-name", 9092, b"hello")
    other = stage.connect("slow-name", stage.echo(), b"hello")
    connection.close("given up")
    assert ["given up"] == stage.ended
    may_end.set()
    stage.turn_until(lambda: stage.answers)
    assert ["given up"] == stage.ended
    other.close("done")
    assert ["given up", "done"] == stage.ended


def test_the_addresses_of_a_name_are_tried_in_turn(stage: Stage) -> None:
    port = stage.echo()
    # Nobody listens on the others of this machine.
    stage.resolve = lambda _host: [HostAddress(socket.AF_INET, "127.0.0.2"), _V6, _V4]
    stage.connect("broker-7", port, b"hello")
    stage.turn_until(lambda: stage.answers)
    assert ([b"hello"], []) == (stage.answers, stage.ended)


def test_the_last_addresss_failure_is_the_reason(stage: Stage) -> None:
    port = _free_port()
    stage.resolve = lambda _host: [HostAddress(socket.AF_INET, "127.0.0.2"), _V4]
    stage.connect("broker-7", port, b"hello")
    stage.turn_until(lambda: stage.ended)
    assert ["Connection refused"] == stage.ended


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        _, port = listening.getsockname()
        return int(port)


def _has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


@pytest.mark.skipif(not _has_ipv6(), reason="this machine has no IPv6")
def test_a_name_that_has_an_ipv6_address_alone_is_listened_on_and_connected_to(
    stage: Stage,
) -> None:
    stage.resolve = lambda _host: [_V6]
    port = stage.echo("only-six")
    stage.connect("only-six", port, b"hello")
    stage.turn_until(lambda: stage.answers)
    assert [b"hello"] == stage.answers


@pytest.mark.parametrize("host", ["a..b", "no such host.invalid"])
def test_a_listeners_name_without_an_address_is_a_typed_error(stage: Stage, host: str) -> None:
    with pytest.raises(CannotListen):
        stage.network.listen(host, 0, lambda _connection: None, Told().options())
    assert stage.network.address_of(host) is None


def test_many_frames_wait_for_the_connection_in_order(stage: Stage) -> None:
    stage.resolve = lambda _host: [_V4]
    frames = [struct.pack(">i", number) * number for number in range(300)]
    stage.connect("broker-7", stage.echo(), *frames)
    stage.turn_until(lambda: len(stage.answers) == len(frames))
    assert frames == stage.answers


def test_a_connection_that_is_closed_while_it_connects_leaves_nothing(stage: Stage) -> None:
    connection = stage.connect("127.0.0.1", stage.echo(), b"hello")
    connection.close("given up")
    stage.turn_until(lambda: True)
    assert ["given up"] == stage.ended
    assert 0 == stage.network.connection_count


def test_a_machine_without_threads_ends_the_connection_and_is_asked_again(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        stage.connect("broker-7", 9092)
        assert [] == stage.ended
        stage.turn_until(lambda: stage.ended)
    assert ["unknown host: can't start new thread"] == stage.ended
    assert 0 == stage.network.connection_count
    stage.resolve = _fails(socket.gaierror(-3, "later"))
    stage.connect("broker-7", 9092)
    stage.turn_until(lambda: len(stage.ended) == 2)
    assert ["broker-7"] == stage.looked_up
