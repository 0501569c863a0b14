"""The in-sync replicas (ISR): committed and proposed set, and the rules of changes; plain values.

```
            propose grow {1,2}+3            committed by the controller
committed ───────────────────────> pending ─────────────────────────────> committed
{1,2}       propose shrink {1,2}-2    │      refused: the former set
    ^──────────────────────────────────┘

 pending      isr (min.insync.replicas)  maximal_isr (bounds the high watermark)
 grow 3       {1,2}                      {1,2,3}
 shrink 2     {1}                        {1,2}
```

While a change is pending no other is proposed.
Source: ISR-1 … ISR-6, HW-16, HW-17; KIP-497; Kafka's PartitionState and Replica.
Differs: times are of the monotonic clock, so that a step of the wall clock does not shrink the ISR.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from enum import Enum
from typing import NamedTuple

from engine.kafka_errors import (
    FENCED_LEADER_EPOCH,
    INELIGIBLE_REPLICA,
    INVALID_REQUEST,
    INVALID_UPDATE_VERSION,
    NEW_LEADER_ELECTED,
    OPERATION_NOT_ATTEMPTED,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from engine.model import new_tuple

#: The log end offset of a follower that has not fetched from this leader yet.
UNKNOWN_OFFSET = -1
#: A time before all times of the clock, for a follower that was never caught up.
NEVER_MS = -(1 << 62)


class InSyncSet(NamedTuple):
    """The committed ISR, and the proposed one until the controller has responded."""

    committed: tuple[int, ...]
    pending: tuple[int, ...] | None = None

    @property
    def is_in_flight(self) -> bool:
        """True if an ISR proposal waits for the controller's response."""
        return self.pending is not None

    @property
    def isr(self) -> tuple[int, ...]:
        """Return the smaller of the committed and the proposed ISR.

        It is compared with min.insync.replicas: the controller may have committed either.
        """
        if self.pending is None or len(self.pending) > len(self.committed):
            return self.committed
        return self.pending

    @property
    def maximal_isr(self) -> tuple[int, ...]:
        """Return the larger of the committed and the proposed ISR, which bounds the high watermark.

        The controller may have committed the proposal already.

        Source: R4.
        """
        if self.pending is None or len(self.pending) < len(self.committed):
            return self.committed
        return self.pending

    def growing(self, replica_id: int) -> InSyncSet:
        """Return the committed ISR with a proposal that adds `replica_id`."""
        return InSyncSet(self.committed, (*self.committed, replica_id))

    def shrinking(self, replica_ids: Iterable[int]) -> InSyncSet:
        """Return the committed ISR with a proposal that removes `replica_ids`."""
        gone = frozenset(replica_ids)
        return InSyncSet(self.committed, tuple(id_ for id_ in self.committed if id_ not in gone))

    def rejected(self) -> InSyncSet:
        """Return the committed ISR without a proposal, after the controller has refused it."""
        return InSyncSet(self.committed)


class FollowerProgress(NamedTuple):
    """A leader's state of one follower (HW-16); times are monotonic.

    The ends are UNKNOWN_OFFSET before the follower's first fetch from this leader. Source: HW-9.
    """

    log_end_offset: int = UNKNOWN_OFFSET
    log_start_offset: int = UNKNOWN_OFFSET
    last_fetch_leader_log_end_offset: int = UNKNOWN_OFFSET
    last_fetch_ms: int = NEVER_MS
    last_caught_up_ms: int = NEVER_MS

    def after_fetch(
        self, fetch_offset: int, log_start_offset: int, *, leader_log_end_offset: int, now_ms: int
    ) -> FollowerProgress:
        """Return the progress after a fetch, whose offset is the follower's log end offset (HW-5).

        The follower was caught up now if it has all of the leader's records, or at its previous
        fetch if it has all records that the leader had then: a follower that always lags by one
        small append stays in sync (HW-17).
        """
        caught_up_ms = self.last_caught_up_ms
        if fetch_offset >= leader_log_end_offset:
            caught_up_ms = max(caught_up_ms, now_ms)
        elif fetch_offset >= self.last_fetch_leader_log_end_offset:
            caught_up_ms = max(caught_up_ms, self.last_fetch_ms)
        before_end = self.last_fetch_leader_log_end_offset
        end = leader_log_end_offset if leader_log_end_offset > before_end else before_end
        return new_tuple(
            FollowerProgress, (fetch_offset, log_start_offset, end, now_ms, caught_up_ms)
        )

    def at_new_epoch(
        self, *, knows_nobody: bool, is_in_sync: bool, leader_log_end_offset: int, now_ms: int
    ) -> FollowerProgress:
        """Return the progress of a follower at the start of a new leader epoch.

        An ISR member gets the full lag time from now on; any other follower must fetch first.
        `knows_nobody` is True for a leader that did not lead in the epoch before: the ends are
        unknown. Source: Replica.resetReplicaState.
        """
        seen_ms = now_ms if is_in_sync else NEVER_MS
        if knows_nobody:
            return FollowerProgress(last_caught_up_ms=seen_ms)
        return FollowerProgress(
            self.log_end_offset, self.log_start_offset, leader_log_end_offset, seen_ms, seen_ms
        )

    def is_caught_up(self, leader_log_end_offset: int, *, now_ms: int, lag_ms_max: int) -> bool:
        """Return True if the follower has all records, or had all within the last `lag_ms_max`.

        Source: ISR-3, ISR-4.
        """
        return (
            self.log_end_offset == leader_log_end_offset
            or now_ms - self.last_caught_up_ms <= lag_ms_max
        )


