"""Move replicas from brokers above their target count to brokers below it.

First within each rack, which racks always permit, then between racks. The replicas that a broker
gives away are picked evenly from its smallest to its largest, so that the kept ones have the same
mix of sizes; `byte_balancing` does the rest. If no direct move is possible, the cheapest path of
moves over other brokers is used. A move costs nothing if it only changes the target of a replica
that moves anyway.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Final, NamedTuple

from engine.planner.placement_state import PlacementState

#: Number of pairs of replica and target that are checked for each broker on a path.
_CANDIDATES_MAX: Final = 20_000
#: Number of brokers without a path after which the search ends.
_STUCK_MAX: Final = 16


class _Step(NamedTuple):
    """A move of one replica from a broker to another."""

    partition: int
    source: int
    target: int


def level_by_moves(
    state: PlacementState, targets: Mapping[int, int], *, smallest_first: bool = False
) -> None:
    """Move replicas directly until each broker has its target count, or no move is possible.

    Moves within racks come first. `smallest_first` moves the smallest replicas, for plans with a
    budget of bytes.
    """
    for members in state.members:
        _move_between(state, targets, members, members, smallest_first)
    everyone = [broker for members in state.members for broker in members]
    if state.has_racks:
        _move_between(state, targets, everyone, everyone, smallest_first)


def _move_between(
    state: PlacementState,
    targets: Mapping[int, int],
    givers: list[int],
    takers: list[int],
    smallest_first: bool,
) -> None:
    """Move replicas from the `givers` above their target count to the `takers` below theirs.

    A broker may be in both lists: its count decides.
    """
    lacking = {b: targets[b] - state.counts[b] for b in takers if b in targets}
    lacking = {b: lack for b, lack in lacking.items() if lack > 0 and state.receives[b]}
    came: dict[int, list[int]] = {b: [] for b in lacking}
    for giver in sorted(givers, key=lambda b: (-state.counts[b], b)):
        surplus = state.counts[giver] - targets.get(giver, state.counts[giver])
        if surplus <= 0 or not lacking:
            continue
        went = _move_surplus(state, giver, surplus, lacking, came, smallest_first)
        if went:
            state.settle([(giver, went)], ())
    state.settle((), came.items())


def _move_surplus(
    state: PlacementState,
    giver: int,
    surplus: int,
    lacking: dict[int, int],
    came: dict[int, list[int]],
    smallest_first: bool,
) -> set[int]:
    """Move up to `surplus` replicas off a broker; return their partitions.

    `lacking` has how many replicas each target lacks, and is reduced; `came` collects the
    partitions that come to each target.
    """
    queue = deque(sorted(lacking, key=lambda b: (-lacking[b], b)))
    went: set[int] = set()
    for partition in _replicas_to_give(state.on_broker[giver], surplus, smallest_first):
        if len(went) == surplus or not queue:
            break
        if partition in went:
            continue
        for _ in range(len(queue)):
            taker = queue[0]
            queue.rotate(-1)
            if state.may_move(partition, giver, taker):
                state.shift(partition, giver, taker)
                went.add(partition)
                came[taker].append(partition)
                lacking[taker] -= 1
                if not lacking[taker]:
                    del lacking[taker]
                    queue.remove(taker)
                break
    return went


def _replicas_to_give(held: list[int], wanted: int, smallest_first: bool) -> Iterator[int]:
    """Yield the replicas to give away: first `wanted` spread over the sizes, then all others.

    So the kept replicas have the same mix of sizes.
    """
    if not smallest_first:
        stride = len(held) / max(wanted, 1)
        for number in range(wanted):
            yield held[int((number + 0.5) * stride)]
    yield from held


def level_by_paths(
    state: PlacementState, targets: Mapping[int, int], *, max_cost: int, max_moves: int | None
) -> None:
    """Level counts where direct moves could not, by chains of moves over other brokers.

    Each chain adds at most `max_cost` moves to the plan, which has at most `max_moves`.
    """
    stuck: set[int] = set()
    while True:
        givers = [b for b, t in targets.items() if state.counts[b] > t and b not in stuck]
        takers = {b for b, t in targets.items() if state.counts[b] < t}
        if not givers or not takers or len(stuck) > _STUCK_MAX:
            return
        giver = max(givers, key=lambda b: (state.counts[b] - targets[b], -b))
        allowed = max_cost if max_moves is None else min(max_cost, max_moves - state.moves)
        path = _cheapest_path(state, giver, takers, allowed)
        if path is None:
            stuck.add(giver)
            continue
        for step in path:
            state.move(step.partition, step.source, step.target)


def _cheapest_path(
    state: PlacementState, giver: int, takers: set[int], max_cost: int
) -> list[_Step] | None:
    """Return the cheapest chain of moves that takes a replica off `giver` and adds one to a taker.

    None if none costs at most `max_cost`.
    """
    best: dict[int, tuple[int, _Step | None]] = {giver: (0, None)}
    waiting = deque([giver])
    reached: dict[int, tuple[int, _Step | None]] = {}
    while waiting:
        broker = waiting.popleft()
        so_far = best[broker][0]
        for step, cost in _steps_from(state, broker):
            total = so_far + cost
            known = best.get(step.target)
            if total > max_cost or (known is not None and known[0] <= total):
                continue
            if _is_on_path(best, broker, step):
                continue
            best[step.target] = (total, step)
            if step.target in takers:
                reached[step.target] = best[step.target]
            else:
                waiting.append(step.target)
    if not reached:
        return None
    end = min(reached, key=lambda b: (best[b][0], state.counts[b], b))
    return _walk_back(best, giver, end)


def _is_on_path(best: Mapping[int, tuple[int, _Step | None]], broker: int, step: _Step) -> bool:
    """Return True if the path to `broker` visits the step's target or moves its partition."""
    at: _Step | None = best[broker][1]
    while at is not None:
        if step.target in (at.source, at.target) or at.partition == step.partition:
            return True
        at = best[at.source][1]
    return False


def _walk_back(
    best: Mapping[int, tuple[int, _Step | None]], giver: int, end: int
) -> list[_Step] | None:
    """Return the steps of the cheapest path from `giver` to `end`.

    None if the path does not begin at `giver`, or moves one partition twice.
    """
    path: list[_Step] = []
    step = best[end][1]
    while step is not None:
        path.append(step)
        if len(path) > len(best) or step.source == giver:
            break
        step = best[step.source][1]
    path.reverse()
    partitions = {step.partition for step in path}
    return path if path[0].source == giver and len(partitions) == len(path) else None


def _steps_from(state: PlacementState, source: int) -> list[tuple[_Step, int]]:
    """Return the cheapest move from a broker to each other one, with its cost.

    Replicas that move anyway come first.
    """
    found: dict[int, _Step] = {}
    targets = [b for b in range(len(state.brokers)) if state.in_play[b] and b != source]
    held = state.on_broker[source]
    stride = max(1, len(held) * len(targets) // _CANDIDATES_MAX)
    for partition in chain(state.arrived[source][::stride], held[::stride]):
        if not targets:
            break
        if not state.movable[partition]:
            continue
        for target in targets:
            if state.may_move(partition, source, target):
                found[target] = _Step(partition, source, target)
        targets = [target for target in targets if target not in found]
    return [(step, state.cost(*step)) for step in found.values()]
