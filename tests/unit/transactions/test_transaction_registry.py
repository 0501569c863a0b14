"""Loading: what a log says, which partitions are served, and in which epoch."""

from __future__ import annotations

from collections.abc import Iterator

from engine.errors import api_error
from engine.kafka_errors import (
    COORDINATOR_LOAD_IN_PROGRESS,
    NOT_COORDINATOR,
    NOT_LEADER_OR_FOLLOWER,
)
from engine.limits import COORDINATOR_LOAD_RETRY_MS, LOADED_IDS_POLL_MS
from engine.naming import coordinator_partition
from engine.transactions.records import TransactionRecord
from engine.transactions.transaction import Transaction
from tests.unit.transactions.stage import COUNT, T0, MemoryLog, Slow, Stage


def test_of_each_id_the_last_record_counts() -> None:
    stage = Stage().begun(T0)
    stage.end().result()
    other = stage.again()
    assert "CompleteCommit" == other.state
    assert (100, 0, 60_000) == (
        other.transaction().producer_id,
        other.transaction().producer_epoch,
        other.transaction().timeout_ms,
    )
    assert stage.transaction().start_ms == other.transaction().start_ms


def test_a_tombstone_ends_an_id() -> None:
    stage = Stage()
    stage.init()
    stage.clock.advance(604_800_000)
    stage.expire()
    assert None is stage.again().coordinator.registry.find("x").transaction


def test_a_record_of_an_unknown_kind_is_passed_over() -> None:
    stage = Stage()
    stage.init()
    partition = coordinator_partition("x", COUNT)
    log = stage.log.partitions[partition]
    log += [
        TransactionRecord(b"\0\7junk", b"\0\0"),
        TransactionRecord(b"", None),
        TransactionRecord(log[0].key, b"\0\0short"),
    ]
    assert "Empty" == stage.again().state


def test_bytes_behind_keys_and_values_are_passed_over() -> None:
    stage = Stage().begun(T0)
    (log,) = stage.log.partitions.values()
    value = log[-1].value
    assert value is not None
    log[:] = [TransactionRecord(log[-1].key + b"more", value + b"more")]
    assert "Ongoing" == stage.again().state


def test_each_partition_is_served_by_its_own_leader() -> None:
    stage = Stage()
    registry = stage.coordinator.registry
    registry.on_resigned(coordinator_partition("x", COUNT))
    assert 16 == registry.find("x").error_code
    others = [name for name in map(str, range(20)) if registry.partition_of(name) != 2]
    assert {0} == {
        registry.find(name).error_code
        for name in others
        if registry.partition_of(name) != coordinator_partition("x", COUNT)
    }


def test_an_older_epoch_loads_nothing() -> None:
    stage = Stage().begun(T0)
    partition = coordinator_partition("x", COUNT)
    before = stage.transaction()
    for epoch in (0, 1):
        stage.coordinator.registry.on_elected(partition, epoch)
        assert before is stage.transaction()
    stage.coordinator.registry.on_elected(partition, 2)
    assert before is not stage.transaction()
    assert 2 == stage.coordinator.registry.find("x").coordinator_epoch


def test_while_a_partition_is_loaded_its_ids_are_not_served() -> None:
    log = Slow()
    stage = Stage(log)
    for _ in range(5):
        stage.init()
    log.stage = stage
    registry, partition = stage.coordinator.registry, coordinator_partition("x", COUNT)
    registry.on_elected(partition, 2)
    assert registry.is_loading
    assert 14 == registry.find("x").error_code
    assert 14 == stage.init().error_code
    stage.timers.run_until_idle()
    assert (0, 2) == registry.find("x")[:2]
    assert not registry.is_loading


def test_a_partition_that_is_lost_while_it_is_loaded_stays_lost() -> None:
    log = Slow()
    stage = Stage(log)
    for _ in range(5):
        stage.init()
    log.stage = stage
    registry, partition = stage.coordinator.registry, coordinator_partition("x", COUNT)
    registry.on_elected(partition, 2)
    registry.on_resigned(partition)
    stage.timers.run_until_idle()
    assert 16 == registry.find("x").error_code


def test_nothing_of_a_deleted_topic_is_loaded_for_one_that_is_made_in_its_place() -> None:
    log = Slow()
    stage = Stage(log)
    for _ in range(5):
        stage.init()
    registry, partition = stage.coordinator.registry, coordinator_partition("x", COUNT)
    later = log.partitions[partition][-1]
    log.stage = stage
    registry.on_elected(partition, 2)
    registry.on_resigned(partition)
    log.partitions[partition] = [*log.partitions[partition], TransactionRecord(later.key, None)]
    registry.on_elected(partition, 2)
    stage.timers.run_until_idle()
    assert (0, 2, None) == registry.find("x")


def test_the_load_for_a_later_epoch_is_the_one_that_counts() -> None:
    log = Slow()
    stage = Stage(log)
    for _ in range(5):
        stage.init()
    log.stage = stage
    registry, partition = stage.coordinator.registry, coordinator_partition("x", COUNT)
    log.read_count = 0
    for epoch in (2, 3, 3, 2):
        registry.on_elected(partition, epoch)
    assert 2 == log.read_count
    stage.timers.run_until_idle()
    assert (0, 3) == registry.find("x")[:2]


class Unreadable(MemoryLog):
    """A log that cannot be read so many times."""

    def __init__(self, failure_count: int) -> None:
        super().__init__()
        self.failures_left = failure_count

    def read(self, partition: int) -> Iterator[tuple[int, TransactionRecord]]:
        yield from super().read(partition)
        if self.failures_left:
            self.failures_left -= 1
            raise api_error(NOT_LEADER_OR_FOLLOWER)


