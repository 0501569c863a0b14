"""The replica manager: appends and fetches end to end on one broker, in memory."""

from __future__ import annotations

from typing import Any

import pytest

from engine.host.memory import ManualClock
from engine.host.ports import LogDirOffline
from engine.host.promise import Promise
from engine.limits import SENDFILE_BYTES_MIN
from engine.log.log_config import LogConfig
from engine.log.producer_state import AppendOrigin
from engine.model import TopicPartition
from engine.records.batch import BatchView
from engine.replication.delayed_delete_records import DeleteRecordsResults
from engine.replication.delayed_fetch import FetchResults, WaitingPartition
from engine.replication.effects import HighWatermarkMoved, ProposeIsr
from engine.replication.partition_types import FetchSpec
from engine.replication.replica_manager import ReplicaManager
from tests.unit.log.writing import PARTITION, sent, sent_by
from tests.unit.replication.replicas import (
    CONSUMER,
    FOLLOWER,
    REJECTED,
    Broker,
    borrowed_segments,
    committed,
    fetched,
    leader_of,
    log_of,
    ports_of,
    quota_of,
    state,
    when_there,
)

OTHER = TopicPartition("other", 0)


def bases_of(results: FetchResults) -> list[int]:
    found = []
    for _, result in results:
        assert result.records is not None
        data, at = memoryview(result.records.read()), 0
        result.records.release()
        while at < len(data):
            batch = BatchView(data, at)
            found.append(batch.base_offset)
            at += batch.size_bytes
    return found


def broker_whose_second_log_fails(monkeypatch: pytest.MonkeyPatch, operation: str) -> Broker:
    """Return a broker with OTHER too, whose log fails with the directory of both."""
    broker = Broker((1, 2))
    other = leader_of((1, 2), broker.clock, log=log_of(OTHER))
    broker.manager.add(other)

    def fail(*_arguments: object, **_named: object) -> None:
        raise LogDirOffline("/data", "append", "no such device", 5)

    monkeypatch.setattr(other.log, operation, fail)
    return broker


# One broker, end to end


def test_a_long_poll_is_answered_by_a_later_append() -> None:
    broker = Broker()
    broker.produce(sent(2))
    assert [0] == broker.codes()
    broker.fetch(0)
    assert [0] == bases_of(broker.fetches[0])
    broker.fetch(2)
    assert (1, 1) == (len(broker.fetches), broker.manager.delayed_fetch_count)
    broker.produce(sent(3))
    assert [2] == bases_of(broker.fetches[1])
    assert [(0, 0), (0, 2)] == [
        (code, results[PARTITION].base_offset)
        for code, results in zip(broker.codes(), broker.produced, strict=True)
    ]
    # Nothing answers twice.
    broker.pass_time(10_000)
    broker.produce(sent())
    assert (3, 2) == (len(broker.produced), len(broker.fetches))
    assert broker.manager.next_deadline_ms() is None


def test_two_records_go_the_way_of_the_example() -> None:
    # HW-11: leader and follower end at 1000, with the watermark there.
    broker = Broker((1, 2))
    for _ in range(100):
        broker.produce(sent(10), 1)
    broker.produced.clear()
    broker.fetch(1000, FOLLOWER, log_start_offset=0)
    assert (1000, 1000) == (broker.partition.high_watermark, broker.partition.log.log_end_offset)
    # The follower's fetch of 1000 waits in purgatory; two records with acks=all answer it.
    broker.produce(sent(2))
    assert 1002 == broker.partition.log.log_end_offset
    (_, answer) = broker.fetches[0][0]
    assert ([1000], 1000) == (bases_of(broker.fetches[0]), answer.high_watermark)
    assert ([], 1000) == (broker.codes(), broker.partition.high_watermark)
    # Its fetch of 1002 says that it has them: the produce is answered.
    broker.fetch(1002, FOLLOWER, log_start_offset=0)
    assert ([0], 1002) == (broker.codes(), broker.partition.high_watermark)
    broker.pass_time(500)
    (_, answer) = broker.fetches[1][0]
    assert (0, 1002) == (answer.size_bytes, answer.high_watermark)


# Producing


