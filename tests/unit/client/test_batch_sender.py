from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.client.batch_sender import ProduceSender, SenderOptions
from engine.client.outgoing_batch import OutgoingBatch
from engine.client.produce_calls import ACKS_ALL
from engine.client.producing import OutgoingValues, Producer, ProducerCallbacks, ProducerOptions
from engine.errors import EngineError
from engine.host.streams import StreamEvent
from engine.records.builder import BatchSettings
from engine.records.codec import Codec
from engine.wire.structs import message_class
from tests.unit.client.produce_log import (
    OUT_OF_ORDER,
    P0,
    P1,
    TOO_LARGE,
    ProduceLog,
    record,
    seen,
)

NOT_LEADER, TIMED_OUT, NOT_AUTHORIZED, LIST_TOO_LARGE = 6, 7, 29, 18
LINES = [b"%d" % number for number in range(2_000)]


def fed(log: ProduceLog, **options: Any) -> Producer:
    """Return a producer with lines for one partition, in batches of about 50."""
    producer = Producer(log.client(), ProducerOptions(**{"batch_bytes": 600, **options}))
    producer.add_fast(OutgoingValues("t", LINES, partition=0), range(1, len(LINES) + 1))
    return producer


def first_batch_of(log: ProduceLog) -> Any:
    return log.batches[0][1]


# -- sizes


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_batches_that_are_too_large_are_split_and_stay_in_order(codec: Codec) -> None:
    log = ProduceLog(size_bytes_max=700)
    results = fed(log, batch_bytes=10_000, codec=codec).flush()
    assert LINES == log.values(P0)
    assert {None} == {error for *_, error in seen(results)}
    sequences = [(b.base_sequence, b.record_count) for _, b in log.batches]
    assert [s + n for s, n in sequences[:-1]] == [s for s, _ in sequences[1:]]


def test_a_limit_that_was_learnt_is_kept_to() -> None:
    log = ProduceLog(size_bytes_max=700)
    producer = fed(log, batch_bytes=10_000)
    producer.flush()
    refused = log.requested_codes.count(TOO_LARGE)
    producer.add_fast(OutgoingValues("t", LINES, partition=0), range(len(LINES)))
    producer.flush()
    assert refused == log.requested_codes.count(TOO_LARGE) > 0
    assert LINES * 2 == log.values(P0)


def test_a_limit_that_is_learnt_splits_no_batch_that_may_be_stored() -> None:
    """A broker knows a batch again by all its sequences: it takes no part of one."""
    log = ProduceLog(size_bytes_max=1_500)
    sender = ProduceSender(log.client(), SenderOptions(ACKS_ALL, Codec.NONE, (7, 0)))
    lost: list[int] = []

    def handler(body: Any, version: int, address: tuple[str, int]) -> Any:
        partitions = [data.index for topic in body.topic_data for data in topic.partition_data]
        if partitions != [0] or len(lost) == 3:
            return log.produce(body, version, address)
        # It is stored, and its response is lost with the connection until the limit is known.
        if not lost:
            log.produce(body, version, address)
        lost.append(0)
        stream = next(s for s in reversed(log.opened) if s.address == address)
        log.events.append(StreamEvent(stream, "closed", reason="gone"))
        return None

    log.handlers["Produce"] = handler
    # The batch of the other partition is refused, and its half becomes the limit of the topic.
    for partition, count in ((P1, 32), (P0, 18)):
        batch = OutgoingBatch(partition, BatchSettings(), 0, (0,))
        for number in range(count):
            batch.builder.append(0, None, b"%050d" % number, ())
            batch.places.append(number)
        sender.put(batch)
    results = []
    while not sender.is_idle:
        results += sender.poll(1_000)
    assert lost
    assert {None} == {error for *_, error in seen(results)}
    assert [b"%050d" % number for number in range(18)] == log.values(P0)
    assert [b"%050d" % number for number in range(32)] == log.values(P1)


def test_a_list_that_is_too_large_for_a_segment_is_split_too() -> None:
    log = ProduceLog()
    log.codes = [LIST_TOO_LARGE]
    fed(log).flush()
    assert LINES == log.values(P0)


