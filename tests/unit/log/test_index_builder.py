"""Indexes built from a log, entry for entry as a broker builds them."""

from __future__ import annotations

import pytest

from engine.log.batch_scan import scan_batches
from engine.log.index_builder import IndexBuilder
from engine.log.offset_index import IndexOrderBroken
from tests.unit.log.logs import TIME_MS, batch, log_of, name_of


def built(*batches: bytes, interval_bytes: int) -> IndexBuilder:
    files = log_of({0: b"".join(batches)})
    builder = IndexBuilder(0, interval_bytes)
    for position, found in scan_batches(files.open(f"/data/t-0/{name_of(0)}")):
        builder.add_batch(position, found.last_offset, found.max_timestamp_ms)
    builder.finish()
    return builder


def test_an_entry_comes_after_more_than_the_interval() -> None:
    size = len(batch(0))
    builder = built(*(batch(n) for n in range(7)), interval_bytes=2 * size)
    # 3 sizes are the first distance above 2, and so on from there.
    assert [tuple(e) for e in builder.index] == [(3, 3 * size), (6, 6 * size)]
    assert [tuple(e) for e in builder.time_index] == [(TIME_MS + 3, 3), (TIME_MS + 6, 6)]


def test_an_entry_has_the_last_offset_of_the_batch_at_its_position() -> None:
    size = len(batch(0, 4))
    builder = built(batch(0, 4), batch(4, 4), interval_bytes=size - 1)
    assert [tuple(e) for e in builder.index] == [(7, size)]


def test_the_time_index_has_the_first_batch_with_the_largest_time() -> None:
    times = [5, 9, 7, 9, 8]
    builder = built(*(batch(n, at_ms=t) for n, t in enumerate(times)), interval_bytes=0)
    assert [tuple(e) for e in builder.time_index] == [(9, 1)]
    assert len(builder.index) == 4


def test_the_last_entry_comes_even_without_an_offset_entry() -> None:
    builder = built(batch(0, at_ms=5), batch(1, at_ms=3), interval_bytes=4096)
    assert len(builder.index) == 0
    assert [tuple(e) for e in builder.time_index] == [(5, 0)]


def test_records_without_time_leave_the_time_index_empty() -> None:
    builder = built(batch(0, at_ms=-1), batch(1, at_ms=-1), interval_bytes=0)
    assert len(builder.time_index) == 0
    assert len(builder.index) == 1


def test_an_offset_that_falls_back_where_an_entry_is_due_is_an_error() -> None:
    with pytest.raises(IndexOrderBroken, match="not above offset 6"):
        built(batch(5), batch(6), batch(6), interval_bytes=0)


def test_an_offset_that_falls_back_between_two_entries_goes_unseen() -> None:
    size = len(batch(0))
    builder = built(batch(5), batch(5), batch(6), interval_bytes=size)
    assert [tuple(e) for e in builder.index] == [(6, 2 * size)]


def test_a_later_time_at_an_earlier_offset_is_an_error() -> None:
    offsets_and_times = ((1, 5), (2, 5), (9, 7), (4, 8), (12, 6))
    batches = [batch(offset, at_ms=time_ms) for offset, time_ms in offsets_and_times]
    with pytest.raises(IndexOrderBroken, match="offset below 9"):
        built(*batches, interval_bytes=2 * len(batches[0]) - 1)


def test_a_later_time_at_an_earlier_offset_is_an_error_at_the_end_too() -> None:
    size = len(batch(1))
    batches = (batch(1, at_ms=5), batch(2, at_ms=5), batch(9, at_ms=7), batch(4, at_ms=8))
    with pytest.raises(IndexOrderBroken, match="offset below 9"):
        built(*batches, interval_bytes=size)


def test_disorder_can_be_left_out() -> None:
    builder = IndexBuilder(0, 0, skips_disorder=True)
    for position, offset, time_ms in ((0, 5, 3), (9, 6, 3), (18, 1, 8), (27, 7, 4)):
        builder.add_batch(position, offset, time_ms)
    builder.finish()
    assert [tuple(e) for e in builder.index] == [(6, 9), (7, 27)]
    assert [tuple(e) for e in builder.time_index] == [(3, 5)]
