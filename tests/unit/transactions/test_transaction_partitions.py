"""Partitions of transactions: added, verified, refused."""

from __future__ import annotations

from engine.transactions.transaction_store import TransactionStore
from tests.unit.transactions.stage import T0, T1, U0, Slow, Stage


def test_the_first_partition_begins_the_transaction() -> None:
    stage = Stage()
    stage.init()
    now_ms = stage.clock.wall_ms()
    assert 0 == stage.add(T0).result()
    assert ("Ongoing", now_ms) == (stage.state, stage.transaction().start_ms)


def test_more_partitions_leave_the_start_as_it_is() -> None:
    stage = Stage().begun(T0)
    start_ms = stage.transaction().start_ms
    stage.clock.advance(5)
    assert 0 == stage.add(T1, U0).result()
    assert [T0, T1, U0] == list(stage.transaction().partitions)
    assert start_ms == stage.transaction().start_ms


def test_partitions_that_are_there_are_not_written_again() -> None:
    stage = Stage().begun(T0, T1)
    written = len(stage.log.states())
    assert 0 == stage.add(T1).result()
    assert written == len(stage.log.states())
    assert 0 == stage.add(T1, U0).result()
    assert written + 1 == len(stage.log.states())


def test_a_later_transaction_begins_at_its_own_time() -> None:
    stage = Stage().begun(T0)
    stage.end().result()
    stage.clock.advance(50)
    assert 0 == stage.add(T1).result()
    assert [T1] == list(stage.transaction().partitions)
    assert stage.clock.wall_ms() == stage.transaction().start_ms


def test_the_client_of_another_producer_is_refused() -> None:
    stage = Stage().begun(T0)
    assert 49 == stage.add(T1, producer_id=5).result()
    assert 90 == stage.add(T1, epoch=1).result()
    assert 49 == stage.coordinator.partitions.add_partitions("nobody", 1, 0, [T0]).result()
    assert 42 == stage.coordinator.partitions.add_partitions("", 1, 0, [T0]).result()


def test_while_the_end_is_on_its_way_nothing_is_added() -> None:
    stage = Stage().begun(T0)
    stage.channels.is_held = True
    stage.end().result()
    assert 51 == stage.add(T1).result()
    stage.channels.release()
    assert 0 == stage.add(T1).result()


def test_while_partitions_are_written_nothing_is_added() -> None:
    stage = Stage()
    stage.init()
    stage.log.is_held = True
    first = stage.add(T0)
    assert 51 == stage.add(T1).result()
    stage.log.release()
    assert (0, [T0]) == (first.result(), list(stage.transaction().partitions))


def test_an_append_waits_as_long_as_the_transaction_may_take() -> None:
    stage = Stage()
    stage.init(timeout_ms=1234)
    stage.add(T0)
    assert [1234, 1234] == stage.log.timeouts_ms


def test_errors_of_the_log_are_those_of_a_coordinator() -> None:
    stage = Stage()
    stage.init()
    for code, wanted in (
        (3, 15),
        (19, 15),
        (20, 15),
        (7, 15),
        (6, 16),
        (56, 16),
        (10, -1),
        (18, -1),
    ):
        stage.log.error_code = code
        assert wanted == stage.add(T0).result(), code
        assert "Empty" == stage.state
    stage.log.error_code = 77
    assert 77 == stage.add(T0).result()


def test_what_was_written_for_an_earlier_epoch_is_not_applied() -> None:
    stage = Stage()
    stage.init()
    stage.log.is_held = True
    added = stage.add(T0)
    registry = stage.coordinator.registry
    registry.on_elected(registry.partition_of("x"), 2)
    stage.timers.run_until_idle()
    stage.log.release()
    assert 16 == added.result()
    assert "Ongoing" == stage.state
    assert stage.transaction().pending_state is None


def test_who_writes_hears_that_the_partition_is_loaded_for_a_later_epoch() -> None:
    log = Slow()
    stage = Stage(log)
    stage.init()
    log.is_held = True
    added = stage.add(T0)
    log.stage = stage
    registry = stage.coordinator.registry
    registry.on_elected(registry.partition_of("x"), 2)
    log.release()
    assert 14 == added.result()


def test_nothing_is_written_for_an_id_that_is_used_no_more() -> None:
    stage = Stage().begun(T0)
    transaction, written = stage.transaction(), stage.log.states()
    transition = transaction.add_partitions((T1,), stage.clock.wall_ms())
    stage.coordinator.registry.remove(transaction)
    store = TransactionStore(stage.coordinator.registry, stage.log)
    assert 16 == store.write("x", 1, transition).result()
    assert written == stage.log.states()


# Verification


def test_a_partition_of_the_open_transaction_is_confirmed() -> None:
    stage = Stage().begun(T0)
    verify = stage.coordinator.partitions.verify_partitions
    assert {T0: 0, T1: 120} == verify("x", 100, 0, [T0, T1])
    assert {T0: 49} == verify("x", 7, 0, [T0])
    assert {T0: 90} == verify("x", 100, 3, [T0])
    assert {T0: 42} == verify("", 100, 0, [T0])


def test_while_the_end_is_decided_nothing_is_confirmed() -> None:
    stage = Stage().begun(T0)
    stage.channels.is_held = True
    stage.end().result()
    assert {T0: 51} == stage.coordinator.partitions.verify_partitions("x", 100, 0, [T0])
    stage.channels.release()
    assert {T0: 120} == stage.coordinator.partitions.verify_partitions("x", 100, 0, [T0])
