"""Problem: damage at a position of a log, or a difference between replicas."""

from __future__ import annotations

from typing import NamedTuple


class Problem(NamedTuple):
    """One problem of a log; the fields are the columns of the problems table."""

    topic: str
    partition: int
    segment: str
    position: int
    bytes: int
    code: str
    message: str
