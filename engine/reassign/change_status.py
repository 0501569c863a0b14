"""The observed status of a plan's changes at one poll."""

from __future__ import annotations

from typing import NamedTuple

from engine.planner.plan import PartitionChange
from engine.reassign.phases import ENDED, MovePhase


class ChangeStatus(NamedTuple):
    """The observed status of one change."""

    change: PartitionChange
    phase: MovePhase
    copied_bytes: int
    total_bytes: int
    isr: tuple[int, ...]
    leader: int | None


class ExecutionStatus(NamedTuple):
    """The status of an execution at one poll.

    `pause` is the reason why no change may start, None if changes may start. Changes that add
    replicas to a broker of `missed`, or that change directories there, wait until the broker is
    alive and returns its replicas.
    """

    changes: list[ChangeStatus]
    brokers: frozenset[int]
    pause: str | None
    missed: list[int]
    now_ms: int

    @property
    def ended_count(self) -> int:
        """The number of changes that have ended."""
        return sum(change.phase in ENDED for change in self.changes)
