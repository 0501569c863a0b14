"""How much memory an unfinished frame takes."""

from __future__ import annotations

from engine.host.receive_buffers import ReceiveBuffers

_FRAME_BYTES = 4 + 524_288


def test_a_buffer_is_at_most_twice_as_large_as_what_is_there() -> None:
    assert len(ReceiveBuffers(1 << 30).take(_FRAME_BYTES)) == 1 << 20


def test_a_frame_of_a_client_that_is_not_known_takes_no_more_than_its_length_and_a_page() -> None:
    buffers = ReceiveBuffers(1 << 30)
    held = buffers.take(_FRAME_BYTES - 1, _FRAME_BYTES)
    assert _FRAME_BYTES <= len(held) <= _FRAME_BYTES + 4096
    assert buffers.in_flight_bytes == len(held)
    # Memory still follows what has come, not what a length announces.
    assert len(buffers.take(10_000, _FRAME_BYTES)) == 1 << 14
