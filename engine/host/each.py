"""Something done to each of several: a fault of our own at one leaves none of the others out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def do_each(items: Iterable[T], action: Callable[[T], object]) -> None:
    """Do something to each; what it raised the first time is raised when all had their turn.

    An assertion goes before other faults, for it ends the process. The others are noted on it.
    """
    faults: list[Exception] = []
    for item in items:
        try:
            action(item)
        except Exception as fault:
            faults.append(fault)
    if faults:
        _raise_one(faults)


def _raise_one(faults: list[Exception]) -> None:
    worst = next((fault for fault in faults if isinstance(fault, AssertionError)), faults[0])
    for other in faults:
        if other is not worst:
            worst.add_note(f"also: {other!r}")
    raise worst
