"""The group or transaction state that the log of a coordinator partition allows (rule G3).

```
 0 ──────────── start of the leader's epoch ──────────── end of its log
   loaded: the last record of each key is valid     later: each record of a key may be valid
```

A coordinator's state of a key is that of the key's last record before its epoch, or of any later
record: a failed write may be in the log while the coordinator keeps the former state, in Kafka too.

Source: GroupMetadataManager.doLoadGroupsAndOffsets, TransactionStateManager.loadTransactionMetadata
of 3.9.1.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from engine.groups.group import Group
from engine.groups.ports import GroupRecord
from engine.groups.records import decode_group_record, is_group, is_offset, parse_committed
from engine.model import TopicPartition
from engine.records.batch import BatchView
from engine.records.control import ControlType, parse_marker
from engine.transactions.records import TransactionRecord, decode_transaction_record
from engine.transactions.transaction import Transaction
from engine.wire import messages

#: A group and a partition that it has committed an offset of.
_Key = tuple[str, TopicPartition]


class _Offset(NamedTuple):
    offset: int
    #: Offset of the record in the log of `__consumer_offsets`.
    log_offset: int


class GroupFold:
    """The group state of one partition of `__consumer_offsets`."""

    def __init__(self) -> None:
        """Create the state before the partition's first record."""
        #: Committed offsets at the start of the leader's epoch.
        self.offsets: dict[_Key, _Offset] = {}
        #: Generation of each group at the start of the leader's epoch.
        self.generations: dict[str, int] = {}
        #: Offsets written since, each of which may be valid; None for a deletion.
        self._later: dict[_Key, set[int | None]] = {}
        #: Groups with a tombstone since the start of the leader's epoch.
        self._ended: set[str] = set()
        #: Offsets in open transactions, by producer id.
        self._open: dict[int, list[tuple[_Key, _Offset]]] = {}
        #: Whether the leader has begun: later records may or may not be in its memory.
        self._has_leader = False

    def on_leader_epoch(self) -> None:
        """Treat the records from here on as alternatives, as the leader's epoch starts here.

        The new leader may have applied each of them or not.
        """
        self._has_leader = True
        for pending in self._open.values():
            for key, committed in pending:
                self._later.setdefault(key, set()).add(committed.offset)

    def take(self, batches: Iterable[BatchView]) -> None:
        """Apply the next batches of the log of `__consumer_offsets`."""
        for batch in batches:
            if batch.is_control:
                self._end(batch)
                continue
            for record in batch.records():
                pair = GroupRecord(bytes(record.key or b""), _copy_bytes(record.value))
                producer_id = batch.producer_id if batch.is_transactional else None
                self._apply_record(record.offset, pair, producer_id)

    def _apply_record(self, log_offset: int, record: GroupRecord, producer_id: int | None) -> None:
        """Apply one record of `__consumer_offsets`: an offset or a group's metadata.

        Offsets of a transaction are kept until its marker. Offsets after the start of the leader's
        epoch are collected as alternatives, since each of them may be valid.
        """
        decoded = decode_group_record(record)
        if is_offset(decoded):
            key = decoded.key.group, TopicPartition(decoded.key.topic, decoded.key.partition)
            offset = None if decoded.value is None else parse_committed(decoded).offset
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
        """Apply the offsets of a transaction at its commit marker, unless newer ones are committed.

        Discard them on abort.
        """
        (record,) = batch.records()
        is_commit = parse_marker(record).control_type is ControlType.COMMIT
        for key, committed in self._open.pop(batch.producer_id, ()):
            known = self.offsets.get(key)
            is_newer = known is None or known.log_offset < committed.log_offset
            if is_commit and is_newer and not self._has_leader:
                self.offsets[key] = committed

    def group_ids(self) -> set[str]:
        """Return the groups at the start of the leader's epoch, without those that ended since."""
        return {*self.generations, *(group_id for group_id, _ in self.offsets)} - self._ended

    def fault_of(self, group_id: str, group: Group | None) -> str:
        """Return as text how a coordinator's group contradicts the log; empty if it does not."""
        keys = sorted({*self.offsets, *self._later}, key=str)
        for key in (key for key in keys if key[0] == group_id):
            committed = None if group is None else group.offsets.get(key[1])
            known = None if committed is None else committed.offset
            loaded = self.offsets.get(key)
            allowed = {None if loaded is None else loaded.offset, *self._later.get(key, ())}
            if known not in allowed:
                return f"{key[1]} at {known}, its log has {sorted(map(str, allowed))}"
        # A group that has ended since may have been created again.
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
    """The transaction state of one partition of `__transaction_state`."""

    def __init__(self) -> None:
        """Create the state before the partition's first record."""
        #: State of each transactional id at the start of the leader's epoch.
        self.states: dict[str, _State] = {}
        #: States written since, each of which may be valid; None for a deletion.
        self._later: dict[str, set[_State | None]] = {}
        #: Whether the leader has begun: later records may or may not be in its memory.
        self._has_leader = False

    def on_leader_epoch(self) -> None:
        """Treat the records from here on as alternatives, as the leader's epoch starts here.

        The new leader may have applied each of them or not.
        """
        self._has_leader = True

    def take(self, batches: Iterable[BatchView]) -> None:
        """Apply the next batches of the log of `__transaction_state`."""
        for batch in batches:
            for record in () if batch.is_control else batch.records():
                pair = TransactionRecord(bytes(record.key or b""), _copy_bytes(record.value))
                transactional_id, transaction = decode_transaction_record(pair)
                state = None if transaction is None else _state_of(transaction)
                if self._has_leader:
                    self._later.setdefault(transactional_id, set()).add(state)
                elif state is None:
                    self.states.pop(transactional_id, None)
                else:
                    self.states[transactional_id] = state

    def transactional_ids(self) -> set[str]:
        """Return the transactional ids in the log."""
        return {*self.states, *self._later}

    def fault_of(self, transactional_id: str, transaction: Transaction | None) -> str:
        """Return as text how a coordinator's transaction contradicts the log; empty if it does not.

        A fencing epoch is in memory before it is written, and therefore excused.
        """
        allowed = {self.states.get(transactional_id), *self._later.get(transactional_id, ())}
        if transaction is None:
            return "" if None in allowed else f"nothing, its log has {sorted(map(str, allowed))}"
        if transaction.pending_state is not None or transaction.has_failed_epoch_fence:
            return ""
        if transaction.producer_epoch < 0:
            # A new transactional id whose first record could not be written.
            return ""
        known = _state_of(transaction)
        return "" if known in allowed else f"{known}, its log has {sorted(map(str, allowed))}"


def _state_of(transaction: Transaction) -> _State:
    """Return the part of a transaction that must agree between log and coordinator."""
    return _State(transaction.producer_id, transaction.producer_epoch, transaction.state.name)


def _copy_bytes(value: bytes | memoryview | None) -> bytes | None:
    """Copy bytes out of a batch's memory; None stays None."""
    return None if value is None else bytes(value)
