"""One partition: roles and epochs, appends, reads, the in-sync set and the watermark."""

from __future__ import annotations

import pytest

from engine.errors import ApiError
from engine.host.memory import ManualClock
from engine.log.log_config import LogConfig
from engine.log.log_reader import EARLIEST, LATEST
from engine.log.producer_state import AppendOrigin
from engine.records.control import ControlType
from engine.replication.effects import (
    FetchFrom,
    HighWatermarkMoved,
    LogEndMoved,
    LogStartMoved,
    ProposeIsr,
    RoleChanged,
    StopFetching,
)
from engine.replication.partition import Partition
from engine.replication.partition_types import EpochEnd, FetchParams, FetchSpec, ReplicationConfig
from engine.replication.watermark import Isolation
from tests.unit.log.writing import (
    NOW_MS,
    PARTITION,
    end_of_transaction,
    fill,
    new_log,
    sent,
    sent_by,
)
from tests.unit.replication.replicas import (
    CONSUMER,
    FOLLOWER,
    REJECTED,
    committed,
    fetched,
    leader_of,
    partition_of,
    state,
)

COMMITTED = FetchParams(isolation=Isolation.COMMITTED)


def code_of(error: pytest.ExceptionInfo[ApiError]) -> int:
    return error.value.code


def size_read(partition: Partition, offset: int, params: FetchParams = CONSUMER) -> int:
    read = partition.read(params, FetchSpec(offset, 1 << 20), 1 << 20, at_least_one_batch=True)
    assert read.records is not None
    return read.records.size_bytes


# Roles


def test_a_new_leader_stops_fetching_and_notes_its_epoch() -> None:
    log = new_log()
    fill(log, [2])
    partition = partition_of(log=log)
    change = partition.become_leader(state((1, 2), epoch=4))
    assert change.is_applied
    assert change.is_new_leader_epoch
    assert (RoleChanged(PARTITION, 4), StopFetching(PARTITION)) == change.effects
    assert (4, 2) == (log.latest_epoch, partition.epoch_start_offset)


@pytest.mark.parametrize(("next_epoch", "watermark"), [(1, 2), (2, 0)])
def test_a_leader_that_missed_an_epoch_counts_nothing_of_before(
    next_epoch: int, watermark: int
) -> None:
    # In the epoch that it missed another may have led, and had the follower cut its log.
    partition = leader_of((1, 2, 3))
    partition.append(sent(2), 1)
    fetched(partition, 2)
    assert 0 == partition.high_watermark
    partition.become_leader(state((1, 2), replicas=(1, 2, 3), epoch=next_epoch, partition_epoch=1))
    assert watermark == partition.high_watermark


def test_a_lone_leader_commits_what_it_has() -> None:
    log = new_log()
    fill(log, [2])
    change = partition_of(log=log).become_leader(state())
    assert HighWatermarkMoved(PARTITION, 2) in change.effects


def test_a_follower_fetches_from_its_leader_again_with_each_epoch() -> None:
    partition = partition_of()
    change = partition.become_follower(state((2, 1), leader=2, epoch=3))
    assert (RoleChanged(PARTITION, 3), FetchFrom(PARTITION, 2, 3)) == change.effects
    again = partition.become_follower(state((2, 1), leader=2, epoch=3, partition_epoch=1))
    assert again.is_applied
    assert not again.is_new_leader_epoch
    assert () == again.effects


@pytest.mark.parametrize(("epoch", "partition_epoch"), [(4, 9), (5, 6)])
def test_a_state_with_an_older_epoch_changes_nothing(epoch: int, partition_epoch: int) -> None:
    partition = partition_of()
    partition.become_leader(state((1, 2), epoch=5, partition_epoch=7))
    stale = state((2, 1), leader=2, epoch=epoch, partition_epoch=partition_epoch)
    assert not partition.become_follower(stale).is_applied
    assert not partition.become_leader(stale._replace(leader_id=1)).is_applied
    assert partition.is_leader
    assert (1, 2) == partition.in_sync.isr


def test_the_checkpointed_watermark_is_brought_within_the_log() -> None:
    log = new_log()
    fill(log, [2])
    assert 2 == partition_of(log=log, high_watermark=9).high_watermark
    assert 1 == partition_of(log=log, high_watermark=1).high_watermark


@pytest.mark.parametrize(("requested", "code"), [(4, 74), (6, 75)])
def test_readers_with_another_epoch_are_fenced(requested: int, code: int) -> None:
    partition = partition_of()
    partition.become_leader(state(epoch=5))
    spec = FetchSpec(0, 100, current_leader_epoch=requested)
    with pytest.raises(ApiError) as error:
        partition.read(CONSUMER, spec, 100, at_least_one_batch=True)
    assert code == code_of(error)


