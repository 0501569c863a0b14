"""The rules that elect a leader and shrink the ISR of one partition: pure.

| reason | leader | ISR after it |
|---|---|---|
| OFFLINE | first of the assigned that is alive and in ISR; else, if unclean is allowed, the first alive | the live ones of it; unclean: the leader alone |
| REASSIGN | the first of the target replicas that is alive and in ISR | unchanged |
| PREFERRED | the first assigned, if alive and in ISR | unchanged |
| CONTROLLED_SHUTDOWN | first of the assigned that is alive, in ISR and not shutting down | without those that shut down |

Every election raises the leader epoch by one (ELE-6); no leader means no change.

Source: R5, D1, ELE-1 ... ELE-6; Kafka's Election and PartitionLeaderElectionAlgorithms.
"""  # noqa: E501 - a table

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum
from typing import NamedTuple

from engine.znode.values import NO_LEADER, PartitionStateNode

_RECOVERING = 1


class ElectionReason(Enum):
    """The reason of a leader election."""

    OFFLINE = "offline"
    REASSIGN = "reassign"
    PREFERRED = "preferred"
    CONTROLLED_SHUTDOWN = "controlled shutdown"


class Candidates(NamedTuple):
    """The values that an election uses; `live` replicas are up, shutting down or not."""

    #: In the order of assignment; for REASSIGN the target replicas.
    replicas: Sequence[int]
    live: AbstractSet[int]
    shutting_down: AbstractSet[int] = frozenset()
    is_unclean_allowed: bool = False


class Elected(NamedTuple):
    """The result: the state to write, and the replicas to notify."""

    state: PartitionStateNode
    recipients: tuple[int, ...]
    is_unclean: bool = False


def elect(
    reason: ElectionReason, state: PartitionStateNode, candidates: Candidates, controller_epoch: int
) -> Elected | None:
    """Return the new state, None if no replica may lead."""
    return _RULES[reason](state, candidates, controller_epoch)


def without_replica(
    state: PartitionStateNode, replica: int, controller_epoch: int
) -> PartitionStateNode:
    """Return the state without an offline replica in the ISR, and without a leader if it led.

    The last member of the ISR stays in it, so that only this replica can bring the partition back.

    Source: ISR-1, R13.
    """
    isr = state.isr if len(state.isr) == 1 else _without(state.isr, {replica})
    leader = NO_LEADER if state.leader == replica else state.leader
    return state._replace(
        leader=leader,
        isr=isr,
        leader_epoch=state.leader_epoch + 1,
        controller_epoch=controller_epoch,
    )


def first_state(live: Sequence[int], controller_epoch: int) -> PartitionStateNode:
    """Return the state of a new partition; its live replicas are in the order of assignment."""
    return PartitionStateNode(live[0], 0, tuple(live), controller_epoch)


def _elect_offline(
    state: PartitionStateNode, candidates: Candidates, controller_epoch: int
) -> Elected | None:
    """Elect the first live replica of the ISR, else any live replica if unclean is allowed.

    The ISR keeps its live members. After an unclean election the ISR is the leader alone, in
    recovery. Returns None if no replica may lead.
    """
    live = _in_order(candidates.replicas, candidates.live)
    leader = _first(live, state.isr)
    if leader is not None:
        isr = _in_order(state.isr, candidates.live)
        return Elected(_led(state, leader, isr, controller_epoch), live)
    if not candidates.is_unclean_allowed or not live:
        return None
    led = _led(state, live[0], (live[0],), controller_epoch)
    return Elected(led._replace(leader_recovery_state=_RECOVERING), live, is_unclean=True)


def _elect_among(
    state: PartitionStateNode, candidates: Candidates, controller_epoch: int
) -> Elected | None:
    """Elect the first live target replica in the ISR, None if there is none; the ISR stays."""
    live = _in_order(candidates.replicas, candidates.live)
    leader = _first(live, state.isr)
    if leader is None:
        return None
    return Elected(_led(state, leader, state.isr, controller_epoch), tuple(candidates.replicas))


def _elect_preferred(
    state: PartitionStateNode, candidates: Candidates, controller_epoch: int
) -> Elected | None:
    """Elect the preferred leader if it is live and in sync, else None; the ISR stays."""
    preferred = candidates.replicas[0] if candidates.replicas else NO_LEADER
    if preferred not in candidates.live or preferred not in state.isr:
        return None
    return Elected(_led(state, preferred, state.isr, controller_epoch), tuple(candidates.replicas))


def _elect_around_shutdown(
    state: PartitionStateNode, candidates: Candidates, controller_epoch: int
) -> Elected | None:
    """Elect a live ISR member that does not shut down, None if there is none.

    Replicas that shut down leave the ISR.
    """
    live = _in_order(candidates.replicas, candidates.live)
    isr = _without(state.isr, candidates.shutting_down)
    leader = _first(live, isr)
    if leader is None:
        return None
    return Elected(_led(state, leader, isr, controller_epoch), live)


def _led(
    state: PartitionStateNode, leader: int, isr: tuple[int, ...], controller_epoch: int
) -> PartitionStateNode:
    """Return the state with leader and ISR, and the leader epoch raised by one."""
    return state._replace(
        leader=leader,
        isr=isr,
        leader_epoch=state.leader_epoch + 1,
        controller_epoch=controller_epoch,
    )


def _first(replicas: Sequence[int], isr: Sequence[int]) -> int | None:
    """Return the first replica that is in the ISR, None if none is."""
    return next((replica for replica in replicas if replica in isr), None)


def _in_order(replicas: Sequence[int], chosen: AbstractSet[int]) -> tuple[int, ...]:
    """Return the chosen replicas in their order in a list."""
    return tuple(replica for replica in replicas if replica in chosen)


def _without(replicas: Sequence[int], gone: AbstractSet[int]) -> tuple[int, ...]:
    """Return the replicas that stay, in their order."""
    return tuple(replica for replica in replicas if replica not in gone)


_Rule = Callable[[PartitionStateNode, Candidates, int], Elected | None]
_RULES: dict[ElectionReason, _Rule] = {
    ElectionReason.OFFLINE: _elect_offline,
    ElectionReason.REASSIGN: _elect_among,
    ElectionReason.PREFERRED: _elect_preferred,
    ElectionReason.CONTROLLED_SHUTDOWN: _elect_around_shutdown,
}
