"""The fetch session of a follower: what each request has, and what is read in a response."""

from __future__ import annotations

from typing import Any

from engine.kafka_errors import FETCH_SESSION_ID_NOT_FOUND
from engine.model import TopicPartition
from engine.replication.following.fetch_session_handler import FetchSessionHandler
from engine.replication.following.fetch_state import PartitionResponse
from engine.replication.following.followed_partitions import ReplicaFetcherConfig
from engine.replication.partition_types import EpochEnd, FetchSpec
from engine.wire.codec import message_codec
from engine.wire.structs import message_class

A, B = TopicPartition("a", 0), TopicPartition("b", 1)
IDS = {A: b"a" * 16, B: b"b" * 16}
SPEC = FetchSpec(5, 100, 3, 2, 1)
VERSION = 17


def session() -> FetchSessionHandler:
    return FetchSessionHandler(2, lambda: 77, ReplicaFetcherConfig(min_bytes=3, max_wait_ms=9))


def message_of(call: Any, version: int = VERSION) -> Any:
    """Return a request as its leader reads it."""
    codec = message_codec("FetchRequest", version)
    return codec.decode(memoryview(codec.encode(call.message(version))))


def response(session_id: int = 0, error_code: int = 0, **more: Any) -> Any:
    return message_class("FetchResponse")(session_id=session_id, error_code=error_code, **more)


def requested(request: Any) -> dict[bytes, list[int]]:
    return {topic.topic_id: [p.partition for p in topic.partitions] for topic in request.topics}


def forgotten(request: Any) -> dict[bytes, list[int]]:
    return {topic.topic_id: topic.partitions for topic in request.forgotten_topics_data}


def test_the_first_request_has_all_and_who_asks() -> None:
    request = message_of(session().build_call({A: SPEC, B: SPEC}, set(), IDS))
    assert (0, 0) == (request.session_id, request.session_epoch)
    assert (2, 77) == (request.replica_state.replica_id, request.replica_state.replica_epoch)
    assert (9, 3, 10 << 20) == (request.max_wait_ms, request.min_bytes, request.max_bytes)
    assert {IDS[A]: [0], IDS[B]: [1]} == requested(request)
    row = request.topics[0].partitions[0]
    assert (5, 100, 3, 2, 1) == (
        row.fetch_offset,
        row.partition_max_bytes,
        row.current_leader_epoch,
        row.last_fetched_epoch,
        row.log_start_offset,
    )


def test_later_requests_have_what_changed_and_what_to_forget() -> None:
    one = session()
    message_of(one.build_call({A: SPEC, B: SPEC}, set(), IDS))
    one.process_response(response(9))
    request = message_of(one.build_call({A: SPEC._replace(fetch_offset=6)}, {A}, IDS))
    assert (9, 1) == (request.session_id, request.session_epoch)
    assert {IDS[A]: [0]} == requested(request)
    assert {IDS[B]: [1]} == forgotten(request)
    one.process_response(response(9))
    request = message_of(one.build_call({A: SPEC._replace(fetch_offset=6)}, set(), IDS))
    assert (9, 2, {}, {}) == (
        request.session_id,
        request.session_epoch,
        requested(request),
        forgotten(request),
    )


def test_a_round_without_partitions_forgets_those_that_are_held() -> None:
    one = session()
    assert not one.holds_partitions
    message_of(one.build_call({A: SPEC}, set(), IDS))
    one.process_response(response(9))
    assert one.holds_partitions
    request = message_of(one.build_call({}, set(), IDS))
    assert (9, 1, {}) == (request.session_id, request.session_epoch, requested(request))
    assert {IDS[A]: [0]} == forgotten(request)
    assert not one.holds_partitions


def test_what_went_by_name_is_forgotten_by_name() -> None:
    one = session()
    message_of(one.build_call({A: SPEC}, set(), {}), 12)
    one.process_response(response(9))
    call = one.build_call({}, set(), IDS)
    assert call.highest == 12
    request = message_of(call, 12)
    assert 9 == request.session_id
    assert [("a", [0])] == [
        (topic.topic, topic.partitions) for topic in request.forgotten_topics_data
    ]


def test_partitions_of_two_topics_of_a_name_go_by_the_id_of_each() -> None:
    one, other = session(), TopicPartition("a", 1)
    ids = {**IDS, other: b"z" * 16}
    request = message_of(one.build_call({A: SPEC, other: SPEC}, set(), ids))
    assert {IDS[A]: [0], b"z" * 16: [1]} == requested(request)


def test_a_recreated_topic_is_forgotten_and_requested() -> None:
    one = session()
    message_of(one.build_call({A: SPEC}, set(), IDS))
    one.process_response(response(9))
    request = message_of(one.build_call({A: SPEC}, set(), {A: b"z" * 16}))
    assert {b"z" * 16: [0]} == requested(request)
    assert {IDS[A]: [0]} == forgotten(request)


def test_a_lost_session_begins_again() -> None:
    one = session()
    message_of(one.build_call({A: SPEC}, set(), IDS))
    one.process_response(response(9))
    message_of(one.build_call({A: SPEC}, set(), IDS))
    assert not one.is_first
    assert [] == one.process_response(response(error_code=FETCH_SESSION_ID_NOT_FOUND))
    assert one.is_first
    assert {IDS[A]: [0]} == requested(message_of(one.build_call({A: SPEC}, set(), IDS)))


def test_without_a_session_every_request_is_a_first_one() -> None:
    one = session()
    for _ in range(2):
        request = message_of(one.build_call({A: SPEC}, set(), IDS))
        assert (0, 0, {IDS[A]: [0]}) == (
            request.session_id,
            request.session_epoch,
            requested(request),
        )
        one.process_response(response(0))


def test_a_topic_without_an_id_goes_by_name_and_so_do_all() -> None:
    one = session()
    message_of(one.build_call({A: SPEC}, set(), IDS))
    one.process_response(response(9))
    call = one.build_call({A: SPEC, B: SPEC}, set(), {A: IDS[A]})
    assert 12 == call.highest
    request = message_of(call, 12)
    assert ["a", "b"] == [topic.topic for topic in request.topics]
    assert (2, 0, 0) == (request.replica_id, request.session_id, request.session_epoch)


def test_a_leader_that_cannot_find_the_divergence_is_not_asked() -> None:
    assert 12 == session().build_call({A: SPEC}, set(), {}).lowest


def test_answers_are_found_by_id_and_by_name() -> None:
    kind = message_class("FetchResponse")
    row = kind.PartitionData(
        partition_index=0, high_watermark=8, log_start_offset=2, records=b"records"
    )
    parted = kind.PartitionData(
        partition_index=1, diverging_epoch=kind.EpochEndOffset(epoch=1, end_offset=4)
    )
    topics = [
        kind.FetchableTopicResponse(topic_id=IDS[A], partitions=[row]),
        kind.FetchableTopicResponse(topic="b", partitions=[parted]),
    ]
    one = session()
    message_of(one.build_call({A: SPEC, B: SPEC}, set(), IDS))
    answers = dict(one.process_response(response(1, responses=topics)))
    assert PartitionResponse(0, 8, 2, b"records") == answers[A]
    assert EpochEnd(1, 4) == answers[B].diverging_epoch
