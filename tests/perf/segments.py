"""Makes log segments of a wanted size and record size, quickly and always the same."""

from __future__ import annotations

import random
from pathlib import Path

from engine.records.batch import BatchView
from engine.records.builder import BatchBuilder, BatchSettings
from engine.records.codec import Codec

_START_MS = 1_767_225_600_000
_WORDS = [
    "amber",
    "birch",
    "cedar",
    "delta",
    "ember",
    "fjord",
    "grove",
    "haven",
    "inlet",
    "jetty",
    "knoll",
    "ledge",
    "marsh",
]


def value_of(n: int, size_bytes: int) -> bytes:
    """Return a JSON-like value of about `size_bytes`, the same for the same n."""
    source = random.Random(n % 997)
    text = f'{{"n": {n}, "text": "'
    while len(text) < size_bytes - 2:
        text += source.choice(_WORDS) + " "
    return (text[: size_bytes - 2] + '"}').encode()


def write_segment(
    path: Path,
    *,
    total_bytes: int,
    value_bytes: int,
    batch_bytes: int,
    codec: Codec = Codec.NONE,
) -> int:
    """Write one segment of at least `total_bytes`; returns the number of records.

    One batch is built and repeated at the offsets that follow, so that a gigabyte takes
    seconds: the base offset lies outside the checksum.
    """
    per_batch = max(1, batch_bytes // (value_bytes + 20))
    builder = BatchBuilder(BatchSettings(codec=codec, leader_epoch=0))
    for n in range(per_batch):
        builder.append(_START_MS + n, b"key-%d" % n, value_of(n, value_bytes))
    batch = builder.build()
    view = BatchView(memoryview(batch))
    written = offset = 0
    with path.open("wb") as out:
        while written < total_bytes:
            view.patch(base_offset=offset)
            out.write(batch)
            written += len(batch)
            offset += per_batch
    return offset
