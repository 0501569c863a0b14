"""A connection is paused by counted reasons, in both networks."""

from __future__ import annotations

import itertools
import socket
import struct
from collections.abc import Callable, Iterator
from typing import Protocol

import pytest

from engine.host.event_loop import EventLoop
from engine.host.memory import ManualClock
from engine.host.memory_network import MemoryNetwork, MemoryTimers
from engine.host.ports import Connection, PauseReason
from engine.host.real import RealClock
from engine.host.real_network import RealNetwork
from engine.host.receive_buffers import ReceiveBuffers
from tests.unit.host.listening import Told


class Twin(Protocol):
    """One network with a connection that has been accepted."""

    connection: Connection
    taken: list[bytes]

    def send(self, frame: bytes) -> None:
        """Let the peer send a frame, and let it arrive."""

    def turn(self) -> None:
        """Let everything happen that is due."""

    def close(self) -> None:
        """Let go of everything."""


class MemoryTwin:
    """The twin for tests."""

    def __init__(self, *, is_paused: bool = False) -> None:
        self.taken: list[bytes] = []
        self._is_paused = is_paused
        self._timers = MemoryTimers(ManualClock())
        network = MemoryNetwork(self._timers)
        listener = network.listen("h", 0, self._accept, Told().options())
        self._client = network.connect("h", listener.port)

    def _accept(self, connection: Connection) -> None:
        self.connection = connection
        connection.on_frame = lambda frame: self.taken.append(bytes(frame))
        if self._is_paused:
            connection.pause(PauseReason.OPENING)

    def send(self, frame: bytes) -> None:
        self._client.send([frame])
        self.turn()

    def turn(self) -> None:
        self._timers.run_until_idle()

    def close(self) -> None:
        self._client.close("done")
        self.turn()


class RealTwin:
    """The machine."""

    def __init__(self, *, is_paused: bool = False) -> None:
        self.taken: list[bytes] = []
        self._is_paused = is_paused
        self._loop = EventLoop()
        self._network = RealNetwork(self._loop, RealClock())
        self.room = ReceiveBuffers(1 << 28)
        options = Told().options()._replace(room=self.room)
        listener = self._network.listen("127.0.0.1", 0, self._accept, options)
        self._client = socket.create_connection(("127.0.0.1", listener.port))
        self.turn()

    def _accept(self, connection: Connection) -> None:
        self.connection = connection
        connection.on_frame = lambda frame: self.taken.append(bytes(frame))
        if self._is_paused:
            connection.pause(PauseReason.OPENING)

    def send(self, frame: bytes) -> None:
        self.send_bytes(struct.pack(">i", len(frame)) + frame)

    def send_bytes(self, data: bytes) -> None:
        """Let the peer send any bytes."""
        self._client.sendall(data)
        self.turn()

    def turn(self) -> None:
        for _ in range(5):
            self._loop.call_soon(self._loop.stop)
            self._loop.run()

    def close(self) -> None:
        self._client.close()
        self._network.close()
        self._loop.close()


@pytest.fixture(params=[MemoryTwin, RealTwin])
def twin(request: pytest.FixtureRequest) -> Iterator[Twin]:
    made: Callable[[], Twin] = request.param
    twin = made()
    yield twin
    twin.close()


PAIRS = list(itertools.permutations(PauseReason, 2))


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_frames_are_taken_again_when_no_reason_is_left(
    twin: Twin, first: PauseReason, second: PauseReason
) -> None:
    twin.connection.pause(first)
    twin.connection.pause(second)
    twin.send(b"one")
    twin.connection.resume(first)
    twin.turn()
    assert [] == twin.taken
    twin.connection.resume(second)
    twin.turn()
    twin.send(b"two")
    assert [b"one", b"two"] == twin.taken


@pytest.mark.parametrize("network", [MemoryTwin, RealTwin])
def test_who_is_paused_as_soon_as_it_is_there_is_not_read_until_it_is_resumed(
    network: Callable[..., Twin],
) -> None:
    twin = network(is_paused=True)
    twin.send(b"one")
    assert [] == twin.taken
    if isinstance(twin, RealTwin):
        assert 0 == twin.room.in_flight_bytes
    twin.connection.resume(PauseReason.OPENING)
    twin.turn()
    assert [b"one"] == twin.taken
    twin.close()


def test_a_reason_counts_once(twin: Twin) -> None:
    twin.connection.pause(PauseReason.QUOTA)
    twin.connection.pause(PauseReason.QUOTA)
    twin.connection.resume(PauseReason.QUOTA)
    twin.send(b"one")
    assert [b"one"] == twin.taken


def test_giving_up_a_reason_that_was_never_there_changes_nothing(twin: Twin) -> None:
    twin.connection.pause(PauseReason.SLOTS)
    twin.connection.resume(PauseReason.QUOTA)
    twin.send(b"one")
    assert [] == twin.taken
    twin.connection.resume(PauseReason.SLOTS)
    twin.connection.resume(PauseReason.SLOTS)
    twin.turn()
    assert [b"one"] == twin.taken


def test_a_closed_connection_is_neither_paused_nor_resumed(twin: Twin) -> None:
    twin.connection.close("done")
    twin.connection.pause(PauseReason.SLOTS)
    twin.connection.resume(PauseReason.SLOTS)
    twin.turn()
    assert [] == twin.taken


def test_a_wait_for_memory_and_a_pause_of_the_server_overlap() -> None:
    twin = RealTwin()
    frame = bytes(100_000)
    twin.send_bytes(struct.pack(">i", len(frame)) + frame[:50_000])
    # Another connection has the only turn beyond the bound.
    twin.room.in_flight_bytes_max = 1

    class Other:
        """Somebody who goes on."""

        @staticmethod
        def resume_reading() -> bool:
            return True

    other = Other()
    assert twin.room.has_room_for(other, 10)
    twin.send_bytes(frame[50_000:])
    twin.turn()
    assert [] == twin.taken
    twin.connection.pause(PauseReason.SLOTS)
    twin.room.in_flight_bytes_max = 1 << 28
    twin.room.end_turn(other)
    twin.turn()
    assert [] == twin.taken
    twin.connection.resume(PauseReason.SLOTS)
    twin.turn()
    assert [frame] == twin.taken
    twin.close()
