"""Brokers killed during cleanings lose no last value; `make soak-clean` does it for longer.

What it looks for is seen where it is broken.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.soak.clean_logs import CleanSoak
from tests.soak.keyed_partition import Kept, KeyedPartition, Read, value_of
from tests.soak.writers import Place

_STAY_MS = 1000
_PLACE = Place("t", 0)


def partition(kept: Kept) -> KeyedPartition:
    """Return one with a=0 b=1 a=2 b= and the end of a transaction behind the second record."""
    made = KeyedPartition(_PLACE, kept)
    made.add(b"a", 0)
    made.add(b"b", 0)
    if kept.is_compacted:
        made.add_marker()
    made.add(b"a", 0)
    made.add(b"b", 500, is_tombstone=True)
    return made


def read(made: KeyedPartition, *numbers: int) -> list[Read]:
    """Return these records as a consumer gets them."""
    rows = [(number, made.records[number]) for number in numbers]
    return [
        Read(made.offset_of(n), row.key, n, None if row.is_tombstone else value_of(n))
        for n, row in rows
    ]


COMPACTED = Kept(delete_retention_ms=_STAY_MS)


@pytest.mark.parametrize("numbers", [(0, 1, 2, 3), (1, 2, 3), (2, 3)])
def test_outdated_records_may_be_read_or_not(numbers: Sequence[int]) -> None:
    made = partition(COMPACTED)
    assert [] == made.problems(read(made, *numbers), 0, 4, 0)


@pytest.mark.parametrize(
    ("numbers", "now_ms", "problem_count"),
    [
        ((2,), 1499, 1),
        ((2,), 1500, 0),
        ((1, 2), 1500, 1),
        ((0, 3), 1500, 1),
        ((), 1500, 1),
        ((2, 1, 3), 1500, 1),
    ],
)
def test_what_is_lost_or_out_of_order_is_seen(
    numbers: Sequence[int], now_ms: int, problem_count: int
) -> None:
    made = partition(COMPACTED)
    assert problem_count == len(made.problems(read(made, *numbers), 0, 4, now_ms))


def test_what_was_never_sent_or_elsewhere_is_seen() -> None:
    made = partition(COMPACTED)
    whole = read(made, 2, 3)
    other = whole[0]._replace(value=b"x")
    elsewhere = whole[0]._replace(offset=2)
    assert [1, 1] == [len(made.problems([o, whole[1]], 0, 4, 0)) for o in (other, elsewhere)]


def test_records_of_an_aborted_transaction_do_not_count() -> None:
    made = partition(COMPACTED)
    made.aborted = {2, 3}
    assert [] == made.problems(read(made, 0, 1), 0, 4, 0)
    assert made.problems(read(made, 0, 1, 2), 0, 4, 0)


def test_a_log_with_records_that_were_sent_twice_is_read_to_its_high_watermark() -> None:
    counted, uncounted = (partition(Kept(knows_offsets=known)) for known in (True, False))
    assert [5, 5] == [counted.end_to_read(7), counted.end_to_read(4)]
    assert [7, 5] == [uncounted.end_to_read(7), uncounted.end_to_read(4)]


def test_only_old_records_may_go_by_retention() -> None:
    kept = Kept(is_compacted=False, retention_ms=1000)
    made = partition(kept)
    assert [] == made.problems(read(made, 3), 3, 4, 1000)
    assert made.problems(read(made, 3), 3, 4, 999)
    assert made.problems(read(made, 1, 3), 1, 4, 1000)
    both = partition(COMPACTED._replace(retention_ms=1000))
    assert [] == both.problems(read(both, 3), 4, 4, 1000)
    assert both.problems(read(both, 3), 4, 4, 999)
    assert partition(COMPACTED).problems([], 5, 4, 9999)


@pytest.mark.slow
def test_a_broker_killed_during_cleanings_loses_no_last_value(tmp_path: Path) -> None:
    soak = CleanSoak(tmp_path, brokers=1, seed=3)
    try:
        for _ in range(2):
            soak.cycle()
        said = soak.finish(None)
    finally:
        soak.destroy()
    assert "every key has its last value" in said
