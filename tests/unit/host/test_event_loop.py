"""The loop that runs the engine: signals at any time of its life."""

from __future__ import annotations

import asyncio
import importlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from engine.host import event_loop
from engine.host.event_loop import EventLoop

SIGNAL = signal.SIGUSR2


@pytest.fixture(params=["uvloop", "asyncio"])
def loop(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[EventLoop]:
    kinds: dict[str, Callable[[], Any]] = {"asyncio": asyncio.SelectorEventLoop}
    if request.param == "uvloop":
        kinds["uvloop"] = importlib.import_module("uvloop").new_event_loop
    monkeypatch.setattr(event_loop, "_create_loop", kinds[request.param])
    loop = EventLoop()
    yield loop
    loop.close()


def run(loop: EventLoop) -> None:
    """Run until `stop`, or for so long that nobody stops it any more."""
    cancel = loop.call_at(time.monotonic_ns() // 1_000_000 + 5000, loop.stop)
    loop.run()
    cancel()


def test_a_signal_that_comes_before_the_loop_runs_is_not_lost(loop: EventLoop) -> None:
    noted: list[str] = []

    def note() -> None:
        noted.append("signal")
        loop.stop()

    loop.handle_signals(note, (SIGNAL,))
    os.kill(os.getpid(), SIGNAL)
    run(loop)
    assert ["signal"] == noted


def test_a_signal_wakes_a_loop_that_waits(loop: EventLoop) -> None:
    noted: list[str] = []

    def note() -> None:
        noted.append("signal")
        loop.stop()

    loop.handle_signals(note, (SIGNAL,))
    for _ in range(2):
        loop.call_soon(lambda: os.kill(os.getpid(), SIGNAL))
        run(loop)
    assert ["signal"] * 2 == noted


def test_after_its_end_signals_do_what_they_did(loop: EventLoop) -> None:
    before = signal.getsignal(SIGNAL), signal.getsignal(signal.SIGINT)
    loop.handle_signals(lambda: None, (SIGNAL, signal.SIGINT))
    loop.close()
    assert before == (signal.getsignal(SIGNAL), signal.getsignal(signal.SIGINT))
