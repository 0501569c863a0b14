"""The committed offsets of a group, and its commits that are not written or not decided yet.

```
 commit ── appended, waits for the in-sync replicas ──> pending ── written ──> committed
                                                           └───── failed ────> dropped
 commit in a transaction ── appended ──> pending, by its producer ── marker: commit ──> committed
                                                                        └──── abort ──> dropped
```

Of two commits for a partition the later one in the log counts, in any order of their responses. A
commit before a tombstone does not count. A transactional commit whose marker comes after the
tombstone counts, as it does when the log is loaded.

Source: GRP-13, GRP-18; GroupMetadata.scala of 3.9.1; KIP-98, KIP-447.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, TypeAlias

from engine.model import TopicPartition, new_tuple

NO_OFFSET = -1


class CommittedOffset(NamedTuple):
    """A committed offset; `expire_ms` is None unless its client set a retention."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_ms: int = -1
    expire_ms: int | None = None


#: The fields of a committed offset, then its log offset. A plain tuple: the garbage collector
#: untracks plain tuples of numbers and strings, a million in a coordinator, but not named tuples.
WrittenOffset: TypeAlias = tuple[int, int, str, int, int | None, int]


class _Undecided(NamedTuple):
    """A commit of an open transaction."""

    committed: CommittedOffset
    #: Its offset in the log; _NOT_WRITTEN before it is appended.
    log_offset: int


#: Log offset of a commit that is not appended yet.
_NOT_WRITTEN = -1
#: Index of the last field of `WrittenOffset`.
_LOG_OFFSET: Final = 5


