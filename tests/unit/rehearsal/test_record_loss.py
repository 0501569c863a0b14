"""What counts as lost in a rehearsal: acknowledged offsets that no log has."""

from __future__ import annotations

import pytest

from engine.model import TopicPartition
from engine.rehearsal.record_loss import LostRecords, OffsetRange, find_lost_records, is_whole

KEY = TopicPartition("t", 0)


@pytest.mark.parametrize(
    ("found", "lost"),
    [
        ((0, 10), []),
        ((0, 12), []),
        ((0, 7), [(7, 10)]),
        ((3, 10), [(0, 3)]),
        ((3, 7), [(0, 3), (7, 10)]),
        ((0, 0), [(0, 10)]),
        ((12, 12), [(0, 10)]),
        ((10, 10), [(0, 10)]),
    ],
)
def test_offsets_outside_the_log_are_lost(
    found: tuple[int, int], lost: list[tuple[int, int]]
) -> None:
    acknowledged = {KEY: OffsetRange(0, 10)}
    log = OffsetRange(*found)
    assert [LostRecords(KEY, *gone) for gone in lost] == find_lost_records(acknowledged, {KEY: log})
    assert is_whole(acknowledged[KEY], log) is not bool(lost)


def test_a_partition_that_cannot_be_read_has_lost_nothing() -> None:
    assert [] == find_lost_records({KEY: OffsetRange(0, 10)}, {})
    assert not is_whole(OffsetRange(0, 10), None)
