"""The rows of the views `batches` and `segments` over damage."""

from __future__ import annotations

from typing import Any

import pytest

from engine.analysis.columns import VIEWS
from engine.analysis.record_batches import view_batches
from engine.analysis.splits import Selection, plan_splits
from engine.records.batch_header import HEADER_BYTES
from tests.unit.log.logs import batch, log_of, name_of, put


def _rows(view: str, log: bytes) -> list[dict[str, Any]]:
    files = log_of({0: b""})
    put(files, name_of(0), log)
    (split,) = plan_splits(files, ["/data"], Selection())
    batches = view_batches(files, view, VIEWS[view], split, control=True)
    return [row for part in batches for row in part.to_pylist()]


@pytest.mark.parametrize("position", range(HEADER_BYTES))
def test_a_flipped_bit_of_a_header_fails_no_view(position: int) -> None:
    parts = [batch(2 * n, 2) for n in range(4)]
    undamaged = _rows("batches", b"".join(parts))
    for bit in range(8):
        damaged = bytearray(parts[1])
        damaged[position] ^= 1 << bit
        log = b"".join([parts[0], bytes(damaged), *parts[2:]])
        rows = _rows("batches", log)
        assert [undamaged[0], *undamaged[2:]] == [row for row in rows if row in undamaged][:3]
        (segment,) = _rows("segments", log)
        assert 8 == segment["nextOffset"]


def test_a_batch_of_an_unknown_format_is_a_row_without_a_time() -> None:
    damaged = bytearray(batch(0))
    damaged[16] |= 0x80
    (row,) = _rows("batches", bytes(damaged))
    assert (-126, False) == (row["magic"], row["crcValid"])
    assert (-1, None, -1) == (row["timestampType"], row["maxTimestamp"], row["maxTimestampMs"])
