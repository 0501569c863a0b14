"""Sequences, epochs and transactions of producers, as a leader and a replica see them."""

from __future__ import annotations

import pytest

from engine.log.producer_state import (
    AppendOrigin,
    InvalidProducerEpoch,
    InvalidTxnState,
    OutOfOrderSequence,
    ProducerState,
    TransactionCoordinatorFenced,
    WrittenBatch,
)
from engine.records.batch import BatchView
from engine.records.control import ControlType, EndTransactionMarker
from tests.unit.log.writing import end_of_transaction, sent_by

INT_MAX = (1 << 31) - 1
ABORT = EndTransactionMarker(ControlType.ABORT, 3)
COMMIT = EndTransactionMarker(ControlType.COMMIT, 3)


def write(
    state: ProducerState,
    sequence: int,
    offset: int,
    *,
    count: int = 1,
    producer_id: int = 1,
    epoch: int = 0,
    is_transactional: bool = False,
    origin: AppendOrigin = AppendOrigin.CLIENT,
    at_ms: int = 100,
) -> WrittenBatch | None:
    """Check and note a batch as a leader does; returns the one that it repeats."""
    last = (sequence + count - 1) % (INT_MAX + 1)
    known = state.find_duplicate(
        producer_id, epoch, sequence, last, is_transactional=is_transactional, origin=origin
    )
    if known is None:
        written = WrittenBatch(last, offset + count - 1, count - 1, at_ms)
        state.append_data(producer_id, epoch, written, is_transactional=is_transactional)
    return known


def test_each_of_the_last_five_batches_is_recognised() -> None:
    state = ProducerState()
    for number in range(6):
        assert write(state, 2 * number, 10 * number, count=2) is None
    for number in range(1, 6):
        known = write(state, 2 * number, 999, count=2)
        assert known is not None
        assert (10 * number, 10 * number + 1) == (known.first_offset, known.last_offset)
    with pytest.raises(OutOfOrderSequence):
        write(state, 0, 999, count=2)


def test_a_gap_is_refused_and_names_what_was_expected() -> None:
    state = ProducerState()
    write(state, 0, 0)
    with pytest.raises(OutOfOrderSequence) as caught:
        write(state, 2, 1)
    assert (45, 2, 0) == (caught.value.code, caught.value.sequence, caught.value.last_sequence)


def test_an_unknown_producer_may_start_anywhere() -> None:
    assert write(ProducerState(), 77, 0) is None


def test_a_new_epoch_starts_at_sequence_0() -> None:
    state = ProducerState()
    write(state, 5, 0)
    with pytest.raises(OutOfOrderSequence):
        write(state, 6, 1, epoch=1)
    assert write(state, 0, 1, epoch=1) is None
    # The old epoch's batches are no longer known.
    with pytest.raises(InvalidProducerEpoch):
        write(state, 5, 2)


def test_an_old_epoch_is_fenced_for_clients_and_coordinators() -> None:
    for origin in (AppendOrigin.CLIENT, AppendOrigin.COORDINATOR):
        state = ProducerState()
        write(state, 0, 0, epoch=4)
        with pytest.raises(InvalidProducerEpoch) as caught:
            write(state, 1, 1, epoch=3, origin=origin)
        assert (47, 4) == (caught.value.code, caught.value.current_epoch)


def test_a_coordinator_writes_without_sequences() -> None:
    state = ProducerState()
    write(state, 0, 0)
    assert write(state, 9, 1, origin=AppendOrigin.COORDINATOR) is None


def test_sequences_go_on_at_0_after_the_largest() -> None:
    state = ProducerState()
    write(state, INT_MAX, 0)
    assert write(state, 0, 1) is None
    assert write(state, INT_MAX, 5) == WrittenBatch(INT_MAX, 0, 0, 100)


def test_a_batch_over_the_wrap_is_recognised() -> None:
    state = ProducerState()
    write(state, INT_MAX - 1, 0, count=4)
    known = write(state, INT_MAX - 1, 9, count=4)
    assert known is not None
    assert (1, INT_MAX - 1) == (known.last_sequence, known.first_sequence)


def test_an_open_transaction_takes_no_plain_records() -> None:
    state = ProducerState()
    write(state, 0, 4, is_transactional=True)
    with pytest.raises(InvalidTxnState) as caught:
        write(state, 1, 5)
    assert (48, 4) == (caught.value.code, caught.value.first_offset)


def test_a_late_coordinator_is_fenced() -> None:
    state = ProducerState()
    state.append_marker(1, 0, COMMIT, offset=0, timestamp_ms=1)
    with pytest.raises(TransactionCoordinatorFenced) as caught:
        state.check_marker(1, 0, 2)
    assert caught.value.code == 52
    state.check_marker(1, 0, 3)
    with pytest.raises(InvalidProducerEpoch):
        state.check_marker(1, -1, 3)


