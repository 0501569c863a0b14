"""Commit, fetch and delete the committed offsets of groups.

| state | commit of a member | commit without a member |
|---|---|---|
| Empty | 25 | written |
| PreparingRebalance, Stable | written | 25 |
| CompletingRebalance | 27: the partitions may be assigned to another member | 25 |
| Dead | 15 | 15 |

Numbers are error codes. A commit restarts its member's session timer. It is answered once the
in-sync replicas have it.

A commit in a transaction is written in any state but Dead, if its member and generation are current
or not sent; it counts once the transaction is committed (`complete_transaction`).

Source: G2, G4, GRP-13, GRP-16, GRP-17; GroupCoordinator.doCommitOffsets, GroupMetadataManager.
storeOffsets, getOffsets of 3.9.1.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import TypeAlias

from engine.groups.group import Group
from engine.groups.group_offsets import NO_OFFSET, CommittedOffset
from engine.groups.group_store import LOG_ERRORS, TOO_LARGE
from engine.groups.member import UNKNOWN_MEMBER
from engine.groups.ports import (
    CommittingProducer,
    GroupLog,
    GroupRecord,
    GroupSettings,
    Written,
)
from engine.groups.rebalances import Rebalances
from engine.groups.records import build_offset_record, group_tombstone
from engine.groups.registry import GroupRegistry
from engine.groups.requests import MemberRequest
from engine.groups.states import GroupState
from engine.groups.subscriptions import CONSUMER_PROTOCOL_TYPE
from engine.host.ports import Clock
from engine.host.promise import Promise
from engine.java_text import java_length
from engine.kafka_errors import (
    COORDINATOR_NOT_AVAILABLE,
    GROUP_ID_NOT_FOUND,
    GROUP_SUBSCRIBED_TO_TOPIC,
    ILLEGAL_GENERATION,
    INVALID_COMMIT_OFFSET_SIZE,
    NON_EMPTY_GROUP,
    OFFSET_METADATA_TOO_LARGE,
    REBALANCE_IN_PROGRESS,
)
from engine.limits import TOMBSTONE_BATCH_BYTES_MAX
from engine.model import TopicPartition

#: An error code for each partition.
Codes: TypeAlias = dict[TopicPartition, int]
_NOTHING = CommittedOffset(NO_OFFSET)
#: Base sequence of batches of commits, though they have no producer; other batches have none.
_COMMIT_SEQUENCE = 0


class OffsetCommits:
    """Serves the committed offsets of all groups of one broker."""

    def __init__(
        self,
        registry: GroupRegistry,
        rebalances: Rebalances,
        log: GroupLog,
        settings: GroupSettings,
        clock: Clock,
    ) -> None:
        self._registry = registry
        self._rebalances = rebalances
        self._log = log
        self._settings = settings
        self._clock = clock

    def commit(
        self, request: MemberRequest, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> Promise[Codes]:
        """Commit offsets outside of transactions; promise an error code for each partition.

        The promise is kept once the in-sync replicas have the records. A consumer that assigns its
        partitions itself sends generation −1, which creates the group if necessary.
        """
        code = self._registry.check_served(request.group_id, may_be_empty=True)
        if code:
            return Promise.of(dict.fromkeys(offsets, code))
        group = self._registry.groups.get(request.group_id)
        if group is None:
            if request.generation_id >= 0:
                return Promise.of(dict.fromkeys(offsets, ILLEGAL_GENERATION))
            # The client assigns partitions itself; the group only stores its offsets.
            group = self._registry.add(Group(request.group_id, self._clock.wall_ms()))
        code = self._check_commit(group, request)
        if code:
            return Promise.of(dict.fromkeys(offsets, code))
        return self._append_commit(group, offsets)

    def commit_fast(
        self,
        request: MemberRequest,
        partition: TopicPartition,
        committed: CommittedOffset,
        key: bytes,
        value: bytes,
    ) -> int | Promise[int] | None:
        """Commit one offset as `commit` does, with a record key and value that the caller encoded.

        Returns an error code, or a promise of it if in-sync replicas have to follow. Returns None,
        with nothing done, if this broker does not coordinate the group or the metadata is too long.
        """
        group_id, generation_id, _, _ = request
        _, _, metadata, commit_ms, _ = committed
        registry = self._registry
        group, owned = registry.groups.get(group_id), registry.owned_partition_of(group_id)
        if (
            group is None
            or owned is None
            or (java_length(metadata) if metadata else 0) > self._settings.offset_metadata_max_bytes
        ):
            return None
        if generation_id >= 0 or group.state is not GroupState.EMPTY:
            code = self._check_commit(group, request)
            if code:
                return code
        written = self._log.append_fast(
            owned, key, value, commit_ms, base_sequence=_COMMIT_SEQUENCE
        )
        if isinstance(written, int) and group.state is not GroupState.DEAD:
            group.offsets.complete_commit_fast(partition, committed, written)
            return 0
        group.offsets.prepare({partition: committed})
        if isinstance(written, Promise):
            return written.then(lambda result: _finish_commit(group, partition, committed, result))
        if not isinstance(written, Written):
            written = Written(0, written)
        return _finish_commit(group, partition, committed, written)

    def _check_commit(self, group: Group, request: MemberRequest) -> int:
        """Return 0 if the group accepts a commit of this member and generation, else a code.

        Restarts the session timer of a known member.
        """
        if group.is_in(GroupState.DEAD):
            return COORDINATOR_NOT_AVAILABLE
        if request.generation_id < 0 and group.is_in(GroupState.EMPTY):
            return 0
        # A commit without a member id has the code UNKNOWN_MEMBER_ID here.
        code = group.check_member(request.member_id, request.group_instance_id)
        if code:
            return code
        if request.generation_id != group.generation_id:
            return ILLEGAL_GENERATION
        if not group.is_in(GroupState.EMPTY):
            self._rebalances.restart_session(group, group.members[request.member_id])
        return REBALANCE_IN_PROGRESS if group.is_in(GroupState.COMPLETING_REBALANCE) else 0

    def _append_commit(
        self, group: Group, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> Promise[Codes]:
        """Append the offsets of a checked commit; promise an error code for each partition.

        Those with too long metadata get OFFSET_METADATA_TOO_LARGE and are not appended.
        """
        max_length = self._settings.offset_metadata_max_bytes
        valid = {
            partition: committed
            for partition, committed in offsets.items()
            if java_length(committed.metadata) <= max_length
        }
        codes = {key: OFFSET_METADATA_TOO_LARGE for key in offsets if key not in valid}
        if not valid:
            return Promise.of(codes)
        records = _build_records(group.group_id, valid)
        group.offsets.prepare(valid)
        written = self._log.append(
            self._registry.partition_of(group.group_id), records, base_sequence=_COMMIT_SEQUENCE
        )
        return written.then(lambda result: codes | _finish_commits(group, valid, result))

    def make_group(self, group_id: str) -> None:
        """Add a group without members, unless the group exists.

        A transactional commit needs a group even if its consumer assigns partitions itself. Source:
        GroupCoordinator.handleTxnCommitOffsets.
        """
        if group_id not in self._registry.groups:
            self._registry.add(Group(group_id, self._clock.wall_ms()))

    def commit_in_transaction(
        self,
        request: MemberRequest,
        producer: CommittingProducer,
        offsets: Mapping[TopicPartition, CommittedOffset],
    ) -> Promise[Codes]:
        """Commit offsets in a producer's transaction (TxnOffsetCommit).

        Promises an error code for each partition. The offsets count once the transaction is
        committed; until then the partitions are unstable.
        """
        code = self._registry.check_served(request.group_id)
        if code:
            return Promise.of(dict.fromkeys(offsets, code))
        group = self._registry.groups.get(request.group_id)
        if group is None:
            group = self._registry.add(Group(request.group_id, self._clock.wall_ms()))
        code = _check_in_transaction(group, request)
        if code:
            return Promise.of(dict.fromkeys(offsets, code))
        return self._append_in_transaction(group, producer, offsets)

    def _append_in_transaction(
        self,
        group: Group,
        producer: CommittingProducer,
        offsets: Mapping[TopicPartition, CommittedOffset],
    ) -> Promise[Codes]:
        """Append the offsets of a checked commit as records of the producer's transaction.

        They are undecided until its marker. Promises an error code for each partition.
        """
        max_length = self._settings.offset_metadata_max_bytes
        valid = {
            key: row for key, row in offsets.items() if java_length(row.metadata) <= max_length
        }
        codes = {key: OFFSET_METADATA_TOO_LARGE for key in offsets if key not in valid}
        if not valid:
            return Promise.of(codes)
        producer_id, group_id = producer.producer_id, group.group_id
        records = _build_records(group_id, valid)
        group.offsets.prepare_in_transaction(producer_id, valid)
        self._registry.note_open(producer_id, group_id)
        written = self._log.append(
            self._registry.partition_of(group_id),
            records,
            base_sequence=_COMMIT_SEQUENCE,
            producer=producer,
        )

        def stored(result: Written) -> Codes:
            """Note the log offsets of the appended commits, or drop them if the append failed.

            Returns the error code of each partition.
            """
            code = _commit_code(result.error_code)
            for position, (key, committed) in enumerate(valid.items()):
                if code:
                    group.offsets.drop_transactional_commit(producer_id, key, committed)
                else:
                    at = result.base_offset + position
                    group.offsets.note_transactional_append(producer_id, key, committed, at)
            # Do not record anything for a removed group: a new group may have its id.
            is_gone = group.is_in(GroupState.DEAD)
            if not is_gone and not group.offsets.has_pending_of(producer_id):
                self._registry.note_ended(producer_id, group_id)
            return codes | dict.fromkeys(valid, code)

        return written.then(stored)

    def complete_transaction(
        self, producer_id: int, partitions: Collection[int], *, is_commit: bool
    ) -> None:
        """Apply or drop a producer's commits, after its marker was written.

        `partitions` are those of `__consumer_offsets` that got the marker.
        """
        self._registry.end_transaction(producer_id, partitions, is_commit=is_commit)

    def unstable_partitions(
        self, group_id: str, partitions: Iterable[TopicPartition]
    ) -> set[TopicPartition]:
        """Return those of `partitions` with an undecided or unwritten commit of the group."""
        group = self._registry.groups.get(group_id)
        if group is None:
            return set()
        return {partition for partition in partitions if group.offsets.is_unstable(partition)}

    def fetch(
        self, group_id: str, partitions: Iterable[TopicPartition] | None
    ) -> tuple[int, dict[TopicPartition, CommittedOffset]]:
        """Return an error code and the committed offsets of `partitions`, None for all partitions.

        A partition without a commit has the offset −1, also in an unknown group.
        """
        code = self._registry.check_served(group_id, may_be_empty=True)
        if code:
            return code, {}
        group = self._registry.groups.get(group_id)
        if group is None or group.is_in(GroupState.DEAD):
            return 0, dict.fromkeys(partitions or (), _NOTHING)
        if partitions is None:
            return 0, group.offsets.all()
        return 0, {partition: group.offsets.get(partition) or _NOTHING for partition in partitions}

    def delete_offsets(self, group_id: str, partitions: list[TopicPartition]) -> tuple[int, Codes]:
        """Delete committed offsets of topics to which no member subscribes (OffsetDelete).

        Returns the group's error code and one code for each partition; subscribed topics have
        GROUP_SUBSCRIBED_TO_TOPIC.
        """
        code = self._registry.check_served(group_id)
        if code:
            return code, {}
        group = self._registry.groups.get(group_id)
        if group is None or group.is_in(GroupState.DEAD):
            return GROUP_ID_NOT_FOUND, {}
        is_consumer = group.protocol_type == CONSUMER_PROTOCOL_TYPE
        if not group.is_in(GroupState.EMPTY) and not is_consumer:
            return NON_EMPTY_GROUP, {}
        consumed = _consumed_partitions(group, partitions)
        codes = dict.fromkeys(consumed, GROUP_SUBSCRIBED_TO_TOPIC)
        free = [partition for partition in partitions if partition not in codes]
        if free:
            # `remove_offsets` deletes a group without offsets; an empty request must not.
            self.remove_offsets(group, free)
        return 0, codes | dict.fromkeys(free, 0)

    def end(self, group: Group) -> None:
        """Delete a group without members and all its offsets, and write the tombstones."""
        self.remove_offsets(group, group.offsets.known(), ends_group=True)

    def remove_offsets(
        self, group: Group, partitions: Iterable[TopicPartition], *, ends_group: bool = False
    ) -> None:
        """Delete offsets and write their tombstones.

        Delete the group if it is Empty without offsets.

        `ends_group` deletes the group in any case. Tombstones have acks=1, and no call waits for
        them: an offset whose tombstone is lost expires again.

        Source: GroupMetadataManager.cleanupGroupMetadata of 3.9.1.
        Differs: Kafka writes no tombstone for a partition that has only pending commits, and none
        at all if one batch cannot hold them: the offsets count again once the log is loaded.
        """
        known = [key for key in partitions if group.offsets.is_known(key)]
        group.offsets.remove_offsets(known)
        records = [build_offset_record(group.group_id, partition, None) for partition in known]
        if ends_group or (group.is_in(GroupState.EMPTY) and group.offsets.is_empty):
            group.transition_to(GroupState.DEAD, self._clock.wall_ms())
            self._registry.remove(group)
            # Without a generation there is no record of the group itself.
            records += [group_tombstone(group.group_id)] * (group.generation_id > 0)
        left = iter(known)
        for batch in _iter_tombstone_batches(records):
            partition = self._registry.partition_of(group.group_id)
            written = self._log.append(partition, batch, is_awaited=False)
            written.then(partial(_remove_offsets, group, list(islice(left, len(batch)))))


def _build_records(
    group_id: str, offsets: Mapping[TopicPartition, CommittedOffset]
) -> list[GroupRecord]:
    """Return the records of a group's commits; raises WireError if one cannot be encoded."""
    return [build_offset_record(group_id, key, committed) for key, committed in offsets.items()]


