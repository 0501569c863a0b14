"""Works that may be done at the same time: a broker opens its log directories so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Thread
from typing import TypeAlias

#: Runs all works, in any order or at the same time, and returns when the last has ended.
RunAll: TypeAlias = Callable[[Sequence[Callable[[], None]]], None]


def run_in_order(works: Sequence[Callable[[], None]]) -> None:
    """Run works one after the other; the same run each time, for simulations and tests."""
    for work in works:
        work()


def run_in_threads(works: Sequence[Callable[[], None]]) -> None:
    """Run works on a thread each and wait for all; one alone needs none. They raise nothing."""
    if len(works) == 1:
        works[0]()
        return
    threads = [Thread(target=work, daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
