"""Requests for many partitions, in pieces that are small enough to be served in one turn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from engine.limits import PARTITIONS_AT_ONCE_MAX, ROWS_PER_SHARE

K = TypeVar("K")
P = TypeVar("P")


def has_many_partitions(topics: Sequence[tuple[K, Sequence[P]]]) -> bool:
    """True if a request has so many partitions that it is served in several turns."""
    if len(topics) == 1:
        ((_, partitions),) = topics
        return len(partitions) > PARTITIONS_AT_ONCE_MAX
    return sum([len(partitions) for _, partitions in topics]) > PARTITIONS_AT_ONCE_MAX


def pieces(topics: Iterable[tuple[K, Sequence[P]]]) -> Iterator[tuple[K, Sequence[P]]]:
    """Yield topics in their order, each with up to ROWS_PER_SHARE of its partitions at a time.

    The caller checks between two items whether its turn of the event loop is over.
    """
    for topic, partitions in topics:
        if len(partitions) <= ROWS_PER_SHARE:
            yield topic, partitions
            continue
        for start in range(0, len(partitions), ROWS_PER_SHARE):
            yield topic, partitions[start : start + ROWS_PER_SHARE]
