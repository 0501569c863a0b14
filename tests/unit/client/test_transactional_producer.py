"""A transactional producer on brokers in memory: what is visible, and which errors end what."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from engine.client.blocking import KafkaClient
from engine.client.errors import TimedOut
from engine.client.groups import committed_offsets
from engine.client.producing import OutgoingRecord, OutgoingValues, ProducerOptions
from engine.client.transaction_calls import GroupMembership, TransactionCalls
from engine.client.transactional_producer import (
    ProducerFenced,
    TransactionalProducer,
    TransactionFailed,
    TransactionPhase,
    WrongPhase,
)
from engine.client.transactions import describe_transaction
from engine.errors import ApiError, api_error
from engine.kafka_errors import (
    CONCURRENT_TRANSACTIONS,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSTABLE_OFFSET_COMMIT,
)
from engine.model import TopicPartition
from engine.records.control import control_type
from engine.records.view import batches_in
from tests.unit.broker.memory_cluster import MemoryCluster
from tests.unit.reassign.memory_streams import MemoryStreams, client_of

T0 = TopicPartition("t", 0)
T1 = TopicPartition("t", 1)
READY, TO_ABORT = TransactionPhase.READY, TransactionPhase.TO_ABORT


class Stage:
    """Three brokers with topic t of two partitions."""

    def __init__(self, **settings: str) -> None:
        self.cluster = MemoryCluster(
            is_one_process=True,
            **settings,
            offsets_topic_num_partitions="1",
            transaction_state_log_num_partitions="1",
            transaction_state_log_min_isr="1",
        )
        self.cluster.create_topic("t", ((1, 2), (2, 1)))
        self.cluster.pass_time(1_000)
        self.client = self.new_client()

    def new_client(self) -> KafkaClient:
        return client_of(self.cluster, MemoryStreams(self.cluster))

    def producer(self, **options: int) -> TransactionalProducer:
        """Return another instance of x."""
        return TransactionalProducer(self.new_client(), "x", ProducerOptions(**options))

    @property
    def state(self) -> str:
        return describe_transaction(self.client, "x").state

    def log(self, key: TopicPartition) -> list[bytes | str]:
        """Return the values of a partition, and its markers by name."""
        leader = self.cluster.brokers[1 if key == T0 else 2]
        replica = leader.storage.replica_manager.partitions[key]
        assert replica.last_stable_offset <= replica.high_watermark
        return entries(replica.log.read(0, 1 << 20).read())


def entries(content: bytes) -> list[bytes | str]:
    """Return values, and markers by name."""
    found: list[bytes | str] = []
    for batch in batches_in(memoryview(content), allow_partial_tail=False):
        for record in batch.records():
            value = bytes(record.value or b"")
            found.append(control_type(record).name if batch.is_control else value)
    return found


def record(value: bytes, key: TopicPartition = T0) -> OutgoingRecord:
    """Return a record for one partition."""
    return OutgoingRecord(key.topic, None, value, partition=key.partition)


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_records_of_a_transaction_are_committed_in_all_partitions(stage: Stage) -> None:
    producer = stage.producer()
    producer.begin()
    producer.add(record(b"a"))
    producer.add_fast(OutgoingValues("t", [b"b", b"c"], partition=1), range(2))
    assert [T0, T1] == sorted(result.batch.partition for result in producer.commit())
    assert READY is producer.phase
    assert ([b"a", "COMMIT"], [b"b", b"c", "COMMIT"]) == (stage.log(T0), stage.log(T1))
    assert "CompleteCommit" == stage.state


@pytest.mark.parametrize("is_added_first", [True, False])
def test_a_producer_whose_id_has_expired_goes_on_with_another_after_an_abort(
    is_added_first: bool,
) -> None:
    stage = Stage(
        transactional_id_expiration_ms="10000",
        transaction_remove_expired_transaction_cleanup_interval_ms="1000",
    )
    producer = stage.producer()
    producer.begin()
    producer.add(record(b"a"))
    producer.commit()
    first = producer.transactional_identity
    stage.cluster.pass_time(20_000)
    producer.begin()
    if is_added_first:
        producer.add(record(b"lost"))
    with pytest.raises(TransactionFailed, match="INVALID_PRODUCER_ID_MAPPING"):
        producer.send_offsets(GroupMembership("g"), {T0: 1})
    assert TO_ABORT is producer.phase
    producer.abort()
    assert first.producer_id != producer.transactional_identity.producer_id
    producer.begin()
    producer.add(record(b"b"))
    producer.commit()
    assert [b"a", "COMMIT", b"b", "COMMIT"] == stage.log(T0)


def test_sequences_go_on_from_transaction_to_transaction(stage: Stage) -> None:
    producer = stage.producer()
    for value in (b"a", b"b"):
        producer.begin()
        producer.add(record(value))
        producer.commit()
    assert [b"a", "COMMIT", b"b", "COMMIT"] == stage.log(T0)


def test_an_abort_drops_what_has_not_left_and_ends_the_rest(stage: Stage) -> None:
    producer = stage.producer()
    producer.begin()
    producer.add(record(b"a"))
    producer.poll()
    producer.add(record(b"b"))
    producer.abort()
    assert [b"a", "ABORT"] == stage.log(T0)
    assert READY is producer.phase


def test_a_transaction_without_records_is_not_known_to_its_coordinator(stage: Stage) -> None:
    producer = stage.producer()
    producer.begin()
    producer.commit()
    producer.begin()
    producer.abort()
    assert "Empty" == stage.state


def test_another_instance_fences_the_one_before_and_aborts_what_it_left(stage: Stage) -> None:
    first, second = stage.producer(), stage.producer()
    first.begin()
    first.add(record(b"a"))
    first.poll()
    second.begin()
    first.add(record(b"b", T1))
    with pytest.raises(ProducerFenced) as raised:
        first.commit()
    assert "x" == raised.value.transactional_id
    assert TransactionPhase.FENCED is first.phase
    with pytest.raises(WrongPhase):
        first.abort()
    second.add(record(b"c"))
    second.commit()
    assert [b"a", "ABORT", b"c", "COMMIT"] == stage.log(T0)


def test_a_producer_without_the_right_to_its_id_is_not_taken_for_fenced_by_another(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(*_: object) -> None:
        raise api_error(TRANSACTIONAL_ID_AUTHORIZATION_FAILED)

    producer = stage.producer()
    monkeypatch.setattr(TransactionCalls, "init", denied)
    with pytest.raises(ProducerFenced) as raised:
        producer.begin()
    assert TransactionPhase.FENCED is producer.phase
    assert "producer of x may write nothing: TRANSACTIONAL_ID_AUTH" in str(raised.value)
    assert "another producer" not in (raised.value.hint or "")
    assert "kctl acls check" in (raised.value.hint or "")


def test_an_instance_that_begins_nothing_ends_what_another_left(stage: Stage) -> None:
    first, second = stage.producer(), stage.producer()
    first.begin()
    first.add(record(b"a"))
    first.flush()
    second.init()
    stage.cluster.pass_time(1_000)
    assert [b"a", "ABORT"] == stage.log(T0)
    with pytest.raises(WrongPhase, match="cannot initialise"):
        second.init()


def test_offsets_count_once_their_transaction_is_committed(stage: Stage) -> None:
    producer = stage.producer()
    for end in (producer.abort, producer.commit):
        producer.begin()
        producer.send_offsets(GroupMembership("g"), {T0: 5})
        producer.send_offsets(GroupMembership("g"), {T1: 6})
        producer.send_offsets(GroupMembership("g"), {})
        end()
        stage.cluster.pass_time(1_000)
        expected = {} if end == producer.abort else {T0: 5, T1: 6}
        assert expected == committed_offsets(stage.client, "g")


def test_offsets_of_named_partitions_wait_for_the_transaction_that_has_others(stage: Stage) -> None:
    producer = stage.producer()
    producer.begin()
    producer.send_offsets(GroupMembership("g"), {T0: 5})
    assert {} == committed_offsets(stage.client, "g")
    with pytest.raises(ApiError) as raised:
        committed_offsets(stage.client, "g", [T0])
    assert UNSTABLE_OFFSET_COMMIT == raised.value.code
    producer.commit()
    assert {T0: 5} == committed_offsets(stage.client, "g", [T0])


def test_a_refused_commit_of_offsets_is_aborted(stage: Stage) -> None:
    producer = stage.producer()
    producer.begin()
    with pytest.raises(TransactionFailed) as raised:
        producer.send_offsets(GroupMembership("g", 3, "m"), {T0: 5})
    assert isinstance(raised.value.cause, ApiError)
    assert TO_ABORT is producer.phase
    with pytest.raises(WrongPhase):
        producer.commit()
    producer.abort()
    producer.begin()
    producer.commit()


def test_a_batch_that_fails_is_aborted_with_another_epoch(stage: Stage) -> None:
    producer = stage.producer()
    producer.begin()
    epoch = producer.transactional_identity[1]
    producer.add(record(b"x" * 2_000_000))
    with pytest.raises(TransactionFailed):
        producer.commit()
    assert TO_ABORT is producer.phase
    producer.abort()
    assert epoch < producer.transactional_identity[1]
    producer.begin()
    producer.add(record(b"a"))
    producer.commit()
    assert [b"a", "COMMIT"] == stage.log(T0)[-2:]


@pytest.mark.parametrize(
    "use",
    [
        lambda producer: producer.commit(),
        lambda producer: producer.abort(),
        lambda producer: producer.add(record(b"a")),
        lambda producer: producer.add_fast(OutgoingValues("t", [b"a"]), range(1)),
        lambda producer: producer.send_offsets(GroupMembership("g"), {T0: 1}),
        lambda producer: producer.transactional_identity,
    ],
)
def test_outside_of_a_transaction_nothing_is_taken(
    stage: Stage, use: Callable[[TransactionalProducer], object]
) -> None:
    producer = stage.producer()
    with pytest.raises(WrongPhase, match="not ready"):
        use(producer)
    assert ([], None, True) == (producer.poll(), producer.due_in_ms(), producer.is_idle)


def test_a_transaction_begins_after_the_one_before(stage: Stage) -> None:
    producer = stage.producer()
    producer.begin()
    with pytest.raises(WrongPhase, match="cannot begin: the transaction is open"):
        producer.begin()


def test_an_end_without_an_answer_may_be_repeated(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = stage.producer(linger_ms=5)
    producer.begin()
    producer.add(record(b"a"))
    assert 5 == producer.due_in_ms()
    assert not producer.is_idle
    end, failures = TransactionCalls.end, [TimedOut("EndTxn", 5)]

    def lost(self: TransactionCalls, *identity: object, is_commit: bool) -> None:
        end(self, *identity, is_commit=is_commit)  # type: ignore[arg-type]
        if failures:
            raise failures.pop()

    monkeypatch.setattr(TransactionCalls, "end", lost)
    with pytest.raises(TimedOut):
        producer.commit()
    assert TransactionPhase.COMMITTING is producer.phase
    with pytest.raises(WrongPhase, match="cannot abort: the transaction is committing"):
        producer.abort()
    producer.commit()
    assert [b"a", "COMMIT"] == stage.log(T0)


def test_a_partition_that_cannot_take_part_ends_the_transaction(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise api_error(UNKNOWN_TOPIC_OR_PARTITION)

    producer = stage.producer()
    producer.begin()
    with monkeypatch.context() as patch:
        patch.setattr(TransactionCalls, "add_partitions", refused)
        producer.add(record(b"a"))
        with pytest.raises(TransactionFailed):
            producer.commit()
    producer.abort()
    assert [] == stage.log(T0)


def test_a_commit_that_is_still_going_on_at_its_time_out_is_no_failed_transaction(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = stage.producer()
    producer.begin()
    producer.add(record(b"a"))
    end, failures = TransactionCalls.end, [api_error(CONCURRENT_TRANSACTIONS)]

    def busy(self: TransactionCalls, *identity: object, is_commit: bool) -> None:
        end(self, *identity, is_commit=is_commit)  # type: ignore[arg-type]
        if failures:
            raise failures.pop()

    monkeypatch.setattr(TransactionCalls, "end", busy)
    with pytest.raises(ApiError):
        producer.commit()
    assert TransactionPhase.COMMITTING is producer.phase
    producer.commit()
    assert ([b"a", "COMMIT"], READY) == (stage.log(T0), producer.phase)


def test_a_transaction_that_a_request_without_an_answer_has_opened_is_aborted(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = stage.producer()
    producer.begin()
    producer.add(record(b"a"))
    add_partitions = TransactionCalls.add_partitions

    def lost(self: TransactionCalls, *arguments: object) -> None:
        add_partitions(self, *arguments)  # type: ignore[arg-type]
        raise TimedOut("AddPartitionsToTxn", 5)

    with monkeypatch.context() as patch:
        patch.setattr(TransactionCalls, "add_partitions", lost)
        with pytest.raises(TransactionFailed):
            producer.commit()
    producer.abort()
    assert "Ongoing" != stage.state
    # Nothing is left for the coordinator to abort by time, which would fence the producer.
    stage.cluster.pass_time(120_000)
    producer.begin()
    producer.add(record(b"b"))
    producer.commit()
    assert [b"b", "COMMIT"] == stage.log(T0)[-2:]


def test_a_transaction_that_failed_sends_no_more_of_its_records(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = []

    def refuse(_self: TransactionCalls, _identity: object, keys: list[TopicPartition]) -> None:
        refused.extend(keys)
        raise api_error(UNKNOWN_TOPIC_OR_PARTITION)

    producer = stage.producer()
    producer.begin()
    producer.add(record(b"a"))
    producer.add(record(b"b", T1))
    monkeypatch.setattr(TransactionCalls, "add_partitions", refuse)
    with pytest.raises(TransactionFailed):
        producer.poll()
    assert ([], None) == (producer.poll(), producer.due_in_ms())
    assert [T0] == refused


def test_an_abort_that_is_not_answered_leaves_nothing_to_commit(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = stage.producer(linger_ms=60_000)
    producer.begin()
    producer.add(record(b"a"))
    producer.flush()
    producer.add(record(b"dropped"))
    with monkeypatch.context() as patch:
        patch.setattr(producer._calls, "end", unanswered)
        with pytest.raises(TimedOut):
            producer.abort()
    with pytest.raises(WrongPhase):
        producer.commit()
    producer.abort()
    assert [b"a", "ABORT"] == stage.log(T0)


def unanswered(*_: object, **__: object) -> None:
    raise TimedOut("request", 1)


def test_an_epoch_that_was_raised_without_an_answer_does_not_fence_its_producer(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = stage.producer()
    producer.begin()
    producer.add(record(b"a"))
    producer.flush()
    # A batch that failed makes the abort raise the epoch.
    producer._needs_epoch = True
    init = producer._calls.init

    def lost(identity: Any = None) -> None:
        init(identity)
        raise TimedOut("InitProducerId", 1)

    with monkeypatch.context() as patch:
        patch.setattr(producer._calls, "init", lost)
        with pytest.raises(TimedOut):
            producer.abort()
    producer.abort()
    producer.begin()
    producer.add(record(b"b"))
    producer.commit()
    assert [b"a", "ABORT", b"b", "COMMIT"] == stage.log(T0)


def test_results_are_returned_by_the_commit_that_is_answered(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = stage.producer()
    producer.begin()
    producer.add(record(b"a"), 7)
    with monkeypatch.context() as patch:
        patch.setattr(producer._calls, "end", unanswered)
        with pytest.raises(TimedOut):
            producer.commit()
    assert not producer.is_idle
    (result,) = producer.commit()
    assert [7] == list(result.batch.places)
    assert producer.is_idle


def test_an_abort_waits_for_batches_that_are_under_way(stage: Stage) -> None:
    producer = stage.producer()
    producer.begin()
    producer.add(record(b"a"), 7)
    # Handed over to be sent, as a full batch is.
    producer._current()._close(T0)
    assert [[7]] == [list(result.batch.places) for result in producer.abort()]
    assert producer.is_idle
