"""Ctrl-C ends a wait at once, and work only when it is asked twice."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from kctl.interrupts import Terminated, deferred_interrupts


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_work_goes_on_to_the_next_wait() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), deferred_interrupts() as interrupts:
        interrupt()
        done.append("work")
        with interrupts.allowed():
            done.append("wait")
    assert ["work"] == done


def test_a_wait_ends_at_once() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), deferred_interrupts() as interrupts:
        with interrupts.allowed():
            interrupt()
            done.append("wait")
        done.append("work")
    assert [] == done


def test_asked_twice_work_ends() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), deferred_interrupts():
        interrupt()
        done.append("work")
        interrupt()
        done.append("more")
    assert ["work"] == done


@pytest.mark.parametrize("is_during_work", [True, False])
def test_work_behind_an_interrupt_ends_at_the_second(*, is_during_work: bool) -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), deferred_interrupts() as interrupts:
        if is_during_work:
            interrupt()
        try:
            with interrupts.allowed():
                interrupt()
        except KeyboardInterrupt:
            assert not interrupts.is_urgent
            done.append("begins to flush")
            interrupt()
            done.append("flushed")
    assert interrupts.is_urgent
    assert ["begins to flush"] == done


def test_resources_that_are_held_at_the_end_are_reported() -> None:
    with pytest.raises(KeyboardInterrupt), deferred_interrupts():
        interrupt()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_the_shell_has_ignored_stays_ignored() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with deferred_interrupts() as interrupts, interrupts.allowed():
        interrupt()
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_a_termination_is_deferred_too_where_it_is_requested() -> None:
    before = signal.getsignal(signal.SIGTERM)
    done = []
    with (
        pytest.raises(Terminated),
        deferred_interrupts(signal.SIGINT, signal.SIGTERM) as interrupts,
    ):
        os.kill(os.getpid(), signal.SIGTERM)
        done.append("work")
        with interrupts.allowed():
            done.append("wait")
    assert ["work"] == done
    assert before == signal.getsignal(signal.SIGTERM)


def test_the_last_signal_says_how_it_ended() -> None:
    with (
        pytest.raises(KeyboardInterrupt) as ended,
        deferred_interrupts(signal.SIGINT, signal.SIGTERM),
    ):
        os.kill(os.getpid(), signal.SIGTERM)
        interrupt()
    assert KeyboardInterrupt is ended.type