def followers_of(
    leader_id: int,
    assigned_replicas: Iterable[int],
    isr: Iterable[int],
    known: Mapping[int, FollowerProgress],
) -> dict[int, FollowerProgress]:
    """Return the followers that a leader tracks; their progress is taken from `known` if present.

    Differs: ISR members that a reassignment has removed from the assigned replicas are tracked too.
    They may still be elected until they leave the ISR, so the high watermark has to wait for them.
    """
    followers = dict.fromkeys((*assigned_replicas, *isr))
    followers.pop(leader_id, None)
    return {id_: known.get(id_) or FollowerProgress() for id_ in followers}


def out_of_sync_replicas(
    in_sync: InSyncSet,
    assigned_replicas: Collection[int],
    followers: Mapping[int, FollowerProgress],
    leader_log_end_offset: int,
    *,
    leader_id: int,
    now_ms: int,
    lag_ms_max: int,
) -> tuple[int, ...]:
    """Return the ISR members to remove: those that lag too long or are not assigned any more.

    Empty while a proposal is pending. Source: ISR-3, ISR-6.
    """
    if in_sync.is_in_flight:
        return ()
    return tuple(
        replica_id
        for replica_id in in_sync.committed
        if replica_id != leader_id
        and (
            replica_id not in assigned_replicas
            or replica_id not in followers
            or not followers[replica_id].is_caught_up(
                leader_log_end_offset, now_ms=now_ms, lag_ms_max=lag_ms_max
            )
        )
    )


def is_watermark_held(
    in_sync: InSyncSet, followers: Mapping[int, FollowerProgress], high_watermark: int
) -> bool:
    """Return True if an ISR member's log end offset does not exceed the high watermark (HW-7).

    Then no fetch of another follower can raise the high watermark, and its computation is skipped.
    """
    for replica_id in in_sync.maximal_isr:
        follower = followers.get(replica_id)
        if follower is not None and follower.log_end_offset <= high_watermark:
            return True
    return False


def counted_log_ends(
    in_sync: InSyncSet,
    followers: Mapping[int, FollowerProgress],
    leader_log_end_offset: int,
    is_alive: Callable[[int], bool],
    *,
    now_ms: int,
    lag_ms_max: int,
) -> list[int]:
    """Return the log end offsets of the followers that count for the high watermark (HW-7).

    These are the maximal ISR, and live followers that are caught up.
    """
    maximal_isr = in_sync.maximal_isr
    return [
        follower.log_end_offset
        for replica_id, follower in followers.items()
        if replica_id in maximal_isr
        or (
            follower.is_caught_up(leader_log_end_offset, now_ms=now_ms, lag_ms_max=lag_ms_max)
            and is_alive(replica_id)
        )
    ]


def may_join(
    in_sync: InSyncSet,
    replica_id: int,
    progress: FollowerProgress,
    *,
    high_watermark: int,
    epoch_start_offset: int,
) -> bool:
    """True if a follower may join the ISR after its fetch; its broker must also be live.

    The start offset of the epoch counts too, since a new leader's high watermark may be below the
    committed offset. Source: R11, ISR-5.
    """
    return (
        not in_sync.is_in_flight
        and replica_id not in in_sync.committed
        and progress.log_end_offset >= max(high_watermark, epoch_start_offset)
    )


class AfterRefusal(Enum):
    """What a leader does after the controller refused its proposal."""

    GO_BACK = "nothing was changed: the committed set holds, another may be proposed"
    AWAIT_ORDERS = "the controller knows more: the proposal stands until its next orders"
    PROPOSE_AGAIN = "the result is not known: the same is proposed again"


_AFTER = {
    OPERATION_NOT_ATTEMPTED: AfterRefusal.GO_BACK,
    INELIGIBLE_REPLICA: AfterRefusal.GO_BACK,
    UNKNOWN_TOPIC_OR_PARTITION: AfterRefusal.AWAIT_ORDERS,
    UNKNOWN_TOPIC_ID: AfterRefusal.AWAIT_ORDERS,
    FENCED_LEADER_EPOCH: AfterRefusal.AWAIT_ORDERS,
    INVALID_UPDATE_VERSION: AfterRefusal.AWAIT_ORDERS,
    INVALID_REQUEST: AfterRefusal.AWAIT_ORDERS,
    NEW_LEADER_ELECTED: AfterRefusal.AWAIT_ORDERS,
}


def after_refusal(error_code: int) -> AfterRefusal:
    """Return what the leader does with its ISR proposal after an error code of AlterPartition.

    Source: ISR-10; Partition.handleAlterPartitionError.
    """
    return _AFTER.get(error_code, AfterRefusal.PROPOSE_AGAIN)