@pytest.mark.parametrize("is_idempotent", [None, False])
def test_a_record_that_is_too_large_fails_alone_and_is_named(is_idempotent: bool | None) -> None:
    log = ProduceLog(size_bytes_max=300)
    producer = Producer(log.client(), ProducerOptions(is_idempotent=is_idempotent))
    values = [b"x" * 50] * 20
    values[7] = b"y" * 400
    producer.add_fast(OutgoingValues("t", values, partition=0), range(1, 21))
    failed = [r for r in producer.flush() if r.error is not None]
    assert [([8], "MESSAGE_TOO_LARGE", False)] == [
        (list(r.batch.places), seen([r])[0][3], r.is_doubtful) for r in failed
    ]
    assert [b"x" * 50] * 19 == log.values(P0)


def test_records_that_are_too_large_fail_alone_also_one_behind_the_other() -> None:
    log = ProduceLog(size_bytes_max=700)
    values = [b"first", b"small 1", b"x" * 2_000, b"y" * 2_000, b"small 2", b"small 3"]
    failed = sent_each_alone(values, log)
    assert [(2, "MESSAGE_TOO_LARGE"), (3, "MESSAGE_TOO_LARGE")] == failed
    assert [b"first", b"small 1", b"small 2", b"small 3"] == log.values(P0)


@pytest.mark.parametrize("code", [NOT_LEADER, TIMED_OUT])
def test_a_batch_that_is_sent_again_keeps_its_sequence_before_one_that_is_too_large(
    code: int,
) -> None:
    log = ProduceLog(size_bytes_max=700)
    log.codes = [0, 0, code]
    failed = sent_each_alone([b"first", b"1", b"again", b"x" * 2_000, b"2", b"3"], log)
    assert [(3, "MESSAGE_TOO_LARGE")] == failed
    assert [b"first", b"1", b"again", b"2", b"3"] == log.values(P0)


def sent_each_alone(values: list[bytes], log: ProduceLog) -> list[tuple[int, str | None]]:
    """Send a batch for each value, as many under way as may be; return what failed, by place."""
    sender = ProduceSender(log.client(), SenderOptions(ACKS_ALL, Codec.NONE, (7, 0)))
    for place, value in enumerate(values):
        batch = OutgoingBatch(P0, BatchSettings(), 0, (place,))
        batch.builder.append(0, None, value, ())
        batch.places.append(place)
        sender.put(batch)
    results = []
    while not sender.is_idle:
        results += sender.poll(1_000)
    assert len(values) == len(results)
    assert 0 == sender.pending_bytes
    return [(next(iter(r.batch.places)), seen([r])[0][3]) for r in results if r.error is not None]


# -- order


def test_several_batches_of_a_partition_are_under_way_at_once() -> None:
    log = ProduceLog()
    client = log.client()
    counts: list[int] = []

    def note() -> None:
        (channel,) = client.connections._channels.values()
        counts.append(channel.connection.in_flight_count)

    log.on_batch = note
    # Batches gather behind the first one until it is stored.
    log.codes = [NOT_LEADER] * 8
    producer = Producer(client, ProducerOptions(batch_bytes=600))
    producer.add_fast(OutgoingValues("t", LINES, partition=0), range(len(LINES)))
    producer.flush()
    assert 5 >= max(counts) > 1


@pytest.mark.parametrize("code", [NOT_LEADER, TIMED_OUT, 2])
def test_batches_behind_one_that_failed_wait_for_it(code: int) -> None:
    log = ProduceLog()
    producer = fed(log)
    # The window is open by now: the error comes in the middle of it.
    log.codes = [0, 0, code]
    producer.flush()
    assert LINES == log.values(P0)


def test_errors_in_the_middle_of_the_window_keep_the_order() -> None:
    log = ProduceLog()
    requested: list[int] = []

    def fail_some() -> None:
        requested.append(0)
        if len(requested) in (4, 5, 6, 7, 8, 11, 12, 20):
            log.codes = [NOT_LEADER]

    log.on_batch = fail_some
    fed(log).flush()
    assert LINES == log.values(P0)
    assert OUT_OF_ORDER in log.requested_codes


