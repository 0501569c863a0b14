"""Group and transaction state by the records of one partition of a coordinator's topic (G3).

```
 0 ──────────── start of the leader's epoch ──────────── end of its log
   loaded: the last record of each key counts    written since: each of them may count by now
```

The state in a coordinator comes from the last record of a key before its epoch, or from a later
one: a write that failed may be in the log while its coordinator goes on with the former state, in
Kafka too.

Source: GroupMetadataManager.doLoadGroupsAndOffsets, TransactionStateManager.loadTransactionMetadata
of 3.9.1.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from engine.groups.group import Group
from engine.groups.ports import GroupRecord
from engine.groups.records import committed_of, decode_group_record, is_group, is_offset
from engine.model import TopicPartition
from engine.records.batch import BatchView
from engine.records.control import ControlType, end_transaction_marker
from engine.transactions.records import TransactionRecord, decode_transaction_record
from engine.transactions.transaction import Transaction
from engine.wire import messages

#: A group and a partition that it has committed an offset of.
_Key = tuple[str, TopicPartition]


class _Offset(NamedTuple):
    offset: int
    #: Where it was written.
    log_offset: int


class GroupFold:
    """One partition of `__consumer_offsets`."""

    def __init__(self) -> None:
        """Begin before the first record of the partition."""
        #: Committed offsets when the present leader began.
        self.offsets: dict[_Key, _Offset] = {}
        #: Generation of each group when the present leader began.
        self.generations: dict[str, int] = {}
        #: Offsets that may have been committed since, None for a deletion.
        self._later: dict[_Key, set[int | None]] = {}
        #: Groups that have ended since the leader began.
        self._ended: set[str] = set()
        #: Commits of open transactions, by producer id.
        self._open: dict[int, list[tuple[_Key, _Offset]]] = {}
        #: Whether the leader has begun: later records may or may not be in its memory.
        self._has_leader = False

    def leader_began(self) -> None:
        """Collect later records as alternatives: the leader may have applied each or not."""
        self._has_leader = True
        for pending in self._open.values():
            for key, committed in pending:
                self._later.setdefault(key, set()).add(committed.offset)

    def take(self, batches: Iterable[BatchView]) -> None:
        """Read on."""
        for batch in batches:
            if batch.is_control:
                self._end(batch)
                continue
            for record in batch.records():
                pair = GroupRecord(bytes(record.key or b""), _bytes(record.value))
                producer_id = batch.producer_id if batch.is_transactional else None
                self._apply_record(record.offset, pair, producer_id)

    def _apply_record(self, log_offset: int, record: GroupRecord, producer_id: int | None) -> None:
        """Apply one record of `__consumer_offsets`: an offset or a group's metadata.

        Offsets of a transaction wait for its marker. Offsets after the start of the leader's epoch
        are collected as alternatives, since each of them may be in effect.
        """
        decoded = decode_group_record(record)
        if is_offset(decoded):
            key = decoded.key.group, TopicPartition(decoded.key.topic, decoded.key.partition)
            offset = None if decoded.value is None else committed_of(decoded).offset
            if self._has_leader:
                self._later.setdefault(key, set()).add(offset)
            elif offset is None:
                self.offsets.pop(key, None)
            elif producer_id is None:
                self.offsets[key] = _Offset(offset, log_offset)
            else:
                pending = self._open.setdefault(producer_id, [])
                pending.append((key, _Offset(offset, log_offset)))
        elif is_group(decoded):
            self._apply_group(decoded.key.group, decoded.value)

    def _apply_group(self, group_id: str, value: object) -> None:
        """Apply a group's record from before the leader's epoch; of later ones only tombstones."""
        if isinstance(value, messages.GroupMetadataValue):
            if not self._has_leader:
                self.generations[group_id] = value.generation
        elif self._has_leader:
            self._ended.add(group_id)
        else:
            self.generations.pop(group_id, None)

    def _end(self, batch: BatchView) -> None:
        """Apply the offsets of an ended transaction if it committed, and if they are newer."""
        (record,) = batch.records()
        is_commit = end_transaction_marker(record).control_type is ControlType.COMMIT
        for key, committed in self._open.pop(batch.producer_id, ()):
            known = self.offsets.get(key)
            is_newer = known is None or known.log_offset < committed.log_offset
            if is_commit and is_newer and not self._has_leader:
                self.offsets[key] = committed

    def group_ids(self) -> set[str]:
        """Return the groups that there are as the leader begins."""
        return {*self.generations, *(group_id for group_id, _ in self.offsets)} - self._ended

    def fault_of(self, group_id: str, group: Group | None) -> str:
        """Return in words why a coordinator cannot know this of a group; empty if it can."""
        keys = sorted({*self.offsets, *self._later}, key=str)
        for key in (key for key in keys if key[0] == group_id):
            committed = None if group is None else group.offsets.get(key[1])
            known = None if committed is None else committed.offset
            loaded = self.offsets.get(key)
            allowed = {None if loaded is None else loaded.offset, *self._later.get(key, ())}
            if known not in allowed:
                return f"{key[1]} at {known}, its log has {sorted(map(str, allowed))}"
        # A group that has ended since may have begun again.
        generation = 0 if group_id in self._ended else self.generations.get(group_id, 0)
        if group is not None and group.generation_id < generation:
            return f"generation {group.generation_id}, its log has {generation}"
        if group is not None:
            listed = {partition for of_group, partition in keys if of_group == group_id}
            if unknown := sorted(set(group.offsets.all()) - listed):
                return f"{unknown[0]}, of which its log has nothing"
        return "" if group is not None or group_id not in self.group_ids() else "nothing"


class _State(NamedTuple):
    producer_id: int
    producer_epoch: int
    state: str


class TransactionFold:
    """One partition of `__transaction_state`."""

    def __init__(self) -> None:
        """Begin before the first record of the partition."""
        #: State of each transactional id when the present leader began.
        self.states: dict[str, _State] = {}
        #: States that may have been written since, None for a deletion.
        self._later: dict[str, set[_State | None]] = {}
        #: Whether the leader has begun: later records may or may not be in its memory.
        self._has_leader = False

    def leader_began(self) -> None:
        """Take what comes from now on for written by the leader."""
        self._has_leader = True

    def take(self, batches: Iterable[BatchView]) -> None:
        """Read on."""
        for batch in batches:
            for record in () if batch.is_control else batch.records():
                pair = TransactionRecord(bytes(record.key or b""), _bytes(record.value))
                transactional_id, transaction = decode_transaction_record(pair)
                state = None if transaction is None else _state_of(transaction)
                if self._has_leader:
                    self._later.setdefault(transactional_id, set()).add(state)
                elif state is None:
                    self.states.pop(transactional_id, None)
                else:
                    self.states[transactional_id] = state

    def transactional_ids(self) -> set[str]:
        """Return the ids that the log names."""
        return {*self.states, *self._later}

    def fault_of(self, transactional_id: str, transaction: Transaction | None) -> str:
        """Return why a coordinator's state of an id contradicts its log, as text; empty if not.

        An epoch that fences is in memory before it is written.
        """
        allowed = {self.states.get(transactional_id), *self._later.get(transactional_id, ())}
        if transaction is None:
            return "" if None in allowed else f"nothing, its log has {sorted(map(str, allowed))}"
        if transaction.pending_state is not None or transaction.has_failed_epoch_fence:
            return ""
        if transaction.producer_epoch < 0:
            # A new id whose first record failed.
            return ""
        known = _state_of(transaction)
        return "" if known in allowed else f"{known}, its log has {sorted(map(str, allowed))}"


def _state_of(transaction: Transaction) -> _State:
    """Return the part of a transaction that its log and its coordinator must agree on."""
    return _State(transaction.producer_id, transaction.producer_epoch, transaction.state.name)


def _bytes(value: bytes | memoryview | None) -> bytes | None:
    """Copy content out of its batch's memory; null stays None."""
    return None if value is None else bytes(value)