@pytest.mark.parametrize("acks", [0, 1])
def test_without_acks_of_all_the_leader_alone_answers(acks: int) -> None:
    broker = Broker((1, 2))
    broker.produce(sent(), acks)
    assert [0] == broker.codes()
    assert 0 == broker.partition.high_watermark


def test_a_produce_times_out_once() -> None:
    broker = Broker((1, 2))
    broker.produce(sent(), timeout_ms=100)
    assert 100 == broker.manager.next_deadline_ms()
    broker.pass_time(100)
    assert [7] == broker.codes()
    broker.fetch(1, FOLLOWER, log_start_offset=0)
    assert [7] == broker.codes()
    assert 1 == broker.partition.high_watermark


def deletion_that_waits(broker: Broker, timeout_ms: int) -> Promise[DeleteRecordsResults]:
    """Delete a record of which the follower has not said that it is gone."""
    broker.produce(sent(2), 1)
    broker.manager.perform(fetched(broker.partition, 2))
    deletion = broker.manager.delete_records({PARTITION: 1}, timeout_ms)
    assert isinstance(deletion, Promise)
    return deletion


def test_a_deletion_times_out() -> None:
    broker = Broker((1, 2))
    deletion = deletion_that_waits(broker, 100)
    broker.pass_time(99)
    assert not deletion.is_kept
    broker.pass_time(1)
    (result,) = deletion.result().values()
    assert result.error is not None
    assert 7 == result.error.code


def test_a_follower_that_says_where_its_log_starts_completes_a_deletion() -> None:
    broker = Broker((1, 2), is_alive=lambda broker_id: broker_id != 3)
    deletion = deletion_that_waits(broker, 1000)
    broker.fetch(2, FOLLOWER, log_start_offset=1)
    assert [(None, 1)] == [tuple(result) for result in deletion.result().values()]


def test_an_append_that_commits_its_records_is_news_for_a_deletion_too() -> None:
    dead: set[int] = set()
    broker = Broker((1, 2), is_alive=lambda broker_id: broker_id not in dead)
    deletion = deletion_that_waits(broker, 1000)
    dead.update((2, 3))
    assert () == committed(broker.partition, (1,), 0, 1)
    assert not deletion.is_kept
    assert broker.manager.append_records_fast(PARTITION, sent(), 1, 0) is not None
    assert deletion.is_kept


def test_an_append_that_commits_nothing_is_news_for_fetches_alone() -> None:
    dead: set[int] = set()
    broker = Broker((1, 2), is_alive=lambda broker_id: broker_id not in dead)
    deletion = deletion_that_waits(broker, 1000)
    broker.fetch(2, FOLLOWER, log_start_offset=0)
    # Without the followers the deletion is complete, once somebody looks.
    dead.update((2, 3))
    broker.fetch(0, CONSUMER._replace(max_wait_ms=0))
    assert not deletion.is_kept
    broker.fetches.clear()
    assert broker.manager.append_records_fast(PARTITION, sent(), 1, 0) is not None
    assert (1, False) == (len(broker.fetches), deletion.is_kept)
    broker.manager.perform(fetched(broker.partition, 3))
    assert deletion.is_kept


def test_a_produce_waits_for_no_partition_whose_directory_fails_at_another_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broker = broker_whose_second_log_fails(monkeypatch, "append_as_leader")
    broker.produce(sent(), to=(PARTITION, OTHER))
    assert [56, 56] == broker.codes()
    assert 0 == broker.manager.delayed_produce_count


def test_a_deletion_waits_for_no_partition_whose_directory_fails_at_another_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broker = broker_whose_second_log_fails(monkeypatch, "maybe_increment_log_start_offset")
    broker.produce(sent(2), 1, to=(PARTITION, OTHER))
    for key in (PARTITION, OTHER):
        broker.manager.perform(fetched(broker.manager.find(key), 2))
    # Its start rises no more: no effect of the second deletion is a look at it.
    broker.manager.delete_records({PARTITION: 1}, 1000)
    deletion = broker.manager.delete_records({PARTITION: 1, OTHER: 1}, 1000)
    results: DeleteRecordsResults = {}
    when_there(deletion, results.update)
    assert [56, 56] == [result.error.code for result in results.values() if result.error]
    assert 0 == broker.manager.delayed_delete_count


