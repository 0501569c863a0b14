"""Clients that consume, transform and produce in transactions, as members of a group.

```
InitProducerId ──> JoinGroup, SyncGroup ──> OffsetFetch (stable) ──> Fetch ──┐
      ^                   ^                                                  v
      │                   └── another generation ── AddPartitionsToTxn, Produce,
      └── fenced, crashed ───────────────────────── AddOffsetsToTxn, TxnOffsetCommit, EndTxn
```

1. A copier resumes at its group's committed offset, once no open transaction may change it.
2. Each transaction copies records of one partition that plain producers wrote, one for one, to one
   or two partitions, and commits the offset after them with its member id and generation.
3. A copier that is no longer in the group's generation aborts and joins again: another copier may
   already copy the same records.
4. A copier that pauses in a transaction may have lost its partitions when it continues: either its
   offsets are rejected, or the next copier waits for the end of its transaction.
5. When an instance crashes, it may or may not still be a group member as the next one starts.

Source: KIP-447; `Producer.sendOffsetsToTransaction` of 3.9.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import NamedTuple, Protocol

from engine.client.connection import Call
from engine.client.settings import Address
from engine.errors import EngineError
from engine.host.promise import Promise
from engine.kafka_errors import NONE, OFFSET_OUT_OF_RANGE, UNKNOWN_MEMBER_ID
from engine.model import TopicPartition
from engine.sim.clients import BACKOFF_MS, ClusterRequests
from engine.sim.memberships import (
    HEARTBEAT_MS,
    REJOINS,
    GroupRequests,
    Membership,
    MembershipEvents,
)
from engine.sim.records import batches
from engine.sim.sent_transactions import (
    Copied,
    Ids,
    SentOutcome,
    SentTransaction,
    TransactorEvents,
)
from engine.sim.transaction_requests import InstanceEnds, TransactionRequests
from engine.wire import messages

#: Probabilities that an instance crashes in a transaction, and that it aborts one.
_CRASH_SHARE, _ABORT_SHARE = 0.12, 0.15
#: Probabilities that a crashed instance is no longer a member at the next start, and that a member
#: leaves.
_VANISH_SHARE, _LEAVE_SHARE = 0.5, 0.03
#: The session time-out: often shorter than a transaction with a pause (step 4).
_SESSION_TIMEOUT_MS = 1_500
_STILL_SHARE, _STILL_MS = 0.15, (1_000, 3_500)
_FETCH_BYTES_MAX = 1_000
_FETCH_WAIT_MS = 100
#: The last Fetch version that has topic names instead of ids.
_FETCH_BY_NAME_HIGHEST = 12


class CopierEvents(MembershipEvents, TransactorEvents, Protocol):
    """Receives the events of copiers: the offsets at which they resume."""

    def resumes(self, group_id: str) -> Mapping[TopicPartition, int]:
        """Return, for each partition, the smallest offset that a copier may find committed now."""
        ...

    def check_resume(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, int],
        floors: Mapping[TopicPartition, int],
        host: str,
    ) -> None:
        """Check the committed offsets at which a copier resumes, which broker `host` returned.

        `floors` is the result of `resumes` before the request.
        """
        ...

    def start_of(self, partition: TopicPartition) -> int:
        """Return the offset below which old records may have been deleted."""
        ...

    def resume_at(self, partition: TopicPartition, position: int) -> int | None:
        """Return the offset at which a copier resumes that has read lost records.

        None if it has read none.
        """
        ...


class _Place:
    """A copier's position in a partition: the committed offset, and the next offset to read."""

    __slots__ = ("committed", "position")

    def __init__(self, committed: int) -> None:
        self.committed = self.position = committed


class _Fetched(NamedTuple):
    """The number of records of plain producers to copy, and the offset after the last one read."""

    record_count: int
    next_offset: int


