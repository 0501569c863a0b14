"""Listeners over real sockets: closed, bounded, and each with limits of its own."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator

import pytest

from engine.host.descriptors import connections_below, descriptor_limit, raise_descriptor_limit
from engine.host.event_loop import EventLoop
from engine.host.ports import Connection, ConnectionLimits, Listener
from engine.host.real import RealClock
from engine.host.real_network import RealNetwork
from engine.host.unlimited_connections import UnlimitedConnections
from engine.limits import ACCEPT_RETRY_MS, FILE_DESCRIPTORS_KEPT
from tests.unit.host.listening import Told


class Counting(EventLoop):
    """A loop whose watches and timers are counted."""

    def __init__(self) -> None:
        super().__init__()
        self.watched: set[int] = set()

    def watch_readable(self, descriptor: int, callback: object) -> None:  # type: ignore[override]
        self.watched.add(descriptor)
        super().watch_readable(descriptor, callback)  # type: ignore[arg-type]

    def unwatch_readable(self, descriptor: int) -> None:
        self.watched.discard(descriptor)
        super().unwatch_readable(descriptor)


class Stage:
    """A network whose loop turns by hand; every frame is answered by itself."""

    def __init__(self) -> None:
        self.loop = Counting()
        self.network = RealNetwork(self.loop, RealClock())
        self.told = Told()
        self.accepted: list[Connection] = []
        self.clients: list[socket.socket] = []

    def listen(self, told: Told | None = None, limits: ConnectionLimits | None = None) -> Listener:
        options = (told or self.told).options(limits=limits)
        return self.network.listen("127.0.0.1", 0, self._accept, options)

    def _accept(self, connection: Connection) -> None:
        self.accepted.append(connection)
        connection.on_frame = lambda frame: connection.send([bytes(frame)])

    def connect(self, listener: Listener) -> socket.socket:
        client = socket.create_connection(("127.0.0.1", listener.port))
        client.settimeout(20)
        self.clients.append(client)
        self.turn()
        return client

    def turn(self) -> None:
        for _ in range(5):
            self.loop.call_soon(self.loop.stop)
            self.loop.run()

    def turn_without_descriptors(self) -> None:
        """Turn the loop a few times while no file can be opened."""
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

        def turn(left: int) -> None:
            if left:
                self.loop.call_soon(lambda: turn(left - 1))
            else:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
                self.loop.stop()

        def begin() -> None:
            with open(os.devnull) as free:
                lowest = free.fileno()
            resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, hard))
            turn(10)

        self.loop.call_soon(begin)
        self.loop.run()

    def is_served(self, client: socket.socket, content: bytes = b"?") -> bool:
        """Return whether a frame comes back; False if the connection has ended."""
        try:
            client.sendall(struct.pack(">i", len(content)) + content)
            self.turn()
            client.setblocking(False)
            return client.recv(1 << 20)[4:] == content
        except (ConnectionError, BlockingIOError):
            return False

    def close(self) -> None:
        for client in self.clients:
            client.close()
        self.network.close()
        self.loop.close()


@pytest.fixture
def stage() -> Iterator[Stage]:
    stage = Stage()
    yield stage
    stage.close()


def test_a_closed_listener_takes_nobody_and_keeps_who_is_there(stage: Stage) -> None:
    listener = stage.listen()
    client = stage.connect(listener)
    listener.close()
    listener.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", listener.port))
    assert stage.is_served(client)
    # Its port is free for the next.
    again = stage.network.listen("127.0.0.1", listener.port, stage._accept, stage.told.options())
    assert listener.port == again.port


def test_nothing_is_watched_after_the_last_listener_and_connection(stage: Stage) -> None:
    before = set(stage.loop.watched)
    listener, other = stage.listen(), stage.listen()
    stage.connect(listener)
    listener.close()
    other.close()
    assert 1 == len(stage.loop.watched - before)
    stage.accepted[0].close("done")
    assert before == stage.loop.watched


def test_each_listener_has_limits_and_ears_of_its_own(stage: Stage) -> None:
    strict, easy = Told(), Told()
    first = stage.listen(strict, ConnectionLimits(frame_bytes_max=10))
    second = stage.listen(easy, ConnectionLimits(frame_bytes_max=1000))
    assert not stage.is_served(stage.connect(first), bytes(11))
    assert stage.is_served(stage.connect(second), bytes(1000))
    assert (["a frame of 11 bytes"], []) == (strict.refused, easy.refused)


def test_a_limit_that_is_changed_holds_for_who_is_connected(stage: Stage) -> None:
    listener = stage.listen(limits=ConnectionLimits(frame_bytes_max=10))
    client = stage.connect(listener)
    listener.limits = ConnectionLimits(frame_bytes_max=100)
    assert stage.is_served(client, bytes(100))
    listener.limits = ConnectionLimits(frame_bytes_max=50)
    assert not stage.is_served(client, bytes(100))


def test_who_was_silent_for_longest_is_closed_first(stage: Stage) -> None:
    listener = stage.listen()
    clients = [stage.connect(listener) for _ in range(3)]
    for age, connection in zip((5, 9, 7), stage.accepted, strict=True):
        connection.last_active_ms -= age * 1000  # type: ignore[attr-defined]
    assert listener.close_least_recently_used("too many")
    assert [True, False, True] == [stage.is_served(client) for client in clients]
    assert listener.close_least_recently_used("too many")
    assert listener.close_least_recently_used("too many")
    assert not listener.close_least_recently_used("too many")


class OneByOne(UnlimitedConnections):
    """Lets one in at a time."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def waiting_reason(self) -> str | None:
        return "one is there" if self.count else None

    def enter(self, _address: str) -> str | None:
        self.count += 1
        return None

    def leave(self, _address: str) -> None:
        self.count -= 1
        self.on_room()