@pytest.mark.parametrize("acks", [-1, 0, 1])
def test_a_lone_leader_answers_now(acks: int) -> None:
    manager = Broker().manager
    assert isinstance(manager.append_records({PARTITION: sent()}, acks, 1000), dict)
    assert isinstance(manager.delete_records({PARTITION: 1}, 1000), dict)
    assert manager.next_deadline_ms() is None


def test_acks_that_do_not_exist_are_refused() -> None:
    broker = Broker()
    broker.produce(sent(), 2)
    assert [21] == broker.codes()
    assert 0 == broker.partition.log.log_end_offset


def test_one_partition_fails_alone() -> None:
    broker = Broker()
    broker.produce(sent(), to=(OTHER, PARTITION))
    assert [3, 0] == broker.codes()
    broker.known.add(OTHER)
    broker.produce(sent(), to=(OTHER,))
    broker.manager.mark_offline(OTHER)
    broker.produce(sent(), to=(OTHER,))
    assert [6, 56] == broker.codes()[2:]


def test_a_partition_is_offline_until_it_is_taken_or_let_go() -> None:
    broker = Broker()
    manager = broker.manager
    manager.mark_offline(PARTITION)
    assert manager.is_offline(PARTITION)
    manager.add(broker.partition)
    assert not manager.is_offline(PARTITION)
    manager.mark_offline(PARTITION)
    manager.remove(PARTITION)
    assert not manager.is_offline(PARTITION)


def test_partitions_of_a_failed_directory_give_no_records_while_others_are_let_go() -> None:
    broker = Broker()
    broker.manager.add(leader_of((1,), broker.clock, log=log_of(OTHER)))
    patient = CONSUMER._replace(min_bytes=1 << 20, max_wait_ms=1000)
    broker.fetch_all(patient, [(key, FetchSpec(0, 1 << 20)) for key in (PARTITION, OTHER)])
    broker.produce(sent(), to=(OTHER,))
    assert [] == broker.fetches
    broker.manager.mark_offline(PARTITION, OTHER)
    assert [56, 56] == [result.error.code for _, result in broker.fetches[0] if result.error]


def test_a_refused_batch_is_an_answer() -> None:
    broker = Broker()
    broker.produce(sent_by(7, 0))
    broker.produce(sent_by(7, 5))
    broken = sent()
    broken[-1] ^= 1
    broker.produce(broken)
    assert [0, 45, 2] == broker.codes()
    # Of a corrupt batch Kafka does not tell where the log starts.
    assert [0, 0, -1] == [results[PARTITION].log_start_offset for results in broker.produced]


# The fast path of an append, to one partition


@pytest.mark.parametrize("acks", [-1, 1])
def test_a_fast_append_answers_like_the_other_and_wakes_who_waits(acks: int) -> None:
    broker, other = Broker(), Broker()
    broker.produce(sent(2))
    broker.fetch(2)
    result = broker.manager.append_records_fast(PARTITION, sent(3), acks, 0)
    assert [2] == bases_of(broker.fetches[0])
    other.produce(sent(2))
    other.produce(sent(3), acks)
    assert other.produced[1][PARTITION] == result


def test_a_fast_append_refuses_like_the_other() -> None:
    broker = Broker()
    assert broker.manager.append_records_fast(PARTITION, sent_by(5, 0), 1, 0) is not None
    out_of_order = sent_by(5, 7)
    result = broker.manager.append_records_fast(
        PARTITION, memoryview(bytearray(out_of_order)), 1, 0
    )
    broker.produce(out_of_order)
    (answer,) = broker.produced[0].values()
    assert result is not None and result.error is not None and answer.error is not None
    assert (answer.error.code, *answer[1:]) == (result.error.code, *result[1:])


@pytest.mark.parametrize("acks", [0, 2])
def test_nothing_fast_is_appended_that_has_no_response_or_is_refused(acks: int) -> None:
    broker = Broker((1, 2))
    assert broker.manager.append_records_fast(PARTITION, sent(), acks, 0) is None
    assert 0 == broker.partition.log.log_end_offset