def test_an_unknown_producer_has_epoch_minus_one() -> None:
    # Producers send no lower one; damaged requests may.
    state = ProducerState()
    with pytest.raises(InvalidProducerEpoch):
        write(state, 0, 0, epoch=-2)
    with pytest.raises(InvalidProducerEpoch):
        state.check_marker(1, -2, 0)
    with pytest.raises(TransactionCoordinatorFenced):
        state.check_marker(1, 0, -2)
    state.check_marker(1, -1, -1)
    assert write(state, 5, 0, epoch=-1) is None


def test_a_marker_keeps_the_sequences_of_its_epoch() -> None:
    state = ProducerState()
    write(state, 0, 0, is_transactional=True)
    state.append_marker(1, 0, COMMIT, offset=1, timestamp_ms=1)
    assert write(state, 1, 2, is_transactional=True) is None


def test_a_marker_with_a_new_epoch_starts_sequences_again() -> None:
    state = ProducerState()
    write(state, 5, 0, is_transactional=True)
    state.append_marker(1, 1, ABORT, offset=1, timestamp_ms=1)
    with pytest.raises(OutOfOrderSequence):
        write(state, 6, 2, epoch=1)
    assert write(state, 0, 2, epoch=1) is None


def test_the_first_unstable_offset_is_that_of_the_oldest_open_transaction() -> None:
    state = ProducerState()
    write(state, 0, 3, producer_id=1, is_transactional=True)
    write(state, 0, 5, producer_id=2, is_transactional=True)
    assert state.first_unstable_offset(99) == 3
    assert state.oldest_open_timestamp_ms() == 100
    first = state.append_marker(1, 0, COMMIT, offset=7, timestamp_ms=1)
    assert first is not None
    assert (5, False) == (first.last_stable_offset, first.is_aborted)
    # The marker itself must be replicated before readers may pass.
    assert state.first_unstable_offset(7) == 3
    assert state.first_unstable_offset(8) == 5
    second = state.append_marker(2, 0, ABORT, offset=8, timestamp_ms=1)
    assert second is not None
    assert (2, 5, 8, 9, 0) == tuple(second.to_index_entry())
    assert state.first_unstable_offset(9) is None


def test_a_marker_without_records_ends_nothing() -> None:
    state = ProducerState()
    assert state.append_marker(1, 0, ABORT, offset=0, timestamp_ms=1) is None
    assert state.first_unstable_offset(0) is None


def test_a_snapshot_brings_back_the_last_batch_and_open_transactions() -> None:
    state = ProducerState()
    write(state, 0, 0, producer_id=2, is_transactional=True)
    write(state, 0, 1, producer_id=1, count=3)
    write(state, 3, 4, producer_id=1, count=2)
    state.append_marker(9, 5, COMMIT, offset=6, timestamp_ms=100)
    again = ProducerState()
    again.load_entries(state.to_entries(), now_ms=100, expiration_ms=10)
    assert state.to_entries() == again.to_entries()
    assert again.first_unstable_offset(99) == 0
    known = write(again, 3, 99, producer_id=1, count=2)
    assert known is not None
    assert known.last_offset == 5
    with pytest.raises(OutOfOrderSequence):
        write(again, 0, 99, producer_id=1, count=3)


def test_idle_producers_expire_unless_a_transaction_is_open() -> None:
    state = ProducerState()
    write(state, 0, 0, producer_id=1, at_ms=100)
    write(state, 0, 1, producer_id=2, at_ms=100, is_transactional=True)
    write(state, 0, 2, producer_id=3, at_ms=150)
    assert state.remove_expired(now_ms=149, expiration_ms=50) == 0
    assert state.remove_expired(now_ms=150, expiration_ms=50) == 1
    assert [2, 3] == list(state.producers)
    loaded = ProducerState()
    loaded.load_entries(state.to_entries(), now_ms=500, expiration_ms=50)
    assert [2] == list(loaded.producers)


def test_replicas_note_batches_without_asking() -> None:
    state = ProducerState()
    batch = BatchView(sent_by(4, 10, 2, is_transactional=True))
    batch.patch(base_offset=20)
    assert state.apply_batch(batch) is None
    assert state.first_unstable_offset(99) == 20
    marker = BatchView(end_of_transaction(4))
    marker.patch(base_offset=22)
    completed = state.apply_batch(marker)
    assert completed is not None
    assert (20, 22, True, 23) == completed[1:]
