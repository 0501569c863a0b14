"""Which segments become one."""

from __future__ import annotations

import pytest

from engine.log.cleaner.grouping import GroupedSegment, group_segments
from engine.log.log_config import LogConfig

CONFIG = LogConfig(segment_bytes=100, segment_index_bytes=40)
INT_MAX = (1 << 31) - 1


def segments(*sizes: int, step: int = 10) -> list[GroupedSegment]:
    return [GroupedSegment(step * n, size, 8, 12) for n, size in enumerate(sizes)]


@pytest.mark.parametrize(
    ("sizes", "groups"),
    [
        ((), []),
        ((500,), [[0]]),
        ((50, 50), [[0, 10]]),
        ((50, 51), [[0], [10]]),
        ((40, 40, 40), [[0, 10], [20]]),
        ((0, 0, 100), [[0, 10, 20]]),
        ((100, 0, 1), [[0, 10], [20]]),
    ],
)
def test_neighbours_become_one_while_they_fit(sizes: tuple[int, ...], groups: object) -> None:
    assert groups == group_segments(segments(*sizes), CONFIG, 1000)


def test_indexes_have_to_fit_as_well() -> None:
    small = segments(1, 1, 1, 1)
    assert [[0, 10, 20], [30]] == group_segments(small, CONFIG, 1000)
    wide = [segment._replace(index_bytes=21, time_index_bytes=0) for segment in small]
    assert [[0], [10], [20], [30]] == group_segments(wide, CONFIG, 1000)


@pytest.mark.parametrize(("end", "groups"), [(INT_MAX + 1, [[0, 10]]), (INT_MAX + 2, [[0], [10]])])
def test_the_last_offset_has_to_be_near_the_first_base(end: int, groups: object) -> None:
    assert groups == group_segments(segments(1, 1), CONFIG, end)


def test_a_segment_ends_where_the_next_one_begins() -> None:
    far = [GroupedSegment(base, 1, 0, 0) for base in (0, 10, INT_MAX + 2)]
    assert [[0], [10], [INT_MAX + 2]] == group_segments(far, CONFIG, 2 * INT_MAX + 9)


def test_an_empty_segment_is_near_at_any_offsets() -> None:
    far = [GroupedSegment(0, 1, 0, 0), GroupedSegment(5 * INT_MAX, 0, 0, 0)]
    assert [[0, 5 * INT_MAX]] == group_segments(far, CONFIG, 6 * INT_MAX)
