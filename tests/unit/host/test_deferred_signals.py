"""Signals during a section that must not be interrupted, alone and beside other threads."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from engine.host.deferred_signals import block_signals

BOTH = {signal.SIGINT, signal.SIGTERM}


class Terminated(BaseException):
    """What the handler of SIGTERM raises here."""


class Other(NamedTuple):
    """Another thread, which takes signals of the process."""

    thread: threading.Thread
    handled: int

    def takes(self, number: signal.Signals) -> None:
        """Have it take a signal, and wait until Python knows of it."""
        assert self.thread.ident is not None
        signal.pthread_kill(self.thread.ident, number)
        assert bytes([number]) == os.read(self.handled, 1)


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    """Set handlers that raise; what is left of a test is neither a handler nor a mask."""

    def terminate(_number: int, _frame: object) -> None:
        raise Terminated

    given = {
        signal.SIGINT: signal.signal(signal.SIGINT, signal.default_int_handler),
        signal.SIGTERM: signal.signal(signal.SIGTERM, terminate),
    }
    yield
    assert terminate is signal.getsignal(signal.SIGTERM)
    for number, handler in given.items():
        signal.signal(number, handler)
    assert set() == BOTH & signal.pthread_sigmask(signal.SIG_BLOCK, ())


@pytest.fixture
def other() -> Iterator[Other]:
    """Run another thread until the end of the test."""
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    handled, wakeup = os.pipe()
    os.set_blocking(wakeup, False)
    before = signal.set_wakeup_fd(wakeup)
    yield Other(thread, handled)
    signal.set_wakeup_fd(before)
    os.close(handled)
    os.close(wakeup)
    end.set()
    thread.join()


def section(work: Callable[[], None], kind: type[BaseException]) -> list[str]:
    """Return what was done of a section in which an exception of a signal is due."""
    done = []
    with pytest.raises(kind):
        with block_signals():
            work()
            done.append("section")
        done.append("what follows")
    return done


@pytest.mark.parametrize(
    ("number", "kind"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated)]
)
def test_a_signal_waits_for_the_end(number: signal.Signals, kind: type[BaseException]) -> None:
    assert ["section"] == section(lambda: signal.raise_signal(number), kind)


@pytest.mark.parametrize(
    ("number", "kind"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated)]
)
def test_one_that_another_thread_takes_waits_too(
    number: signal.Signals, kind: type[BaseException], other: Other
) -> None:
    assert ["section"] == section(lambda: other.takes(number), kind)
    assert signal.default_int_handler is signal.getsignal(signal.SIGINT)


@pytest.mark.parametrize(
    ("number", "kind"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated)]
)
def test_handlers_are_restored_whenever_another_thread_takes_one(
    number: signal.Signals, kind: type[BaseException], other: Other
) -> None:
    terminate = signal.getsignal(signal.SIGTERM)
    for _ in range(200):
        with pytest.raises(kind):
            with block_signals():
                # The kernel gives it to the other thread, which takes it now or a little later.
                os.kill(os.getpid(), number)
            while True:
                os.read(other.handled, 1)
        assert signal.default_int_handler is signal.getsignal(signal.SIGINT)
        assert terminate is signal.getsignal(signal.SIGTERM)


def test_it_waits_for_the_end_of_all_sections(other: Other) -> None:
    def inner() -> None:
        with block_signals():
            other.takes(signal.SIGINT)

    assert ["section"] == section(inner, KeyboardInterrupt)


def test_what_is_ignored_stays_so(other: Other) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with block_signals():
        assert signal.SIG_IGN is signal.getsignal(signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
    assert signal.SIG_IGN is signal.getsignal(signal.SIGINT)
    assert other.thread.is_alive()


def test_the_default_action_is_restored() -> None:
    """As of SIGTERM in a process that uses the engine as a library, and in a task of Spark."""
    terminate = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        with block_signals():
            assert signal.SIG_DFL is not signal.getsignal(signal.SIGTERM)
        assert signal.SIG_DFL is signal.getsignal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, terminate)


def test_a_section_in_another_thread_leaves_the_handlers() -> None:
    seen = []

    def work() -> None:
        with block_signals():
            seen.append(signal.getsignal(signal.SIGINT))
            seen.append(BOTH <= signal.pthread_sigmask(signal.SIG_BLOCK, ()))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert [signal.default_int_handler, True] == seen
