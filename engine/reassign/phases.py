"""Phase of a change as observed from outside, by the steps of the controller. Pure.

| shows | phase | what goes on |
|---|---|---|
| not under way, replicas as before | waiting | it has not begun |
| under way, a target not in sync, nothing there yet | A1 | the orders go out |
| under way, a target not in sync | A2 | new replicas copy |
| under way, targets in sync, the leader is none of them | B3 | a target is elected |
| under way, a replica that goes is still in sync | B4 | those that go leave the in-sync set |
| under way, the set is the target's | B5 | those that go are deleted (B6 to B8: it is over) |
| replicas stay, a directory is to change, no copy is there | waiting | it has not begun |
| replicas stay, a copy is in the wanted directory | moving | a broker copies between its own |
| replicas stay, a directory is to change, its broker does not tell | unknown | it is waited for |
| not under way, replicas as wanted | done | |
| under way, to other replicas | replaced | somebody has asked for something else |
| not under way, replicas neither as before nor as wanted | elsewhere | the same, and it is over |

Source: RSN-1 … RSN-5; the letters are those of Kafka's KafkaController.onPartitionReassignment.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from engine.client.metadata import PartitionView
from engine.client.reassignments import OngoingReassignment
from engine.planner.plan import PartitionChange


class MovePhase(Enum):
    """The phase of a change."""

    WAITING = "waiting"
    A1_ORDERED = "A1"
    A2_COPYING = "A2"
    B3_ELECTING = "B3"
    B4_SHRINKING = "B4"
    B5_DELETING = "B5"
    MOVING_DIRECTORY = "moving"
    UNKNOWN = "unknown"
    DONE = "done"
    REPLACED = "replaced"
    ELSEWHERE = "elsewhere"
    GONE = "gone"


#: Phases in which a change needs nothing more of the execution.
ENDED = frozenset((MovePhase.DONE, MovePhase.REPLACED, MovePhase.ELSEWHERE, MovePhase.GONE))
#: Phases in which brokers copy.
AT_WORK = frozenset(
    (
        MovePhase.A1_ORDERED,
        MovePhase.A2_COPYING,
        MovePhase.B3_ELECTING,
        MovePhase.B4_SHRINKING,
        MovePhase.B5_DELETING,
        MovePhase.MOVING_DIRECTORY,
    )
)


class ObservedReplica(NamedTuple):
    """A replica as its broker reports it; `future` is the copy in the directory it moves to."""

    size_bytes: int
    path: str
    future_bytes: int | None = None
    future_path: str | None = None


def phase_of(
    change: PartitionChange,
    partition: PartitionView | None,
    ongoing: OngoingReassignment | None,
    replicas: Mapping[int, ObservedReplica],
) -> MovePhase:
    """Return the phase of a change; `replicas` are by broker, of those that responded."""
    if partition is None:
        return MovePhase.GONE
    if ongoing is not None:
        return _phase_in_progress(change, partition, ongoing, replicas)
    # The controller has ended it; a broker that was asked may have heard less than that.
    is_heard = set(partition.isr) <= set(partition.replicas)
    if partition.replicas == change.new_replicas and is_heard:
        return _phase_of_directories(change, replicas)
    if set(partition.replicas) == set(change.old_replicas):
        # In another order after a cancel, which keeps that of the target.
        return MovePhase.WAITING
    both = {*change.old_replicas, *change.new_replicas}
    if set(partition.replicas) == both or not is_heard:
        return MovePhase.B5_DELETING
    return MovePhase.ELSEWHERE


def _phase_in_progress(
    change: PartitionChange,
    partition: PartitionView,
    ongoing: OngoingReassignment,
    replicas: Mapping[int, ObservedReplica],
) -> MovePhase:
    """Return the phase of a change that the controller lists as ongoing."""
    if ongoing.target != change.new_replicas:
        return MovePhase.REPLACED
    missing = set(change.new_replicas) - set(partition.isr)
    if missing:
        copying = any(replicas[id_].size_bytes for id_ in missing if id_ in replicas)
        return MovePhase.A2_COPYING if copying else MovePhase.A1_ORDERED
    if partition.leader not in change.new_replicas:
        return MovePhase.B3_ELECTING
    if set(partition.isr) - set(change.new_replicas):
        return MovePhase.B4_SHRINKING
    return MovePhase.B5_DELETING


def _phase_of_directories(
    change: PartitionChange, replicas: Mapping[int, ObservedReplica]
) -> MovePhase:
    """Return the phase of a change that moves replicas between directories only."""
    phase = MovePhase.DONE
    # A broker that is down, or does not answer, is where its replica is: neither moved nor not.
    if unseen_brokers(change, replicas):
        return MovePhase.UNKNOWN
    for broker_id, _, path in change.log_dir_moves:
        replica = replicas[broker_id]
        if replica.path == path:
            continue
        if replica.future_path != path:
            # Nobody has asked for it yet, or the broker has only just been asked.
            return MovePhase.WAITING
        phase = MovePhase.MOVING_DIRECTORY
    return phase


def unseen_brokers(change: PartitionChange, replicas: Mapping[int, ObservedReplica]) -> list[int]:
    """Return the brokers whose directories are to change, and of which nothing is known."""
    return [broker_id for broker_id, _, _ in change.log_dir_moves if broker_id not in replicas]


def copied_bytes(
    change: PartitionChange, partition: PartitionView, replicas: Mapping[int, ObservedReplica]
) -> tuple[int, int]:
    """Return the copied and the total bytes of a change's new replicas."""
    done = total = 0
    leader = replicas.get(partition.leader)
    whole = change.size_bytes if leader is None else leader.size_bytes
    for broker_id in change.added:
        there = replicas.get(broker_id)
        is_whole = broker_id in partition.isr
        done += whole if is_whole else min(0 if there is None else there.size_bytes, whole)
        total += whole
    for broker_id, _, path in change.log_dir_moves:
        there = replicas.get(broker_id)
        if there is not None:
            is_whole = there.path == path
            done += there.size_bytes if is_whole else min(there.future_bytes or 0, there.size_bytes)
            total += there.size_bytes
    return done, total
