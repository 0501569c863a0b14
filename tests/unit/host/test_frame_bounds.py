"""A connection may have a bound on its frames that is tighter than its listener's, for a while."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest

from engine.host.ports import FrameBound, PauseReason
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