def test_only_a_leader_appends_and_a_follower_serves_who_may_read_from_it() -> None:
    partition = partition_of()
    partition.become_follower(state((2, 1), leader=2))
    with pytest.raises(ApiError) as error:
        partition.append(sent(), 1)
    assert 6 == code_of(error)
    with pytest.raises(ApiError) as error:
        size_read(partition, 0)
    assert 6 == code_of(error)
    assert 0 == size_read(partition, 0, FetchParams(is_leader_required=False))


# Appending


def test_a_lone_leader_commits_in_the_append_itself() -> None:
    partition = leader_of()
    done = partition.append(sent(3), -1)
    assert (HighWatermarkMoved(PARTITION, 3),) == done.effects
    assert (3, 3) == (done.required_offset, partition.high_watermark)


def test_a_watermark_waits_for_the_in_sync_set() -> None:
    # The example of HW-11: two records after 1000 that are committed.
    partition = leader_of((1, 2))
    for _ in range(100):
        partition.append(sent(10), 1)
    assert (HighWatermarkMoved(PARTITION, 1000),) == fetched(partition, 1000)
    done = partition.append(sent(2), -1)
    assert (LogEndMoved(PARTITION, 1002),) == done.effects
    assert not partition.check_enough_replicas(1002).is_reached
    assert () == fetched(partition, 1000)
    assert (HighWatermarkMoved(PARTITION, 1002),) == fetched(partition, 1002)
    assert partition.check_enough_replicas(1002).is_reached


def test_a_copied_log_takes_no_records() -> None:
    partition = leader_of()
    partition.config = ReplicationConfig(is_read_only=True)
    with pytest.raises(ApiError, match="read-only") as error:
        partition.append(sent(), 1)
    assert 44 == code_of(error)
    assert partition.append_fast(sent()) is None
    assert 0 == partition.log.log_end_offset


def test_a_repeated_batch_moves_nothing_and_requires_its_own_offset() -> None:
    partition = leader_of()
    partition.append(sent_by(7, 0, 2), -1)
    partition.append(sent(), -1)
    again = partition.append(sent_by(7, 0, 2), -1)
    assert again.info.is_duplicate
    assert (2, ()) == (again.required_offset, again.effects)


def test_acks_all_is_refused_when_too_few_are_in_sync() -> None:
    partition = leader_of((1, 2), min_isr=3)
    with pytest.raises(ApiError) as error:
        partition.append(sent(), -1)
    assert 19 == code_of(error)
    assert 0 == partition.log.log_end_offset
    assert 1 == partition.append(sent(), 1).required_offset


def test_no_more_replicas_are_needed_than_there_are() -> None:
    partition = leader_of(min_isr=2)
    assert 1 == partition.append(sent(), -1).required_offset
    assert 1 == partition.high_watermark


def test_nothing_is_committed_below_the_least_in_sync_count() -> None:
    partition = leader_of((1,), min_isr=2)
    partition.become_leader(state((1,), replicas=(1, 2, 3), partition_epoch=1))
    assert (LogEndMoved(PARTITION, 1),) == partition.append(sent(), 1).effects
    assert 0 == partition.high_watermark


# Reading


def test_consumers_read_to_the_watermark_and_followers_to_the_end() -> None:
    partition = leader_of((1, 2))
    first = partition.append(sent(2), 1).info.size_bytes
    fetched(partition, 2)
    partition.append(sent(2), 1)
    assert first == size_read(partition, 0)
    assert size_read(partition, 0, FOLLOWER) > first
    assert 0 == size_read(partition, 2)


