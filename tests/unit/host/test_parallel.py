"""Works that may be done at the same time."""

from __future__ import annotations

import threading

import pytest

from engine.host.parallel import RunAll, run_in_order, run_in_threads


@pytest.mark.parametrize("run_all", [run_in_order, run_in_threads])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_all_works_have_ended_when_it_returns(run_all: RunAll, count: int) -> None:
    done: list[int] = []
    run_all([lambda number=number: done.append(number) for number in range(count)])  # type: ignore[misc]
    assert list(range(count)) == sorted(done)


def test_threads_work_at_the_same_time() -> None:
    barrier = threading.Barrier(3, timeout=10)
    run_in_threads([lambda: barrier.wait() and None for _ in range(3)])
    assert not barrier.broken


def test_a_work_alone_needs_no_thread() -> None:
    where: list[threading.Thread] = []
    run_in_threads([lambda: where.append(threading.current_thread())])
    assert [threading.current_thread()] == where
