"""What a coordinator may know of groups and transactional ids, by its log."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from engine.groups.group import Group
from engine.groups.group_offsets import CommittedOffset
from engine.groups.ports import GroupRecord
from engine.groups.records import build_group_record, build_offset_record, group_tombstone
from engine.model import TopicPartition
from engine.records.batch import BatchView
from engine.records.builder import BatchBuilder, BatchSettings
from engine.records.control import ControlType, EndTransactionMarker, build_marker
from engine.sim.coordinator_folds import GroupFold, TransactionFold
from engine.sim.records import batches
from engine.transactions.records import (
    TransactionRecord,
    build_record,
    transaction_tombstone,
)
from engine.transactions.states import TransactionState
from engine.transactions.transaction import Transaction, Transition

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
COMMIT, ABORT = ControlType.COMMIT, ControlType.ABORT
EMPTY = Transition(TransactionState.EMPTY, 7, 0, -1, 4_000, (), -1, 1_000)
ONGOING = EMPTY._replace(state=TransactionState.ONGOING, partitions=(T0,), start_ms=1_000)
NEXT = EMPTY._replace(producer_epoch=1)


def batch(
    records: Iterable[GroupRecord | TransactionRecord], *, base: int, producer_id: int = -1
) -> Iterable[BatchView]:
    """Return a batch of records; those of a producer are in its transaction."""
    settings = BatchSettings(base_offset=base)
    if producer_id >= 0:
        settings = BatchSettings(
            base_offset=base,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            is_transactional=True,
        )
    builder = BatchBuilder(settings)
    for record in records:
        builder.append(0, record.key, record.value)
    return batches(bytes(builder.build()))


def marker(kind: ControlType, *, base: int) -> Iterable[BatchView]:
    """Return a marker for producer id 7."""
    end = EndTransactionMarker(kind, coordinator_epoch=0)
    content = build_marker(end, producer_id=7, producer_epoch=0, timestamp_ms=0, base_offset=base)
    return batches(bytes(content))


def commit(offset: int | None, partition: TopicPartition = T0) -> GroupRecord:
    """Return the record of an offset, or of its end."""
    return build_offset_record("g", partition, None if offset is None else CommittedOffset(offset))


def group(offset: int | None = None, *, generation_id: int = 0) -> Group:
    """Return what a coordinator knows of the group."""
    known = Group("g", 0)
    known.generation_id = generation_id
    if offset is not None:
        known.offsets.put(T0, CommittedOffset(offset), 0)
    return known


def known_transaction(transition: Transition) -> Transaction:
    """Return what a coordinator knows of the id `x`."""
    known = Transaction("x", transition.producer_id, transition.timeout_ms, 0)
    known.state, known.producer_epoch = transition.state, transition.producer_epoch
    return known


def test_the_last_offset_counts_that_the_log_had_as_its_leader_began() -> None:
    fold = GroupFold()
    fold.take(batch([commit(1), commit(2)], base=0))
    fold.on_leader_epoch()
    assert {"g"} == fold.group_ids()
    assert "" == fold.fault_of("g", group(2))
    assert "t-0 at 1, its log has ['2']" == fold.fault_of("g", group(1))
    assert "t-0 at None, its log has ['2']" == fold.fault_of("g", group())
    assert "t-0 at None, its log has ['2']" == fold.fault_of("g", None)


def test_what_was_written_since_may_count_or_have_failed() -> None:
    fold = GroupFold()
    fold.take(batch([commit(2)], base=0))
    fold.on_leader_epoch()
    fold.take(batch([commit(3), commit(None)], base=1))
    for offset in (2, 3, None):
        assert "" == fold.fault_of("g", group(offset))
    assert fold.fault_of("g", group(4))


def test_an_offset_that_was_deleted_is_not_there() -> None:
    fold = GroupFold()
    fold.take(batch([commit(2), commit(None)], base=0))
    fold.on_leader_epoch()
    assert set() == fold.group_ids()
    assert "" == fold.fault_of("g", None)
    assert fold.fault_of("g", group(2))


def test_of_a_partition_without_a_record_nothing_is_committed() -> None:
    fold = GroupFold()
    fold.take(batch([commit(2, T1)], base=0))
    known = group(2)
    known.offsets.put(T1, CommittedOffset(2), 0)
    assert "t-0, of which its log has nothing" == fold.fault_of("g", known)


@pytest.mark.parametrize(("kind", "offset"), [(COMMIT, 5), (ABORT, 2)])
def test_the_offset_of_a_transaction_counts_if_it_is_committed(
    kind: ControlType, offset: int
) -> None:
    fold = GroupFold()
    fold.take(batch([commit(2)], base=0))
    fold.take(batch([commit(5)], base=1, producer_id=7))
    fold.take(marker(kind, base=2))
    fold.on_leader_epoch()
    assert "" == fold.fault_of("g", group(offset))
    assert fold.fault_of("g", group(7 - offset))


def test_a_transaction_that_is_committed_late_does_not_undo_a_later_commit() -> None:
    fold = GroupFold()
    fold.take(batch([commit(5)], base=0, producer_id=7))
    fold.take(batch([commit(6)], base=1))
    fold.take(marker(COMMIT, base=2))
    fold.on_leader_epoch()
    assert "" == fold.fault_of("g", group(6))
    assert fold.fault_of("g", group(5))


def test_a_transaction_that_is_open_as_the_leader_begins_may_count_later() -> None:
    fold = GroupFold()
    fold.take(batch([commit(2)], base=0))
    fold.take(batch([commit(5)], base=1, producer_id=7))
    fold.on_leader_epoch()
    fold.take(marker(COMMIT, base=2))
    for offset in (2, 5):
        assert "" == fold.fault_of("g", group(offset))


def test_generations_do_not_fall_as_a_group_moves() -> None:
    fold = GroupFold()
    fold.take(batch([build_group_record(group(generation_id=3), {})], base=0))
    fold.on_leader_epoch()
    assert "" == fold.fault_of("g", group(generation_id=3))
    assert "" == fold.fault_of("g", group(generation_id=4))
    assert "generation 2, its log has 3" == fold.fault_of("g", group(generation_id=2))
    assert "nothing" == fold.fault_of("g", None)


def test_a_group_that_has_ended_is_not_there() -> None:
    fold = GroupFold()
    fold.take(batch([build_group_record(group(generation_id=3), {}), group_tombstone("g")], base=0))
    fold.on_leader_epoch()
    assert "" == fold.fault_of("g", None)
    assert "" == fold.fault_of("g", group(generation_id=1))


def test_a_group_may_end_under_its_coordinator() -> None:
    fold = GroupFold()
    fold.take(batch([build_group_record(group(generation_id=3), {})], base=0))
    fold.on_leader_epoch()
    fold.take(batch([group_tombstone("g")], base=1))
    assert set() == fold.group_ids()
    assert "" == fold.fault_of("g", None)


def test_the_last_state_of_an_id_counts_that_the_log_had_as_its_leader_began() -> None:
    fold = TransactionFold()
    fold.take(batch([build_record("x", EMPTY), build_record("x", ONGOING)], base=0))
    fold.on_leader_epoch()
    assert {"x"} == fold.transactional_ids()
    assert "" == fold.fault_of("x", known_transaction(ONGOING))
    assert fold.fault_of("x", known_transaction(EMPTY))
    assert fold.fault_of("x", known_transaction(NEXT))
    assert fold.fault_of("x", None).startswith("nothing")


def test_a_state_that_was_written_since_may_count() -> None:
    fold = TransactionFold()
    fold.take(batch([build_record("x", EMPTY)], base=0))
    fold.on_leader_epoch()
    fold.take(batch([build_record("x", NEXT), build_record("y", EMPTY)], base=1))
    for transition in (EMPTY, NEXT):
        assert "" == fold.fault_of("x", known_transaction(transition))
    assert "" == fold.fault_of("y", None)


def test_an_id_that_has_expired_is_not_there() -> None:
    fold = TransactionFold()
    fold.take(batch([build_record("x", EMPTY), transaction_tombstone("x")], base=0))
    fold.on_leader_epoch()
    assert set() == fold.transactional_ids()
    assert "" == fold.fault_of("x", None)
    assert fold.fault_of("x", known_transaction(EMPTY))


def test_nothing_is_asked_of_an_id_while_a_transition_is_written() -> None:
    fold = TransactionFold()
    fold.take(batch([build_record("x", EMPTY)], base=0))
    fold.on_leader_epoch()
    pending = known_transaction(NEXT)
    pending.pending_state = TransactionState.PREPARE_ABORT
    assert "" == fold.fault_of("x", pending)
    fenced = known_transaction(NEXT)
    fenced.has_failed_epoch_fence = True
    assert "" == fold.fault_of("x", fenced)
    assert "" == fold.fault_of("x", known_transaction(EMPTY._replace(producer_epoch=-1)))


def test_a_group_that_has_ended_may_begin_again() -> None:
    fold = GroupFold()
    fold.take(batch([build_group_record(group(generation_id=3), {})], base=0))
    fold.on_leader_epoch()
    assert fold.fault_of("g", group(generation_id=0))
    fold.take(batch([group_tombstone("g")], base=1))
    assert not fold.fault_of("g", group(generation_id=0))