@pytest.mark.parametrize("isolation", Isolation)
@pytest.mark.parametrize("leader_epoch", [None, 0])
@pytest.mark.parametrize("offset", [1, 4, 5])
def test_a_fast_read_finds_what_a_read_does(
    offset: int, leader_epoch: int | None, isolation: Isolation
) -> None:
    partition = leader_of()
    for count in (1, 2, 2):
        partition.append(sent(count), 1)
    partition.delete_records_before(1)
    spec = FetchSpec(offset, 1 << 20, leader_epoch)
    fast = partition.read_fast(spec, 1 << 20, isolation)
    read = partition.read(FetchParams(isolation=isolation), spec, 1 << 20, at_least_one_batch=True)
    assert fast is not None
    assert read.records is not None
    assert (read.records.read(), *read[1:4], partition.counts) == fast


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(FetchSpec(0, 1 << 20), id="below the start"),
        pytest.param(FetchSpec(6, 1 << 20), id="above the end"),
        pytest.param(FetchSpec(1, 1 << 20, 1), id="another epoch"),
        pytest.param(FetchSpec(1, 1 << 20, 0, 0), id="a log that may have parted"),
    ],
)
def test_a_fast_read_leaves_to_a_read_what_it_may_refuse(spec: FetchSpec) -> None:
    partition = leader_of()
    partition.append(sent(1), 1)
    partition.append(sent(4), 1)
    partition.delete_records_before(1)
    assert partition.read_fast(spec, 1 << 20, Isolation.HIGH_WATERMARK) is None
    fast = FetchSpec(1, 1 << 20)
    assert partition.read_fast(fast, 1 << 20, Isolation.HIGH_WATERMARK) is not None
    partition.become_follower(state((2, 1), leader=2, epoch=1))
    assert partition.read_fast(fast, 1 << 20, Isolation.HIGH_WATERMARK) is None


@pytest.mark.parametrize("offset", [-1, 5])
def test_offsets_outside_of_the_log_are_refused(offset: int) -> None:
    partition = leader_of()
    partition.append(sent(4), 1)
    with pytest.raises(ApiError) as error:
        size_read(partition, offset)
    assert 1 == code_of(error)


def test_committed_records_end_at_the_first_open_transaction() -> None:
    partition = leader_of()
    open_size = partition.append(sent_by(7, 0, 2, is_transactional=True), -1).info.size_bytes
    assert (2, 0) == (partition.high_watermark, partition.last_stable_offset)
    assert (open_size, 0) == (size_read(partition, 0), size_read(partition, 0, COMMITTED))
    marker = end_of_transaction(7, ControlType.ABORT)
    partition.append(marker, -1, AppendOrigin.COORDINATOR)
    assert 3 == partition.last_stable_offset
    read = partition.read(COMMITTED, FetchSpec(0, 1 << 20), 1 << 20, at_least_one_batch=True)
    assert read.records is not None
    assert [7] == [found.producer_id for found in read.records.aborted_transactions or ()]


def test_a_follower_that_is_not_assigned_is_refused() -> None:
    partition = leader_of((1, 2))
    for replica_id, epoch, code in ((9, None, 6), (9, 0, 75), (0, 0, 75)):
        stranger = FetchParams(replica_id, isolation=Isolation.LOG_END)
        spec = FetchSpec(0, 100, current_leader_epoch=epoch)
        with pytest.raises(ApiError) as error:
            partition.read(stranger, spec, 100, at_least_one_batch=True)
        assert code == code_of(error)


def test_a_follower_whose_log_diverged_gets_the_offset_where() -> None:
    log = new_log()
    fill(log, [2], epoch=1)
    fill(log, [2], epoch=3)
    partition = partition_of(log=log)
    partition.become_leader(state((1, 2), epoch=4))
    spec = FetchSpec(3, 100, last_fetched_epoch=2)
    read = partition.read(FOLLOWER, spec, 100, at_least_one_batch=True)
    assert EpochEnd(1, 2) == read.diverging_epoch
    assert read.records is None
    assert partition.find_divergence(FetchSpec(4, 100, last_fetched_epoch=3)) is None
    with pytest.raises(ApiError) as error:
        partition.find_divergence(FetchSpec(0, 100, last_fetched_epoch=9))
    assert 1 == code_of(error)


def test_a_log_parts_from_none_that_ends_at_its_start_and_knows_none_below() -> None:
    partition = leader_of()
    partition.append(sent(2), 1)
    partition.append(sent(2), 1)
    partition.delete_records_before(2)
    assert partition.find_divergence(FetchSpec(2, 100, last_fetched_epoch=0)) is None
    with pytest.raises(ApiError) as error:
        partition.find_divergence(FetchSpec(1, 100, last_fetched_epoch=0))
    assert 1 == code_of(error)


def test_offsets_by_time_end_where_the_reader_does() -> None:
    partition = leader_of((1, 2))
    partition.append(sent(2), 1)
    fetched(partition, 2)
    partition.append(sent(1, at_ms=NOW_MS + 100), 1)
    consumer = Isolation.HIGH_WATERMARK
    latest = partition.find_offset(LATEST, consumer)
    assert latest is not None
    assert (2, 0) == (latest.offset, latest.leader_epoch)
    second = partition.find_offset(NOW_MS + 1, consumer)
    assert second is not None
    assert 1 == second.offset
    assert partition.find_offset(NOW_MS + 100, consumer) is None
    third = partition.find_offset(NOW_MS + 100, Isolation.LOG_END)
    assert third is not None
    assert 2 == third.offset


