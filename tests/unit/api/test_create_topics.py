"""CreateTopics as clients see it, in every version."""

from __future__ import annotations

from typing import Any

import pytest

from engine.api.create_topics import CreateTopics
from engine.api.exchange import EncodedRows
from engine.hash_order import in_hash_order
from engine.host.promise import Promise
from engine.limits import ROWS_PER_SHARE
from engine.wire.codec import message_codec
from engine.wire.row_bytes import insert_rows
from engine.wire.structs import message_class
from tests.unit.controller.admin import AdminBench, exchange, over_the_wire, reply_of

REQUEST = message_class("CreateTopicsRequest")


def topic(name: str, **fields: Any) -> Any:
    return REQUEST.CreatableTopic(
        **{"name": name, "num_partitions": 1, "replication_factor": 1, **fields}
    )


def ask(bench: AdminBench, *topics: Any, version: int = 7, **fields: Any) -> Any:
    handler = CreateTopics(bench.node.controller, bench.admin, bench.turns)
    request = REQUEST(topics=list(topics), **{"timeout_ms": 1000, **fields})
    return reply_of(bench, handler.handle(request, exchange(version)))


def codes(reply: Any) -> list[tuple[str, int, str | None]]:
    return [(each.name, each.error_code, each.error_message) for each in reply.topics]


@pytest.mark.parametrize("version", range(8))
def test_a_topic_is_created_in_every_version(version: int) -> None:
    bench = AdminBench(1)
    handler = CreateTopics(bench.node.controller, bench.admin, bench.turns)
    requested = REQUEST(topics=[topic("t", num_partitions=2)], timeout_ms=1000)
    request = over_the_wire(requested, version)
    reply = reply_of(bench, handler.handle(request, exchange(version)))
    received = over_the_wire(reply, version)
    assert [("t", 0, "" if version == 0 else None)] == codes(received)
    result = received.topics[0]
    described = version >= 5
    assert (2, 1) if described else (-1, -1) == (result.num_partitions, result.replication_factor)
    assert described == any(each.name == "cleanup.policy" for each in result.configs)
    topic_id = bench.cluster.controller.context.topic_ids["t"]
    assert (topic_id if version == 7 else bytes(16)) == result.topic_id


def test_the_answer_waits_for_leaders_and_describes_the_topic() -> None:
    bench = AdminBench(2)
    handler = CreateTopics(bench.node.controller, bench.admin, bench.turns)
    configs = [REQUEST.CreatableTopicConfig(name="retention.ms", value="5")]
    request = REQUEST(topics=[topic("t", replication_factor=2, configs=configs)], timeout_ms=1000)
    answer = handler.handle(request, exchange(7))
    assert isinstance(answer, Promise)
    assert not answer.is_kept
    (result,) = reply_of(bench, answer).topics
    (entry,) = [each for each in result.configs if each.name == "retention.ms"]
    assert ("5", 1, False, False) == (
        entry.value,
        entry.config_source,
        entry.read_only,
        entry.is_sensitive,
    )
    assert (0, 2) == (result.topic_config_error_code, result.replication_factor)
    names = [each.name for each in result.configs]
    assert in_hash_order(names) == names


def test_one_bad_topic_does_not_hinder_the_others() -> None:
    bench = AdminBench(1)
    reply = ask(
        bench,
        topic("twice"),
        topic("t"),
        topic("twice"),
        topic("__cluster_metadata"),
        topic("u", replication_factor=2),
    )
    duplicate = "Found multiple entries for this topic."
    assert [
        ("twice", 42, duplicate),
        ("t", 0, None),
        ("twice", 42, duplicate),
        ("__cluster_metadata", 42, "Creation of internal topic __cluster_metadata is prohibited."),
        ("u", 38, "Replication factor: 2 larger than available brokers: 1."),
    ] == codes(reply)
    refused = reply.topics[-1]
    assert ([], -1, -1) == (refused.configs, refused.num_partitions, refused.replication_factor)


def test_an_assignment_and_validation_alone() -> None:
    bench = AdminBench(1)
    assignment = REQUEST.CreatableReplicaAssignment(partition_index=0, broker_ids=[1])
    fields = {"num_partitions": -1, "replication_factor": -1, "assignments": [assignment]}
    reply = ask(bench, topic("t", **fields), validate_only=True)
    assert (0, bytes(16), 1) == (
        reply.topics[0].error_code,
        reply.topics[0].topic_id,
        reply.topics[0].num_partitions,
    )
    assert not bench.cluster.exists("/brokers/topics/t")


def test_no_topic_is_an_answer_too() -> None:
    assert [] == ask(AdminBench(1)).topics


def test_without_time_the_topic_is_there_and_the_answer_is_late() -> None:
    bench = AdminBench(1)
    reply = ask(bench, topic("t"), timeout_ms=0)
    assert [("t", 7, None)] == codes(reply)
    assert [] == reply.topics[0].configs
    assert bench.cluster.exists("/brokers/topics/t/partitions/0/state")


def test_another_broker_is_not_the_controller() -> None:
    bench = AdminBench(2)
    handler = CreateTopics(bench.cluster.nodes[2].controller, bench.admin, bench.turns)
    reply = handler.handle(REQUEST(topics=[topic("t"), topic("u")]), exchange(7))
    assert [("t", 41, None), ("u", 41, None)] == codes(reply)


@pytest.mark.parametrize("version", range(8))
def test_the_response_to_very_many_topics_is_made_in_several_turns(version: int) -> None:
    bench = AdminBench(1, ends_early=True)
    names = [f"t{number}" for number in range(2 * ROWS_PER_SHARE + 1)]
    topics = [topic(name) for name in (*names, names[0])]
    encoded = ask(bench, *topics, version=version)
    assert isinstance(encoded, EncodedRows)
    assert (len(topics), 3) == (encoded.row_count, len(encoded.parts))
    content = b"".join(insert_rows("CreateTopics", version, *encoded.rows))
    received = message_codec("CreateTopicsResponse", version).decode(content)
    told = [(row.name, row.error_code) for row in received.topics]
    assert [(row.name, 42 if row.name == names[0] else 0) for row in topics] == told
    (alone,) = over_the_wire(ask(AdminBench(1), topics[1], version=version), version).topics
    ids = {"topic_id": received.topics[1].topic_id}
    assert vars_of(received.topics[1]) == {**vars_of(alone), **ids}


def vars_of(row: Any) -> dict[str, Any]:
    return {name: getattr(row, name) for name in row.__slots__}


@pytest.mark.parametrize(
    ("count", "is_held"), [(ROWS_PER_SHARE, False), (ROWS_PER_SHARE + 1, True)]
)
def test_the_next_request_of_the_connection_does_not_overtake_very_many_topics(
    count: int, is_held: bool
) -> None:
    bench = AdminBench(1, ends_early=True)
    handler = CreateTopics(bench.node.controller, bench.admin, bench.turns)
    requested = REQUEST(topics=[topic(f"t{number}") for number in range(count)], timeout_ms=1000)
    reply = handler.handle(requested, exchange(7))
    assert isinstance(reply, Promise)
    assert is_held == (reply.turns is not None and not reply.turns.is_kept)
    reply_of(bench, reply)
    assert reply.turns is None or reply.turns.is_kept