def test_a_partition_is_read_again_until_it_can_be_read() -> None:
    log = Unreadable(COUNT * 2)
    log.partitions = Stage().begun(T0).log.partitions
    stage = Stage(log)
    for _ in range(2):
        assert 14 == stage.init().error_code
        stage.clock.advance(COORDINATOR_LOAD_RETRY_MS)
        stage.timers.run_until_idle()
    assert "Ongoing" == stage.state


def test_a_partition_that_is_lost_is_not_read_again() -> None:
    stage = Stage(Unreadable(COUNT))
    stage.coordinator.registry.on_resigned(coordinator_partition("x", COUNT))
    stage.clock.advance(COORDINATOR_LOAD_RETRY_MS)
    stage.timers.run_until_idle()
    assert 16 == stage.init().error_code


def test_a_broker_that_stops_coordinates_nothing() -> None:
    stage = Stage().begun(T0)
    stage.coordinator.stop()
    assert 15 == stage.init().error_code
    assert stage.coordinator.registry.is_stopped
    assert [] == list(stage.coordinator.registry.transactions())
    stage.coordinator.registry.on_elected(0, 9)
    assert 15 == stage.coordinator.registry.find("x").error_code


def test_markers_wait_while_their_partition_is_loaded_for_a_later_epoch() -> None:
    log = Slow()
    stage = Stage(log).begun(T0)
    stage.channels.is_held = True
    stage.end().result()
    log.stage = stage
    registry = stage.coordinator.registry
    registry.on_elected(registry.partition_of("x"), 2)
    assert () == stage.coordinator.markers.pending_ids
    stage.timers.run_until_idle()
    assert ("x",) == stage.coordinator.markers.pending_ids


def test_a_load_ends_as_the_broker_stops() -> None:
    log = Slow()
    stage = Stage(log)
    for _ in range(5):
        stage.init()
    log.stage = stage
    registry, partition = stage.coordinator.registry, coordinator_partition("x", COUNT)
    registry.on_elected(partition, 2)
    stage.coordinator.stop()
    stage.timers.run_until_idle()
    assert [] == list(registry.transactions())


def decided(count: int) -> MemoryLog:
    """Return a log with ids of one partition whose ends are decided."""
    stage = Stage()
    stage.channels.is_held = True
    registry = stage.coordinator.registry
    names = (f"x{number}" for number in range(100))
    for name in [name for name in names if registry.partition_of(name) == 0][:count]:
        producer_id = stage.init(name).producer_id
        stage.coordinator.partitions.add_partitions(name, producer_id, 0, [T0]).result()
        stage.coordinator.ends.end_transaction(name, producer_id, 0, is_commit=True).result()
    return stage.log


def resuming(log: MemoryLog) -> Stage:
    """Return a coordinator that loads partition 0 with a share of the loop for each decided end."""
    stage = Stage()
    stage.channels.is_held = True
    stage.log.partitions = log.partitions
    registry = stage.coordinator.registry
    send = registry._on_prepared

    def send_slowly(coordinator_epoch: int, transaction: Transaction) -> None:
        stage.clock.advance(100)
        send(coordinator_epoch, transaction)

    registry._on_prepared = send_slowly
    registry.on_elected(0, 2)
    return stage


def test_decided_ends_go_on_in_turns_and_ids_are_served_meanwhile() -> None:
    stage = resuming(decided(3))
    assert 1 == sum(count_of(stage))
    assert not stage.coordinator.registry.is_loading
    stage.channels.release()
    stage.timers.run_until_idle()
    assert (3, 3) == (sum(count_of(stage)), stage.log.states().count("CompleteCommit"))


def test_decided_ends_go_on_no_more_as_the_partition_is_lost() -> None:
    stage = resuming(decided(3))
    stage.coordinator.registry.on_resigned(0)
    stage.channels.release()
    stage.timers.run_until_idle()
    assert [1] == count_of(stage)


def count_of(stage: Stage) -> list[int]:
    """Return how many markers of epoch 2 each request had."""
    requests = [
        markers for _, markers in stage.channels.written if markers[0].coordinator_epoch == 2
    ]
    return [len(markers) for markers in requests]


def _loaded_while_uncommitted() -> Stage:
    """Return a coordinator that has loaded a decided end which is not committed yet."""
    log, before = MemoryLog(), Stage().begun(T0)
    before.channels.is_held = True
    before.end()
    log.partitions = before.log.partitions
    log.high_watermark = len(log.partitions[coordinator_partition("x", COUNT)]) - 1
    stage = Stage(log)
    stage.clock.advance(10_000)
    stage.timers.run_until_idle()
    assert COORDINATOR_LOAD_IN_PROGRESS == stage.coordinator.registry.find("x").error_code
    return stage


def test_what_is_loaded_is_served_once_it_is_committed() -> None:
    stage = _loaded_while_uncommitted()
    assert [] == stage.channels.written
    stage.log.high_watermark = None
    stage.clock.advance(LOADED_IDS_POLL_MS)
    stage.timers.run_until_idle()
    assert 1 == len(stage.channels.written)
    assert "CompleteCommit" == stage.state


def test_what_is_loaded_is_not_served_of_a_partition_that_is_lost_before_it_is_committed() -> None:
    stage = _loaded_while_uncommitted()
    stage.coordinator.registry.on_resigned(coordinator_partition("x", COUNT))
    stage.log.high_watermark = None
    stage.clock.advance(10_000)
    stage.timers.run_until_idle()
    assert NOT_COORDINATOR == stage.coordinator.registry.find("x").error_code
    assert [] == stage.channels.written
