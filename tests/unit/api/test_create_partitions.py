"""CreatePartitions as clients see it, in every version."""

from __future__ import annotations

from typing import Any

import pytest

from engine.admin.topic_rules import CreatableTopic
from engine.api.create_partitions import CreatePartitions
from engine.wire.structs import message_class
from tests.unit.controller.admin import AdminBench, exchange, over_the_wire, reply_of

REQUEST = message_class("CreatePartitionsRequest")


def with_topics(*topics: str, brokers: int = 1) -> AdminBench:
    bench = AdminBench(brokers)
    bench.outcomes(
        bench.admin.create_topics, *(CreatableTopic(each, 1, 1) for each in topics), timeout_ms=1000
    )
    return bench


def more(name: str, count: int, *assignments: list[int]) -> Any:
    rows = [REQUEST.CreatePartitionsAssignment(broker_ids=each) for each in assignments]
    return REQUEST.CreatePartitionsTopic(name=name, count=count, assignments=rows or None)


def ask(bench: AdminBench, *topics: Any, broker_id: int = 1, **fields: Any) -> Any:
    handler = CreatePartitions(bench.cluster.nodes[broker_id].controller, bench.admin)
    request = REQUEST(topics=list(topics), **{"timeout_ms": 1000, **fields})
    return reply_of(bench, handler.handle(request, exchange(3)))


def codes(reply: Any) -> list[tuple[str, int, str | None]]:
    return [(each.name, each.error_code, each.error_message) for each in reply.results]


@pytest.mark.parametrize("version", range(4))
def test_partitions_are_added_in_every_version(version: int) -> None:
    bench = with_topics("t")
    handler = CreatePartitions(bench.node.controller, bench.admin)
    requested = REQUEST(topics=[more("t", 3)], timeout_ms=1000)
    request = over_the_wire(requested, version)
    reply = reply_of(bench, handler.handle(request, exchange(version)))
    received = over_the_wire(reply, version)
    assert [("t", 0, None)] == codes(received)
    assert [0, 1, 2] == sorted(bench.cache.topics["t"])


def test_replicas_may_be_given_and_only_checked() -> None:
    bench = with_topics("t", brokers=2)
    assert [("t", 0, None)] == codes(ask(bench, more("t", 2, [2]), validate_only=True))
    assert 1 == len(bench.cache.topics["t"])
    assert [("t", 0, None)] == codes(ask(bench, more("t", 2, [2])))
    assert (2,) == bench.cache.topics["t"][1].replicas


def test_each_topic_is_answered_once() -> None:
    bench = with_topics("t", "u", "going")
    bench.node.channel.silent = {1}
    bench.outcomes(bench.admin.delete_topics, "going", timeout_ms=0)
    reply = ask(bench, more("t", 2), more("u", 2), more("t", 3), more("u", 1), more("going", 2))
    assert [
        ("t", 42, "Duplicate topic in request."),
        ("u", 42, "Duplicate topic in request."),
        ("going", 17, "The topic is queued for deletion."),
    ] == codes(reply)
    assert [("u", 37, "Topic already has 1 partitions.")] == codes(ask(bench, more("u", 1)))


def test_what_is_refused_at_once_comes_behind_the_other_topics() -> None:
    bench = with_topics("a", "b")
    reply = ask(bench, more("a", 2), more("b", 2), more("a", 2))
    assert [("b", 0, None), ("a", 42, "Duplicate topic in request.")] == codes(reply)


def test_many_topics_come_in_the_order_of_an_immutable_map_of_scala() -> None:
    bench = with_topics()
    # As Scala 2.13.15 gives out a set of these names.
    names = ["BB_ljogbb", "topic-811", "_qwte1l", "_b7v0jg", "_1u0bhc", "_srymve", "6cnc61"]
    names += ["topic-170", "topic-565", "_32awcl", "Aa_5jdeby"]
    expected = ["BB_ljogbb", "_1u0bhc", "topic-170", "topic-565", "_32awcl", "_srymve", "_qwte1l"]
    expected += ["6cnc61", "_b7v0jg", "topic-811", "Aa_5jdeby"]
    assert expected == [name for name, _, _ in codes(ask(bench, *(more(n, 2) for n in names)))]


def test_a_name_without_a_path_fails_each_topic_as_often_as_it_is_named() -> None:
    bench = with_topics("a")
    failed = [("a", -1, None), (".", -1, None), ("a", -1, None)]
    assert failed == codes(ask(bench, more("a", 2), more(".", 2), more("a", 3)))


def test_another_broker_is_not_the_controller() -> None:
    bench = with_topics("t", brokers=2)
    assert [("t", 41, None)] == codes(ask(bench, more("t", 2), broker_id=2))
