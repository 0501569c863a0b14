"""An action on each of several items, where a fault at one item does not skip the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def do_each(items: Iterable[T], action: Callable[[T], object]) -> None:
    """Call `action` on every item, then raise the first exception that it raised.

    An AssertionError is preferred to other faults, because it ends the process. The other faults
    are attached as notes.
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
    """Raise the first AssertionError, else the first fault; the others become its notes."""
    worst = next((fault for fault in faults if isinstance(fault, AssertionError)), faults[0])
    for other in faults:
        if other is not worst:
            worst.add_note(f"also: {other!r}")
    raise worst