def test_without_an_id_one_batch_is_under_way() -> None:
    log = ProduceLog()
    log.codes = [0, NOT_LEADER, 0, NOT_LEADER]
    results = fed(log, is_idempotent=False).flush()
    assert LINES == log.values(P0)
    assert {None} == {r.error for r in results}


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from((0, 0, 0, NOT_LEADER, TOO_LARGE, "lost", "stored and lost"))),
    st.sampled_from((300, 900, 5_000)),
)
def test_each_record_is_stored_once_and_in_order_in_spite_of_any_fault_on_the_way(
    script: list[int | str], limit_bytes: int
) -> None:
    log = ProduceLog(size_bytes_max=limit_bytes)

    def handler(body: Any, version: int, address: tuple[str, int]) -> Any:
        event = script.pop() if script else 0
        if event == TOO_LARGE and log.has_stored(body):
            # What has been stored was not too large.
            event = 0
        if isinstance(event, str):
            if event != "lost":
                log.produce(body, version, address)
            log.events.append(StreamEvent(log.opened[-1], "closed", reason="gone"))
            log.opened[-1].is_closed = False
            return None
        log.codes = [event] if event else []
        return log.produce(body, version, address)

    log.handlers["Produce"] = handler
    lines = LINES[:400]
    producer = Producer(log.client(), ProducerOptions(batch_bytes=700))
    producer.add_fast(OutgoingValues("t", lines, partition=0), range(len(lines)))
    results = producer.flush()
    failed = {place for r in results if r.error is not None for place in r.batch.places}
    # A record whose batch is "too large" by the script fails alone, and is left out.
    assert [line for place, line in enumerate(lines) if place not in failed] == log.values(P0)


_VALUES = st.sampled_from((b"s", b"s", b"x" * 2_000))
_ERRORS = st.sampled_from((0, 0, 0, 0, NOT_LEADER, TIMED_OUT, 2))


@settings(max_examples=150, deadline=None)
@given(st.lists(_VALUES, max_size=20), st.lists(_ERRORS, max_size=20))
def test_of_a_full_window_just_the_records_that_are_too_large_fail(
    values: list[bytes], script: list[int]
) -> None:
    log = ProduceLog(size_bytes_max=700)

    def handler(body: Any, version: int, address: tuple[str, int]) -> Any:
        code = script.pop() if script else 0
        is_large = len(body.topic_data[0].partition_data[0].records) > log.size_bytes_max
        # A timeout would leave open whether a record that is too large was stored.
        log.codes = [] if is_large and code == TIMED_OUT else [code]
        return log.produce(body, version, address)

    log.handlers["Produce"] = handler
    values = [b"first", *(b"%d" % n + value for n, value in enumerate(values))]
    large = [place for place, value in enumerate(values) if len(value) > 700]
    assert [(place, "MESSAGE_TOO_LARGE") for place in large] == sorted(sent_each_alone(values, log))
    assert [value for value in values if len(value) <= 700] == log.values(P0)


def test_of_two_records_the_one_that_is_too_large_fails_alone() -> None:
    log = ProduceLog(size_bytes_max=300)
    producer = Producer(log.client())
    producer.add_fast(OutgoingValues("t", [b"x", b"y" * 400], partition=0), range(1, 3))
    (failed,) = [r for r in producer.flush() if r.error is not None]
    assert ([2], -1) == (list(failed.batch.places), failed.base_offset)
    assert [b"x"] == log.values(P0)


def test_a_record_that_may_be_stored_and_is_too_large_now_ends_its_partition() -> None:
    log = ProduceLog()
    log.codes = [TIMED_OUT, TOO_LARGE]
    producer = Producer(log.client())
    producer.add(record(b"a", partition=0))
    (doubtful,) = producer.flush()
    assert ("MESSAGE_TOO_LARGE", True) == (seen([doubtful])[0][3], doubtful.is_doubtful)
    producer.add(record(b"b", partition=0))
    (failed,) = producer.flush()
    assert ("MESSAGE_TOO_LARGE", False) == (seen([failed])[0][3], failed.is_doubtful)
    assert [] == log.values(P0)


# -- the end of patience


def test_a_broker_that_stays_away_is_given_up_after_the_timeout() -> None:
    log = ProduceLog()
    told: list[EngineError] = []
    client = log.client()
    producer = Producer(client, notes=ProducerCallbacks(on_retry=told.append))
    producer.add(record(b"a", partition=0))
    producer.flush()
    log.codes = [NOT_LEADER] * 1_000
    began_ms = log.clock.now_ms
    producer.add(record(b"b", partition=0))
    (failed,) = producer.flush()
    assert "NOT_LEADER_OR_FOLLOWER" == seen([failed])[0][3]
    assert client.timeout_ms <= log.clock.now_ms - began_ms < client.timeout_ms + 2_000
    assert told


