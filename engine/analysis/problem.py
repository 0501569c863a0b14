"""Problem: damage at a place of a log, or a difference between replicas."""

from __future__ import annotations

from typing import NamedTuple


class Problem(NamedTuple):
    """One damaged place; the fields are the columns of the problems table."""

    topic: str
    partition: int
    segment: str
    position: int
    bytes: int
    code: str
    message: str
