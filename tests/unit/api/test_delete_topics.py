"""DeleteTopics as clients see it, in every version."""

from __future__ import annotations

from typing import Any

import pytest

from engine.admin.topic_rules import CreatableTopic
from engine.api.delete_topics import DeleteTopics
from engine.wire.structs import message_class
from tests.unit.controller.admin import AdminBench, exchange, over_the_wire, reply_of

REQUEST = message_class("DeleteTopicsRequest")
NO_ID = bytes(16)


def with_topics(*topics: str, brokers: int = 1) -> AdminBench:
    bench = AdminBench(brokers)
    bench.outcomes(
        bench.admin.create_topics, *(CreatableTopic(each, 1, 1) for each in topics), timeout_ms=1000
    )
    return bench


def handler_of(bench: AdminBench, *, is_enabled: bool = True, broker_id: int = 1) -> DeleteTopics:
    controller = bench.cluster.nodes[broker_id].controller
    return DeleteTopics(controller, bench.admin, bench.cache, is_enabled=is_enabled)


def by_id(topic_id: bytes, name: str | None = None) -> Any:
    return REQUEST.DeleteTopicState(name=name, topic_id=topic_id)


def by_name(name: str) -> Any:
    return REQUEST.DeleteTopicState(name=name)


def ask(bench: AdminBench, *topics: Any, timeout_ms: int = 1000) -> Any:
    request = REQUEST(topics=list(topics), timeout_ms=timeout_ms)
    return reply_of(bench, handler_of(bench).handle(request, exchange(6)))


def codes(reply: Any) -> list[tuple[str | None, int]]:
    return [(each.name, each.error_code) for each in reply.responses]


@pytest.mark.parametrize("version", range(7))
def test_a_topic_is_deleted_in_every_version(version: int) -> None:
    bench = with_topics("t", "u")
    requested = REQUEST(topic_names=["t"], timeout_ms=1000)
    if version == 6:
        requested = REQUEST(topics=[by_name("t")], timeout_ms=1000)
    request = over_the_wire(requested, version)
    reply = reply_of(bench, handler_of(bench).handle(request, exchange(version)))
    received = over_the_wire(reply, version)
    assert [("t", 0)] == codes(received)
    assert ["u"] == list(bench.cache.topics)
    assert not bench.cluster.exists("/brokers/topics/t")


def test_topics_go_by_id_and_are_named_in_the_answer() -> None:
    bench = with_topics("t")
    topic_id = bench.cache.topic_ids["t"]
    unknown = bytes(15) + b"?"
    reply = ask(bench, by_id(topic_id), by_id(unknown), by_name("ghost"))
    assert [("t", 0), (None, 100), ("ghost", 3)] == codes(reply)
    assert [topic_id, unknown, NO_ID] == [each.topic_id for each in reply.responses]


def test_a_topic_named_twice_goes_once_and_is_answered_twice() -> None:
    bench = with_topics("t")
    assert [("t", 0), ("t", 0)] == codes(ask(bench, by_name("t"), by_name("t")))


def test_name_and_id_together_are_refused() -> None:
    bench = with_topics("t", "u")
    reply = ask(bench, by_id(bench.cache.topic_ids["t"], "t"), by_name("u"))
    assert [("t", 42), ("u", 42)] == codes(reply)
    assert bench.cluster.exists("/brokers/topics/t")


def test_nobody_may_delete_what_has_neither_name_nor_id() -> None:
    assert [(None, 29)] == codes(ask(with_topics("t"), by_id(NO_ID)))


def test_only_unknown_topics_are_answered_at_once() -> None:
    bench = with_topics()
    request = REQUEST(topics=[by_name("ghost")])
    assert [("ghost", 3)] == codes(handler_of(bench).handle(request, exchange(6)))


def test_without_time_the_deletion_goes_on_and_the_answer_is_late() -> None:
    bench = with_topics("t")
    assert [("t", 7)] == codes(ask(bench, by_name("t"), timeout_ms=0))
    assert not bench.cluster.exists("/brokers/topics/t")


@pytest.mark.parametrize(("version", "code"), [(2, 42), (3, 73), (6, 73)])
def test_disabled_deletion_is_reported(version: int, code: int) -> None:
    bench = with_topics("t")
    request = REQUEST(topics=[by_name("t")], topic_names=["t"])
    reply = handler_of(bench, is_enabled=False).handle(request, exchange(version))
    assert [("t", code)] == codes(reply)


def test_another_broker_is_not_the_controller() -> None:
    bench = with_topics("t", brokers=2)
    request = REQUEST(topics=[by_name("t")])
    reply = handler_of(bench, broker_id=2).handle(request, exchange(6))
    assert [("t", 41)] == codes(reply)