def test_nothing_fast_is_appended_where_only_the_other_way_knows_the_answer() -> None:
    broker = Broker()
    key = TopicPartition("__consumer_offsets", 0)
    internal = leader_of(log=log_of(key))
    broker.manager.add(internal)
    append_fast = broker.manager.append_records_fast
    assert append_fast(OTHER, sent(), 1, 0) is None
    assert append_fast(key, sent(), 1, 0) is None
    assert 0 == internal.log.log_end_offset
    assert append_fast(key, sent(), 1, 0, is_internal_allowed=True) is not None


def test_a_fast_append_completes_a_produce_that_a_follower_out_of_the_set_held_up() -> None:
    broker = Broker((1, 2))
    alone = state((1,), replicas=(1, 2, 3), partition_epoch=1)
    broker.partition.become_leader(alone)
    (proposal,) = fetched(broker.partition, 0, 3)
    assert isinstance(proposal, ProposeIsr)
    broker.partition.on_isr_decided(proposal, REJECTED)
    broker.produce(sent(), timeout_ms=60_000)
    broker.clock.advance(30_001)
    assert [] == broker.produced
    assert broker.manager.append_records_fast(PARTITION, sent(), 1, 0) is not None
    assert [0] == broker.codes()


def test_a_repetition_is_news_for_nobody() -> None:
    clock = ManualClock()
    quota = quota_of(clock, [PARTITION], 1)
    manager = ReplicaManager(clock, ports_of(leader_quota=quota))
    manager.add(leader_of((1, 2), clock))
    assert manager.append_records_fast(PARTITION, sent_by(5, 0), 1, 0) is not None
    quota.record(PARTITION, 5)
    out_of_sync = FOLLOWER._replace(replica_id=3, max_wait_ms=60_000)
    fetch = manager.fetch(out_of_sync, [(PARTITION, FetchSpec(0, 1 << 20))])
    assert isinstance(fetch, Promise)
    # By now the throttle would let it have the record, if somebody looked.
    clock.advance(30_000)
    assert manager.append_records_fast(PARTITION, sent_by(5, 0), 1, 0) is not None
    assert not fetch.is_kept
    assert manager.append_records_fast(PARTITION, sent_by(5, 1), 1, 0) is not None
    assert fetch.is_kept


def test_only_coordinators_write_to_internal_topics() -> None:
    broker = Broker()
    key = TopicPartition("__consumer_offsets", 0)
    broker.produce(sent(), to=(key,))
    assert [17] == broker.codes()
    origin = AppendOrigin.COORDINATOR
    answer = broker.manager.append_records({key: sent()}, 1, 0, origin=origin)
    when_there(answer, broker.produced.append)
    assert [17, 3] == broker.codes()


def test_a_lost_leader_answers_what_waits() -> None:
    broker = Broker((1, 2))
    broker.produce(sent())
    broker.fetch(0)
    change = broker.partition.become_follower(state((2, 1), leader=2, epoch=1))
    broker.manager.perform(change.effects)
    assert [6] == broker.codes()
    assert [6] == [result.error.code for _, result in broker.fetches[0] if result.error]


def test_a_removed_partition_answers_what_waits() -> None:
    broker = Broker((1, 2))
    broker.produce(sent())
    broker.fetch(0)
    assert broker.partition is broker.manager.remove(PARTITION)
    assert ([3], 1) == (broker.codes(), len(broker.fetches))
    assert broker.manager.remove(PARTITION) is None


def test_a_smaller_set_answers_what_waited_for_the_laggard() -> None:
    broker = Broker((1, 2))
    broker.produce(sent(), timeout_ms=60_000)
    broker.clock.advance(30_001)
    broker.manager.shrink_isrs()
    assert [ProposeIsr(PARTITION, (1,), 0, 0)] == broker.proposed
    assert [] == broker.produced
    broker.manager.perform(committed(broker.partition, (1,), 0, 1))
    assert [0] == broker.codes()


# Fetching


def test_a_fetch_that_may_not_wait_is_answered_empty() -> None:
    broker = Broker()
    broker.fetch(0, CONSUMER._replace(max_wait_ms=0))
    broker.fetch_all(CONSUMER, [])
    assert [0, 0] == broker.sizes()


