"""Rule C3: a controller's partitions and replicas change their phase only as the tables allow.

When a controller takes over, it may set the phases that it finds: online, offline, not deletable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import TypeVar

from engine.controller.context import ControllerContext
from engine.controller.states import (
    PARTITION_COMES_FROM,
    REPLICA_COMES_FROM,
    PartitionPhase,
    ReplicaPhase,
)

K = TypeVar("K")
P = TypeVar("P", bound=Enum)

_FIRST_OF_PARTITIONS = (
    PartitionPhase.NEW,
    PartitionPhase.ONLINE,
    PartitionPhase.OFFLINE,
)
_FIRST_OF_REPLICAS = (
    ReplicaPhase.NEW,
    ReplicaPhase.ONLINE,
    ReplicaPhase.DELETION_INELIGIBLE,
)


class WatchedPhases(dict[K, P]):
    """The phases by partition or replica; reports a change that the tables do not allow."""

    def __init__(
        self,
        content: dict[K, P],
        comes_from: Mapping[P, frozenset[P]],
        first: Iterable[P],
        broke: Callable[[str, str], None],
    ) -> None:
        """Copy `content`.

        `comes_from` has the valid previous phases, `first` the valid first ones.
        """
        super().__init__(content)
        self._comes_from = comes_from
        self._first = frozenset(first)
        self._broke = broke

    def __setitem__(self, key: K, phase: P) -> None:
        """Set a phase; report rule C3 broken if the controller's tables do not allow the change."""
        before = self.get(key)
        # A non-existent partition or replica is treated like an unknown one.
        if before is None or before.value == "non-existent":
            is_tabled = phase in self._first
        else:
            is_tabled = before in self._comes_from[phase]
        if not is_tabled:
            self._broke("C3", f"{key} from {before} to {phase}")
        super().__setitem__(key, phase)


def watch_phases(context: ControllerContext, broke: Callable[[str, str], None]) -> None:
    """Replace the phase tables of a controller's context by ones that check each later change.

    `broke` is called with the rule and a text for a change that Kafka's state machines do not
    allow.
    """
    context.partition_phases = WatchedPhases(
        context.partition_phases, PARTITION_COMES_FROM, _FIRST_OF_PARTITIONS, broke
    )
    context.replica_phases = WatchedPhases(
        context.replica_phases, REPLICA_COMES_FROM, _FIRST_OF_REPLICAS, broke
    )
