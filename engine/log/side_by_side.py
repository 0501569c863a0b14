"""Works that are done at the same time: the log directories of a broker are opened so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Thread


def run_side_by_side(works: Sequence[Callable[[], None]]) -> None:
    """Run works in threads and wait for all; one alone needs none."""
    if len(works) == 1:
        works[0]()
        return
    threads = [Thread(target=work, daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
