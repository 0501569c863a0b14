"""The offsets that a group has committed, and those on their way into the log.

```
 commit ── appended, waits for the in-sync replicas ──> pending ── written ──> committed
                                                           └───── failed ────> forgotten
 commit in a transaction ── appended ──> pending, by its producer ── marker: commit ──> committed
                                                                        └──── abort ──> forgotten
```

Of two commits for a partition the one later in the log counts, whichever is answered first; once a
tombstone is written no commit before it counts. A transaction's commit that is decided after a
tombstone counts, as it does when the log is loaded.

Source: GRP-13, GRP-18; GroupMetadata.scala of 3.9.1; KIP-98, KIP-447.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, TypeAlias

from engine.model import TopicPartition, new_tuple

NO_OFFSET = -1


class CommittedOffset(NamedTuple):
    """A position that a consumer committed; `expire_ms` only where its client set a retention."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_ms: int = -1
    expire_ms: int | None = None


#: The fields of a committed offset, then where in the log it was written. Plain tuples: garbage
#: collections pass over those of numbers and texts, a million of them in a coordinator, and never
#: over named tuples.
WrittenOffset: TypeAlias = tuple[int, int, str, int, int | None, int]


class _Undecided(NamedTuple):
    committed: CommittedOffset
    #: Where in the log it was written.
    log_offset: int


#: Where a commit was written that is on its way into the log.
_NOT_WRITTEN = -1
#: The place of the last field in `WrittenOffset`.
_LOG_OFFSET: Final = 5