class GroupOffsets:
    """Committed offsets of one group by partition."""

    __slots__ = ("_committed", "_pending", "_tombstones", "_transactional")

    def __init__(self) -> None:
        """Create the offsets of a group that has committed none."""
        #: Offsets that all in-sync replicas have, each with its log offset.
        self._committed: dict[TopicPartition, WrittenOffset] = {}
        #: Commits that wait until the in-sync replicas have them.
        self._pending: dict[TopicPartition, CommittedOffset] = {}
        #: Log offset of the tombstone of each partition removed while a commit was pending: such a
        #: commit, written before the tombstone, must not count. Kept until a later commit is
        #: written.
        self._tombstones: dict[TopicPartition, int] = {}
        #: Commits of open transactions by producer id and partition; they count after a commit
        #: marker.
        self._transactional: dict[int, dict[TopicPartition, _Undecided]] = {}

    @property
    def is_empty(self) -> bool:
        """True if the group has no committed offset, no pending and no transactional commit."""
        return not self._committed and not self._pending and not self._transactional

    @property
    def committed_count(self) -> int:
        """The number of partitions with a committed offset."""
        return len(self._committed)

    def is_unstable(self, partition: TopicPartition) -> bool:
        """Return True if a commit for the partition is pending, in or out of a transaction.

        OffsetFetch with `require_stable` answers such a partition UNSTABLE_OFFSET_COMMIT.
        """
        return partition in self._pending or any(
            partition in pending for pending in self._transactional.values()
        )

    def get(self, partition: TopicPartition) -> CommittedOffset | None:
        """Return the committed offset of a partition, None if it has none.

        Pending commits do not count.
        """
        written = self._committed.get(partition)
        return None if written is None else _committed(written)

    def all(self) -> dict[TopicPartition, CommittedOffset]:
        """Return the committed offset of each partition that has one."""
        return {partition: _committed(written) for partition, written in self._committed.items()}

    def known(self) -> list[TopicPartition]:
        """Return the partitions with a committed offset or a pending non-transactional commit."""
        return list(self._committed | self._pending)

    def is_known(self, partition: TopicPartition) -> bool:
        """Return True if a partition has a committed offset or a pending non-transactional one."""
        return partition in self._committed or partition in self._pending

    def prepare(self, offsets: dict[TopicPartition, CommittedOffset]) -> None:
        """Register non-transactional commits as pending, before their records are appended."""
        self._pending.update(offsets)

    def complete_commit(
        self, partition: TopicPartition, committed: CommittedOffset, log_offset: int
    ) -> None:
        """Make a pending commit the committed offset, once the ISR has its record.

        It is dropped if a tombstone for the partition follows in the log.
        """
        if self._pending.get(partition) is committed:
            del self._pending[partition]
        if self._tombstones:
            if log_offset < self._tombstones.get(partition, _NOT_WRITTEN):
                return
            self._tombstones.pop(partition, None)
        self.put(partition, committed, log_offset)

    def complete_commit_fast(
        self, partition: TopicPartition, committed: CommittedOffset, log_offset: int
    ) -> None:
        """Register and apply a commit whose record was written within the call.

        The same as `prepare` followed by `complete_commit`, for the fast path of OffsetCommit.
        """
        if self._pending:
            self._pending.pop(partition, None)
        if self._tombstones:
            self.complete_commit(partition, committed, log_offset)
            return
        known = self._committed.get(partition)
        if known is None or known[_LOG_OFFSET] < log_offset:
            self._committed[partition] = (*committed, log_offset)

    def drop_commit(self, partition: TopicPartition, committed: CommittedOffset) -> None:
        """Remove a pending commit whose record was not written; the committed offset stays."""
        if self._pending.get(partition) is committed:
            del self._pending[partition]

    # Transactions

    def prepare_in_transaction(
        self, producer_id: int, offsets: dict[TopicPartition, CommittedOffset]
    ) -> None:
        """Register commits of a producer's transaction as undecided, before they are appended."""
        pending = self._transactional.setdefault(producer_id, {})
        for partition, committed in offsets.items():
            pending[partition] = _Undecided(committed, _NOT_WRITTEN)

    def note_transactional_append(
        self, producer_id: int, partition: TopicPartition, committed: CommittedOffset, at: int
    ) -> None:
        """Note that the record of a transactional commit was appended at log offset `at`.

        Only an appended commit is applied when the transaction is committed.
        """
        pending = self._transactional.get(producer_id)
        if pending is None or partition not in pending:
            # The marker was written before the append completed.
            return
        if pending[partition].log_offset < at:
            pending[partition] = _Undecided(committed, at)

    def drop_transactional_commit(
        self, producer_id: int, partition: TopicPartition, committed: CommittedOffset
    ) -> None:
        """Remove a transactional commit whose record was not written."""
        pending = self._transactional.get(producer_id)
        if pending is not None and partition in pending:
            if pending[partition].committed == committed:
                del pending[partition]
            if not pending:
                del self._transactional[producer_id]

    @property
    def open_producers(self) -> list[int]:
        """The ids of the producers whose open transaction has commits of this group."""
        return list(self._transactional)

    def has_pending_of(self, producer_id: int) -> bool:
        """Return True if the producer's open transaction has commits of this group."""
        return producer_id in self._transactional

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """Apply a producer's transactional commits after a commit marker.

        After an abort marker they are dropped.
        """
        pending = self._transactional.pop(producer_id, {})
        for partition, (committed, log_offset) in pending.items():
            if is_commit and log_offset != _NOT_WRITTEN:
                self.put(partition, committed, log_offset)

    def put(self, partition: TopicPartition, committed: CommittedOffset, log_offset: int) -> None:
        """Set a partition's committed offset, whose record is at `log_offset`.

        Does nothing if the present one is from a later record.
        """
        self.put_written(partition, (*committed, log_offset))

    def put_written(self, partition: TopicPartition, written: WrittenOffset) -> None:
        """Set a partition's committed offset, unless the present one is from a later record.

        The same as `put` without a conversion, for loads of very many offsets.
        """
        known = self._committed.get(partition)
        if known is None or known[_LOG_OFFSET] < written[_LOG_OFFSET]:
            self._committed[partition] = written

    def remove_offsets(self, partitions: Iterable[TopicPartition]) -> None:
        """Remove committed offsets and pending non-transactional commits of `partitions`.

        The caller writes the tombstones and then calls `remove_before`.
        """
        for partition in partitions:
            self._committed.pop(partition, None)
            if self._pending.pop(partition, None) is not None:
                self._tombstones[partition] = _NOT_WRITTEN

    def remove_before(self, partition: TopicPartition, log_offset: int) -> None:
        """Remove a committed offset whose record precedes the tombstone at `log_offset`.

        A commit before the tombstone may still be pending; it is not applied once it is written.
        """
        if partition in self._tombstones:
            self._tombstones[partition] = log_offset
        written = self._committed.get(partition)
        if written is not None and written[_LOG_OFFSET] < log_offset:
            del self._committed[partition]

    def expired_partitions(
        self,
        now_ms: int,
        retention_ms: int,
        *,
        base_ms: Callable[[CommittedOffset], int],
        may_expire: Callable[[str], bool],
    ) -> list[TopicPartition]:
        """Return the partitions whose committed offset is older than `retention_ms`.

        Only topics for which `may_expire` is True, and no partition with a pending commit.
        `base_ms` returns the wall time from which the retention of an offset counts.
        """
        return [
            partition
            for partition, written in self._committed.items()
            if may_expire(partition.topic)
            and partition not in self._pending
            and _is_past(_committed(written), now_ms, retention_ms, base_ms)
        ]


def _committed(written: WrittenOffset) -> CommittedOffset:
    """Return the committed offset of an entry that also has a log offset."""
    return new_tuple(CommittedOffset, written[:_LOG_OFFSET])


def _is_past(
    committed: CommittedOffset,
    now_ms: int,
    retention_ms: int,
    base_ms: Callable[[CommittedOffset], int],
) -> bool:
    """Return True if an offset has expired.

    Its own `expire_ms` decides; without one, `retention_ms` counts from `base_ms`.
    """
    if committed.expire_ms is not None:
        return now_ms >= committed.expire_ms
    return now_ms - base_ms(committed) >= retention_ms
