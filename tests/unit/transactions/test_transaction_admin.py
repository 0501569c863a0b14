"""Transactions listed, described and forgotten."""

from __future__ import annotations

from engine.hash_order import in_concurrent_hash_order
from engine.transactions.transaction_admin import TransactionFilter
from tests.unit.transactions.stage import COUNT, T0, T1, Stage

WEEK_MS = 604_800_000


def listed(stage: Stage, **wanted: object) -> list[str]:
    found = stage.coordinator.admin.list(TransactionFilter(**wanted))  # type: ignore[arg-type]
    assert 0 == found.error_code
    return sorted(row.transactional_id for row in found.transactions)


def test_all_ids_are_listed_with_their_states() -> None:
    stage = Stage().begun(T0)
    stage.init("y")
    found = stage.coordinator.admin.list(TransactionFilter())
    assert {("x", 100, "Ongoing"), ("y", 101, "Empty")} == set(found.transactions)


def test_filters_leave_ids_out() -> None:
    stage = Stage().begun(T0)
    stage.init("y")
    assert ["x"] == listed(stage, states=["Ongoing", "Dead"])
    assert ["y"] == listed(stage, producer_ids=[101, 7])
    assert [] == listed(stage, states=["Ongoing"], producer_ids=[101])
    assert ["y"] == listed(stage, longer_than_ms=0)
    stage.clock.advance(1_000)
    # A transaction that never began is as old as time.
    assert ["x", "y"] == listed(stage, longer_than_ms=999)
    assert ["y"] == listed(stage, longer_than_ms=1_000)
    assert ["x", "y"] == listed(stage, longer_than_ms=0)


def test_names_that_are_no_states_are_returned() -> None:
    found = Stage().coordinator.admin.list(TransactionFilter(["Ongoing", "ongoing", "x"]))
    assert (0, ("ongoing", "x")) == found[:2]
    found = Stage().coordinator.admin.list(TransactionFilter(["NoSuch", "NoSuch", "", "Empty"]))
    assert ("NoSuch", "") == found.unknown_states


def test_ids_come_by_partition_and_in_the_order_of_a_concurrent_map() -> None:
    stage = Stage()
    names = [f"id-{number}" for number in range(30)]
    for name in names:
        stage.init(name)
    partition_of = stage.coordinator.registry.partition_of
    of_partitions = [[n for n in names if partition_of(n) == index] for index in range(COUNT)]
    expected = [n for of_one in of_partitions for n in in_concurrent_hash_order(of_one)]
    found = stage.coordinator.admin.list(TransactionFilter())
    assert expected == [row.transactional_id for row in found.transactions]


def test_a_transaction_is_described() -> None:
    stage = Stage().begun(T1, T0)
    now_ms = stage.clock.wall_ms()
    found = stage.coordinator.admin.describe("x")
    assert (0, "Ongoing", 100, 0, 60_000, now_ms) == found[:6]
    assert {T0, T1} == set(found.partitions)


def test_what_is_not_known_is_not_described() -> None:
    stage = Stage()
    admin = stage.coordinator.admin
    assert 105 == admin.describe("nobody").error_code
    assert 42 == admin.describe("").error_code
    stage.coordinator.registry.on_resigned(stage.coordinator.registry.partition_of("x"))
    assert 16 == admin.describe("x").error_code
    stage.coordinator.stop()
    assert (15, 15) == (admin.describe("x").error_code, admin.list(TransactionFilter()).error_code)


def test_while_some_partition_is_loaded_nothing_is_listed() -> None:
    stage = Stage()
    stage.coordinator.registry._loads.begin(3, 1)
    assert 14 == stage.coordinator.admin.list(TransactionFilter()).error_code


def test_an_id_that_was_not_used_for_long_is_forgotten() -> None:
    stage = Stage()
    stage.init()
    stage.clock.advance(WEEK_MS - 1)
    stage.expire()
    assert "Empty" == stage.state
    stage.clock.advance(1)
    stage.expire()
    assert None is stage.coordinator.registry.find("x").transaction
    assert ["Empty", "-"] == stage.log.states()
    assert 30_000 == stage.log.timeouts_ms[-1]
    assert (0, 101, 0) == stage.init()


def test_an_open_transaction_is_never_forgotten() -> None:
    stage = Stage().begun(T0)
    stage.clock.advance(2 * WEEK_MS)
    stage.expire()
    assert "Ongoing" == stage.state


def test_an_id_whose_tombstone_is_not_written_stays() -> None:
    stage = Stage()
    stage.init()
    stage.clock.advance(WEEK_MS)
    stage.log.error_code = 19
    stage.expire()
    assert ("Empty", None) == (stage.state, stage.transaction().pending_state)
    stage.log.error_code = 0
    assert (0, 100, 1) == stage.init()


def test_while_its_tombstone_is_written_an_id_cannot_begin() -> None:
    stage = Stage()
    stage.init()
    stage.clock.advance(WEEK_MS)
    stage.log.is_held = True
    stage.expire()
    assert 51 == stage.init().error_code
    stage.log.release()
    assert None is stage.coordinator.registry.find("x").transaction


def test_an_id_that_was_loaded_again_meanwhile_is_not_forgotten() -> None:
    stage = Stage()
    stage.init("x")
    stage.init("y")
    stage.clock.advance(WEEK_MS)
    steps = stage.coordinator.admin.expire_ids()
    next(steps)
    for partition in range(COUNT):
        stage.coordinator.registry.on_elected(partition, 2)
    assert (0, 101, 1) == stage.init("y")
    for _ in steps:
        pass
    assert (0, 101, 2) == stage.again().init("y")


def test_a_tombstone_that_is_confirmed_late_leaves_an_id_that_is_in_use_again() -> None:
    stage = Stage()
    stage.init()
    stage.clock.advance(WEEK_MS)
    stage.log.is_held = True
    stage.expire()
    stage.log.is_held = False
    stage.coordinator.registry.on_elected(stage.coordinator.registry.partition_of("x"), 2)
    assert (0, 101, 0) == stage.init()
    stage.log.release()
    assert (0, 101, 1) == stage.init()