def test_a_new_leader_names_no_end_before_its_watermark_is_in_its_epoch() -> None:
    log = new_log()
    fill(log, [4])
    partition = partition_of(log=log, high_watermark=2)
    partition.become_leader(state((1, 2), epoch=1))
    for timestamp_ms in (LATEST, NOW_MS + 3):
        with pytest.raises(ApiError) as error:
            partition.find_offset(timestamp_ms, Isolation.HIGH_WATERMARK)
        assert 78 == code_of(error)
    earliest = partition.find_offset(EARLIEST, Isolation.HIGH_WATERMARK)
    assert earliest is not None
    assert 0 == earliest.offset
    fetched(partition, 4)
    latest = partition.find_offset(LATEST, Isolation.HIGH_WATERMARK)
    assert latest is not None
    assert 4 == latest.offset


# The in-sync set


def test_a_lagging_member_is_proposed_to_leave_and_its_going_moves_the_watermark() -> None:
    clock = ManualClock()
    partition = leader_of((1, 2), clock)
    partition.append(sent(2), 1)
    clock.advance(30_000)
    assert () == partition.maybe_shrink_isr()
    clock.advance(1)
    assert (ProposeIsr(PARTITION, (1,), 0, 0),) == partition.maybe_shrink_isr()
    assert () == partition.maybe_shrink_isr()
    # Until the controller says so the laggard still counts.
    assert 0 == partition.high_watermark
    assert (HighWatermarkMoved(PARTITION, 2),) == committed(partition, (1,), 0, 1)
    assert 1 == partition.partition_epoch


def test_a_silent_member_with_all_records_stays() -> None:
    clock = ManualClock()
    partition = leader_of((1, 2), clock)
    fetched(partition, 0)
    clock.advance(1_000_000)
    assert () == partition.maybe_shrink_isr()


def test_a_follower_that_caught_up_is_proposed_and_holds_the_watermark_at_once() -> None:
    partition = leader_of((1, 2))
    fetched(partition, 0)
    partition.append(sent(2), 1)
    assert (HighWatermarkMoved(PARTITION, 2),) == fetched(partition, 2)
    assert (ProposeIsr(PARTITION, (1, 2, 3), 0, 0),) == fetched(partition, 2, 3)
    partition.append(sent(1), 1)
    assert () == fetched(partition, 3)
    assert 2 == partition.high_watermark
    assert (HighWatermarkMoved(PARTITION, 3),) == fetched(partition, 3, 3)


def test_a_follower_joins_a_new_leader_where_its_epoch_began() -> None:
    log = new_log()
    fill(log, [4])
    partition = partition_of(log=log, high_watermark=2)
    partition.become_leader(state((1, 2), replicas=(1, 2, 3), epoch=1))
    assert () == fetched(partition, 3, 3)
    assert (ProposeIsr(PARTITION, (1, 2, 3), 1, 0),) == fetched(partition, 4, 3)


def test_a_member_that_is_assigned_no_more_holds_the_watermark_until_it_is_out_of_the_set() -> None:
    # The end of a move: the leader is told of the replicas that stay before the set is smaller.
    partition = leader_of((1, 2, 3))
    partition.append(sent(2), 1)
    fetched(partition, 1, 2)
    partition.become_leader(state((1, 2, 3), replicas=(1, 3), epoch=1))
    assert (HighWatermarkMoved(PARTITION, 1),) == fetched(partition, 2, 3)
    change = partition.become_leader(state((1, 3), replicas=(1, 3), epoch=2, partition_epoch=1))
    assert HighWatermarkMoved(PARTITION, 2) in change.effects


def test_a_member_that_is_assigned_no_more_is_proposed_to_leave_and_not_to_come_back() -> None:
    partition = leader_of((1, 2, 3))
    fetched(partition, 0, 2)
    fetched(partition, 0, 3)
    partition.become_leader(state((1, 2, 3), replicas=(1, 3), epoch=1))
    assert (ProposeIsr(PARTITION, (1, 3), 1, 0),) == partition.maybe_shrink_isr()
    committed(partition, (1, 3), 1, 1)
    assert () == fetched(partition, 0, 2)


def test_a_dead_follower_does_not_join() -> None:
    partition = leader_of((1, 2), is_alive=lambda broker_id: broker_id != 3)
    assert () == fetched(partition, 0, 3)


