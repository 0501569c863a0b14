"""Indexes built from a log, entry for entry as a broker builds them."""

from __future__ import annotations

from engine.log.batch_scan import scan_batches
from engine.log.index_builder import IndexBuilder
from tests.unit.log.logs import TIME_MS, batch, log_of, name_of


def built(*batches: bytes, interval_bytes: int) -> IndexBuilder:
    files = log_of({0: b"".join(batches)})
    builder = IndexBuilder(0, interval_bytes)
    for position, found in scan_batches(files.open(f"/data/t-0/{name_of(0)}")):
        builder.see(position, found.last_offset, found.max_timestamp_ms)
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


def test_offsets_that_fall_back_get_no_entry() -> None:
    builder = built(batch(5), batch(6), batch(1), batch(7), interval_bytes=0)
    assert [e.offset for e in builder.index] == [6, 7]