class Copier:
    """Successive instances of one transactional id, each a member of the group."""

    def __init__(
        self,
        requests: ClusterRequests,
        group: GroupRequests,
        transactional_id: str,
        partitions: Sequence[TopicPartition],
        random: Random,
        events: CopierEvents,
    ) -> None:
        """Create a copier; `run` works until `finish` is called, then sets `is_done`."""
        self.name = requests.name
        #: Whether the copier has ended, and has no open transaction.
        self.is_done = False
        self._requests = requests
        self._group = group
        self._membership = Membership(
            group, partitions, events, session_timeout_ms=_SESSION_TIMEOUT_MS
        )
        topics = sorted({partition.topic for partition in partitions})
        self._transactions = TransactionRequests(requests, transactional_id, topics, random, events)
        self._topics = topics
        self._partitions = list(partitions)
        self._random = random
        self._events = events
        #: Number of the next copied record, which identifies it in the rules.
        self._next_number = 0
        self._is_finishing = False

    def finish(self) -> None:
        """Begin no more transactions; an open one is completed."""
        self._is_finishing = True

    async def run(self) -> None:
        """Run instances until `finish`."""
        while not self._is_finishing:
            try:
                ids = await self._transactions.init_ids()
                while not self._is_finishing:
                    await self._be_member(ids)
            except InstanceEnds as end:
                self._events.record(self.name, f"an instance ends: {end.why}")
                if self._draws(_VANISH_SHARE):
                    self._membership.forget()
                await self._group.pause(self._random.randrange(1, 2 * _SESSION_TIMEOUT_MS))
        if self._membership.member_id and self._draws(0.5):
            await self._membership.leave()
        if self._draws(0.5):
            await self._transactions.init_ids()
        self.is_done = True

    def _draws(self, share: float) -> bool:
        """Return True with the probability `share`."""
        return self._random.random() < share

    # One generation

    async def _be_member(self, ids: Ids) -> None:
        """Join the group, and copy until the generation ends; raises InstanceEnds."""
        assigned = await self._membership.join()
        if assigned is None:
            return
        places = await self._find_places(assigned)
        while places is not None and not self._is_finishing:
            await self._group.pause(self._random.randrange(1, HEARTBEAT_MS))
            if self._draws(_LEAVE_SHARE):
                await self._membership.leave()
                self._membership.forget()
                return
            code = await self._membership.heartbeat()
            if code in REJOINS:
                self._forget_if_unknown(code)
                return
            if not assigned:
                continue
            partition = self._random.choice(assigned)
            if not await self._copy(ids, partition, places[partition]):
                return

    def _forget_if_unknown(self, code: int | None) -> None:
        """Forget the member id on UNKNOWN_MEMBER_ID: the next join is that of a new member."""
        if code == UNKNOWN_MEMBER_ID:
            self._membership.forget()

    async def _find_places(
        self, assigned: Sequence[TopicPartition]
    ) -> dict[TopicPartition, _Place] | None:
        """Return the offset to copy from, by partition.

        None if the member must join again or finish.
        """
        while not self._is_finishing:
            places = await self._fetch_places(assigned) if assigned else {}
            if places is not None:
                return places
            await self._group.pause(BACKOFF_MS)
            code = await self._membership.heartbeat()
            if code in REJOINS:
                self._forget_if_unknown(code)
                return None
        return None

    async def _fetch_places(
        self, assigned: Sequence[TopicPartition]
    ) -> dict[TopicPartition, _Place] | None:
        """Fetch the group's committed offsets to resume at; 0 for a partition without one.

        Return None if the request failed or a transaction with offsets is pending.
        """
        topic = messages.OffsetFetchRequest.OffsetFetchRequestTopic
        indexes: dict[str, list[int]] = {}
        for partition in assigned:
            indexes.setdefault(partition.topic, []).append(partition.partition)
        request = messages.OffsetFetchRequest(
            group_id=self._group.group_id,
            topics=[topic(name=name, partition_indexes=at) for name, at in indexes.items()],
            require_stable=True,
        )
        floors = self._events.resumes(self._group.group_id)
        response = await self._group.send("OffsetFetch", request, 7)
        coordinator = self._group.coordinator
        if response is None or coordinator is None:
            return None
        rows = {
            TopicPartition(of.name, row.partition_index): row
            for of in response.topics
            for row in of.partitions
        }
        if response.error_code != NONE or any(row.error_code != NONE for row in rows.values()):
            if response.error_code != NONE:
                self._group.forget_coordinator()
            return None
        offsets = {key: max(row.committed_offset, 0) for key, row in rows.items()}
        self._events.check_resume(self._group.group_id, offsets, floors, coordinator.host)
        return {key: _Place(offset) for key, offset in offsets.items()}

    # One transaction

    async def _copy(self, ids: Ids, partition: TopicPartition, place: _Place) -> bool:
        """Copy the next records of a partition in a transaction; return True to continue.

        False if the member must join its group again.
        """
        fetched = await self._fetch(partition, place)
        if fetched is None:
            return True
        if not fetched.record_count:
            place.position = fetched.next_offset
            return True
        transaction = SentTransaction(f"{self.name}@{self._next_number}", *ids)
        transaction.copied = Copied(
            self._group.group_id, partition, place.committed, fetched.next_offset
        )
        self._events.record_begin(transaction)
        try:
            is_committed = await self._transact(ids, transaction, fetched)
        except InstanceEnds:
            if transaction.outcome is SentOutcome.OPEN:
                transaction.outcome = SentOutcome.ABORTED
            raise
        if is_committed:
            place.committed = place.position = fetched.next_offset
        return is_committed is not None

    async def _transact(
        self, ids: Ids, transaction: SentTransaction, fetched: _Fetched
    ) -> bool | None:
        """Copy the fetched records in one transaction; return True if it was committed.

        None means that the member is no longer in the group's generation.
        """
        crashes = self._draws(_CRASH_SHARE)
        for output in self._random.sample(self._partitions, k=min(2, len(self._partitions))):
            numbers = range(self._next_number, self._next_number + fetched.record_count)
            self._next_number += fetched.record_count
            await self._transactions.add_partition(ids, output)
            if not await self._transactions.produce(ids, transaction, output, numbers):
                await self._transactions.end(ids, transaction, is_commit=False)
                raise InstanceEnds("it gave a batch up")
            if crashes and self._draws(0.3):
                raise InstanceEnds("it crashes in a transaction")
            if self._draws(0.5):
                break
        assert transaction.copied is not None
        await self._pause_at_random()
        await self._transactions.add_offsets(ids, transaction.copied.group_id)
        code = await self._commit_offset(ids, transaction.copied)
        if code != NONE:
            await self._transactions.end(ids, transaction, is_commit=False)
            self._forget_if_unknown(code)
            return None
        if crashes:
            raise InstanceEnds("it crashes before the end of a transaction")
        await self._pause_at_random()
        is_commit = not self._draws(_ABORT_SHARE)
        await self._transactions.end(ids, transaction, is_commit=is_commit)
        return is_commit

    async def _pause_at_random(self) -> None:
        """Pause at random, like a process that gets no processor time (step 4)."""
        if self._draws(_STILL_SHARE):
            await self._group.pause(self._random.randrange(*_STILL_MS))

    async def _commit_offset(self, ids: Ids, copied: Copied) -> int:
        """Send TxnOffsetCommit until it has a final response; return NONE or a code to join again.

        Raises InstanceEnds if the instance is fenced.
        """
        of = messages.TxnOffsetCommitRequest
        row = of.TxnOffsetCommitRequestPartition(
            partition_index=copied.partition.partition,
            committed_offset=copied.next_offset,
            committed_metadata="",
        )
        request = of(
            transactional_id=self._transactions.transactional_id,
            group_id=copied.group_id,
            producer_id=ids.producer_id,
            producer_epoch=ids.producer_epoch,
            generation_id=self._membership.generation_id,
            member_id=self._membership.member_id,
            topics=[of.TxnOffsetCommitRequestTopic(name=copied.partition.topic, partitions=[row])],
        )
        while True:
            response = await self._group.send("TxnOffsetCommit", request, 3)
            if response is not None:
                ((code,),) = (
                    [int(p.error_code) for p in topic.partitions] for topic in response.topics
                )
                if code == NONE or code in REJOINS:
                    return code
                self._transactions.check("TxnOffsetCommit", code)
                self._group.forget_coordinator()
            await self._group.pause(BACKOFF_MS)

    # Reading

    async def _fetch(self, partition: TopicPartition, place: _Place) -> _Fetched | None:
        """Return the number of records of a partition from the copier's position on, and their end.

        None if there are none yet, or the request failed.
        """
        leader = self._requests.leaders.get(partition)
        row = None if leader is None else await self._fetch_from(leader, partition, place)
        if row is not None and row.error_code == NONE:
            record_count, next_offset = 0, place.position
            for batch in batches(bytes(row.records or b"")):
                next_offset = batch.last_offset + 1
                if not batch.is_transactional and not batch.is_control:
                    record_count += sum(it.offset >= place.position for it in batch.records())
            return None if next_offset <= place.position else _Fetched(record_count, next_offset)
        if row is not None and row.error_code == OFFSET_OUT_OF_RANGE:
            start, after_loss = (
                self._events.start_of(partition),
                self._events.resume_at(partition, place.position),
            )
            place.position = max(place.position, start) if after_loss is None else after_loss
        found: Promise[None] = Promise()
        self._requests.find_leaders(self._topics, lambda: found.keep(None))
        await found
        return None

    async def _fetch_from(
        self, leader: Address, partition: TopicPartition, place: _Place
    ) -> messages.FetchResponse.PartitionData | None:
        """Fetch one partition with read_committed; None if the request failed."""
        request = messages.FetchRequest
        row = request.FetchPartition(
            partition=partition.partition,
            current_leader_epoch=-1,
            fetch_offset=place.position,
            last_fetched_epoch=-1,
            log_start_offset=-1,
            partition_max_bytes=_FETCH_BYTES_MAX,
        )
        message = request(
            replica_id=-1,
            max_wait_ms=_FETCH_WAIT_MS,
            min_bytes=1,
            max_bytes=_FETCH_BYTES_MAX,
            isolation_level=1,
            session_id=0,
            session_epoch=-1,
            topics=[request.FetchTopic(topic=partition.topic, partitions=[row])],
        )
        call = Call("Fetch", message, highest=_FETCH_BY_NAME_HIGHEST)
        try:
            response = (await self._requests.send(leader, call)).message
        except EngineError as error:
            self._events.record(self.name, f"{partition}: {error}")
            return None
        if response.error_code != NONE or not response.responses:
            return None
        (topic,) = response.responses
        found: messages.FetchResponse.PartitionData
        (found,) = topic.partitions
        return found