def test_a_broker_that_does_not_answer_is_given_up_after_the_timeout() -> None:
    log = ProduceLog()
    log.handlers["Produce"] = lambda *_: None
    client = log.client(request_timeout_ms=60_000)
    client.timeout_ms = 5_000
    producer = Producer(client)
    producer.add(record(b"a", partition=0))
    began_ms = log.clock.now_ms
    (failed,) = producer.flush()
    assert ("TimedOut", True) == (seen([failed])[0][3], failed.is_doubtful)
    assert 5_000 <= log.clock.now_ms - began_ms < 6_000


def test_a_failing_partition_is_logged_once_and_requested_with_pauses() -> None:
    log = ProduceLog()
    told: list[EngineError] = []
    producer = Producer(log.client(), notes=ProducerCallbacks(on_retry=told.append))
    producer.add(record(b"a", partition=0))
    producer.add(record(b"b", partition=1))
    producer.flush()
    log.leaders["t", 1] = -1
    log.requested.clear()
    began_ms = log.clock.now_ms
    producer.add(record(b"c", partition=1))
    while log.clock.now_ms < began_ms + 10_000:
        producer.add(record(b"d", partition=0))
        producer.poll(1)
    # Pauses grow to a second, although the other partition goes on.
    assert 10 <= log.requested_apis().count("Metadata") <= 20
    assert 1 == len(told)
    log.leaders["t", 1] = 2
    assert {None} == {result.error for result in producer.flush()}
    assert [b"b", b"c"] == log.values(P1)


def test_a_topic_that_is_known_may_be_unknown_for_a_while() -> None:
    log = ProduceLog()
    producer = Producer(log.client())
    producer.add(record(b"a", partition=0))
    producer.flush()
    leaders, log.leaders = log.leaders, {}
    log.codes = [NOT_LEADER]
    requested: list[int] = []

    def metadata(body: Any, version: int, address: tuple[str, int]) -> Any:
        requested.append(0)
        if len(requested) == 8:
            log.leaders = leaders
        return log.metadata(body, version, address)

    log.handlers["Metadata"] = metadata
    producer.add(record(b"b", partition=0))
    assert [None] == [r.error for r in producer.flush()]
    assert [b"a", b"b"] == log.values(P0)


def test_a_partition_that_failed_takes_no_more() -> None:
    log = ProduceLog()
    log.codes = [NOT_AUTHORIZED]
    producer = fed(log)
    results = producer.flush()
    assert {"TOPIC_AUTHORIZATION_FAILED"} == {error for *_, error in seen(results)}
    producer.add(record(b"b", partition=0))
    producer.add(record(b"c", partition=1))
    assert {"TOPIC_AUTHORIZATION_FAILED", None} == {e for *_, e in seen(producer.flush())}
    assert [] == log.values(P0)


def test_an_answer_that_leaves_a_partition_out_is_an_error() -> None:
    log = ProduceLog()
    log.handlers["Produce"] = lambda *_: message_class("ProduceResponse")(responses=[])
    producer = Producer(log.client())
    producer.add(record(b"a", partition=0))
    (failed,) = producer.flush()
    assert "leaves out t-0" in str(failed.error)


def test_batches_under_way_when_their_partition_fails_have_its_error_too() -> None:
    log = ProduceLog()
    codes = [*[NOT_LEADER] * 8, *[0] * 4]
    under_way: list[int] = []
    client = log.client()

    def fail_all_from_the_fifth_one_that_could_be_stored_on() -> None:
        code = codes.pop(0) if codes else NOT_AUTHORIZED
        log.codes = [code] if code else []
        (channel,) = client.connections._channels.values()
        if code == NOT_AUTHORIZED:
            under_way.append(channel.connection.in_flight_count)

    # Batches gather behind the first one until it is stored, and then fill the window.
    log.on_batch = fail_all_from_the_fifth_one_that_could_be_stored_on
    producer = Producer(client, ProducerOptions(batch_bytes=600))
    producer.add_fast(OutgoingValues("t", LINES, partition=0), range(1, len(LINES) + 1))
    results = producer.flush()
    assert max(under_way) > 1
    stored, failed = seen(results)[:4], seen(results)[4:]
    assert {None} == {error for *_, error in stored}
    assert {(-1, "TOPIC_AUTHORIZATION_FAILED")} == {(at, error) for _, at, _, error in failed}
    # Nobody is left without a result, and nothing is counted as pending.
    assert len(LINES) == sum(count for _, _, count, _ in seen(results))
    assert producer.is_idle
