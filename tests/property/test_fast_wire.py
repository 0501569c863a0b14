"""The fast path of Produce and Fetch says what the table codec says, right bytes and wrong."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import WireError
from engine.host.ports import FileRegion
from engine.wire.codec import message_codec
from engine.wire.fast_fetch_bytes import read_fetch_request
from engine.wire.fetch_bytes import (
    FetchedPartition,
    FetchRequest,
    FetchResponse,
    RequestedPartition,
    decode_fetch_request,
    encode_fetch_response,
)
from engine.wire.produce_bytes import (
    NodeEndpoint,
    ProducedPartition,
    ProduceRequest,
    decode_produce_request,
    encode_produce_response,
)
from engine.wire.schema import ENGINE_RELEASE
from engine.wire.structs import message_class
from tests.unit.wire.questions import damaged
from tests.unit.wire.values import drawn_message

PRODUCE_VERSIONS = range(12)
FETCH_VERSIONS = range(18)
EXAMPLES = 2
SEEDS = st.integers(0, 2**32)


def produce_by_table(message: Any) -> ProduceRequest:
    topics = [
        (topic.name, [(p.index, p.records) for p in topic.partition_data])
        for topic in message.topic_data
    ]
    return ProduceRequest(message.transactional_id, message.acks, message.timeout_ms, topics)


def fetch_by_table(message: Any, version: int) -> FetchRequest:
    has_ids, has_state = version >= 13, version >= 15
    topics = [
        (
            topic.topic_id if has_ids else topic.topic,
            [
                RequestedPartition(
                    p.partition,
                    p.current_leader_epoch,
                    p.fetch_offset,
                    p.last_fetched_epoch,
                    p.log_start_offset,
                    p.partition_max_bytes,
                )
                for p in topic.partitions
            ],
        )
        for topic in message.topics
    ]
    forgotten = [
        (topic.topic_id if has_ids else topic.topic, topic.partitions)
        for topic in message.forgotten_topics_data
    ]
    return FetchRequest(
        message.replica_state.replica_id if has_state else message.replica_id,
        message.max_wait_ms,
        message.min_bytes,
        message.max_bytes,
        message.isolation_level,
        message.session_id,
        message.session_epoch,
        topics,
        forgotten,
        message.rack_id,
        message.replica_state.replica_epoch if has_state else -1,
    )


def by_both(name: str, version: int, raw: bytes) -> tuple[Any, Any]:
    """Return what the fast path and the table codec make of bytes; errors as their text."""
    codec = message_codec(f"{name}Request", version)
    body = memoryview(bytearray(raw))
    fast: Any
    slow: Any
    try:
        read = decode_produce_request if name == "Produce" else read_fetch_request
        fast = read(body, version)
    except WireError as error:
        fast = str(error)
    try:
        message, _ = codec.decode_at(body, 0)
        slow = produce_by_table(message) if name == "Produce" else fetch_by_table(message, version)
    except WireError as error:
        slow = str(error)
    return fast, slow


def with_unknown_tag(raw: bytes) -> bytes:
    """Return a flexible message whose last tagged section has one more field."""
    count = raw[-1]
    assert count == 0
    return raw[:-1] + b"\x01\x63\x02ab"


@pytest.mark.parametrize(
    ("name", "version"),
    [*(("Produce", v) for v in PRODUCE_VERSIONS), *(("Fetch", v) for v in FETCH_VERSIONS)],
)
@given(seed=SEEDS)
def test_requests_are_read_alike(name: str, version: int, seed: int) -> None:
    rng = Random(seed)
    codec = message_codec(f"{name}Request", version)
    for _ in range(EXAMPLES):
        raw = codec.encode(drawn_message(rng, f"{name}Request", version, ENGINE_RELEASE))
        fast, slow = by_both(name, version, raw)
        assert not isinstance(slow, str)
        assert slow == fast
        if raw.endswith(b"\x00") and codec.layout.flexible:
            fast, slow = by_both(name, version, with_unknown_tag(raw))
            assert slow == fast
        fast, slow = by_both(name, version, damaged(rng, raw))
        assert slow == fast


def test_a_follower_is_read_without_the_table() -> None:
    codec = message_codec("FetchRequest", 17)
    message = drawn_message(Random(1), "FetchRequest", 17, ENGINE_RELEASE)
    message.cluster_id = None
    message.topics = []
    message.replica_state.replica_id, message.replica_state.replica_epoch = 3, 77
    request = decode_fetch_request(memoryview(codec.encode(message)), 17)
    assert (3, 77) == (request.replica_id, request.replica_epoch)


def number(rng: Random, bits: int) -> int:
    return rng.choice((-1, 0, 1, rng.randrange(-(2 ** (bits - 1)), 2 ** (bits - 1))))


def leader_and_endpoints(
    rng: Random, *, notifies_peer: bool
) -> tuple[tuple[int, int] | None, list[NodeEndpoint]]:
    if not notifies_peer or rng.random() < 0.5:
        return None, []
    leader = (rng.randrange(9), rng.randrange(9))
    return leader, [NodeEndpoint(leader[0], "höst", 9092, rng.choice((None, "rack", "")))]


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
@given(seed=SEEDS)
def test_produce_answers_are_written_alike(version: int, seed: int) -> None:
    rng = Random(seed)
    endpoints: list[NodeEndpoint] = []
    topics = []
    for topic in rng.sample(("a", "häß", "x" * 130), rng.randrange(4)):
        partitions = []
        for index in range(rng.choice((0, 1, 2, 130))):
            leader, more = leader_and_endpoints(rng, notifies_peer=version >= 10 and index < 2)
            endpoints = endpoints or more
            is_refused = rng.random() < 0.1
            partitions.append(
                ProducedPartition(
                    index,
                    number(rng, 16),
                    number(rng, 64),
                    number(rng, 64) if version >= 2 else -1,
                    number(rng, 64) if version >= 5 else -1,
                    ((3, "no key"), (4, None)) if is_refused else (),
                    "refused" if is_refused else None,
                    leader,
                )
            )
        topics.append((topic, partitions))
    raw = encode_produce_response(version, topics, endpoints)
    message = message_codec("ProduceResponse", version).decode(raw)
    assert raw == message_codec("ProduceResponse", version).encode(message)
    found = [
        (
            t.name,
            [
                (p.index, p.error_code, p.base_offset, p.log_append_time_ms, p.log_start_offset)
                for p in t.partition_responses
            ],
        )
        for t in message.responses
    ]
    assert [(name, [tuple(p[:5]) for p in answers]) for name, answers in topics] == found
    if version >= 8:
        assert [p.error_message for _, ps in topics for p in ps] == [
            p.error_message for t in message.responses for p in t.partition_responses
        ]
    if version >= 10:
        assert [e.node_id for e in endpoints] == [e.node_id for e in message.node_endpoints]


def fetched(rng: Random, version: int, index: int) -> FetchedPartition:
    is_flexible = version >= 12
    leader, _ = leader_and_endpoints(rng, notifies_peer=is_flexible)
    return FetchedPartition(
        index,
        number(rng, 16),
        number(rng, 64),
        number(rng, 64) if version >= 4 else -1,
        number(rng, 64) if version >= 5 else -1,
        rng.choice((None, b"", b"x", rng.randbytes(rng.choice((126, 127, 200))))),
        rng.choice((None, [], [(1, 2), (-1, 2**62)])) if version >= 4 else None,
        (rng.randrange(9), rng.randrange(99)) if is_flexible and rng.random() < 0.3 else None,
        leader,
        number(rng, 32) if version >= 11 else -1,
    )


def fetch_message(version: int, answer: FetchResponse) -> Any:
    made = message_class("FetchResponse")
    topics = []
    for topic, partitions in answer.topics:
        rows = []
        for found in partitions:
            row = made.PartitionData(
                partition_index=found.partition,
                error_code=found.error_code,
                high_watermark=found.high_watermark,
                last_stable_offset=found.last_stable_offset,
                log_start_offset=found.log_start_offset,
                preferred_read_replica=found.preferred_read_replica,
                records=found.records,
            )
            if found.aborted is None:
                row.aborted_transactions = None
            else:
                row.aborted_transactions = [
                    made.AbortedTransaction(producer_id=one, first_offset=first)
                    for one, first in found.aborted
                ]
            if found.diverging is not None:
                epoch, end = found.diverging
                row.diverging_epoch = made.EpochEndOffset(epoch=epoch, end_offset=end)
            if found.current_leader is not None:
                leader, epoch = found.current_leader
                row.current_leader = made.LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch)
            rows.append(row)
        name = {"topic_id": topic} if isinstance(topic, bytes) else {"topic": topic}
        topics.append(made.FetchableTopicResponse(partitions=rows, **name))
    return made(
        error_code=answer.error_code,
        session_id=answer.session_id,
        responses=topics,
        node_endpoints=[made.NodeEndpoint(**e._asdict()) for e in answer.node_endpoints],
    )


@pytest.mark.parametrize("version", FETCH_VERSIONS)
@given(seed=SEEDS)
def test_fetch_answers_are_written_alike(version: int, seed: int) -> None:
    rng = Random(seed)
    has_ids = version >= 13
    _, endpoints = leader_and_endpoints(rng, notifies_peer=version >= 16)
    answer = FetchResponse(
        [
            (
                rng.randbytes(16) if has_ids else topic,
                [fetched(rng, version, i) for i in range(rng.choice((0, 1, 2, 130)))],
            )
            for topic in rng.sample(("a", "häß", "x" * 130), rng.randrange(4))
        ],
        number(rng, 16) if version >= 7 else 0,
        number(rng, 32) if version >= 7 else 0,
        endpoints,
    )
    raw = b"".join(encode_fetch_response(version, answer))  # type: ignore[arg-type]
    assert message_codec("FetchResponse", version).encode(fetch_message(version, answer)) == raw


@pytest.mark.parametrize("version", [0, 11, 17])
def test_a_region_stands_where_its_bytes_would(version: int) -> None:
    topic = bytes(16) if version >= 13 else "t"

    def parts_with(records: Any) -> list[Any]:
        rows = [FetchedPartition(0, 0, records=records), FetchedPartition(1, 0, records=b"tail")]
        return encode_fetch_response(version, FetchResponse([(topic, rows)]))

    head, region, tail = parts_with(FileRegion(9, 100, 300))
    assert FileRegion(9, 100, 300) == region
    assert b"".join(parts_with(b"z" * 300)) == head + b"z" * 300 + tail