class GroupOffsets:
    """Committed offsets of one group by partition."""

    __slots__ = ("_committed", "_pending", "_tombstones", "_transactional")

    def __init__(self) -> None:
        """Begin without offsets."""
        #: Offsets that all in-sync replicas have, each with its position in the log.
        self._committed: dict[TopicPartition, WrittenOffset] = {}
        #: Offsets that are appended, and wait for in-sync replicas.
        self._pending: dict[TopicPartition, CommittedOffset] = {}
        #: Position of the tombstone of each partition removed while commits waited for replicas:
        #: such a commit, written before it, must not come back. Kept until a later commit is
        #: written.
        self._tombstones: dict[TopicPartition, int] = {}
        #: Commits of open transactions by producer id and partition; no reader sees them before a
        #: commit marker.
        self._transactional: dict[int, dict[TopicPartition, _Undecided]] = {}

    @property
    def is_empty(self) -> bool:
        """Return whether nothing is committed, and nothing on its way."""
        return not self._committed and not self._pending and not self._transactional

    @property
    def committed_count(self) -> int:
        """Return how many partitions have a committed offset."""
        return len(self._committed)

    def is_unstable(self, partition: TopicPartition) -> bool:
        """Return whether a commit for a partition is not decided yet."""
        return partition in self._pending or any(
            partition in pending for pending in self._transactional.values()
        )

    def get(self, partition: TopicPartition) -> CommittedOffset | None:
        """Return the committed offset of a partition."""
        written = self._committed.get(partition)
        return None if written is None else _committed(written)

    def all(self) -> dict[TopicPartition, CommittedOffset]:
        """Return all that is committed."""
        return {partition: _committed(written) for partition, written in self._committed.items()}

    def known(self) -> list[TopicPartition]:
        """Return the partitions that have an offset, committed or on its way in no transaction."""
        return list(self._committed | self._pending)

    def is_known(self, partition: TopicPartition) -> bool:
        """Return whether a partition has an offset, committed or on its way in no transaction."""
        return partition in self._committed or partition in self._pending

    def prepare(self, offsets: dict[TopicPartition, CommittedOffset]) -> None:
        """Note commits before they are appended."""
        self._pending.update(offsets)

    def completed(
        self, partition: TopicPartition, committed: CommittedOffset, log_offset: int
    ) -> None:
        """Apply a commit that is written, unless its tombstone is in the log as well."""
        if self._pending.get(partition) is committed:
            del self._pending[partition]
        if self._tombstones:
            if log_offset < self._tombstones.get(partition, _NOT_WRITTEN):
                return
            self._tombstones.pop(partition, None)
        self.put(partition, committed, log_offset)

    def completed_fast(
        self, partition: TopicPartition, committed: CommittedOffset, log_offset: int
    ) -> None:
        """Apply a commit that no replica was waited for, as `prepare` and `completed` do."""
        if self._pending:
            self._pending.pop(partition, None)
        if self._tombstones:
            self.completed(partition, committed, log_offset)
            return
        known = self._committed.get(partition)
        if known is None or known[_LOG_OFFSET] < log_offset:
            self._committed[partition] = (*committed, log_offset)

    def failed(self, partition: TopicPartition, committed: CommittedOffset) -> None:
        """Forget a commit that could not be written."""
        if self._pending.get(partition) is committed:
            del self._pending[partition]

    # Transactions

    def prepare_in_transaction(
        self, producer_id: int, offsets: dict[TopicPartition, CommittedOffset]
    ) -> None:
        """Note commits of a transaction before they are appended."""
        pending = self._transactional.setdefault(producer_id, {})
        for partition, committed in offsets.items():
            pending[partition] = _Undecided(committed, _NOT_WRITTEN)

    def appended_in_transaction(
        self, producer_id: int, partition: TopicPartition, committed: CommittedOffset, at: int
    ) -> None:
        """Note that a transactional commit is appended; `at` is its offset in the log."""
        pending = self._transactional.get(producer_id)
        if pending is None or partition not in pending:
            # The transaction has ended meanwhile.
            return
        if pending[partition].log_offset < at:
            pending[partition] = _Undecided(committed, at)

    def failed_in_transaction(
        self, producer_id: int, partition: TopicPartition, committed: CommittedOffset
    ) -> None:
        """Forget a commit of a transaction that could not be written."""
        pending = self._transactional.get(producer_id)
        if pending is not None and partition in pending:
            if pending[partition].committed == committed:
                del pending[partition]
            if not pending:
                del self._transactional[producer_id]

    @property
    def open_producers(self) -> list[int]:
        """Return the ids of the producers whose commits are not decided."""
        return list(self._transactional)

    def has_pending_of(self, producer_id: int) -> bool:
        """Return whether commits of a producer's transaction are not decided."""
        return producer_id in self._transactional

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """Apply the commits of a committed transaction, or drop those of an aborted one."""
        pending = self._transactional.pop(producer_id, {})
        for partition, (committed, log_offset) in pending.items():
            if is_commit and log_offset != _NOT_WRITTEN:
                self.put(partition, committed, log_offset)

    def put(self, partition: TopicPartition, committed: CommittedOffset, log_offset: int) -> None:
        """Apply a commit from the log, unless a later one is known."""
        self.put_written(partition, (*committed, log_offset))

    def put_written(self, partition: TopicPartition, written: WrittenOffset) -> None:
        """Apply a commit from the log, unless a later one is known; `put` for very many."""
        known = self._committed.get(partition)
        if known is None or known[_LOG_OFFSET] < written[_LOG_OFFSET]:
            self._committed[partition] = written

    def remove(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget committed offsets, and those on their way in no transaction."""
        for partition in partitions:
            self._committed.pop(partition, None)
            if self._pending.pop(partition, None) is not None:
                self._tombstones[partition] = _NOT_WRITTEN

    def remove_before(self, partition: TopicPartition, log_offset: int) -> None:
        """Forget a commit that is older than the tombstone at `log_offset`.

        Commits before the tombstone may still wait for replicas, and must not return when these are
        in sync.
        """
        if partition in self._tombstones:
            self._tombstones[partition] = log_offset
        written = self._committed.get(partition)
        if written is not None and written[_LOG_OFFSET] < log_offset:
            del self._committed[partition]

    def expired(
        self,
        now_ms: int,
        retention_ms: int,
        *,
        base_ms: Callable[[CommittedOffset], int],
        may_expire: Callable[[str], bool],
    ) -> list[TopicPartition]:
        """Return the partitions of topics that may expire whose offsets are too old.

        `base_ms` is the wall time from which the retention of an offset is counted.
        """
        return [
            partition
            for partition, written in self._committed.items()
            if may_expire(partition.topic)
            and partition not in self._pending
            and _is_past(_committed(written), now_ms, retention_ms, base_ms)
        ]


def _committed(written: WrittenOffset) -> CommittedOffset:
    """Return a committed offset without its place in the log."""
    return new_tuple(CommittedOffset, written[:_LOG_OFFSET])


def _is_past(
    committed: CommittedOffset,
    now_ms: int,
    retention_ms: int,
    base_ms: Callable[[CommittedOffset], int],
) -> bool:
    """Return True if a committed offset has outlived its own expiry or `retention_ms`."""
    if committed.expire_ms is not None:
        return now_ms >= committed.expire_ms
    return now_ms - base_ms(committed) >= retention_ms
