"""Records of one kind, looked at by columns: how far a run goes, and what ends it."""

from __future__ import annotations

import pytest

from engine.limits import UNIFORM_RUN_MIN
from engine.native.record_walk import walk_plainly
from engine.native.uniform_run import UniformRun, find_uniform_run
from tests.unit.records.test_record_walk import numbers, record


def block(
    count: int, *, first: int = 0, step: int = 0, time: int = 0, value: bytes = b"v"
) -> bytes:
    content = numbers(len(value)) + value
    return b"".join(
        record(n, time=numbers(time + step * n), value=content) for n in range(first, first + count)
    )


def run_behind_first(data: bytes, index: int, count: int = 1 << 20) -> UniformRun | None:
    """Look behind the first record of a block, the one before `index`."""
    return find_uniform_run(data, 0, 1 + (data[0] >> 1), index, count)


def test_a_run_goes_to_the_end_of_the_data() -> None:
    assert (39, 0, 0) == run_behind_first(block(40), 1)
    assert (39, 0, 0) == run_behind_first(block(40) + b"\x10", 1)


def test_a_run_is_no_longer_than_asked() -> None:
    assert (20, 0, 0) == run_behind_first(block(40), 1, 20)


def test_a_run_ends_where_offset_deltas_get_longer() -> None:
    assert (63, 0, 0) == run_behind_first(block(64) + block(64), 1)
    data = block(5000, first=4090)
    assert (5, 0, 0) == run_behind_first(data, 4091)


@pytest.mark.parametrize("first", [0, 63, 64, 4000, 8100, 8191, 8192, 20_000])
def test_indexes_of_every_width_are_known(first: int) -> None:
    found = run_behind_first(block(30, first=first), first + 1)
    longer = first in (63, 8191)
    assert (found is None) == longer
    assert walk_plainly(block(first + 30), 0, first + 30) == (0, 0, False)


@pytest.mark.parametrize(
    ("time", "step", "expected"),
    [
        (0, 1, (39, 1, 39)),
        (0, 2, (31, 2, 62)),
        (0, -1, (39, -39, -1)),
        (100, 7, (39, 107, 373)),
        (-100, -7, (39, -373, -107)),
        (-200, 7, (19, -193, -67)),
    ],
)
def test_a_run_with_times_of_one_or_two_bytes_is_found(
    time: int, step: int, expected: UniformRun
) -> None:
    assert expected == run_behind_first(block(40, time=time, step=step), 1)


def test_a_run_with_mixed_times_of_two_bytes_is_found() -> None:
    times = [100, -100, 5000, -5000] * 10
    data = b"".join(record(n, time=numbers(time)) for n, time in enumerate(times))
    assert (39, -5000, 5000) == run_behind_first(data, 1)


def test_longer_times_and_headers_are_left_to_the_walk() -> None:
    assert run_behind_first(block(40, time=1 << 20), 1) is None
    assert (
        run_behind_first(b"".join(record(n, headers=numbers(1, 0, -1)) for n in range(40)), 1)
        is None
    )


def test_a_run_ends_at_a_record_of_another_kind() -> None:
    shorter = record(20, value=numbers(0))
    assert (19, 0, 0) == run_behind_first(block(20) + shorter + block(20, first=21), 1)


def test_a_short_run_is_not_checked() -> None:
    assert run_behind_first(block(UNIFORM_RUN_MIN), 1) is None
    assert (UNIFORM_RUN_MIN, 0, 0) == run_behind_first(block(UNIFORM_RUN_MIN + 1), 1)


def test_offset_deltas_that_do_not_count_on_are_no_run() -> None:
    data = block(20) + block(20, first=21)
    assert run_behind_first(data, 1) is None
    assert walk_plainly(data, 0, 40) is None
