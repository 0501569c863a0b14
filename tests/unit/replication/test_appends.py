"""The fast path of an append with acks=-1: what `append_records` gives, or nothing done."""

from __future__ import annotations

from engine.host.promise import Promise
from engine.limits import NEWEST_BATCH_BYTES_MAX
from engine.log.log_config import LogConfig
from engine.model import TopicPartition
from engine.replication.delayed_produce import ProduceResult, ProduceResults
from engine.replication.isr import InSyncSet
from tests.unit.log.writing import PARTITION, sent, sent_by
from tests.unit.replication.replicas import FOLLOWER, Broker, leader_of, log_of


def append(broker: Broker, batches: memoryview | None = None) -> Promise[ProduceResults]:
    """Append what has to wait."""
    promise = broker.manager.append_records_fast(PARTITION, batches or sent(2), -1, 100)
    assert isinstance(promise, Promise)
    return promise


def test_it_waits_until_the_followers_have_it() -> None:
    broker = Broker((1, 2))
    broker.fetch(0, FOLLOWER, log_start_offset=0)
    promise = append(broker)
    # The fetch that waited has been told.
    assert (False, 1) == (promise.is_kept, len(broker.fetches))
    broker.fetch(1, FOLLOWER, log_start_offset=0)
    assert not promise.is_kept
    broker.fetch(2, FOLLOWER, log_start_offset=0)
    assert {PARTITION: ProduceResult(None, 0, -1, 0)} == promise.result()


def test_it_times_out_as_any_produce() -> None:
    broker = Broker((1, 2))
    promise = append(broker)
    broker.pass_time(99)
    assert not promise.is_kept
    broker.pass_time(1)
    (result,) = promise.result().values()
    assert result.error is not None
    assert (7, 0) == (result.error.code, result.base_offset)


def test_a_repetition_of_what_is_committed_is_answered_now() -> None:
    broker = Broker((1, 2))
    append(broker, memoryview(bytearray(sent_by(5, 0))))
    broker.fetch(1, FOLLOWER, log_start_offset=0)
    again = memoryview(bytearray(sent_by(5, 0)))
    result = broker.manager.append_records_fast(PARTITION, again, -1, 100)
    assert isinstance(result, ProduceResult)
    assert (None, 0) == (result.error, result.base_offset)


def test_what_the_log_refuses_is_refused() -> None:
    broker = Broker((1, 2))
    append(broker, memoryview(bytearray(sent_by(5, 0))))
    out_of_order = memoryview(bytearray(sent_by(5, 7)))
    result = broker.manager.append_records_fast(PARTITION, out_of_order, -1, 100)
    assert isinstance(result, ProduceResult)
    assert result.error is not None
    assert 45 == result.error.code


def test_what_is_not_here_is_for_the_other_way_to_refuse() -> None:
    append_fast = Broker((1, 2)).manager.append_records_fast
    assert append_fast(TopicPartition("other", 0), sent(), -1, 100) is None


def test_only_who_is_allowed_appends_to_an_internal_topic() -> None:
    broker = Broker((1, 2))
    key = TopicPartition("__consumer_offsets", 0)
    internal = leader_of((1, 2), broker.clock, log=log_of(key))
    broker.manager.add(internal)
    append_fast = broker.manager.append_records_fast
    assert append_fast(key, sent(), -1, 100) is None
    assert 0 == internal.log.log_end_offset
    assert isinstance(append_fast(key, sent(), -1, 100, is_internal_allowed=True), Promise)
    assert 1 == internal.log.log_end_offset


def test_nothing_is_appended_with_too_few_in_sync() -> None:
    broker = Broker((1, 2))
    broker.partition.in_sync = InSyncSet(())
    assert broker.manager.append_records_fast(PARTITION, sent(), -1, 100) is None
    assert 0 == broker.partition.log.log_end_offset


def test_the_newest_batch_is_kept_as_the_log_has_it_for_who_reads_it_next() -> None:
    broker = Broker((1, 2))
    append(broker)
    append(broker)
    newest, log = broker.partition.newest, broker.partition.log
    assert newest is not None
    assert (2, 4, broker.partition.leader_epoch) == newest[:3]
    assert newest.data == log.read(2, 1 << 20).read()


def test_neither_a_repetition_nor_a_large_batch_is_kept_as_the_newest() -> None:
    partition = leader_of((1, 2), log_config=LogConfig())
    value = b"v" * (NEWEST_BATCH_BYTES_MAX - 100)
    largest = sent_by(5, 0, value=value + b"v" * (NEWEST_BATCH_BYTES_MAX - len(sent(value=value))))
    assert NEWEST_BATCH_BYTES_MAX == len(largest)
    for batch, first_offset in (
        (largest, 0),
        (sent(value=value + b"v" * 200), 0),
        (sent(), 2),
        (largest, 2),
    ):
        assert partition.append_fast(memoryview(bytearray(batch))) is not None
        assert partition.newest is not None
        assert first_offset == partition.newest.first_offset
    assert 3 == partition.log.log_end_offset
