"""Choose the changes of a plan that may start now. Pure.

A change starts when each broker with an added replica receives fewer moves than the limit, and the
broker that they copy from, the leader, sends fewer than the limit. Changes are checked in the
plan's order; one that cannot start now does not delay later ones. A batch waits for the batches
before it only with barriers: then the deletions of earlier batches make room.

Source: facts of executors (at most k moves per broker in and out).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from engine.planner.plan import PartitionChange


class PlanOrder(NamedTuple):
    """The order of a plan: positions of changes, batch by batch."""

    batches: Sequence[Sequence[int]]
    has_barriers: bool


def startable_changes(
    changes: Sequence[PartitionChange],
    order: PlanOrder,
    waiting: Iterable[int],
    in_progress: Iterable[int],
    moves_per_broker: int,
    unable: Iterable[int] = (),
) -> list[int]:
    """Return the positions of changes that may start in addition to those in progress.

    Changes that are `unable` wait for a broker: with barriers, no later batch starts before they
    end. A change that copies nothing (another order, fewer replicas) may always start.
    """
    waiting, in_progress = set(waiting), set(in_progress)
    not_over = waiting | in_progress | set(unable)
    taking: Counter[int] = Counter()
    giving: Counter[int] = Counter()
    for position in in_progress:
        _count_moves(changes[position], taking, giving)
    chosen: list[int] = []
    for batch in order.batches:
        for position in batch:
            if position not in waiting:
                continue
            change = changes[position]
            if _is_below_limit(change, taking, giving, moves_per_broker):
                _count_moves(change, taking, giving)
                chosen.append(position)
        if order.has_barriers and not not_over.isdisjoint(batch):
            break
    return chosen


def _copy_source(change: PartitionChange) -> int:
    """Return the broker from which new replicas copy: the leader, without one the first replica."""
    return change.old_replicas[0] if change.old_leader is None else change.old_leader


def _is_below_limit(
    change: PartitionChange, taking: Counter[int], giving: Counter[int], moves_per_broker: int
) -> bool:
    """Return True if all brokers of a change have fewer moves in progress than allowed."""
    moving = {broker_id for broker_id, _, _ in change.log_dir_moves}
    is_free = all(taking[id_] < moves_per_broker for id_ in {*change.added, *moving})
    return is_free and (not change.added or giving[_copy_source(change)] < moves_per_broker)


def _count_moves(change: PartitionChange, taking: Counter[int], giving: Counter[int]) -> None:
    """Count a change's moves to its brokers and, if it adds replicas, from its source."""
    taking.update({*change.added, *(broker_id for broker_id, _, _ in change.log_dir_moves)})
    if change.added:
        giving[_copy_source(change)] += 1