def test_a_fetch_that_finds_exactly_enough_is_answered_at_once() -> None:
    broker = Broker()
    broker.produce(sent())
    params = CONSUMER._replace(min_bytes=len(sent()))
    assert isinstance(broker.manager.fetch(params, [(PARTITION, FetchSpec(0, 1 << 20))]), list)


def test_a_fetch_with_an_error_is_answered_at_once() -> None:
    broker = Broker()
    specs = [(OTHER, FetchSpec(0, 100)), (PARTITION, FetchSpec(9, 100))]
    broker.fetch_all(CONSUMER, specs)
    assert [3, 1] == [result.error.code for _, result in broker.fetches[0] if result.error]


def test_a_fetch_ends_empty_at_its_deadline() -> None:
    broker = Broker()
    broker.fetch(0)
    broker.pass_time(499)
    assert [] == broker.fetches
    broker.pass_time(1)
    assert [0] == broker.sizes()


def test_a_fetch_that_has_enough_beyond_its_own_limit_does_not_wait() -> None:
    broker = Broker()
    broker.produce(sent())
    size = len(sent())
    params = CONSUMER._replace(min_bytes=2 * size, max_bytes=size)
    broker.fetch_all(params, [(PARTITION, FetchSpec(0, 1 << 20))] * 2)
    assert [size] == broker.sizes()


def test_a_consumer_never_completes_a_produce() -> None:
    broker = Broker((1, 2))
    broker.produce(sent())
    broker.fetch(1, CONSUMER._replace(max_wait_ms=0))
    assert [] == broker.produced


def test_only_the_first_partition_exceeds_the_limits() -> None:
    broker = Broker()
    broker.produce(sent())
    for specs, sizes in (((0, 0), [len(sent()), 0]), ((1, 0), [0, len(sent())])):
        requested = [(PARTITION, FetchSpec(offset, 5)) for offset in specs]
        broker.fetch_all(CONSUMER, requested)
        assert sizes == [result.size_bytes for _, result in broker.fetches[-1]]


def test_the_bytes_of_the_whole_answer_are_limited() -> None:
    broker = Broker()
    broker.produce(sent())
    size = len(sent())
    params = CONSUMER._replace(max_bytes=size + 10)
    requested = [(PARTITION, FetchSpec(0, 1 << 20))] * 2
    broker.fetch_all(params, requested)
    assert [size, 0] == [result.size_bytes for _, result in broker.fetches[0]]


def test_old_fetches_get_a_cut_batch() -> None:
    broker = Broker()
    broker.produce(sent())
    broker.fetch(0, CONSUMER._replace(is_max_bytes_hard=True), max_bytes=5)
    assert [5] == broker.sizes()


def test_a_fetch_that_waits_keeps_no_file_open(monkeypatch: pytest.MonkeyPatch) -> None:
    borrowed = borrowed_segments(monkeypatch)
    broker = Broker(log_config=LogConfig())
    broker.produce(sent(value=b"v" * SENDFILE_BYTES_MIN))
    broker.fetch(0, CONSUMER._replace(min_bytes=1 << 20))
    assert ([], []) == (broker.fetches, borrowed)
    broker.pass_time(500)
    assert 1 == len(borrowed)
    assert [0] == bases_of(broker.fetches[0])
    assert [] == borrowed


def test_a_follower_that_catches_up_is_proposed_to_the_controller() -> None:
    broker = Broker((1, 2))
    broker.fetch(0, FOLLOWER._replace(replica_id=3, max_wait_ms=0), log_start_offset=0)
    assert [ProposeIsr(PARTITION, (1, 2, 3), 0, 0)] == broker.proposed


def test_a_reply_may_fetch_and_produce_again() -> None:
    broker = Broker()
    seen: list[int] = []

    def again(results: FetchResults) -> None:
        seen.extend(bases_of(results))
        if len(seen) < 4:
            offset = broker.partition.high_watermark
            broker.fetch_all(CONSUMER, [(PARTITION, FetchSpec(offset, 1 << 20))], again)
            broker.produce(sent())

    broker.fetch_all(CONSUMER, [(PARTITION, FetchSpec(0, 1 << 20))], again)
    broker.produce(sent())
    assert [0, 1, 2, 3] == seen
    assert [0, 0, 0, 0] == broker.codes()