def _consumed_partitions(
    group: Group, partitions: Iterable[TopicPartition]
) -> list[TopicPartition]:
    """Return those of `partitions` whose topic a member subscribes to.

    All of them if the subscriptions of the members are unknown.
    """
    if group.is_in(GroupState.EMPTY):
        return []
    topics = group.subscribed_topics
    return [key for key in partitions if topics is None or key.topic in topics]


def _finish_commits(
    group: Group, offsets: Mapping[TopicPartition, CommittedOffset], result: Written
) -> Codes:
    """Apply the commits of one append, or drop them if it failed.

    Returns the client's error code for each partition.
    """
    error_code, base_offset = result
    code = _commit_code(error_code)
    for position, (partition, committed) in enumerate(offsets.items()):
        written = Written(error_code, base_offset + position)
        _finish_commit(group, partition, committed, written)
    return dict.fromkeys(offsets, code)


def _finish_commit(
    group: Group, partition: TopicPartition, committed: CommittedOffset, result: Written
) -> int:
    """Apply one commit whose append succeeded, or drop it after an error.

    Returns the client's error code. Does nothing if the group was removed meanwhile.
    """
    code = _commit_code(result.error_code) if result.error_code else 0
    if group.is_in(GroupState.DEAD):
        return code
    if code:
        group.offsets.drop_commit(partition, committed)
    else:
        group.offsets.complete_commit(partition, committed, result.base_offset)
    return code


