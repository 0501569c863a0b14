"""Any bytes a client may send leave the server standing, and its store as it may be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.znode.zookeeper_records import BadZookeeperFrame
from engine.znode.zookeeper_wire import read_connect, read_request
from tests.unit.znode.zookeeper_replay import Served

_FOLDER = Path(__file__).parent.parent / "unit" / "znode"
_FRAMES = json.loads((_FOLDER / "zookeeper_frames.json").read_text())
REAL = [bytes.fromhex(f[1:]) for frames in _FRAMES.values() for f in frames if f[0] == ">"]
PIECES = st.sampled_from(
    [b"", b"\0", b"\xff", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"/", b"\1"]
)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A real request with some of its bytes replaced, or cut."""
    frame = draw(st.sampled_from(REAL))
    start = draw(st.integers(0, len(frame)))
    return frame[:start] + draw(PIECES) + frame[start + draw(st.integers(0, 5)) :]


FRAMES = st.one_of(damaged(), damaged(), st.sampled_from(REAL), st.binary(max_size=60))


@given(FRAMES)
def test_reading_a_frame_gives_a_request_or_a_typed_error(frame: bytes) -> None:
    for read in (read_connect, read_request):
        try:
            read(memoryview(frame))
        except BadZookeeperFrame as error:
            assert str(error)


@given(st.lists(FRAMES, max_size=12))
def test_a_server_outlives_its_clients(frames: list[bytes]) -> None:
    served = Served()
    client = served.session()
    for frame in frames:
        client.send(frame)
        if client.closed:
            client = served.session()
    assert served.session().ask(3, b"\0\0\0\1/\0")[0] == 0


@pytest.mark.parametrize("frame", REAL, ids=range(len(REAL)))
def test_every_cut_of_a_real_frame_is_an_error_or_a_request(frame: bytes) -> None:
    for length in range(len(frame)):
        served = Served()
        client = served.session()
        client.send(frame[:length])
