"""Explain a change: the controller's steps, their effect on clients, and possible failures.

Pure. The steps are those of RSN-2 and of Kafka's phases U, A and B, for one partition.

Source: RSN-1 … RSN-9; engine/controller/reassignment.py.
"""

from __future__ import annotations

from typing import NamedTuple

from engine.planner.plan import PartitionChange


class MoveStep(NamedTuple):
    """A step.

    Its action, replicas, ISR and leader after it, the effect on clients, and failures.
    """

    letter: str
    what: str
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int | None
    clients: str
    failure: str


def explain_steps(change: PartitionChange) -> list[MoveStep]:
    """Return the steps of a change in the controller, if all its replicas are in sync."""
    if change.new_replicas == change.old_replicas:
        elections = [_election_step(change)] if change.old_leader != change.new_leader else []
        return [*_log_dir_steps(change), *elections]
    old, new, leader = change.old_replicas, change.new_replicas, change.old_leader
    both = (*new, *(id_ for id_ in old if id_ not in new))
    steps = [
        MoveStep(
            "U1",
            f"the topic's assignment becomes {_ids(both)}: {_change_text(change)}",
            both,
            old,
            leader,
            "nothing",
            "the controller dies before: nothing has begun. After: the next one goes on here",
        )
    ]
    if change.added:
        steps += _copy_steps(change, both)
    isr = both
    if leader not in new:
        leader = new[0]
        steps.append(
            MoveStep(
                "B3",
                f"broker {leader} is elected: the first of {_ids(new)} that is in sync",
                both,
                isr,
                leader,
                "NOT_LEADER_OR_FOLLOWER once; clients ask for metadata and go on",
                f"broker {leader} dies: the next of {_ids(new)} that is in sync leads",
            )
        )
    if change.removed:
        steps += _shrink_steps(change, both, leader)
    else:
        steps.append(
            MoveStep("B6", f"the assignment is {_ids(new)}", new, new, leader, "nothing", _AGAIN)
        )
    if leader != change.new_leader:
        steps.append(_election_step(change))
    return steps


_AGAIN = "the controller dies: the next one does this step again"


def _change_text(change: PartitionChange) -> str:
    """Return a text that names the replicas that a change adds and removes."""
    parts = []
    if change.added:
        parts.append(f"{_ids(change.added)} added")
    if change.removed:
        parts.append(f"{_ids(change.removed)} to be removed")
    return " and ".join(parts) or "another order"


def _copy_steps(change: PartitionChange, both: tuple[int, ...]) -> list[MoveStep]:
    """Return the steps A1 to A3, in which new replicas copy the log and join the ISR.

    `both` are the old and the new replicas.
    """
    old, leader, added = change.old_replicas, change.old_leader, change.added
    size = f"{change.size_bytes} bytes each" if change.size_bytes else "all there is"
    return [
        MoveStep(
            "A1",
            f"the leader epoch rises; brokers {_ids(both)} get LeaderAndIsr",
            both,
            old,
            leader,
            "FENCED_LEADER_EPOCH for clients with an older epoch: they refresh metadata",
            "a request that is lost is sent again when its broker registers again",
        ),
        MoveStep(
            "A2",
            f"{_ids(added)} make the replica and copy {size} from the leader",
            both,
            old,
            leader,
            "the leader sends more; a throttle bounds it",
            f"one of {_ids(added)} dies: this step waits for it; `kctl reassign cancel` goes back",
        ),
        MoveStep(
            "A3",
            f"caught up, {_ids(added)} join the in-sync set",
            both,
            both,
            leader,
            "acks=all waits for them too from here on",
            "one falls behind: it leaves the set, and this step waits again",
        ),
    ]


def _shrink_steps(
    change: PartitionChange, both: tuple[int, ...], leader: int | None
) -> list[MoveStep]:
    """Return the steps B4 to B6, in which old replicas leave the ISR and are deleted."""
    new, removed = change.new_replicas, change.removed
    return [
        MoveStep(
            "B4",
            f"{_ids(removed)} leave the in-sync set; the leader epoch rises",
            both,
            new,
            leader,
            "nothing",
            _AGAIN,
        ),
        MoveStep(
            "B5",
            f"{_ids(removed)} delete their replicas",
            both,
            new,
            leader,
            "consumers that read from them go to the leader",
            "one of them is down: its files stay on that disk",
        ),
        MoveStep("B6", f"the assignment is {_ids(new)}", new, new, leader, "nothing", _AGAIN),
    ]


def _election_step(change: PartitionChange) -> MoveStep:
    """Return the step in which kctl has the preferred leader elected."""
    return MoveStep(
        "elect",
        f"kctl has the preferred leader elected: broker {change.new_leader}",
        change.new_replicas,
        change.new_replicas,
        change.new_leader,
        "NOT_LEADER_OR_FOLLOWER once; clients ask for metadata and go on",
        "it is out of sync: the leader stays",
    )


def _log_dir_steps(change: PartitionChange) -> list[MoveStep]:
    """Return a step for each replica that moves to another directory of its broker."""
    replicas, leader = change.new_replicas, change.old_leader
    return [
        MoveStep(
            "dir",
            f"broker {broker_id} copies its replica from {old} to {new}, then goes on there",
            replicas,
            replicas,
            leader,
            "nothing",
            "the broker dies: it goes on with the copy when it is back",
        )
        for broker_id, old, new in change.log_dir_moves
    ]


def _ids(ids: tuple[int, ...]) -> str:
    """Return broker ids as text such as `{1,2}`, in the order of the replicas."""
    return "{" + ",".join(map(str, ids)) + "}"
