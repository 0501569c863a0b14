"""Frames over real sockets: order, limits, slow and broken peers."""

from __future__ import annotations

import os
import socket
import struct
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random

import pytest

from engine.host.event_loop import EventLoop
from engine.host.memory import ManualClock
from engine.host.ports import Clock, Connection, ConnectionLimits, FileRegion, PauseReason
from engine.host.real import RealClock
from engine.host.real_connection import RealConnection
from engine.host.real_network import CannotListen, RealNetwork
from engine.host.receive_buffers import ReceiveBuffers
from engine.limits import (
    FRAME_BYTES_MAX,
    FRAMES_PER_TURN_MAX,
    HALF_FRAME_DEADLINE_MS,
    IN_FLIGHT_BYTES_MAX,
    IOV_BUFFERS_MAX,
    TURN_MS_MAX,
    UNSENT_DEADLINE_MS,
)
from tests.unit.host.listening import Told

LIMIT = 1_000_000
# States of Linux, the first byte of TCP_INFO.
_ESTABLISHED, _SYN_SENT = 1, 2


class Echo:
    """A server on its own thread that answers every frame by a function of it."""

    def __init__(
        self,
        answer: Callable[[Connection, bytes], None],
        limits: ConnectionLimits,
        in_flight_bytes_max: int,
    ) -> None:
        self.loop = EventLoop()
        self.network = RealNetwork(self.loop, RealClock())
        self.buffers = ReceiveBuffers(in_flight_bytes_max)
        self.told = Told()
        self.refused = self.told.refused
        self.closed: list[str] = []
        self._answer = answer
        options = self.told.options(limits=limits)._replace(room=self.buffers)
        self.listener = self.network.listen("127.0.0.1", 0, self._accept, options)
        self.port = self.listener.port
        self._thread = threading.Thread(target=self.loop.run)
        self._thread.start()

    def _accept(self, connection: Connection) -> None:
        connection.on_frame = lambda frame: self._answer(connection, bytes(frame))
        connection.on_close = self.closed.append

    def stop(self) -> None:
        def end() -> None:
            self.network.close()
            self.loop.stop()

        self.loop.call_from_thread(end)
        self._thread.join()
        self.loop.close()


@contextmanager
def _server(
    answer: Callable[[Connection, bytes], None] | None = None,
    limits: ConnectionLimits | None = None,
    in_flight_bytes_max: int = IN_FLIGHT_BYTES_MAX,
) -> Iterator[Echo]:
    echo = Echo(
        answer or (lambda connection, frame: connection.send([frame])),
        limits or ConnectionLimits(frame_bytes_max=LIMIT),
        in_flight_bytes_max,
    )
    try:
        yield echo
    finally:
        echo.stop()


