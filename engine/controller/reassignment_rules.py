"""The replicas of a partition during a reassignment, and the checks of a request: pure rules.

```
original   the replicas before it         = replicas − adding
target     the replicas after it          = replicas − removing
replicas   target, then the rest of the original
adding     target − original
removing   original − target
```

{1,2} moved to {3,2} is stored as replicas [3,2,1], adding [3], removing [1]. A new target is
counted from the original, so that a request replaces one that runs; the original itself as the
target cancels it.

| request | refused with |
|---|---|
| no replicas, one twice, an id below zero | INVALID_REPLICA_ASSIGNMENT |
| a replica to add whose broker is not alive | INVALID_REPLICA_ASSIGNMENT |
| cancel, and nothing runs | NO_REASSIGNMENT_IN_PROGRESS |
| cancel or replace, and all that are in sync are ones it was adding | INVALID_REPLICA_ASSIGNMENT |
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
    """The result for one partition of a request; NONE means that it was begun."""

    code: int = NONE
    message: str | None = None


#: Cancelled, and nothing was running.
NOTHING_TO_CANCEL = ReassignmentResult(
    NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress."
)
#: Not there, or about to go.
NO_SUCH_PARTITION = ReassignmentResult(UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")


def is_reassigning(assignment: PartitionAssignment) -> bool:
    """Return whether replicas come or go."""
    return bool(assignment.adding_replicas or assignment.removing_replicas)


def original_replicas(assignment: PartitionAssignment) -> tuple[int, ...]:
    """Return the replicas from before a reassignment; their first order is not kept."""
    return _without(assignment.replicas, assignment.adding_replicas)


def target_replicas(assignment: PartitionAssignment) -> tuple[int, ...]:
    """Return the replicas from after a reassignment, in order."""
    return _without(assignment.replicas, assignment.removing_replicas)


def reassigned(assignment: PartitionAssignment, target: Sequence[int]) -> PartitionAssignment:
    """Return the assignment during a reassignment to a target; an earlier target is dropped.

    Source: RSN-4.
    """
    original = original_replicas(assignment)
    replicas = tuple(dict.fromkeys((*target, *original)))
    return PartitionAssignment(replicas, _without(replicas, original), _without(replicas, target))


def is_caught_up(assignment: PartitionAssignment, isr: Collection[int]) -> bool:
    """Return whether phase B may run: all target replicas are in sync, or nothing moves.

    Source: RSN-2; KafkaController.isReassignmentComplete.
    """
    target = target_replicas(assignment)
    # An empty target is never in sync, should a node have all replicas as removing.
    return not is_reassigning(assignment) or (bool(target) and set(target) <= set(isr))


def replicas_refusal(
    assignment: PartitionAssignment, target: Sequence[int], live: Iterable[int]
) -> ReassignmentResult | None:
    """Return why replicas cannot be the target of a partition, None if they can.

    Source: RSN-7.
    """
    refusal = list_refusal(target)
    if refusal is not None:
        return refusal
    adding = reassigned(assignment, target).adding_replicas
    live_ids = list(live)
    if not set(adding) <= set(live_ids):
        alive = ", ".join(map(str, live_ids))
        return _invalid(
            "Replica assignment has brokers that are not alive. "
            f"Replica list: {_buffer(adding)}, live broker list: Set({alive})"
        )
    return None


def list_refusal(target: Sequence[int]) -> ReassignmentResult | None:
    """Return why a replica list is invalid, None if it is valid; live brokers are not checked."""
    if not target:
        return _invalid("Empty replica list specified in partition reassignment.")
    if len(target) != len(set(target)):
        return _invalid(
            "Duplicate replica ids in partition reassignment replica list: " + _buffer(target)
        )
    if min(target) < 0:
        return _invalid(f"Invalid broker id in replica list: {_buffer(target)}")
    return None


def planned(
    assignment: PartitionAssignment, target: Sequence[int] | None
) -> PartitionAssignment | None:
    """Return the requested assignment, the original for None; None without a move to cancel."""
    if target is None:
        if not is_reassigning(assignment):
            return None
        target = original_replicas(assignment)
    return reassigned(assignment, target)


def unwanted_replicas(before: PartitionAssignment, after: PartitionAssignment) -> tuple[int, ...]:
    """Return the replicas that an earlier request was adding and the next does not want."""
    return _without(before.replicas, after.replicas)


def deletion_refusal(unwanted: Collection[int], isr: Collection[int]) -> ReassignmentResult | None:
    """Return why replicas must not be removed now: no member of the ISR would be left.

    Source: C6.
    Differs: Kafka deletes them, and the acknowledged records with them.
    """
    if not isr or not set(isr) <= set(unwanted):
        return None
    in_sync = ", ".join(map(str, isr))
    return _invalid(f"No replica would be left of those that are in sync: {in_sync}.")


def _invalid(message: str) -> ReassignmentResult:
    return ReassignmentResult(INVALID_REPLICA_ASSIGNMENT, message)


def _buffer(replicas: Iterable[int]) -> str:
    """Return replicas as Kafka's messages write them."""
    return f"ArrayBuffer({', '.join(map(str, replicas))})"


def _without(replicas: Sequence[int], gone: Collection[int]) -> tuple[int, ...]:
    return tuple(replica for replica in replicas if replica not in gone)
