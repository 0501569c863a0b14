"""The replicas of a partition during a reassignment, and the checks of a request: pure rules.

```
original   the replicas before it         = replicas − adding
target     the replicas after it          = replicas − removing
replicas   target, then the rest of the original
adding     target − original
removing   original − target
```

A reassignment of {1,2} to {3,2} is stored as replicas [3,2,1], adding [3], removing [1]. A new
request replaces a running one: adding and removing are computed from the original replicas. The
original replicas as the target cancel it.

| request | refused with |
|---|---|
| no replicas, a duplicate, a negative id | INVALID_REPLICA_ASSIGNMENT |
| a replica to add whose broker is not alive | INVALID_REPLICA_ASSIGNMENT |
| cancel without a running reassignment | NO_REASSIGNMENT_IN_PROGRESS |
| cancel or replace, and it would delete the complete ISR | INVALID_REPLICA_ASSIGNMENT |
| a partition that does not exist, or whose topic is deleted | UNKNOWN_TOPIC_OR_PARTITION |

Source: RSN-3, RSN-4, RSN-6, RSN-7, KIP-455; ReplicaAssignment and
KafkaController.validateReplicas.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from engine.kafka_errors import (
    INVALID_REPLICA_ASSIGNMENT,
    NO_REASSIGNMENT_IN_PROGRESS,
    NONE,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from engine.znode.values import PartitionAssignment


class ReassignmentResult(NamedTuple):
    """The result for one partition of a request; the code NONE means that it was started."""

    code: int = NONE
    message: str | None = None


#: The result of a cancellation without a running reassignment.
NOTHING_TO_CANCEL = ReassignmentResult(
    NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress."
)
#: The result for a partition that does not exist or whose topic is being deleted.
NO_SUCH_PARTITION = ReassignmentResult(UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")


def is_reassigning(assignment: PartitionAssignment) -> bool:
    """True if the assignment adds or removes replicas."""
    return bool(assignment.adding_replicas or assignment.removing_replicas)


def original_replicas(assignment: PartitionAssignment) -> tuple[int, ...]:
    """Return the replicas before the reassignment; their original order is not kept."""
    return _without(assignment.replicas, assignment.adding_replicas)


def target_replicas(assignment: PartitionAssignment) -> tuple[int, ...]:
    """Return the replicas that a partition has after its reassignment, in order."""
    return _without(assignment.replicas, assignment.removing_replicas)


def reassigned(assignment: PartitionAssignment, target: Sequence[int]) -> PartitionAssignment:
    """Return the assignment of a partition during its reassignment to `target`.

    It has the target and the original replicas; replicas of an earlier target are replaced.

    Source: RSN-4.
    """
    original = original_replicas(assignment)
    replicas = tuple(dict.fromkeys((*target, *original)))
    return PartitionAssignment(replicas, _without(replicas, original), _without(replicas, target))


def is_caught_up(assignment: PartitionAssignment, isr: Collection[int]) -> bool:
    """True if a reassignment can be completed: the ISR has all target replicas.

    True also if nothing is reassigned.

    Source: RSN-2; KafkaController.isReassignmentComplete.
    """
    target = target_replicas(assignment)
    # An empty target, from a node with all replicas as removing, is never in sync.
    return not is_reassigning(assignment) or (bool(target) and set(target) <= set(isr))


def check_replicas(
    assignment: PartitionAssignment, target: Sequence[int], live: Iterable[int]
) -> ReassignmentResult | None:
    """Return why `target` cannot be the replicas of a partition, None if it can.

    The list must be valid, and the brokers to add live.

    Source: RSN-7.
    """
    refusal = check_replica_list(target)
    if refusal is not None:
        return refusal
    adding = reassigned(assignment, target).adding_replicas
    live_ids = list(live)
    if not set(adding) <= set(live_ids):
        alive = ", ".join(map(str, live_ids))
        return _invalid_assignment(
            "Replica assignment has brokers that are not alive. "
            f"Replica list: {_scala_buffer(adding)}, live broker list: Set({alive})"
        )
    return None


def check_replica_list(target: Sequence[int]) -> ReassignmentResult | None:
    """Return why a replica list is invalid, None if it is valid.

    Does not check that the brokers are live.
    """
    if not target:
        return _invalid_assignment("Empty replica list specified in partition reassignment.")
    if len(target) != len(set(target)):
        return _invalid_assignment(
            "Duplicate replica ids in partition reassignment replica list: " + _scala_buffer(target)
        )
    if min(target) < 0:
        return _invalid_assignment(f"Invalid broker id in replica list: {_scala_buffer(target)}")
    return None


def plan_reassignment(
    assignment: PartitionAssignment, target: Sequence[int] | None
) -> PartitionAssignment | None:
    """Return the assignment that starts a requested reassignment; `target` None cancels one.

    Returns None if there is no reassignment to cancel.
    """
    if target is None:
        if not is_reassigning(assignment):
            return None
        target = original_replicas(assignment)
    return reassigned(assignment, target)


def unwanted_replicas(before: PartitionAssignment, after: PartitionAssignment) -> tuple[int, ...]:
    """Return the replicas of `before` that are not in `after`.

    An earlier target was adding them.
    """
    return _without(before.replicas, after.replicas)


def check_deletion(unwanted: Collection[int], isr: Collection[int]) -> ReassignmentResult | None:
    """Return an error if the deletion of `unwanted` would leave no in-sync replica, else None.

    Source: C6.
    Differs: Kafka deletes them, and the acknowledged records with them.
    """
    if not isr or not set(isr) <= set(unwanted):
        return None
    in_sync = ", ".join(map(str, isr))
    return _invalid_assignment(f"No replica would be left of those that are in sync: {in_sync}.")


def _invalid_assignment(message: str) -> ReassignmentResult:
    """Return the refusal INVALID_REPLICA_ASSIGNMENT with a message."""
    return ReassignmentResult(INVALID_REPLICA_ASSIGNMENT, message)


def _scala_buffer(replicas: Iterable[int]) -> str:
    """Return replicas as text, in the form of a Scala buffer in Kafka's messages."""
    return f"ArrayBuffer({', '.join(map(str, replicas))})"


def _without(replicas: Sequence[int], gone: Collection[int]) -> tuple[int, ...]:
    """Return the replicas that are not in `gone`, in their order."""
    return tuple(replica for replica in replicas if replica not in gone)
