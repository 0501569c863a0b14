"""The phase of a change from the observed state of its partition, by the controller's steps. Pure.

| observed state | phase | meaning |
|---|---|---|
| not reassigning, old replicas | waiting | the change has not started |
| reassigning, a target not in sync, no bytes copied | A1 | requests are being sent |
| reassigning, a target not in sync | A2 | new replicas copy |
| reassigning, targets in sync, the leader is not a target | B3 | a target is elected |
| reassigning, a removed replica in sync | B4 | removed replicas leave the ISR |
| reassigning, the ISR has only targets | B5 | removed replicas are deleted (B6 to B8: done) |
| same replicas, a directory to change, no copy there | waiting | the change has not started |
| same replicas, a copy in the new directory | moving | a broker copies between directories |
| same replicas, a directory to change, no response of its broker | unknown | poll again |
| not reassigning, new replicas | done | |
| reassigning to other replicas | replaced | another client requested it |
| not reassigning, neither old nor new replicas | elsewhere | the same, and it is complete |

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


#: Phases in which a change has ended.
ENDED = frozenset((MovePhase.DONE, MovePhase.REPLACED, MovePhase.ELSEWHERE, MovePhase.GONE))
#: Phases in which the controller or a broker works on the change.
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
    """A replica as its broker reports it; `future_*` are of the copy in its next directory."""

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
    """Return the phase of a change from what was observed.

    `replicas` are those of the brokers that responded. `partition` is None if it is deleted,
    `ongoing` None if the controller lists no reassignment of it.
    """
    if partition is None:
        return MovePhase.GONE
    if ongoing is not None:
        return _phase_in_progress(change, partition, ongoing, replicas)
    # The controller has completed it; the broker that sent the metadata may not know all of that.
    is_heard = set(partition.isr) <= set(partition.replicas)
    if partition.replicas == change.new_replicas and is_heard:
        return _phase_of_directories(change, replicas)
    if set(partition.replicas) == set(change.old_replicas):
        # A cancelled reassignment leaves the order of its target.
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
    """Return the phase of a change that the controller lists as a running reassignment."""
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
    """Return the phase of a change whose replicas are on the right brokers.

    It is the phase of its moves between directories.
    """
    phase = MovePhase.DONE
    # Without a response it is unknown whether the replica has moved.
    if unseen_brokers(change, replicas):
        return MovePhase.UNKNOWN
    for broker_id, _, path in change.log_dir_moves:
        replica = replicas[broker_id]
        if replica.path == path:
            continue
        if replica.future_path != path:
            # The move is not requested yet, or the broker has just received the request.
            return MovePhase.WAITING
        phase = MovePhase.MOVING_DIRECTORY
    return phase


def unseen_brokers(change: PartitionChange, replicas: Mapping[int, ObservedReplica]) -> list[int]:
    """Return the brokers with directory moves of a change whose replicas were not reported."""
    return [broker_id for broker_id, _, _ in change.log_dir_moves if broker_id not in replicas]


def copied_bytes(
    change: PartitionChange, partition: PartitionView, replicas: Mapping[int, ObservedReplica]
) -> tuple[int, int]:
    """Return the copied and the total bytes of all replicas that a change copies."""
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