def _iter_tombstone_batches(tombstones: Iterable[GroupRecord]) -> Iterator[list[GroupRecord]]:
    """Yield the tombstones in order, in batches that fit into one append.

    Each has at most TOMBSTONE_BATCH_BYTES_MAX bytes of keys, or a single tombstone.
    """
    batch: list[GroupRecord] = []
    left_bytes = TOMBSTONE_BATCH_BYTES_MAX
    for tombstone in tombstones:
        left_bytes -= len(tombstone.key)
        if batch and left_bytes < 0:
            yield batch
            batch, left_bytes = [], TOMBSTONE_BATCH_BYTES_MAX - len(tombstone.key)
        batch.append(tombstone)
    if batch:
        yield batch


def _remove_offsets(group: Group, partitions: list[TopicPartition], result: Written) -> None:
    """Remove the offsets of `partitions` that are in the log before their tombstones.

    `result` is that of the append. A `base_offset` of −1 means that no tombstone was appended:
    the commits count. An error with a base offset means only that replicas lag.
    """
    if result.base_offset < 0:
        return
    for position, partition in enumerate(partitions):
        group.offsets.remove_before(partition, result.base_offset + position)


def _commit_code(code: int) -> int:
    """Return the client's error code for the code of the append, 0 if it succeeded."""
    return INVALID_COMMIT_OFFSET_SIZE if code in TOO_LARGE else LOG_ERRORS.get(code, code)


def _check_in_transaction(group: Group, request: MemberRequest) -> int:
    """Return 0 if the group accepts a transactional commit, else the error code.

    A producer that names no member and no generation is always accepted (before KIP-447).

    Source: GroupCoordinator.validateOffsetCommit of 3.9.1.
    """
    if group.is_in(GroupState.DEAD):
        return COORDINATOR_NOT_AVAILABLE
    if request.generation_id < 0 and group.is_in(GroupState.EMPTY):
        return 0
    names_member = (
        request.generation_id >= 0
        or request.member_id != UNKNOWN_MEMBER
        or request.group_instance_id is not None
    )
    if not names_member:
        return 0
    code = group.check_member(request.member_id, request.group_instance_id)
    if code:
        return code
    return 0 if request.generation_id == group.generation_id else ILLEGAL_GENERATION