# Stopping, checkpoints, failures


def test_a_stop_answers_everything() -> None:
    broker = Broker((1, 2))
    broker.produce(sent())
    broker.fetch(0)
    broker.manager.stop()
    assert ([7], [0]) == (broker.codes(), broker.sizes())
    broker.pass_time(10_000)
    assert (1, 1) == (len(broker.produced), len(broker.fetches))


def test_a_stop_answers_deletions_too() -> None:
    broker = Broker((1, 2))
    deletion = deletion_that_waits(broker, 1000)
    assert 1 == broker.manager.delayed_delete_count
    broker.manager.stop()
    assert [7] == [result.error.code for result in deletion.result().values() if result.error]


def test_watermarks_are_there_for_the_checkpoint() -> None:
    broker = Broker()
    broker.produce(sent(3))
    assert {PARTITION: 3} == broker.manager.high_watermarks()
    assert [PARTITION] == list(broker.manager.partitions)
    assert 0 == broker.manager.delayed_produce_count


def test_a_failing_disk_is_reported_and_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[LogDirOffline] = []
    manager = ReplicaManager(ManualClock(), ports_of(offline=told))
    partition = leader_of()
    manager.add(partition)
    failure = LogDirOffline("/data", "read", "no such device", 5)

    def fail(*arguments: object, **named: object) -> None:
        raise failure

    monkeypatch.setattr(partition.log, "read", fail)
    answer = manager.fetch(CONSUMER, [(PARTITION, FetchSpec(0, 10))])
    assert isinstance(answer, list)
    assert [56] == [result.error.code for _, result in answer if result.error]
    assert [failure] == told


def test_effects_of_nested_calls_come_behind_those_before() -> None:
    broker = Broker()
    order: list[str] = []

    def first(results: FetchResults) -> None:
        order.append("first")
        broker.manager.perform([HighWatermarkMoved(PARTITION, 1)])
        order.append("first is over")

    broker.fetch_all(CONSUMER, [(PARTITION, FetchSpec(0, 100))], first)
    broker.fetch_all(
        CONSUMER, [(PARTITION, FetchSpec(0, 100))], lambda results: order.append("second")
    )
    broker.produce(sent())
    assert ["first", "first is over", "second"] == order


def test_the_owner_of_the_timer_gets_the_deadline_of_waiting_topics() -> None:
    broker = Broker((1, 2))
    broker.fetch(0, CONSUMER._replace(max_wait_ms=70))
    broker.produce(sent(), timeout_ms=40)
    deletion_that_waits(broker, 30)
    end = WaitingPartition(PARTITION, FetchSpec(3, 100), broker.partition.log.locate(3))
    broker.manager.wait_fast(20, CONSUMER, end, list)
    assert [70, 40, 30, 20] == broker.deadlines


# Faults


def _faulty(promise: Promise[Any]) -> None:
    def fail() -> None:
        raise KeyError("a fault of our own")

    promise.watch(fail)


@pytest.mark.parametrize("how", ["an event", "the deadline", "a stop"])
def test_a_fault_in_one_response_loses_no_other(how: str) -> None:
    broker = Broker((1, 2))
    manager = broker.manager
    promises: list[Promise[Any]] = []
    for _ in range(2):
        produced = manager.append_records({PARTITION: memoryview(sent())}, -1, 1000)
        assert isinstance(produced, Promise)
        promises.append(produced)
    for _ in range(2):
        deleted = manager.delete_records({PARTITION: -1}, 1000)
        assert isinstance(deleted, Promise)
        promises.append(deleted)
    for _ in range(2):
        fetched_later = manager.fetch(
            CONSUMER._replace(max_wait_ms=1000), [(PARTITION, FetchSpec(0, 1 << 20))]
        )
        assert isinstance(fetched_later, Promise)
        promises.append(fetched_later)
    for promise in promises[::2]:
        _faulty(promise)
    with pytest.raises(KeyError):
        if how == "an event":
            manager.remove(PARTITION)
        elif how == "the deadline":
            broker.clock.advance(1000)
            manager.advance()
        else:
            manager.stop()
    assert [True] * 6 == [promise.is_kept for promise in promises]
