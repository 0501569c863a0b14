"""Observed status of a plan's changes at one time."""

from __future__ import annotations

from typing import NamedTuple

from engine.planner.plan import PartitionChange
from engine.reassign.phases import ENDED, MovePhase


class ChangeStatus(NamedTuple):
    """The status of one change."""

    change: PartitionChange
    phase: MovePhase
    copied_bytes: int
    total_bytes: int
    isr: tuple[int, ...]
    leader: int | None


class ExecutionStatus(NamedTuple):
    """The state of an execution at one poll; `pause` is why nothing begins, None if it may.

    Changes that add replicas to a broker of `missed`, or that change directories there, wait until
    it is alive and tells of its replicas.
    """

    changes: list[ChangeStatus]
    brokers: frozenset[int]
    pause: str | None
    missed: list[int]
    now_ms: int

    @property
    def ended_count(self) -> int:
        """Count the changes that are over."""
        return sum(change.phase in ENDED for change in self.changes)
