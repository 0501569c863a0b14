"""A connection may have a bound on its frames that is tighter than its listener's, for a while."""

from __future__ import annotations

import struct
import weakref
from collections.abc import Iterator

import pytest

from engine.host.ports import FrameBound, PauseReason
from engine.limits import SMALL_READ_BYTES
from tests.unit.host.test_pauses import MemoryTwin, RealTwin, Twin


@pytest.fixture(params=[MemoryTwin, RealTwin])
def twin(request: pytest.FixtureRequest) -> Iterator[Twin]:
    made: Twin = request.param()
    yield made
    made.close()


def test_a_larger_frame_is_reported_and_dropped_and_the_owner_decides(twin: Twin) -> None:
    larger: list[int] = []

    def on_larger(size: int) -> None:
        larger.append(size)
        twin.connection.pause(PauseReason.AUTHENTICATION)

    twin.connection.bound_frames(FrameBound(10, on_larger))
    twin.send(b"x" * 10)
    assert ([b"x" * 10], []) == (twin.taken, larger)
    twin.send(b"y" * 11)
    twin.turn()
    assert ([b"x" * 10], [11]) == (twin.taken, larger)


def test_a_bound_ends_between_the_frames_of_one_read() -> None:
    twin = RealTwin()
    connection = twin.connection

    def take(frame: memoryview) -> None:
        twin.taken.append(bytes(frame))
        connection.bound_frames(None)

    connection.on_frame = take
    connection.bound_frames(FrameBound(10, lambda _size: connection.close("too large")))
    frames = [b"x", b"y" * 100]
    twin.send_bytes(b"".join(struct.pack(">i", len(one)) + one for one in frames))
    assert frames == twin.taken
    twin.close()


def test_a_bounded_frame_that_comes_at_once_takes_no_more_than_its_length_and_a_page() -> None:
    twin = RealTwin()
    twin.connection.bound_frames(FrameBound(524_288, lambda _size: None))
    twin.send_bytes(struct.pack(">i", 70_000) + bytes(69_999))
    assert 70_000 < twin.room.in_flight_bytes <= 70_004 + 4096
    twin.send_bytes(b"\0")
    assert 0 == twin.room.in_flight_bytes
    assert [bytes(70_000)] == twin.taken
    twin.close()


@pytest.mark.parametrize("room_bytes", [0, 1])
def test_pieces_are_small_from_the_moment_that_unfinished_frames_have_the_whole_bound(
    room_bytes: int,
) -> None:
    """A frame behind the first small piece is joined in a buffer of the connection's own."""
    twin = RealTwin()
    held = len(twin.room.take_buffer(4096))
    twin.room.in_flight_bytes_max = held + room_bytes
    own_bytes = []
    twin.connection.on_frame = lambda _frame: own_bytes.append(twin.room.in_flight_bytes - held)
    frame_bytes = SMALL_READ_BYTES - 1000
    twin.send_bytes((struct.pack(">i", frame_bytes) + bytes(frame_bytes)) * 2)
    assert 2 == len(own_bytes)
    assert 0 == own_bytes[0]
    assert (own_bytes[1] > 0) is (room_bytes == 0)
    twin.close()


class _Owner:
    """Whoever serves a connection, and refers to it."""

    def __init__(self, connection: object) -> None:
        self.connection = connection

    def take(self, frame: memoryview) -> None:
        """Take a frame."""


def test_what_served_a_connection_is_freed_when_it_closes() -> None:
    """Hostile clients come and go faster than collections of garbage do."""
    twin = RealTwin()
    owner = _Owner(twin.connection)
    twin.connection.on_frame = owner.take
    found = weakref.ref(owner)
    del owner
    twin.connection.close("it has gone")
    assert found() is None
    twin.close()
