"""Transactions end: committed, aborted, timed out; and what may not end."""

from __future__ import annotations

import pytest

from engine.host.coroutine import drive
from engine.transactions.states import TransactionState
from tests.unit.transactions.stage import T0, T1, Stage


@pytest.mark.parametrize(("is_commit", "word"), [(True, "Commit"), (False, "Abort")])
def test_an_end_is_decided_marked_and_completed(is_commit: bool, word: str) -> None:
    stage = Stage().begun(T0, T1)
    assert 0 == stage.end(is_commit=is_commit).result()
    written = ["Empty", "Ongoing", f"Prepare{word}", f"Complete{word}"]
    assert written == stage.log.states()
    ((broker_id, (marker,)),) = stage.channels.written
    assert (1, (100, 0, is_commit, 1, (T0, T1))) == (broker_id, marker)
    assert {} == stage.transaction().partitions


def test_the_client_is_answered_before_the_markers_are_there() -> None:
    stage = Stage().begun()
    stage.channels.is_held = True
    assert 0 == stage.end().result()
    assert "PrepareCommit" == stage.state
    stage.channels.release()
    assert "CompleteCommit" == stage.state


def decided() -> Stage:
    """Return a coordinator that has answered an EndTxn in this turn of the loop."""
    stage = Stage().begun()
    assert 0 == stage.coordinator.ends.end_transaction("x", 100, 0, is_commit=True).result()
    assert ("PrepareCommit", []) == (stage.state, stage.channels.written)
    return stage


def test_markers_are_sent_in_the_turn_after_the_answer() -> None:
    stage = decided()
    assert 51 == stage.add(T0).result()
    stage.timers.run_until_idle()
    assert ("CompleteCommit", 1) == (stage.state, len(stage.channels.written))


def test_who_lost_the_id_in_the_turn_of_the_answer_sends_no_markers() -> None:
    stage = decided()
    registry = stage.coordinator.registry
    registry.on_resigned(registry.partition_of("x"))
    stage.timers.run_until_idle()
    assert [] == stage.channels.written


def test_who_loads_the_id_again_in_the_turn_of_the_answer_sends_markers_once() -> None:
    stage = decided()
    registry = stage.coordinator.registry
    registry.on_elected(registry.partition_of("x"), 2)
    stage.timers.run_until_idle()
    ((_, (marker,)),) = stage.channels.written
    assert (2, "CompleteCommit") == (marker.coordinator_epoch, stage.state)


def test_who_stops_in_the_turn_of_the_answer_sends_no_markers() -> None:
    stage = decided()
    stage.coordinator.stop()
    stage.timers.run_until_idle()
    assert [] == stage.channels.written


@pytest.mark.parametrize("is_commit", [True, False])
def test_an_end_that_is_requested_again_is_answered_again(is_commit: bool) -> None:
    stage = Stage().begun()
    stage.end(is_commit=is_commit).result()
    assert 0 == stage.end(is_commit=is_commit).result()
    assert 48 == stage.end(is_commit=not is_commit).result()


@pytest.mark.parametrize("is_commit", [True, False])
def test_while_markers_are_on_their_way_the_client_asks_again(is_commit: bool) -> None:
    stage = Stage().begun()
    stage.channels.is_held = True
    stage.end(is_commit=is_commit).result()
    # The completion is prepared, which is answered alike for both.
    assert 51 == stage.end(is_commit=is_commit).result()
    assert 51 == stage.end(is_commit=not is_commit).result()


@pytest.mark.parametrize("is_commit", [True, False])
def test_what_was_not_begun_does_not_end(is_commit: bool) -> None:
    stage = Stage()
    stage.init()
    assert 48 == stage.end(is_commit=is_commit).result()


def test_only_the_current_producer_may_end() -> None:
    stage = Stage().begun()
    assert 90 == stage.end(epoch=1).result()
    assert 49 == stage.end(producer_id=1).result()
    ends = stage.coordinator.ends
    assert 49 == ends.end_transaction("nobody", 1, 0, is_commit=True).result()
    assert 42 == ends.end_transaction("", 1, 0, is_commit=True).result()
    assert "Ongoing" == stage.state


