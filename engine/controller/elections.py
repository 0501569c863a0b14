"""The rules that elect a leader and shrink the ISR of one partition: pure.

| reason | leader | ISR after it |
|---|---|---|
| OFFLINE | first assigned replica that is live and in the ISR; else, if unclean is allowed, first live one | its live members; unclean: only the leader |
| REASSIGN | first target replica that is live and in the ISR | unchanged |
| PREFERRED | first assigned replica, if live and in the ISR | unchanged |
| CONTROLLED_SHUTDOWN | first assigned replica that is live, in the ISR and not shutting down | without replicas that shut down |

Every election raises the leader epoch by one (ELE-6). If no replica qualifies, nothing changes.

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
    """The replicas and settings that an election uses.

    `live` includes replicas that are shutting down.
    """

    #: Assigned replicas in order; for REASSIGN the target replicas.
    replicas: Sequence[int]
    live: AbstractSet[int]
    shutting_down: AbstractSet[int] = frozenset()
    is_unclean_allowed: bool = False


class Elected(NamedTuple):
    """The result of an election: the state to write, and the brokers that get LeaderAndIsr."""

    state: PartitionStateNode
    recipients: tuple[int, ...]
    is_unclean: bool = False


def elect(
    reason: ElectionReason, state: PartitionStateNode, candidates: Candidates, controller_epoch: int
) -> Elected | None:
    """Return the state of a partition after an election by the rule for `reason`.

    None if no replica may become the leader.
    """
    return _RULES[reason](state, candidates, controller_epoch)


def remove_replica(
    state: PartitionStateNode, replica: int, controller_epoch: int
) -> PartitionStateNode:
    """Return a partition's state without an offline replica; the leader epoch is raised.

    There is no leader if the replica led. The last member of the ISR stays in the ISR, so that only
    this replica can become the leader again. Source: ISR-1, R13.
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
    """Return the first state of a new partition.

    The first live replica leads, all live are in sync. `live` is in the order of the assignment.
    """
    return PartitionStateNode(live[0], 0, tuple(live), controller_epoch)


def _elect_offline(
    state: PartitionStateNode, candidates: Candidates, controller_epoch: int
) -> Elected | None:
    """Elect the first live replica of the ISR, else any live replica if unclean is allowed.

    The ISR keeps its live members. After an unclean election the ISR has only the leader, in
    recovery. Returns None if no replica qualifies.
    """
    live = _in_order(candidates.replicas, candidates.live)
    leader = _first(live, state.isr)
    if leader is not None:
        isr = _in_order(state.isr, candidates.live)
        return Elected(_set_leader(state, leader, isr, controller_epoch), live)
    if not candidates.is_unclean_allowed or not live:
        return None
    led = _set_leader(state, live[0], (live[0],), controller_epoch)
    return Elected(led._replace(leader_recovery_state=_RECOVERING), live, is_unclean=True)


def _elect_for_reassignment(
    state: PartitionStateNode, candidates: Candidates, controller_epoch: int
) -> Elected | None:
    """Elect the first live target replica in the ISR, None if there is none; keep the ISR."""
    live = _in_order(candidates.replicas, candidates.live)
    leader = _first(live, state.isr)
    if leader is None:
        return None
    return Elected(
        _set_leader(state, leader, state.isr, controller_epoch), tuple(candidates.replicas)
    )


def _elect_preferred(
    state: PartitionStateNode, candidates: Candidates, controller_epoch: int
) -> Elected | None:
    """Elect the preferred leader if it is live and in the ISR, else return None; keep the ISR."""
    preferred = candidates.replicas[0] if candidates.replicas else NO_LEADER
    if preferred not in candidates.live or preferred not in state.isr:
        return None
    return Elected(
        _set_leader(state, preferred, state.isr, controller_epoch), tuple(candidates.replicas)
    )


def _elect_around_shutdown(
    state: PartitionStateNode, candidates: Candidates, controller_epoch: int
) -> Elected | None:
    """Elect a live ISR member that is not shutting down, None if there is none.

    Replicas that are shutting down leave the ISR.
    """
    live = _in_order(candidates.replicas, candidates.live)
    isr = _without(state.isr, candidates.shutting_down)
    leader = _first(live, isr)
    if leader is None:
        return None
    return Elected(_set_leader(state, leader, isr, controller_epoch), live)


def _set_leader(
    state: PartitionStateNode, leader: int, isr: tuple[int, ...], controller_epoch: int
) -> PartitionStateNode:
    """Return the state with a new leader and ISR; the leader epoch is raised by one."""
    return state._replace(
        leader=leader,
        isr=isr,
        leader_epoch=state.leader_epoch + 1,
        controller_epoch=controller_epoch,
    )


def _first(replicas: Sequence[int], isr: Sequence[int]) -> int | None:
    """Return the first replica that is in the ISR, None if no replica is."""
    return next((replica for replica in replicas if replica in isr), None)


def _in_order(replicas: Sequence[int], chosen: AbstractSet[int]) -> tuple[int, ...]:
    """Return the members of `chosen` in the order of `replicas`."""
    return tuple(replica for replica in replicas if replica in chosen)


def _without(replicas: Sequence[int], gone: AbstractSet[int]) -> tuple[int, ...]:
    """Return the replicas that are not in `gone`, in their order."""
    return tuple(replica for replica in replicas if replica not in gone)


_Rule = Callable[[PartitionStateNode, Candidates, int], Elected | None]
_RULES: dict[ElectionReason, _Rule] = {
    ElectionReason.OFFLINE: _elect_offline,
    ElectionReason.REASSIGN: _elect_for_reassignment,
    ElectionReason.PREFERRED: _elect_preferred,
    ElectionReason.CONTROLLED_SHUTDOWN: _elect_around_shutdown,
}
