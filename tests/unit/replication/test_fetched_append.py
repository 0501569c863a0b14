"""What a leader sent, appended where it fits, and where the local log starts inside a batch."""

from __future__ import annotations

import pytest

from engine.log.log_types import UnexpectedAppendOffset
from engine.log.validation import CorruptMessage
from engine.replication.fetched_append import append_fetched
from tests.unit.log.writing import NOW_MS, fill, new_log, sent


def test_an_empty_log_that_starts_inside_a_batch_appends_it_whole_and_keeps_its_start() -> None:
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


def damaged(batch: memoryview) -> bytes:
    """Return a batch with a wrong checksum."""
    content = bytearray(batch)
    content[-1] ^= 0xFF
    return bytes(content)


@pytest.mark.parametrize(
    "records",
    [damaged(sent(3)), bytes(sent(3)) + damaged(sent(1, base_offset=3))],
    ids=["the batch itself", "the next one"],
)
def test_a_damaged_batch_leaves_an_empty_log_as_it_is(records: bytes) -> None:
    log = new_log()
    log.restart_at(2, NOW_MS)
    with pytest.raises(CorruptMessage):
        append_fetched(log, memoryview(records), NOW_MS)
    assert (2, 2) == (log.log_start_offset, log.log_end_offset)


def test_no_log_starts_again_below_the_first_offset() -> None:
    log = new_log()
    with pytest.raises(UnexpectedAppendOffset):
        append_fetched(log, sent(3, base_offset=-1), NOW_MS)
    assert (0, 0) == (log.log_start_offset, log.log_end_offset)


def test_a_log_with_records_takes_no_batch_that_lies_across_its_end() -> None:
    log = new_log()
    fill(log, [2])
    before = log.read(0, 1 << 20).read()
    with pytest.raises(UnexpectedAppendOffset):
        append_fetched(log, sent(3), NOW_MS)
    assert (0, 2, before) == (log.log_start_offset, log.log_end_offset, log.read(0, 1 << 20).read())


@pytest.mark.parametrize("size_bytes", [1, 30, 61, 70])
def test_what_has_no_whole_batch_is_damaged(size_bytes: int) -> None:
    log = new_log()
    with pytest.raises(CorruptMessage, match="no whole batch"):
        append_fetched(log, sent(2)[:size_bytes], NOW_MS)
    assert 0 == log.log_end_offset
    append_fetched(log, sent(2)[:0], NOW_MS)
