"""A thread that alone uses an object."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from engine.host.owner_thread import OwnerThread


class Owned:
    """What a thread owns: it waits until it is interrupted."""

    def __init__(self) -> None:
        self.interrupted = threading.Event()
        self.idle_calls = threading.Semaphore(0)
        self.idle_ms: int | None = None
        self.error: Exception | None = None

    def idle(self) -> int | None:
        self.idle_calls.release()
        if self.error is not None:
            raise self.error
        return self.idle_ms

    def wait(self) -> str:
        self.interrupted.wait()
        return "interrupted"


@contextmanager
def thread_of(owned: Owned) -> Iterator[OwnerThread]:
    thread = OwnerThread(
        "test", interrupt=owned.interrupted.set, proceed=owned.interrupted.clear, idle=owned.idle
    )
    try:
        yield thread
    finally:
        thread.close()


def test_works_are_done_in_order_on_one_other_thread() -> None:
    seen: list[int] = []
    with thread_of(Owned()) as thread:
        for number in range(100):
            last = thread.submit(lambda number=number: seen.append(number))  # type: ignore[misc]
        last.result()
        assert threading.get_ident() != thread.submit(threading.get_ident).result()
    assert list(range(100)) == seen


def test_an_error_of_a_work_is_that_of_its_future_alone() -> None:
    with thread_of(Owned()) as thread:
        failed = thread.submit(lambda: 1 // 0)
        assert 3 == thread.submit(lambda: 3).result()
        with pytest.raises(ZeroDivisionError):
            failed.result()


def test_a_work_that_waits_is_interrupted_by_the_next() -> None:
    owned = Owned()
    with thread_of(owned) as thread:
        waiting = thread.submit(owned.wait)
        assert 7 == thread.submit(lambda: 7).result()
        assert "interrupted" == waiting.result()


def test_idle_is_called_again_after_its_time() -> None:
    owned = Owned()
    owned.idle_ms = 1
    with thread_of(owned):
        for _ in range(3):
            assert owned.idle_calls.acquire(timeout=30)


def test_idle_without_a_time_waits_for_work() -> None:
    owned = Owned()
    with thread_of(owned) as thread:
        assert owned.idle_calls.acquire(timeout=30)
        thread.submit(lambda: None).result()
        assert owned.idle_calls.acquire(timeout=30)


def test_what_was_submitted_is_done_before_the_thread_ends() -> None:
    with thread_of(Owned()) as thread:
        futures = [thread.submit(lambda: 1) for _ in range(10)]
    assert 10 == sum(future.result() for future in futures)
    with pytest.raises(RuntimeError, match="has ended"):
        thread.submit(lambda: 1)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_error_of_idle_ends_the_thread_and_leaves_nobody_waiting() -> None:
    owned = Owned()
    owned.error = ValueError("broken")
    with thread_of(owned) as thread:
        assert owned.idle_calls.acquire(timeout=30)
        thread._thread.join()
        with pytest.raises(RuntimeError, match="has ended"):
            thread.submit(lambda: 1)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_error_of_idle_reaches_what_waits_behind_a_work_that_was_cancelled() -> None:
    owned, may_fail = Owned(), threading.Event()
    broken = ValueError("broken")

    def idle() -> None:
        may_fail.wait()
        raise broken

    thread = OwnerThread("test", interrupt=lambda: None, proceed=lambda: None, idle=idle)
    cancelled, waiting = (thread.submit(owned.wait) for _ in range(2))
    # Whichever of them the thread has begun with waits for the interruption.
    cancelled.cancel()
    owned.interrupted.set()
    may_fail.set()
    thread._thread.join()
    assert waiting.done()
    with pytest.raises(RuntimeError) as caught:
        thread.submit(owned.wait)
    assert broken is caught.value.__cause__
