"""Placement of replicas that need a broker: those of drained and dead brokers, and added ones.

The largest are placed first, each on the broker with the fewest replicas, then the fewest bytes,
among those that racks and capacity allow. If racks exclude every broker and are relaxed, any rack
is allowed; if no broker remains, the replica stays where it was and the plan reports it.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable
from enum import Enum
from typing import NamedTuple

from engine.planner.constraints import RackRule
from engine.planner.placement_state import PlacementState


class ReplicaToPlace(NamedTuple):
    """A replica of a partition to place; `source` is its present broker, None for a new replica."""

    partition: int
    source: int | None
    #: Whether the replica must leave the rack of the source.
    leaves_rack: bool = False


class Placed(NamedTuple):
    """The result.

    Replicas that could not be placed, and partitions placed beyond their racks' limit.
    """

    left: list[ReplicaToPlace]
    against_racks: list[int]


class _RackCare(Enum):
    """The allowed effect of a placement on rack faults, strictest first."""

    NO_FAULT = "no fault"
    NOT_WORSE = "not worse"
    NONE = "none"


class _Order:
    """The brokers that receive replicas, by rack, the emptiest first."""

    def __init__(self, state: PlacementState) -> None:
        """Sort the receiving brokers of each rack by replicas, then bytes."""
        self._state = state
        self._by_group: list[list[tuple[int, int, int]]] = [
            sorted((state.counts[b], state.held_bytes[b], b) for b in members if state.receives[b])
            for members in state.members
        ]

    def emptiest(self, item: ReplicaToPlace, care: _RackCare) -> int | None:
        """Return the emptiest broker that may receive a replica, None if no broker may.

        `care` selects how strictly the limits of racks apply.
        """
        state = self._state
        partition, source, leaves_rack = item
        best: tuple[int, int, int] | None = None
        shunned = state.group_of[source] if leaves_rack and source is not None else -1
        for group, order in enumerate(self._by_group):
            if not order or group == shunned or (best is not None and order[0] >= best):
                continue
            if care is not _RackCare.NONE and not state.fits_rack(
                partition, order[0][2], source, no_fault=care is _RackCare.NO_FAULT
            ):
                continue
            for candidate in order:
                if best is not None and candidate >= best:
                    break
                if state.is_admitted(partition, candidate[2]) and state.fits(
                    partition, candidate[2]
                ):
                    best = candidate
                    break
        return None if best is None else best[2]

    def take_out(self, broker: int) -> None:
        """Remove a broker from the order, before its replicas change."""
        state = self._state
        order = self._by_group[state.group_of[broker]]
        del order[bisect_left(order, (state.counts[broker], state.held_bytes[broker], broker))]

    def put_back(self, broker: int) -> None:
        """Insert a broker into the order, after its replicas changed."""
        state = self._state
        insort(
            self._by_group[state.group_of[broker]],
            (state.counts[broker], state.held_bytes[broker], broker),
        )


def place_replicas(
    state: PlacementState,
    homeless: Iterable[ReplicaToPlace],
    has_budget: Callable[[PlacementState, int], bool],
) -> Placed:
    """Place replicas on the emptiest permitted brokers, the largest replica first.

    `has_budget` returns False if a partition may not be copied once more. The result has the
    replicas that were not placed, and those that share a rack.
    """
    order = _Order(state)
    result = Placed([], [])
    relaxed = state.constraints.racks is RackRule.RELAXED
    for item in sorted(homeless, key=_largest_first):
        target = None
        if has_budget(state, item.partition):
            target = order.emptiest(item, _RackCare.NO_FAULT)
            if target is None and not item.leaves_rack:
                target = order.emptiest(item, _RackCare.NOT_WORSE)
            if target is None and relaxed and not item.leaves_rack:
                target = order.emptiest(item, _RackCare.NONE)
                if target is not None:
                    result.against_racks.append(item.partition)
        if target is None:
            result.left.append(item)
            continue
        order.take_out(target)
        _place_one(state, order, item, target)
        order.put_back(target)
        state.forced.add(item.partition)
    return result


def _largest_first(item: ReplicaToPlace) -> tuple[int, int]:
    """Return the sort key by which the largest replicas come first.

    Partitions are numbered by size.
    """
    return -item.partition, -1 if item.source is None else item.source


def _place_one(state: PlacementState, order: _Order, item: ReplicaToPlace, target: int) -> None:
    """Add or move a replica to its target, and update the source's place in the order."""
    if item.source is None:
        state.place(item.partition, target)
    elif state.receives[item.source]:
        order.take_out(item.source)
        state.move(item.partition, item.source, target)
        order.put_back(item.source)
    else:
        state.move(item.partition, item.source, target)
