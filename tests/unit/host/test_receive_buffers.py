"""How much memory an unfinished frame takes."""

from __future__ import annotations

from engine.host.receive_buffers import ReceiveBuffers

_FRAME_BYTES = 4 + 524_288


def test_a_buffer_is_at_most_twice_as_large_as_what_is_there() -> None:
    assert len(ReceiveBuffers(1 << 30).take_buffer(_FRAME_BYTES)) == 1 << 20


def test_a_frame_of_a_client_that_is_not_known_takes_no_more_than_its_length_and_a_page() -> None:
    buffers = ReceiveBuffers(1 << 30)
    held = buffers.take_buffer(_FRAME_BYTES - 1, _FRAME_BYTES)
    assert _FRAME_BYTES <= len(held) <= _FRAME_BYTES + 4096
    assert buffers.in_flight_bytes == len(held)
    # Memory still follows what has come, not what a length announces.
    assert len(buffers.take_buffer(10_000, _FRAME_BYTES)) == 1 << 14


def test_such_a_frame_takes_no_buffer_that_is_kept_and_leaves_none() -> None:
    buffers = ReceiveBuffers(1 << 30)
    kept = buffers.take_buffer(1 << 20)
    buffers.release(kept)
    held = buffers.take_buffer(100_000, _FRAME_BYTES)
    assert len(held) == 1 << 17
    buffers.release(held)
    assert buffers.take_buffer(100_000) is kept
