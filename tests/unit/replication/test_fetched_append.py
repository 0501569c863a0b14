"""What a leader sent, appended where it fits, and where the local log starts inside a batch."""

from __future__ import annotations

import pytest

from engine.log.log_types import UnexpectedAppendOffset
from engine.replication.fetched_append import append_fetched
from tests.unit.log.writing import NOW_MS, fill, new_log, sent


def test_an_empty_log_that_starts_amid_a_batch_takes_it_whole_and_keeps_its_start() -> None:
    log = new_log()
    log.restart_at(2, NOW_MS)
    append_fetched(log, sent(3), NOW_MS)
    assert (2, 3) == (log.log_start_offset, log.log_end_offset)


@pytest.mark.parametrize("start", [3, 9])
def test_an_empty_log_takes_no_batch_that_ends_before_its_start(start: int) -> None:
    log = new_log()
    log.restart_at(start, NOW_MS)
    with pytest.raises(UnexpectedAppendOffset):
        append_fetched(log, sent(3), NOW_MS)
    assert (start, start) == (log.log_start_offset, log.log_end_offset)


def test_a_log_with_records_takes_no_batch_that_lies_across_its_end() -> None:
    log = new_log()
    fill(log, [2])
    before = log.read(0, 1 << 20).read()
    with pytest.raises(UnexpectedAppendOffset):
        append_fetched(log, sent(3), NOW_MS)
    assert (0, 2, before) == (log.log_start_offset, log.log_end_offset, log.read(0, 1 << 20).read())
