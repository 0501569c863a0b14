"""Logs that grow are followed without a record too few or twice."""

from __future__ import annotations

from typing import Any

import pytest

from engine.analysis.columns import RECORDS, choose_columns
from engine.analysis.following import RecordsGone, read_log_positions, splits_between
from engine.analysis.record_batches import SplitRecords
from engine.analysis.splits import Selection, plan_splits
from engine.host.memory import MemoryFiles
from tests.unit.log.logs import DIR, batch, log_of, name_of, put, put_segment

FIRST = b"".join(batch(2 * n, 2) for n in range(8))


def _splits(files: MemoryFiles, split_bytes: int = 300) -> Any:
    return plan_splits(files, ["/data"], Selection(), split_bytes)


def _read(files: MemoryFiles, start: dict[str, int], end: dict[str, int], **more: Any) -> list[int]:
    records = SplitRecords(files, choose_columns(RECORDS, ["offset"]), include_control=False)
    return [
        row["offset"]
        for split in splits_between(_splits(files), start, end, **more)
        for part in records.batches_of(split)
        for row in part.to_pylist()
    ]


def test_every_record_is_read_once_as_a_log_grows() -> None:
    files = log_of({0: FIRST})
    position: dict[str, int] = {}
    seen: list[int] = []
    for grown in (FIRST, FIRST + batch(16), FIRST + batch(16) + batch(17, 3)):
        put(files, name_of(0), grown)
        latest = read_log_positions(files, _splits(files))
        seen += _read(files, position, latest)
        position = latest
    put_segment(files, 20, batch(20, 2))
    latest = read_log_positions(files, _splits(files))
    seen += _read(files, position, latest)
    assert {"t-0": 22} == latest
    assert list(range(22)) == seen
    assert [] == _read(files, latest, latest)


@pytest.mark.parametrize("cut", range(1, len(batch(16, 2))))
def test_a_batch_counts_once_it_is_whole(cut: int) -> None:
    files = log_of({0: FIRST})
    put(files, name_of(0), FIRST + batch(16, 2)[:cut])
    assert {"t-0": 16} == read_log_positions(files, _splits(files))


def test_a_range_is_the_same_after_the_log_has_grown() -> None:
    files = log_of({0: FIRST})
    end = read_log_positions(files, _splits(files))
    before = _read(files, {"t-0": 4}, end)
    put(files, name_of(0), FIRST + batch(16))
    assert list(range(4, 16)) == before == _read(files, {"t-0": 4}, end)


def test_a_rolled_segment_without_a_batch_does_not_move_the_end() -> None:
    files = log_of({0: FIRST, 16: b""})
    assert {"t-0": 16} == read_log_positions(files, _splits(files))


def test_records_that_are_gone_are_not_passed_over() -> None:
    files = log_of({0: FIRST, 16: batch(16, 4)})
    end = read_log_positions(files, _splits(files))
    files.remove(f"{DIR}/{name_of(0)}")
    with pytest.raises(RecordsGone, match="starts at 16"):
        _read(files, {"t-0": 6}, end)
    assert [16, 17, 18, 19] == _read(files, {"t-0": 6}, end, fail_on_loss=False)
    with pytest.raises(RecordsGone, match="ends at 20"):
        _read(files, {"t-0": 30}, end)