def _frame(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content


def _read_frame(sock: socket.socket) -> bytes:
    (size,) = struct.unpack(">i", _exactly(sock, 4))
    return _exactly(sock, size)


def _exactly(sock: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        piece = sock.recv(size - len(found))
        if not piece:
            raise EOFError(len(found))
        found += piece
    return found


def _has_ended(sock: socket.socket) -> bool:
    """Wait for the end of a connection; bytes that nobody read make it a reset."""
    try:
        return sock.recv(1) == b""
    except ConnectionResetError:
        return True


def _connected(echo: Echo) -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", echo.port))
    sock.settimeout(20)
    return sock


def test_pipelined_frames_are_answered_in_order() -> None:
    frames = [bytes([n % 256]) * (n * 37 % 3000) for n in range(300)]
    with _server() as echo, _connected(echo) as sock:
        sock.sendall(b"".join(_frame(frame) for frame in frames))
        assert frames == [_read_frame(sock) for _ in frames]


def test_a_frame_may_arrive_byte_by_byte() -> None:
    with _server() as echo, _connected(echo) as sock:
        for byte in _frame(b"slowly") + _frame(b"but whole"):
            sock.sendall(bytes([byte]))
        assert [b"slowly", b"but whole"] == [_read_frame(sock), _read_frame(sock)]


@pytest.mark.parametrize("size", [LIMIT - 1, LIMIT])
def test_frames_up_to_the_limit_pass(size: int) -> None:
    with _server() as echo, _connected(echo) as sock:
        content = os.urandom(size)
        sender = threading.Thread(target=sock.sendall, args=(_frame(content),))
        sender.start()
        assert content == _read_frame(sock)
        sender.join()


@pytest.mark.parametrize("length", [LIMIT + 1, -1, 0x7FFFFFFF])
def test_a_length_beyond_the_limit_closes_the_connection_only(length: int) -> None:
    with _server() as echo, _connected(echo) as bad, _connected(echo) as good:
        bad.sendall(struct.pack(">i", length) + b"x" * 10)
        assert _has_ended(bad)
        good.sendall(_frame(b"still here"))
        assert b"still here" == _read_frame(good)
        assert [f"a frame of {length} bytes"] == echo.refused


def test_frames_of_all_sizes_arrive_whole_in_pieces_of_any_size() -> None:
    random = Random(7)
    sizes = [random.choice((0, 1, 3, 100, 5000, 70_000, 400_000, LIMIT)) for _ in range(80)]
    frames = [bytes([n]) * size for n, size in enumerate(sizes)]
    stream = b"".join(_frame(frame) for frame in frames)
    sums: list[tuple[int, int]] = []
    done = threading.Event()

    def note(_connection: Connection, frame: bytes) -> None:
        sums.append((len(frame), sum(frame[:1] + frame[-1:])))
        if len(sums) == len(frames):
            done.set()

    with _server(note) as echo, _connected(echo) as sock:
        at = 0
        while at < len(stream):
            size = random.choice((1, 2, 5, 1000, 60_000, 300_000, 1_500_000))
            sock.sendall(stream[at : at + size])
            at += size
        assert done.wait(20)
    assert [(len(frame), sum(frame[:1] + frame[-1:])) for frame in frames] == sums


@pytest.mark.parametrize("size", [10, 3000, 150_000])
def test_a_pause_between_frames_loses_none_of_them(size: int) -> None:
    taken: list[bytes] = []
    done = threading.Event()
    frames = [bytes([n]) * (size + n) for n in range(30)]

    def answer(connection: Connection, frame: bytes) -> None:
        taken.append(frame)
        if len(taken) % 3 == 1:
            connection.pause(PauseReason.SLOTS)
            echo.loop.call_soon(lambda: connection.resume(PauseReason.SLOTS))
        if len(taken) == len(frames):
            done.set()

    with _server(answer) as echo, _connected(echo) as sock:
        sock.sendall(b"".join(_frame(frame) for frame in frames))
        assert done.wait(20)
    assert frames == taken


def test_the_length_of_a_frame_alone_reserves_nothing() -> None:
    with _server() as echo, _connected(echo) as sock:
        taken: list[int] = []
        take = echo.buffers.take_buffer

        def noted(size: int, enough: int | None = None) -> memoryview:
            found = take(size, enough)
            taken.append(len(found))
            return found

        echo.buffers.take_buffer = noted  # type: ignore[method-assign]
        sock.sendall(_frame(bytes(LIMIT))[:100])
        # Another connection's answer says that the piece above was read.
        with _connected(echo) as other:
            other.sendall(_frame(b"?"))
            assert b"?" == _read_frame(other)
        assert [4096] == taken
        sock.sendall(_frame(bytes(LIMIT))[100:])
        assert bytes(LIMIT) == _read_frame(sock)
        assert max(taken) < 2 * LIMIT


def _unfinished(echo: Echo, sock: socket.socket, size: int) -> None:
    """Send so many bytes of a larger frame and wait until they have been taken."""
    before = echo.buffers.in_flight_bytes
    sock.sendall(_frame(bytes(LIMIT))[:size])
    _turn_until(echo, lambda: echo.buffers.in_flight_bytes > before)


def _turn_until(echo: Echo, is_so: Callable[[], bool]) -> None:
    """Wait, turn by turn of the server's loop, until something is so."""
    for _ in range(100_000):
        turned = threading.Event()
        echo.loop.call_from_thread(turned.set)
        assert turned.wait(20)
        if is_so():
            return
    raise AssertionError("it never was so")


def test_unfinished_frames_have_a_bound_in_all_and_come_to_their_end_in_turn() -> None:
    bound = 100_000
    with _server(in_flight_bytes_max=bound) as echo:
        buffers = echo.buffers
        large = [_connected(echo) for _ in range(4)]
        for sock in large:
            _unfinished(echo, sock, 30_000)
        _turn_until(echo, lambda: buffers.is_full)
        rest = _frame(bytes(LIMIT))[30_000:]
        senders = [threading.Thread(target=sock.sendall, args=(rest,)) for sock in large]
        for sender in senders:
            sender.start()
        # Small requests are served on meanwhile.
        with _connected(echo) as small:
            for _ in range(5):
                small.sendall(_frame(b"?" * 5000))
                assert b"?" * 5000 == _read_frame(small)
        for sock in large:
            assert bytes(LIMIT) == _read_frame(sock)
            sock.close()
        for sender in senders:
            sender.join()
        assert [] == echo.refused
        assert 0 == buffers.in_flight_bytes


def test_only_one_frame_goes_on_beyond_the_bound() -> None:
    frame = _frame(bytes(LIMIT))
    with _server(in_flight_bytes_max=100_000) as echo, _connected(echo) as first:
        buffers = echo.buffers
        _unfinished(echo, first, 30_000)
        first.sendall(frame[30_000:-1])
        _turn_until(echo, lambda: buffers.in_flight_bytes >= LIMIT)
        taken = buffers.in_flight_bytes
        with _connected(echo) as second:
            _unfinished(echo, second, 10_000)
            sender = threading.Thread(target=second.sendall, args=(frame[10_000:],))
            sender.start()
            with _connected(echo) as small:
                # Each answer is a turn of the loop, in which the second could have taken more.
                for _ in range(20):
                    small.sendall(_frame(b"?"))
                    assert b"?" == _read_frame(small)
            assert buffers.in_flight_bytes < taken + 50_000
            # It gives up: the next one's turn.
            first.close()
            assert bytes(LIMIT) == _read_frame(second)
            sender.join()


def test_who_waits_for_room_is_not_overdue() -> None:
    with _server(in_flight_bytes_max=60_000) as echo, _connected(echo) as first:
        _unfinished(echo, first, 30_000)
        (one,) = echo.network.connections
        first.sendall(bytes(100_000))
        _turn_until(echo, lambda: echo.buffers.in_flight_bytes > 130_000)
        with _connected(echo) as second:
            _unfinished(echo, second, 10_000)
            (other,) = set(echo.network.connections) - {one}
            second.sendall(bytes(100_000))
            late_ms = one.last_active_ms + 10 * HALF_FRAME_DEADLINE_MS
            _turn_until(echo, lambda: other.overdue(late_ms) is None)
            assert "half a frame" == one.overdue(late_ms)


class Piecewise:
    """A connection whose peer sends by hand, with a clock set by hand."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self._loop = EventLoop()
        self.network = RealNetwork(self._loop, self.clock)
        listener = self.network.listen("127.0.0.1", 0, lambda _connection: None, Told().options())
        self.peer = socket.create_connection(("127.0.0.1", listener.port))
        while not self.network.connections:
            self.turn()
        (self.connection,) = self.network.connections

    def send(self, data: bytes) -> None:
        """Send bytes, and let them be read."""
        self.peer.sendall(data)
        for _ in range(5):
            self.turn()

    def turn(self) -> None:
        self._loop.call_soon(self._loop.stop)
        self._loop.run()

    def overdue(self) -> str | None:
        return self.connection.overdue(self.clock.monotonic_ms())

    def close(self) -> None:
        self.peer.close()
        self.network.close()
        self._loop.close()


@pytest.fixture
def piecewise() -> Iterator[Piecewise]:
    made = Piecewise()
    yield made
    made.close()


@pytest.mark.parametrize("first", [2, 1000])
def test_half_a_frame_is_overdue_from_its_last_byte_on(piecewise: Piecewise, first: int) -> None:
    frame = _frame(bytes(5000))
    piecewise.send(frame[:first])
    for _ in range(3):
        piecewise.clock.advance(HALF_FRAME_DEADLINE_MS)
        assert piecewise.overdue() is None
        piecewise.send(b"x")
    piecewise.clock.advance(HALF_FRAME_DEADLINE_MS + 1)
    assert "half a frame" == piecewise.overdue()


@pytest.mark.parametrize("reason", [PauseReason.SLOTS, PauseReason.QUOTA, PauseReason.MEMORY])
def test_the_time_of_a_pause_is_not_that_of_half_a_frame(
    piecewise: Piecewise, reason: PauseReason
) -> None:
    piecewise.send(_frame(bytes(5000))[:1000])
    piecewise.connection.pause(reason)
    piecewise.clock.advance(2 * HALF_FRAME_DEADLINE_MS)
    assert piecewise.overdue() is None
    piecewise.connection.resume(reason)
    assert piecewise.overdue() is None
    piecewise.turn()
    piecewise.turn()
    piecewise.clock.advance(HALF_FRAME_DEADLINE_MS + 1)
    assert "half a frame" == piecewise.overdue()


def test_accepted_connections_have_the_buffers_that_are_requested() -> None:
    sizes: list[tuple[int, int]] = []
    limits = ConnectionLimits(send_buffer_bytes=30_000, receive_buffer_bytes=40_000)
    with _server(limits=limits) as echo, _connected(echo) as sock:
        sock.sendall(_frame(b"?"))
        assert b"?" == _read_frame(sock)
        (connection,) = echo.network.connections
        sizes.append(connection.kernel_buffer_bytes)
    # Linux books twice of what is asked, for its own use.
    assert sizes in ([(60_000, 80_000)], [(30_000, 40_000)])


@pytest.mark.parametrize("requested", [-1, 40_000])
def test_a_connection_has_the_receive_buffer_that_is_requested(requested: int) -> None:
    loop = EventLoop()
    network = RealNetwork(loop, RealClock())
    with _server() as echo:
        network.connect("127.0.0.1", echo.port, receive_buffer_bytes=requested)
        (connection,) = network.connections
        _, size = connection.kernel_buffer_bytes
        network.close()
    loop.close()
    assert (size in (40_000, 80_000)) is (requested == 40_000)


def test_file_regions_are_sent_between_buffers(tmp_path: Path) -> None:
    path = tmp_path / "data"
    content = os.urandom(3_000_000)
    path.write_bytes(content)
    descriptor = os.open(path, os.O_RDONLY)
    sent = threading.Event()

    def answer(connection: Connection, _frame: bytes) -> None:
        region = FileRegion(descriptor, 5, len(content) - 10)
        connection.send([b"head", region, b"tail"], sent.set)

    with _server(answer) as echo, _connected(echo) as sock:
        sock.sendall(_frame(b"?"))
        assert b"head" + content[5:-5] + b"tail" == _read_frame(sock)
        assert sent.wait(20)
    os.close(descriptor)


def test_answers_with_regions_keep_their_order_when_the_socket_is_full(tmp_path: Path) -> None:
    path = tmp_path / "data"
    content = os.urandom(1_000_000)
    path.write_bytes(content)
    descriptor = os.open(path, os.O_RDONLY)

    def answer(connection: Connection, frame: bytes) -> None:
        number = frame[0]
        region = FileRegion(descriptor, number, len(content) - number)
        parts = ([b"head", region], [b"head", b"more", region, b"tail"], [region], [frame])
        connection.send(parts[number % 4])

    def expected(number: int) -> bytes:
        part = content[number:]
        return (b"head" + part, b"headmore" + part + b"tail", part, bytes((number,)))[number % 4]

    with _server(answer) as echo, _connected(echo) as sock:
        sock.sendall(b"".join(_frame(bytes((number,))) for number in range(40)))
        for number in range(40):
            assert expected(number) == _read_frame(sock)
    os.close(descriptor)


def test_an_answer_may_have_more_parts_than_one_call_takes() -> None:
    parts = [bytes((number % 251,)) * 40 for number in range(IOV_BUFFERS_MAX * 2 + 5)]
    with _server(lambda connection, _f: connection.send(parts)) as echo, _connected(echo) as sock:
        sock.sendall(_frame(b"?"))
        assert b"".join(parts) == _read_frame(sock)


def test_who_does_not_read_its_answers_is_overdue() -> None:
    found: list[str | None] = []
    big = bytes(30_000_000)

    def answer(connection: Connection, frame: bytes) -> None:
        assert isinstance(connection, RealConnection)
        if frame == b"big":
            connection.send([big])
        else:
            now_ms = RealClock().monotonic_ms()
            for late_ms in (0, UNSENT_DEADLINE_MS + 1):
                found.append(connection.overdue(now_ms + late_ms))

    with _server(answer) as echo, _connected(echo) as sock:
        sock.sendall(_frame(b"big"))
        sock.recv(1)
        sock.sendall(_frame(b"?"))
        _turn_until(echo, lambda: len(found) == 2)
    assert [None, "it does not read its answers"] == found


def test_a_region_that_its_file_no_longer_has_ends_the_connection(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(bytes(1000))
    descriptor = os.open(path, os.O_RDONLY)
    let_go = threading.Event()

    def answer(connection: Connection, _frame: bytes) -> None:
        region = FileRegion(descriptor, 0, 200_000)
        connection.send([b"head", FileRegion(descriptor, 0, 0), region], let_go.set)

    with _server(answer) as echo, _connected(echo) as sock:
        sock.sendall(_frame(b"?"))
        assert 4 + 4 + 1000 == len(_exactly(sock, 1008))
        assert _has_ended(sock)
        assert let_go.wait(20)
    assert ["a file ended before its region did"] == echo.closed
    os.close(descriptor)


def test_what_is_unsent_is_let_go_when_the_peer_leaves() -> None:
    sent = threading.Event()
    big = bytes(30_000_000)
    with _server(lambda connection, _f: connection.send([big], sent.set)) as echo:
        sock = _connected(echo)
        sock.sendall(_frame(b"?"))
        sock.close()
        assert sent.wait(20)


def test_a_reader_that_lets_answers_pile_up_is_cut() -> None:
    big = bytes(40 << 20)
    with _server(lambda connection, _f: connection.send([big])) as echo, _connected(echo) as sock:
        sock.sendall(_frame(b"1") + _frame(b"2") + _frame(b"3"))
        with pytest.raises((EOFError, ConnectionError)):
            for _ in range(3):
                _read_frame(sock)
        assert 1 == len(echo.refused)


_FEW_UNSENT = ConnectionLimits(frame_bytes_max=LIMIT, unsent_bytes_max=100_000)


class Crowd:
    """Peers of one listener whose frames are noted, in the order in which they are served."""

    def __init__(self, peer_count: int) -> None:
        self.clock = ManualClock()
        self.served: list[bytes] = []
        #: What serving one frame takes.
        self.frame_ms = 0
        self._loop = EventLoop()
        self._network = RealNetwork(self._loop, self.clock)
        listener = self._network.listen("127.0.0.1", 0, self._accept, Told().options())
        self.peers = [_connect(listener.port) for _ in range(peer_count)]
        while len(self._network.connections) < peer_count:
            self.turn()

    def _accept(self, connection: Connection) -> None:
        def serve(frame: memoryview) -> None:
            self.served.append(bytes(frame))
            self.clock.advance(self.frame_ms)
            connection.send([bytes(frame)])

        connection.on_frame = serve

    def turn(self) -> None:
        self._loop.call_soon(self._loop.stop)
        self._loop.run()

    def serve(self, frame_count: int) -> None:
        """Turn the loop until so many frames have been served."""
        while len(self.served) < frame_count:
            self.turn()

    def overdue(self, late_ms: int) -> list[str | None]:
        now_ms = self.clock.monotonic_ms() + late_ms
        return [connection.overdue(now_ms) for connection in self._network.connections]

    def close(self) -> None:
        for peer in self.peers:
            peer.close()
        self._network.close()
        self._loop.close()


def _connect(port: int) -> socket.socket:
    peer = socket.create_connection(("127.0.0.1", port))
    peer.settimeout(20)
    return peer


@pytest.fixture
def crowd() -> Iterator[Crowd]:
    made = Crowd(3)
    yield made
    made.close()


@pytest.mark.parametrize(
    ("frame_ms", "share"), [(0, FRAMES_PER_TURN_MAX), (2, 3), (10 * TURN_MS_MAX, 1)]
)
def test_a_peer_that_sends_without_end_keeps_another_waiting_for_its_share_of_a_turn(
    crowd: Crowd, frame_ms: int, share: int
) -> None:
    crowd.frame_ms = frame_ms
    greedy, patient, _ = crowd.peers
    greedy.sendall(_frame(b"greedy") * 2000)
    patient.sendall(_frame(b"patient"))
    crowd.serve(share + 1)
    assert crowd.served.index(b"patient") <= share


def test_peers_that_send_without_end_are_served_in_turn(crowd: Crowd) -> None:
    for number, peer in enumerate(crowd.peers):
        peer.sendall(_frame(bytes((number,))) * 500)
    crowd.serve(1000)
    shares = [crowd.served[:1000].count(bytes((number,))) for number in range(3)]
    assert max(shares) - min(shares) <= 2 * FRAMES_PER_TURN_MAX


def test_frames_that_wait_for_their_turn_are_served_in_order(crowd: Crowd) -> None:
    # More than one read takes, and a frame across the end of the first.
    frames = [struct.pack(">i", number) * (number % 900) for number in range(2500)]
    peer, *_ = crowd.peers
    sender = threading.Thread(target=peer.sendall, args=(b"".join(map(_frame, frames)),))
    reader = threading.Thread(target=lambda: [_read_frame(peer) for _ in frames])
    sender.start()
    reader.start()
    crowd.serve(len(frames))
    # A slow reader lets the last answers wait for room in the socket.
    while reader.is_alive():
        crowd.turn()
    sender.join()
    reader.join()
    assert frames == crowd.served


def test_frames_that_wait_for_their_turn_are_not_overdue(crowd: Crowd) -> None:
    peer, *_ = crowd.peers
    frame_count = 20 * FRAMES_PER_TURN_MAX
    peer.sendall(_frame(b"?") * frame_count + _frame(bytes(1000))[:500])
    crowd.serve(1)
    assert len(crowd.served) < frame_count
    crowd.clock.advance(10 * HALF_FRAME_DEADLINE_MS)
    assert [None] * 3 == crowd.overdue(0)
    crowd.serve(frame_count)
    assert [None] * 3 == crowd.overdue(HALF_FRAME_DEADLINE_MS)
    assert "half a frame" in crowd.overdue(HALF_FRAME_DEADLINE_MS + 1)


def test_one_response_of_any_size_passes_and_small_ones_after_it() -> None:
    # Beyond what the kernel's buffers take.
    big = bytes(30_000_000)

    def answer(connection: Connection, frame: bytes) -> None:
        connection.send([big] if frame == b"big" else [frame])

    with _server(answer, _FEW_UNSENT) as echo, _connected(echo) as sock:
        for _ in range(2):
            sock.sendall(_frame(b"big") + _frame(b"small"))
            assert len(big) == len(_read_frame(sock))
            assert b"small" == _read_frame(sock)
    assert [] == echo.refused


def test_a_second_answer_above_the_limit_is_cut_while_the_first_is_unsent() -> None:
    big = bytes(30_000_000)
    with _server(lambda connection, _f: connection.send([big]), _FEW_UNSENT) as echo:
        with _connected(echo) as sock:
            sock.sendall(_frame(b"1") + _frame(b"2"))
            # Nothing is read until then: a quick reader gets both.
            _turn_until(echo, lambda: bool(echo.refused))
        assert 1 == len(echo.refused)


def test_small_answers_behind_a_large_one_have_the_same_limit() -> None:
    big, small = bytes(30_000_000), bytes(30_000)

    def answer(connection: Connection, frame: bytes) -> None:
        connection.send([big] if frame == b"big" else [small])

    with _server(answer, _FEW_UNSENT) as echo:
        with _connected(echo) as sock:
            sock.sendall(_frame(b"big") + _frame(b"?") * 4)
            _turn_until(echo, lambda: bool(echo.refused))
        assert 1 == len(echo.refused)


def test_an_answer_may_be_larger_than_any_request() -> None:
    loop = EventLoop()
    network = RealNetwork(loop, RealClock())
    ended: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        connection = network.connect(*listening.getsockname())
        connection.on_close = ended.append
        peer, _ = listening.accept()
        with peer:
            peer.sendall(struct.pack(">i", FRAME_BYTES_MAX + 1) + bytes(1000))
            for _ in range(5):
                loop.call_soon(loop.stop)
                loop.run()
            assert [] == ended
            network.close()
    loop.close()


def test_file_regions_count_nothing_towards_what_may_be_unsent(tmp_path: Path) -> None:
    path = tmp_path / "data"
    with path.open("wb") as file:
        file.truncate(30_000_000)
    descriptor = os.open(path, os.O_RDONLY)

    def answer(connection: Connection, _frame: bytes) -> None:
        connection.send([b"head", FileRegion(descriptor, 0, 30_000_000)])

    with _server(answer, _FEW_UNSENT) as echo, _connected(echo) as sock:
        sock.sendall(_frame(b"?") * 4)
        assert [30_000_004] * 4 == [len(_read_frame(sock)) for _ in range(4)]
    assert [] == echo.refused
    os.close(descriptor)


def test_responses_that_wait_are_bounded_though_they_are_files(tmp_path: Path) -> None:
    path = tmp_path / "data"
    with path.open("wb") as file:
        file.truncate(10_000_000)
    descriptor = os.open(path, os.O_RDONLY)

    def answer(connection: Connection, _frame: bytes) -> None:
        connection.send([FileRegion(descriptor, 0, 10_000_000)])

    with _server(answer, _FEW_UNSENT) as echo, _connected(echo) as sock:
        # Nobody reads: a hundred responses in files are as much as may wait.
        sock.sendall(_frame(b"?") * 300)
        _turn_until(echo, lambda: echo.refused)
    os.close(descriptor)


@pytest.mark.parametrize("bad", [3, 70])
def test_a_fault_of_the_owner_serves_no_frame_twice(bad: int) -> None:
    served: list[int] = []
    faults: list[BaseException] = []

    def answer(connection: Connection, frame: bytes) -> None:
        served.append(int(frame))
        if int(frame) == bad:
            raise KeyError(bad)
        connection.send([frame])

    with _server(answer) as echo, _connected(echo) as sock:
        echo.loop.handle_faults(faults.append)
        sock.sendall(b"".join(_frame(b"%d" % number) for number in range(100)))
        _turn_until(echo, lambda: faults)
        _turn_until(echo, lambda: not echo.network.connections)
    assert list(range(bad + 1)) == served


def test_a_paused_connection_takes_frames_again_after_resume() -> None:
    taken: list[bytes] = []
    both = threading.Event()

    def answer(connection: Connection, frame: bytes) -> None:
        taken.append(frame)
        if len(taken) == 1:
            connection.pause(PauseReason.SLOTS)
            loop = echo.loop
            resume = partial(connection.resume, PauseReason.SLOTS)
            loop.call_soon(lambda: loop.call_soon(resume))
        else:
            both.set()

    with _server(answer) as echo, _connected(echo) as sock:
        sock.sendall(_frame(b"one") + _frame(b"two"))
        assert both.wait(20)
        assert [b"one", b"two"] == taken


def test_an_address_in_use_is_a_typed_error() -> None:
    with _server() as echo:
        loop = EventLoop()
        other = RealNetwork(loop, RealClock())
        with pytest.raises(CannotListen):
            other.listen("127.0.0.1", echo.port, lambda _c: None, Told().options())
        loop.close()


@pytest.mark.skipif(sys.platform != "linux", reason="other kernels count otherwise")
@pytest.mark.parametrize("backlog", [1, 3])
def test_so_many_and_one_more_may_wait_to_be_accepted(backlog: int) -> None:
    loop = EventLoop()
    network = RealNetwork(loop, RealClock())
    # The loop never turns: nothing is accepted, and the kernel leaves the last one's SYN alone.
    options = Told().options(backlog=backlog)
    port = network.listen("127.0.0.1", 0, lambda _c: None, options).port
    waiting = [_connecting(port) for _ in range(backlog + 2)]
    assert [_ESTABLISHED] * (backlog + 1) + [_SYN_SENT] == [_tcp_state(sock) for sock in waiting]
    for sock in waiting:
        sock.close()
    network.close()
    loop.close()


def _connecting(port: int) -> socket.socket:
    sock = socket.socket()
    sock.setblocking(False)
    sock.connect_ex(("127.0.0.1", port))
    return sock


def _tcp_state(sock: socket.socket) -> int:
    return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]


def test_nothing_is_left_after_the_end() -> None:
    with _server() as echo:
        # The client stays until the server has ended, or either end might be the first to go.
        sock = _connected(echo)
        sock.sendall(_frame(b"x"))
        _read_frame(sock)
    assert 0 == echo.network.connection_count
    assert ["the broker stops"] == echo.closed
    sock.close()


class CountingNetwork(RealNetwork):
    """Counts which connections are to be flushed at the end of a turn."""

    def __init__(self, loop: EventLoop, clock: Clock) -> None:
        super().__init__(loop, clock)
        self.flushes = 0

    def flush_later(self, connection: RealConnection) -> None:
        self.flushes += 1
        super().flush_later(connection)


class OneLoop:
    """A listener of a counting network, turned by the test; `serve` sees each connection."""

    def __init__(self, clock: Clock, serve: Callable[[Connection], None], **limits: int) -> None:
        self.loop = EventLoop()
        self.network = CountingNetwork(self.loop, clock)
        self.told = Told()
        options = self.told.options(limits=ConnectionLimits(**limits))
        self.port = self.network.listen("127.0.0.1", 0, serve, options).port

    def run(self) -> None:
        """Turn until somebody stops the loop, or for twenty seconds."""
        cancel = self.loop.call_at(RealClock().monotonic_ms() + 20_000, self.loop.stop)
        self.loop.run()
        cancel()

    def close(self) -> None:
        self.network.close()
        self.loop.close()


def test_a_listener_sweeps_the_connections_that_are_overdue() -> None:
    # A clock behind that of the loop: every sweep is due at once.
    clock = ManualClock()
    closed: list[str] = []

    def serve(connection: Connection) -> None:
        def end(reason: str) -> None:
            closed.append(reason)
            stage.loop.stop()

        connection.on_close = end
        clock.advance(1001)

    stage = OneLoop(clock, serve, idle_ms=1000)
    with socket.create_connection(("127.0.0.1", stage.port)):
        stage.run()
    stage.close()
    assert (["idle"], ["idle"]) == (closed, stage.told.refused)


def test_responses_of_one_turn_are_flushed_once_and_none_that_wait_for_the_socket() -> None:
    counts: list[int] = []
    big = bytes(30_000_000)

    def serve(connection: Connection) -> None:
        def answer(_frame: memoryview) -> None:
            # During a read they leave with its end.
            connection.send([b"a"])
            connection.send([b"b"])
            counts.append(stage.network.flushes)
            stage.loop.call_soon(later)

        def later() -> None:
            connection.send([b"c"])
            connection.send([big])
            counts.append(stage.network.flushes)
            stage.loop.call_soon(lambda: stage.loop.call_soon(full))

        def full() -> None:
            # The socket has taken what it could of the large one.
            connection.send([b"d"])
            counts.append(stage.network.flushes)
            stage.loop.stop()

        connection.on_frame = answer

    stage = OneLoop(RealClock(), serve)
    with socket.create_connection(("127.0.0.1", stage.port)) as sock:
        sock.sendall(_frame(b"?"))
        stage.run()
    stage.close()
    assert [0, 1, 1] == counts
