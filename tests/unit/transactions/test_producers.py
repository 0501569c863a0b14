"""InitProducerId of a transactional id: epochs, fencing, ids that are used up."""

from __future__ import annotations

import logging

import pytest

from engine.errors import api_error
from engine.kafka_errors import COORDINATOR_LOAD_IN_PROGRESS
from engine.transactions.states import TransactionState
from tests.unit.transactions.stage import T0, MemoryLog, Stage

MAX = 32_767


def test_an_id_that_nobody_has_used_gets_epoch_0() -> None:
    stage = Stage()
    assert (0, 100, 0) == stage.init()
    assert ["Empty"] == stage.log.states()


def test_the_log_says_which_epoch_a_producer_has(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    stage = Stage()
    stage.init()
    partition = stage.coordinator.registry.partition_of("x")
    assert (
        "Initialized transactionalId x with producerId 100 and producer epoch 0 on partition"
        f" __transaction_state-{partition}"
    ) in caplog.messages


def test_each_producer_that_begins_raises_the_epoch() -> None:
    stage = Stage()
    assert [0, 1, 2] == [stage.init().producer_epoch for _ in range(3)]
    assert {100} == {stage.init().producer_id for _ in range(3)}


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_a_timeout_that_the_broker_does_not_allow_is_refused(timeout_ms: int) -> None:
    assert (50, -1, -1) == Stage().init(timeout_ms=timeout_ms)


def test_the_longest_timeout_is_allowed_and_kept() -> None:
    stage = Stage()
    assert 0 == stage.init(timeout_ms=900_000).error_code
    assert 900_000 == stage.transaction().timeout_ms
    assert 0 == stage.init(timeout_ms=1).error_code
    assert 1 == stage.transaction().timeout_ms


def test_an_empty_id_is_refused() -> None:
    assert 42 == Stage().init("").error_code


def test_an_id_of_another_broker_is_refused() -> None:
    stage = Stage()
    stage.coordinator.registry.on_resigned(stage.coordinator.registry.partition_of("x"))
    assert 16 == stage.init().error_code


def test_without_a_producer_id_the_client_asks_again() -> None:
    stage = Stage()

    def nothing() -> int:
        raise api_error(COORDINATOR_LOAD_IN_PROGRESS)

    stage.coordinator.producers._new_producer_id = nothing
    assert 14 == stage.init().error_code
    assert [] == stage.log.states()


# A producer that names its own id and epoch


def test_a_producer_that_names_its_epoch_gets_the_next_one() -> None:
    stage = Stage()
    stage.init()
    assert (0, 100, 1) == stage.init(expected=(100, 0))


def test_a_repeated_request_gets_the_epoch_of_the_first_one() -> None:
    stage = Stage()
    stage.init()
    assert 1 == stage.init(expected=(100, 0)).producer_epoch
    assert 1 == stage.init(expected=(100, 0)).producer_epoch
    assert 2 == stage.init(expected=(100, 1)).producer_epoch


def test_an_older_epoch_is_fenced() -> None:
    stage = Stage()
    for _ in range(3):
        stage.init()
    assert 90 == stage.init(expected=(100, 0)).error_code
    assert 90 == stage.init(expected=(100, 7)).error_code
    assert 2 == stage.transaction().producer_epoch


def test_another_producer_id_is_fenced() -> None:
    stage = Stage()
    stage.init()
    assert 90 == stage.init(expected=(55, 0)).error_code


def test_a_loaded_id_takes_no_epoch_for_the_one_before() -> None:
    stage = Stage()
    stage.init()
    stage.init(expected=(100, 0))
    assert 90 == stage.again().init(expected=(100, 0)).error_code


# Epochs that are used up


def used_up(stage: Stage) -> Stage:
    stage.init()
    stage.transaction().producer_epoch = MAX - 1
    return stage


def test_behind_the_last_epoch_comes_another_producer_id() -> None:
    stage = used_up(Stage())
    assert (0, 101, 0) == stage.init()
    assert 100 == stage.transaction().previous_producer_id
    assert -1 == stage.transaction().last_producer_epoch


def test_a_producer_that_names_its_last_epoch_may_repeat_that() -> None:
    stage = used_up(Stage())
    assert (0, 101, 0) == stage.init(expected=(100, MAX - 1))
    assert (0, 101, 0) == stage.init(expected=(100, MAX - 1))


def test_a_producer_that_names_another_epoch_of_the_id_before_is_fenced() -> None:
    stage = used_up(Stage())
    assert (0, 101, 0) == stage.init(expected=(100, MAX - 1))
    assert 90 == stage.init(expected=(100, 5)).error_code


def test_the_epoch_below_the_last_is_still_given_out() -> None:
    stage = Stage()
    stage.init()
    stage.transaction().producer_epoch = MAX - 2
    assert (0, 100, MAX - 1) == stage.init()


def test_an_open_transaction_is_fenced_with_the_last_epoch_of_all() -> None:
    stage = used_up(Stage())
    assert 0 == stage.add(T0, epoch=MAX - 1).result()
    assert 51 == stage.init().error_code
    assert MAX == stage.transaction().producer_epoch
    assert (0, 101, 0) == stage.init()


# Open transactions


def test_a_producer_that_begins_aborts_the_open_transaction_first() -> None:
    stage = Stage().begun()
    assert 51 == stage.init().error_code
    assert ["Empty", "Ongoing", "PrepareAbort", "CompleteAbort"] == stage.log.states()
    ((_, (marker,)),) = stage.channels.written
    assert (100, 1, False) == marker[:3]
    assert (0, 100, 2) == stage.init()


def test_while_markers_are_on_their_way_nobody_begins() -> None:
    stage = Stage().begun()
    stage.channels.is_held = True
    stage.end().result()
    assert 51 == stage.init().error_code
    stage.channels.release()
    assert 0 == stage.init().error_code


def test_while_a_change_is_written_nobody_begins() -> None:
    stage = Stage()
    stage.init()
    stage.log.is_held = True
    first = stage.coordinator.producers.init_producer("x", 60_000, None)
    assert 51 == stage.init().error_code
    stage.log.release()
    assert (0, 100, 1) == first.result()


def test_a_change_that_is_not_written_is_pending_no_more() -> None:
    stage = Stage()
    stage.init()
    stage.log.error_code = 19
    assert 15 == stage.init().error_code
    assert stage.transaction().pending_state is None
    stage.log.error_code = 0
    assert 1 == stage.init().producer_epoch


def test_an_epoch_that_fences_and_is_not_written_is_used_again() -> None:
    stage = Stage().begun()
    stage.log.error_code = 7
    assert 15 == stage.init().error_code
    assert 1 == stage.transaction().producer_epoch
    assert stage.transaction().has_failed_epoch_fence
    stage.log.error_code = 0
    assert 51 == stage.init().error_code
    assert 1 == stage.transaction().producer_epoch
    assert not stage.transaction().has_failed_epoch_fence


def test_the_old_producer_cannot_end_what_is_fenced() -> None:
    stage = Stage().begun()
    stage.log.is_held = True
    stage.coordinator.producers.init_producer("x", 60_000, None)
    assert 90 == stage.end().result()
    stage.log.release()
    stage.timers.run_until_idle()
    assert "CompleteAbort" == stage.state


# Where it ends up


def test_what_was_begun_is_there_for_the_next_coordinator() -> None:
    log = MemoryLog()
    stage = Stage(log)
    stage.init()
    stage.init()
    other = stage.again()
    assert TransactionState.EMPTY is other.transaction().state
    assert (0, 100, 2) == other.init()


def test_an_id_that_cannot_be_written_is_refused_before_it_is_known() -> None:
    stage = Stage()
    too_long = "x" * 32_768
    assert -1 == stage.init(too_long).error_code
    assert None is stage.coordinator.registry.find(too_long).transaction
    assert 0 == stage.init("x" * 32_767).error_code