def test_a_decision_that_is_not_written_is_none(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage().begun()
    stage.log.error_code = 19
    assert 15 == stage.end().result()
    assert ("Ongoing", []) == (stage.state, stage.channels.written)
    assert "x was not written: error 15" == caplog.messages[-1]
    stage.log.error_code = 0
    assert 0 == stage.end(is_commit=False).result()
    assert "CompleteAbort" == stage.state


# Time


def test_a_transaction_that_takes_too_long_is_aborted_and_fenced(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    stage = Stage().begun()
    stage.clock.advance(60_000)
    stage.abort_timed_out()
    assert "Ongoing" == stage.state
    stage.clock.advance(1)
    stage.abort_timed_out()
    assert ("CompleteAbort", 1) == (stage.state, stage.transaction().producer_epoch)
    ((_, (marker,)),) = stage.channels.written
    assert (100, 1, False) == marker[:3]
    assert 90 == stage.end().result()
    assert (
        "Completing rollback of ongoing transaction for transactionalId x due to timeout"
    ) == caplog.messages[-1]


def test_a_transaction_that_is_known_no_more_is_not_aborted() -> None:
    stage = Stage().begun()
    transaction, written = stage.transaction(), stage.log.states()
    fence = transaction.prepare_fence()
    stage.coordinator.registry.remove(transaction)
    assert 16 == drive(stage.coordinator.ends.abort_fenced(transaction, fence)).result()
    assert written == stage.log.states()
    prepared = TransactionState.PREPARE_EPOCH_FENCE
    assert (0, prepared) == (transaction.producer_epoch, transaction.pending_state)


def test_a_transaction_of_a_coordinator_that_has_stopped_is_not_aborted() -> None:
    stage = Stage().begun()
    transaction, written = stage.transaction(), stage.log.states()
    fence = transaction.prepare_fence()
    stage.coordinator.registry.stop()
    assert 15 == drive(stage.coordinator.ends.abort_fenced(transaction, fence)).result()
    assert written == stage.log.states()


def test_only_open_transactions_time_out() -> None:
    stage = Stage()
    stage.init()
    stage.clock.advance(100_000)
    stage.abort_timed_out()
    assert "Empty" == stage.state
    assert 0 == stage.add(T0).result()
    stage.log.is_held = True
    stage.add(T1)
    stage.clock.advance(100_000)
    stage.abort_timed_out()
    assert TransactionState.ONGOING is stage.transaction().pending_state


def test_an_abort_by_time_that_is_not_written_is_tried_again() -> None:
    stage = Stage().begun()
    stage.clock.advance(60_001)
    stage.log.error_code = 19
    stage.abort_timed_out()
    assert "Ongoing" == stage.state
    stage.log.error_code = 0
    stage.abort_timed_out()
    assert ("CompleteAbort", 1) == (stage.state, stage.transaction().producer_epoch)


def test_a_fence_whose_abort_is_written_has_not_failed() -> None:
    stage = Stage().begun()
    transaction = stage.transaction()
    fence = transaction.prepare_fence()
    assert 0 == drive(stage.coordinator.ends.abort_fenced(transaction, fence)).result()
    # The markers, and with them the end, come in the next turn.
    assert ("PrepareAbort", 1) == (stage.state, transaction.producer_epoch)
    assert not transaction.has_failed_epoch_fence


@pytest.mark.parametrize("epoch", [32_766, 32_767])
def test_a_producer_without_epochs_left_is_fenced_by_the_last_one_however_often_it_fails(
    epoch: int,
) -> None:
    stage = Stage().begun()
    stage.transaction().producer_epoch = epoch
    stage.clock.advance(60_001)
    stage.log.error_code = 19
    stage.abort_timed_out()
    stage.abort_timed_out()
    assert 15 == stage.init().error_code
    assert "Ongoing" == stage.state
    stage.log.error_code = 0
    stage.abort_timed_out()
    assert ("CompleteAbort", 32_767) == (stage.state, stage.transaction().producer_epoch)
    assert (0, 101, 0) == stage.init()


# Another coordinator


@pytest.mark.parametrize(("is_commit", "word"), [(True, "Commit"), (False, "Abort")])
def test_the_next_coordinator_ends_what_was_decided(is_commit: bool, word: str) -> None:
    stage = Stage().begun(T0, T1)
    stage.channels.is_held = True
    stage.end(is_commit=is_commit).result()
    other = stage.again()
    assert f"Complete{word}" == other.state
    ((_, (marker,)),) = other.channels.written
    assert (100, 0, is_commit, 1, (T0, T1)) == marker


def test_the_next_coordinator_lets_what_is_open_go_on() -> None:
    stage = Stage().begun(T0, T1)
    other = stage.again()
    assert ("Ongoing", [T0, T1]) == (other.state, list(other.transaction().partitions))
    assert 0 == other.end().result()


def test_markers_of_a_later_epoch_say_so() -> None:
    stage = Stage().begun()
    stage.channels.is_held = True
    stage.end().result()
    registry = stage.coordinator.registry
    stage.channels.is_held = False
    registry.on_elected(registry.partition_of("x"), 5)
    stage.timers.run_until_idle()
    stage.channels.release()
    stage.timers.run_until_idle()
    assert "CompleteCommit" == stage.state
    assert [1, 5] == [markers[0].coordinator_epoch for _, markers in stage.channels.written]
    assert 1 == stage.log.states().count("CompleteCommit")