def test_an_answer_of_another_epoch_changes_nothing() -> None:
    clock = ManualClock()
    partition = leader_of((1, 2), clock)
    partition.append(sent(), 1)
    clock.advance(40_000)
    (proposed,) = partition.maybe_shrink_isr()
    assert isinstance(proposed, ProposeIsr)
    assert () == committed(partition, (1,), 5, 1)
    partition.on_isr_decided(proposed._replace(leader_epoch=5), REJECTED)
    assert partition.in_sync.is_in_flight
    partition.on_isr_decided(proposed, REJECTED)
    assert ((1, 2), False) == (partition.in_sync.isr, partition.in_sync.is_in_flight)


def test_a_smaller_set_in_flight_is_shown_with_its_offsets() -> None:
    partition = leader_of((1, 2), min_isr=2)
    fetched(partition, 0)
    partition.append(sent(), -1)
    fetched(partition, 1)
    committed(partition, (1,), 0, 1)
    assert (True, 1, 2) == partition.check_enough_replicas(1)


def test_a_pending_departure_still_counts_for_what_was_appended() -> None:
    clock = ManualClock()
    partition = leader_of((1, 2), clock, min_isr=2)
    partition.append(sent(), -1)
    fetched(partition, 1)
    partition.append(sent(), 1)
    clock.advance(40_000)
    assert (ProposeIsr(PARTITION, (1,), 0, 0),) == partition.maybe_shrink_isr()
    assert (True, 2, 2) == partition.check_enough_replicas(1)
    with pytest.raises(ApiError) as error:
        partition.append(sent(), -1)
    assert 19 == code_of(error)


def test_a_caught_up_follower_out_of_the_set_holds_the_watermark_for_a_while() -> None:
    clock = ManualClock()
    partition = partition_of(clock)
    partition.become_leader(state((1,), replicas=(1, 2, 3)))
    (proposed,) = fetched(partition, 0, 3)
    assert isinstance(proposed, ProposeIsr)
    partition.on_isr_decided(proposed, REJECTED)
    partition.append(sent(), 1)
    assert 0 == partition.high_watermark
    clock.advance(30_001)
    partition.append(sent(), 1)
    assert 2 == partition.high_watermark


def test_an_answer_with_an_older_partition_epoch_changes_nothing() -> None:
    partition = partition_of()
    partition.become_leader(state((1, 2), partition_epoch=7))
    assert () == committed(partition, (1,), 0, 6)
    assert ((1, 2), 7) == (partition.in_sync.committed, partition.partition_epoch)


# Following and deleting


def test_a_follower_takes_the_leaders_watermark_within_its_log() -> None:
    leader, follower = leader_of((1, 2)), partition_of()
    leader.append(sent(2), 1)
    follower.become_follower(state((2, 1), leader=2))
    data = leader.log.read(0, 1 << 20).read()
    info, effects = follower.append_as_follower(memoryview(data), 1, 0)
    assert 1 == info.last_offset
    assert (HighWatermarkMoved(PARTITION, 1),) == effects
    _, effects = follower.append_as_follower(memoryview(b""), 2, 1)
    assert (HighWatermarkMoved(PARTITION, 2), LogStartMoved(PARTITION, 1)) == effects
    assert () == follower.append_as_follower(memoryview(b""), 2, 1)[1]
    follower.truncate_to(0)
    assert 0 == follower.high_watermark


def test_deleting_records_raises_the_start_up_to_the_watermark() -> None:
    partition = leader_of()
    partition.append(sent(), -1)
    partition.append(sent(), -1)
    assert (0, 0, ()) == partition.delete_records_before(0)
    done = partition.delete_records_before(1)
    assert (1, 1, (LogStartMoved(PARTITION, 1),)) == done
    assert (2, 2, (LogStartMoved(PARTITION, 2),)) == partition.delete_records_before(-1)
    assert (1, 2, ()) == partition.delete_records_before(1)
    for offset in (-2, 3):
        with pytest.raises(ApiError) as error:
            partition.delete_records_before(offset)
        assert 1 == code_of(error)


def test_the_low_watermark_waits_for_live_followers() -> None:
    dead: set[int] = set()
    partition = leader_of((1, 2), is_alive=lambda broker_id: broker_id not in dead)
    fetched(partition, 0, 3)
    partition.append(sent(2), 1)
    fetched(partition, 2)
    fetched(partition, 2, 3)
    assert 0 == partition.delete_records_before(2).low_watermark
    dead.update((2, 3))
    assert 2 == partition.low_watermark()


def test_records_of_a_compacted_topic_are_not_deleted() -> None:
    partition = leader_of(log_config=LogConfig(is_deleting=False, is_compacted=True))
    with pytest.raises(ApiError) as error:
        partition.delete_records_before(0)
    assert 44 == code_of(error)