def test_who_waits_for_room_is_served_when_somebody_has_left(stage: Stage) -> None:
    options = stage.told.options(OneByOne())
    listener = stage.network.listen("127.0.0.1", 0, stage._accept, options)
    clients = [stage.connect(listener) for _ in range(3)]
    assert [True, False, False] == [stage.is_served(client) for client in clients]
    stage.accepted[0].close("done")
    stage.turn()
    assert 2 == len(stage.accepted)
    assert clients[1].recv(100)
    listener.close()
    stage.turn()
    with pytest.raises((ConnectionError, BlockingIOError)):
        clients[2].send(b"?")
        clients[2].recv(1)


def test_beyond_the_descriptors_arrivals_are_closed_and_the_others_served(stage: Stage) -> None:
    listener = stage.listen()
    served = stage.connect(listener)
    # The next descriptor of the server is one too many.
    with open(os.devnull) as free:
        stage.network.connections_below = free.fileno()
    refused = stage.connect(listener)
    assert not stage.is_served(refused)
    assert stage.is_served(served)
    (line,) = stage.told.kept_out
    assert line.startswith("Too many open files")
    stage.network.connections_below = 1 << 20
    assert stage.is_served(stage.connect(listener))


def test_without_any_descriptor_arrivals_wait_and_the_others_are_served(stage: Stage) -> None:
    listener = stage.listen()
    served = stage.connect(listener)
    client = socket.create_connection(("127.0.0.1", listener.port))
    client.settimeout(20)
    stage.clients.append(client)
    served.sendall(struct.pack(">i", 1) + b"?")
    stage.turn_without_descriptors()
    # The listener is not looked at in each of the turns.
    assert ["Error while accepting connection: Too many open files"] == stage.told.kept_out
    assert b"?" == served.recv(100)[4:]
    assert 1 == len(stage.accepted)
    stage.loop.call_at(RealClock().monotonic_ms() + ACCEPT_RETRY_MS + 1, stage.loop.stop)
    stage.loop.run()
    assert stage.is_served(client)


def test_an_outgoing_connection_without_a_descriptor_fails(stage: Stage) -> None:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with open(os.devnull) as free:
        lowest = free.fileno()
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, hard))
        connection = stage.network.connect("127.0.0.1", 1)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    closed: list[str] = []
    sent: list[bool] = []
    connection.on_close = closed.append
    connection.send([b"?"], lambda: sent.append(True))
    stage.turn()
    connection.close("again")
    assert (["Too many open files"], [True]) == (closed, sent)


@pytest.mark.parametrize(
    ("limit", "first"), [(1 << 20, (1 << 20) - FILE_DESCRIPTORS_KEPT), (1000, 750), (256, 192)]
)
def test_a_part_of_the_descriptors_is_kept_for_files(limit: int, first: int) -> None:
    assert first == connections_below(limit)


def test_the_limit_of_descriptors_is_raised_to_the_hard_one() -> None:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 512), hard))
        assert min(soft, 512) == descriptor_limit()
        assert raise_descriptor_limit() >= min(soft, 512)
        assert hard == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_names_of_hosts_have_addresses(stage: Stage) -> None:
    assert "127.0.0.1" == stage.network.address_of("127.0.0.1")
    assert stage.network.address_of("no such host.invalid") is None
