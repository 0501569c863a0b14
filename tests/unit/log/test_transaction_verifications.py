"""First batches of transactions: which question counts still when the answer comes."""

from __future__ import annotations

import pytest

from engine.log.producer_state import (
    OutOfOrderSequence,
    ProducerState,
    TransactionNotVerified,
    WrittenBatch,
)
from engine.log.transaction_verifications import TransactionVerifications
from engine.records.control import ControlType, EndTransactionMarker

P = 7


def state_with_open(epoch: int = 0) -> ProducerState:
    state = ProducerState()
    state.append_data(P, epoch, WrittenBatch(0, 0, 0, 1), is_transactional=True)
    return state


def mark(state: ProducerState, epoch: int = 0) -> None:
    marker = EndTransactionMarker(ControlType.ABORT, 0)
    state.append_marker(P, epoch, marker, offset=9, timestamp_ms=1)


def test_batches_of_one_epoch_share_a_question() -> None:
    found = TransactionVerifications()
    first = found.get_or_open(P, 0, 5, now_ms=1)
    assert first is found.get_or_open(P, 0, 3, now_ms=1)
    assert first is found.get_or_open(P, 0, 8, now_ms=1)
    assert 3 == first.lowest_sequence
    assert found.is_open(P, first)


def test_a_later_epoch_asks_again_and_an_older_one_does_not() -> None:
    found = TransactionVerifications()
    old = found.get_or_open(P, 0, 0, now_ms=1)
    new = found.get_or_open(P, 1, 0, now_ms=1)
    assert (False, True) == (found.is_open(P, old), found.is_open(P, new))
    assert new is found.get_or_open(P, 0, 0, now_ms=1)
    assert 0 == new.lowest_sequence


def test_an_end_settles_the_question() -> None:
    found = TransactionVerifications()
    first, other = found.get_or_open(P, 0, 0, now_ms=1), found.get_or_open(8, 0, 0, now_ms=1)
    found.end(P)
    assert not found.is_open(P, first)
    assert found.is_open(8, other)
    found.clear()
    assert not found.is_open(8, other)


def test_only_the_epoch_of_an_open_transaction_is_open() -> None:
    state = state_with_open(1)
    assert [False, True, False] == [state.has_open_transaction(P, epoch) for epoch in (0, 1, 2)]
    assert not state.has_open_transaction(8, 1)
    mark(state, 1)
    assert not state.has_open_transaction(P, 1)


def test_what_was_confirmed_may_be_written() -> None:
    state = ProducerState()
    state.check_verified(P, state.verifications.get_or_open(P, 0, 0, now_ms=1), 0)


def test_a_marker_in_between_takes_the_confirmation_back() -> None:
    state = ProducerState()
    asked = state.verifications.get_or_open(P, 0, 0, now_ms=1)
    mark(state)
    with pytest.raises(TransactionNotVerified) as caught:
        state.check_verified(P, asked, 0)
    assert (48, P, 0) == (caught.value.code, caught.value.producer_id, caught.value.epoch)


def test_the_first_batch_settles_it_for_those_behind_it() -> None:
    state = ProducerState()
    asked = state.verifications.get_or_open(P, 0, 0, now_ms=1)
    state.append_data(P, 0, WrittenBatch(0, 0, 0, 1), is_transactional=True)
    assert not state.verifications.is_open(P, asked)
    state.check_verified(P, asked, 1)


def test_a_batch_behind_one_that_was_not_written_is_out_of_order() -> None:
    state = ProducerState()
    asked = state.verifications.get_or_open(P, 0, 4, now_ms=1)
    state.verifications.get_or_open(P, 0, 2, now_ms=1)
    state.check_verified(P, asked, 2)
    with pytest.raises(OutOfOrderSequence):
        state.check_verified(P, asked, 4)


def test_a_log_that_starts_over_asks_again() -> None:
    state = ProducerState()
    asked = state.verifications.get_or_open(P, 0, 0, now_ms=1)
    state.clear()
    with pytest.raises(TransactionNotVerified):
        state.check_verified(P, asked, 0)


def test_a_question_under_way_outlives_the_move_of_its_log() -> None:
    state, copy = ProducerState(), ProducerState()
    asked = state.verifications.get_or_open(P, 0, 1, now_ms=1)
    copy.take_over(state)
    copy.check_verified(P, asked, 1)


def test_a_question_under_way_outlives_the_producer_that_was_idle() -> None:
    state = ProducerState()
    state.append_data(P, 0, WrittenBatch(0, 0, 0, 1), is_transactional=False)
    asked = state.verifications.get_or_open(P, 0, 1, now_ms=995)
    assert 1 == state.remove_expired(now_ms=1_000, expiration_ms=10)
    state.check_verified(P, asked, 1)


def test_questions_that_nobody_repeats_expire_though_their_producers_never_wrote() -> None:
    state = ProducerState()
    first = state.verifications.get_or_open(P, 0, 1, now_ms=100)
    state.verifications.get_or_open(8, 0, 0, now_ms=100)
    assert first is state.verifications.get_or_open(P, 0, 1, now_ms=105)
    assert 0 == state.remove_expired(now_ms=109, expiration_ms=10)
    assert 2 == len(state.verifications)
    state.remove_expired(now_ms=110, expiration_ms=10)
    assert (1, True) == (len(state.verifications), state.verifications.is_open(P, first))
    state.remove_expired(now_ms=115, expiration_ms=10)
    assert 0 == len(state.verifications)
