"""Coverage-guided fuzzing of a whole broker by its requests, by hand.

    pip install atheris && python -m tests.fuzz.fuzz_frames -max_total_time=600 -rss_limit_mb=1500

The broker and its disk are in memory. The first byte of an input chooses: raw frames, each behind a
length of two bytes; or a seed from which requests are drawn, with changes that the rest of the
input makes to their bytes. Any exception out of the server is a finding, and so are a handler that
fails, a broker that gives up, and one that does not answer another client.
"""

from __future__ import annotations

import logging
import sys
from random import Random

import atheris

with atheris.instrument_imports(include=["engine"]):
    from tests.unit.broker.frame_storm import Storm

_FRAMES_MAX = 20


def raw(storm: Storm, data: bytes) -> None:
    """Throw frames as they are."""
    position = 0
    for _ in range(_FRAMES_MAX):
        size = int.from_bytes(data[position : position + 2], "big")
        position += 2
        if position > len(data):
            return
        storm.throw(data[position : position + size])
        position += size


def drawn(storm: Storm, data: bytes) -> None:
    """Throw requests of one API after the other, the input's bytes put into them."""
    rng = Random(int.from_bytes(data[:4], "big"))
    for at in range(4, min(len(data), 4 + 4 * _FRAMES_MAX), 4):
        api, version, place, value = data[at : at + 4].ljust(4, b"\0")
        row = storm.rows[api % len(storm.rows)]
        versions = row.highest - row.lowest + 1
        frame = bytearray(storm.drawn(rng, row, row.lowest + version % versions))
        if value:
            frame[-1 - place % len(frame)] ^= value
        storm.throw(bytes(frame))


def one_input(data: bytes) -> None:
    """Read one input."""
    storm = Storm()
    (raw if data[:1] < b"\x40" else drawn)(storm, data[1:])
    storm.check()


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
