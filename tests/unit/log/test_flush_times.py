"""The times of syncs, from any thread."""

from __future__ import annotations

from engine.log.flush_times import FlushTimes


def test_each_sync_is_read_once_and_stays_counted() -> None:
    now_ns = [0]
    times = FlushTimes(lambda: now_ns[0])
    for took_us in (2_000, 4_000):
        now_ns[0] = took_us * 1_000
        times.note(0)
    assert (2, 2.0, 4.0, 3.0) == times.collect_times(100).reading(1_000)[:4]
    now_ns[0] = 9_000_000
    times.note(0)
    assert (3, 2.0, 9.0, 5.0) == times.collect_times(101).reading(1_000)[:4]
    assert times.collect_times(102).moments.count == 3
