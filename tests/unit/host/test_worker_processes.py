"""Work in processes that end with the one that began them."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import closing

import pytest

from engine.host.worker_processes import WorkerDied, WorkerProcesses


def doubled(number: int) -> int:
    return 2 * number


def failing(number: int) -> int:
    if number == 3:
        raise ValueError("three")
    return number


def killed(number: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return number


def mask(_number: int) -> tuple[int, bool]:
    return os.getpid(), signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_each_item_has_its_result() -> None:
    with WorkerProcesses(doubled, 2) as workers:
        assert [0, 2, 4, 6, 8] == sorted(workers.run(range(5)))
        assert [] == list(workers.run([]))
        assert [14] == list(workers.run([7]))


def test_an_item_is_taken_when_a_worker_is_free() -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for number in range(10):
            taken.append(number)
            yield number

    with WorkerProcesses(doubled, 2) as workers, closing(workers.run(items())) as results:
        next(results)
        assert [0, 1] == taken
        next(results)
        assert 3 == len(taken)


def test_what_the_work_raises_is_raised_here() -> None:
    with WorkerProcesses(failing, 2) as workers, pytest.raises(ValueError, match="three"):
        list(workers.run(range(9)))


def test_a_worker_that_is_killed_is_reported() -> None:
    with WorkerProcesses(killed, 2) as workers, pytest.raises(WorkerDied, match="exit code -9"):
        list(workers.run(range(2)))


def test_workers_hear_no_ctrl_c_and_are_gone_in_the_end() -> None:
    with WorkerProcesses(mask, 2) as workers:
        found = dict(workers.run(range(8)))
    assert {True} == set(found.values())
    assert not signal.pthread_sigmask(signal.SIG_BLOCK, ()) & {signal.SIGINT, signal.SIGTERM}
    for pid in found:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
