"""Frames of every API and version, right and damaged, thrown at a whole broker (tier 7)."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.broker.frame_storm import Storm, changed

_FRAMES = 40


@given(st.integers(0, 1 << 32))
@settings(max_examples=60)
def test_no_frame_makes_a_handler_fail_or_the_broker_stop(seed: int) -> None:
    rng = Random(seed)
    storm = Storm()
    for _ in range(_FRAMES):
        row = rng.choice(storm.rows)
        frame = storm.drawn(rng, row, rng.randint(row.lowest, row.highest))
        storm.throw(changed(rng, frame) if rng.random() < 0.4 else frame)
    storm.check()


@given(st.binary(max_size=60))
@settings(max_examples=100)
def test_no_bytes_do_either(frame: bytes) -> None:
    storm = _shared()
    storm.throw(frame)
    storm.check()


def test_every_version_of_every_api_is_thrown() -> None:
    rng = Random(7)
    storm = Storm()
    for row in storm.rows:
        for version in range(row.lowest, row.highest + 1):
            for _ in range(3):
                storm.throw(storm.drawn(rng, row, version))
    storm.check()


@pytest.mark.parametrize("api_key", [0, 1, 3, 18, 19, 44])
def test_a_body_that_is_cut_anywhere_closes_its_connection_only(api_key: int) -> None:
    rng = Random(api_key)
    storm = _shared()
    row = next(row for row in storm.rows if row.key == api_key)
    frame = storm.drawn(rng, row, row.highest)
    for size in range(min(len(frame), 300)):
        storm.throw(frame[:size])
    storm.check()


_STORMS: list[Storm] = []


def _shared() -> Storm:
    """Return a broker for frames that change nothing."""
    if not _STORMS:
        _STORMS.append(Storm())
    return _STORMS[0]
