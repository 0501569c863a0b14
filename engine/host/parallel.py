"""Runners for tasks that may run concurrently, such as opening a broker's log directories."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Thread
from typing import TypeAlias

#: Runs all tasks, in any order or concurrently, and returns when the last has ended.
RunAll: TypeAlias = Callable[[Sequence[Callable[[], None]]], None]


def run_in_order(works: Sequence[Callable[[], None]]) -> None:
    """Run tasks one after another, so that simulations and tests are deterministic."""
    for work in works:
        work()


def run_in_threads(works: Sequence[Callable[[], None]]) -> None:
    """Run each task on a thread and wait for all; a single task runs here. Tasks raise nothing."""
    if len(works) == 1:
        works[0]()
        return
    threads = [Thread(target=work, daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
