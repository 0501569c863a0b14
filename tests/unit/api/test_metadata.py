"""Metadata in its versions: topics, leaders, brokers, what is made, what is kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.api.exchange import EncodedResponse
from engine.api.metadata import Metadata
from engine.host.memory import ManualClock
from engine.host.memory_network import MemoryTimers
from engine.host.promise import Promise
from engine.host.turns import LoopTurns
from engine.limits import METADATA_ANSWERS_KEPT, METADATA_TOPICS_AT_ONCE, SHARE_MS_MAX
from engine.model import TopicPartition
from engine.replication.metadata_cache import (
    BrokerNode,
    Endpoint,
    MetadataCache,
    PartitionMetadata,
)
from engine.wire.codec import message_codec
from engine.wire.structs import message_class
from tests.unit.api.asking import (
    CLICKS_ID,
    CLUSTER_ID,
    INSIDE,
    OUTSIDE,
    ask,
    cluster,
    exchange_of,
)

#: Topics of a real 3.9.1, and the order of its Metadata.
REAL: dict[str, Any] = json.loads(
    (Path(__file__).parent.parent / "replication/metadata_orders_3_9_1.json").read_text()
)
INT_MIN = -(1 << 31)
CLOCK = ManualClock()
TURNS = LoopTurns(MemoryTimers(CLOCK), CLOCK)


def topic(name: str | None = None, topic_id: bytes = bytes(16)) -> Any:
    return message_class("MetadataRequest").MetadataRequestTopic(name=name, topic_id=topic_id)


def named(*names: str) -> list[Any]:
    return [topic(name) for name in names]


class Maker:
    """Makes topics when it is told to, with the codes it is given."""

    def __init__(self, **codes: int) -> None:
        self.codes = codes
        self.requested: list[list[str]] = []

    def __call__(self, names: list[str]) -> Promise[dict[str, int]]:
        self.requested.append(names)
        return Promise.of({name: self.codes.get(name, 0) for name in names})


def requested(version: int, names: tuple[str, ...] | None, **fields: Any) -> Any:
    topics = None if names is None else named(*names)
    return ask(Metadata(cluster(), TURNS), "Metadata", version, topics=topics, **fields)


def errors(reply: Any) -> dict[str, int]:
    return {each.name: each.error_code for each in reply.topics}


@pytest.mark.parametrize("version", range(13))
def test_every_version_has_brokers_and_leaders(version: int) -> None:
    reply = requested(version, ("clicks",))
    # In the order of the map that Kafka keeps them in.
    assert [(2, "two", 9092), (1, "one", 9092)] == [
        (each.node_id, each.host, each.port) for each in reply.brokers
    ]
    (clicks,) = reply.topics
    assert (0, "clicks") == (clicks.error_code, clicks.name)
    assert [(0, 0, 1, [1, 2], [1, 2]), (0, 1, 2, [2, 1], [2])] == [
        (p.error_code, p.partition_index, p.leader_id, p.replica_nodes, p.isr_nodes)
        for p in clicks.partitions
    ]
    assert reply.controller_id == (1 if version >= 1 else -1)
    assert reply.cluster_id == (CLUSTER_ID if version >= 2 else None)
    assert reply.brokers[1].rack == ("rack1" if version >= 1 else None)
    assert clicks.partitions[0].leader_epoch == (5 if version >= 7 else -1)
    assert clicks.topic_id == (CLICKS_ID if version >= 10 else bytes(16))


@pytest.mark.parametrize(("version", "names"), [(0, ()), (1, None), (12, None)])
def test_all_topics_are_requested_by_none_and_before_version_1_by_an_empty_list(
    version: int, names: tuple[str, ...] | None
) -> None:
    reply = requested(version, names)
    assert {"clicks", "orders", "orphans", "__consumer_offsets"} == set(errors(reply))


def test_an_empty_list_asks_for_no_topic_from_version_1_on() -> None:
    reply = requested(1, ())
    assert [] == reply.topics
    assert 2 == len(reply.brokers)


def test_internal_topics_are_marked() -> None:
    reply = requested(1, None)
    assert ["__consumer_offsets"] == [each.name for each in reply.topics if each.is_internal]


def test_no_topic_is_called_unknown_before_a_controller_has_spoken() -> None:
    told_nothing = MetadataCache(1, CLUSTER_ID)
    reply = ask(Metadata(told_nothing, TURNS), "Metadata", 12, topics=named("clicks", "a b"))
    assert {"clicks": 5, "a b": 17} == errors(reply)
    assert 3 == errors(requested(12, ("nowhere",)))["nowhere"]


def test_a_partition_without_leader_says_so() -> None:
    (partition,) = requested(12, ("orphans",)).topics[0].partitions
    assert (5, -1, 3, [3], [3]) == (
        partition.error_code,
        partition.leader_id,
        partition.leader_epoch,
        partition.replica_nodes,
        partition.offline_replicas,
    )


@pytest.mark.parametrize(("version", "code"), [(0, 5), (5, 5), (6, 72), (12, 72)])
def test_a_leader_without_the_listener_has_an_error_of_its_own_from_version_6_on(
    version: int, code: int
) -> None:
    handler = Metadata(cluster(), TURNS)
    reply = ask(handler, "Metadata", version, OUTSIDE, topics=named("clicks"))
    of_second = reply.topics[0].partitions[1]
    assert (code, -1) == (of_second.error_code, of_second.leader_id)
    assert [(1, "one.example", 9093)] == [(b.node_id, b.host, b.port) for b in reply.brokers]


def test_version_0_leaves_out_replicas_that_are_down() -> None:
    (partition,) = requested(0, ("orders",)).topics[0].partitions
    assert (9, 1, [1]) == (partition.error_code, partition.leader_id, partition.replica_nodes)
    (partition,) = requested(5, ("orders",)).topics[0].partitions
    assert (0, [1, 3], [3]) == (
        partition.error_code,
        partition.replica_nodes,
        partition.offline_replicas,
    )


def test_topics_are_found_by_id_and_unknown_ids_come_back() -> None:
    handler, other = Metadata(cluster(), TURNS), b"\7" * 16
    requested_value = [topic(topic_id=CLICKS_ID), topic(topic_id=other), topic("orders")]
    reply = ask(handler, "Metadata", 12, topics=requested_value)
    assert [(100, None, other), (0, "clicks", CLICKS_ID)] == [
        (each.error_code, each.name, each.topic_id) for each in reply.topics
    ]


@pytest.mark.parametrize("requested_value", [topic(topic_id=CLICKS_ID), topic("clicks", CLICKS_ID)])
def test_ids_before_version_12_are_refused(requested_value: Any) -> None:
    reply = ask(Metadata(cluster(), TURNS), "Metadata", 10, topics=[requested_value])
    (refused,) = reply.topics
    assert (42, CLICKS_ID) == (refused.error_code, refused.topic_id)
    assert [] == reply.brokers


@pytest.mark.parametrize(("version", "code"), [(10, 42), (11, 42), (12, -1)])
def test_a_topic_without_name_and_id_is_refused(version: int, code: int) -> None:
    reply = ask(Metadata(cluster(), TURNS), "Metadata", version, topics=[topic(None)])
    assert [code] == [each.error_code for each in reply.topics]


def test_unknown_and_bad_names_are_distinguished() -> None:
    assert {"ghost": 3, "no/good": 17} == errors(requested(12, ("ghost", "no/good")))


def test_a_topic_that_was_made_just_now_has_no_leader_yet() -> None:
    maker = Maker(taken=36, late=7, refused=38)
    handler = Metadata(cluster(), TURNS, maker)
    names = ("fresh", "taken", "late", "refused", "no/good", "clicks")
    reply = ask(handler, "Metadata", 12, topics=named(*names))
    # More than four names are in the order of a hash set of Scala's.
    assert [["refused", "late", "fresh", "taken"]] == maker.requested
    expected = {"fresh": 5, "taken": 5, "late": 5, "refused": 38, "no/good": 17, "clicks": 0}
    assert expected == errors(reply)
    assert {bytes(16), CLICKS_ID} == {each.topic_id for each in reply.topics}


def test_topics_are_made_only_where_the_request_allows_it() -> None:
    maker = Maker()
    handler = Metadata(cluster(), TURNS, maker)
    forbidden = ask(handler, "Metadata", 4, topics=named("fresh"), allow_auto_topic_creation=False)
    assert {"fresh": 3} == errors(forbidden)
    assert [] == maker.requested
    assert {"fresh": 5} == errors(ask(handler, "Metadata", 4, topics=named("fresh")))
    assert {"fresh": 5} == errors(ask(handler, "Metadata", 3, topics=named("fresh")))
    assert [["fresh"], ["fresh"]] == maker.requested


def test_only_bad_names_make_nothing() -> None:
    maker = Maker()
    reply = ask(Metadata(cluster(), TURNS, maker), "Metadata", 12, topics=named("no/good"))
    assert {"no/good": 17} == errors(reply)
    assert [] == maker.requested


def test_operations_are_listed_when_requested() -> None:
    silent = requested(8, ("clicks",))
    assert INT_MIN == silent.cluster_authorized_operations
    assert INT_MIN == silent.topics[0].topic_authorized_operations
    reply = requested(
        8,
        ("clicks", "ghost"),
        include_cluster_authorized_operations=True,
        include_topic_authorized_operations=True,
    )
    assert 8096 == reply.cluster_authorized_operations
    assert [3576, 3576] == [each.topic_authorized_operations for each in reply.topics]


def body(handler: Metadata, name: str, listener: str = INSIDE) -> bytes:
    request = message_class("MetadataRequest")(topics=named(name))
    reply = handler.handle(request, exchange_of("Metadata", 12, listener))
    assert isinstance(reply, EncodedResponse)
    (part,) = reply.parts
    assert isinstance(part, bytes)
    return part


def test_an_answer_is_kept_until_what_is_known_changes() -> None:
    cache = cluster()
    handler = Metadata(cache, TURNS)
    first = body(handler, "clicks")
    assert body(handler, "clicks") is first
    assert body(handler, "clicks", OUTSIDE) != first
    assert body(handler, "orders") != first
    cache.update(2, cache.brokers.values(), {}, {})
    assert body(handler, "clicks") not in (first,)


def test_what_is_kept_has_a_bound() -> None:
    handler = Metadata(cluster(), TURNS)
    first = body(handler, "clicks")
    for number in range(METADATA_ANSWERS_KEPT):
        body(handler, f"ghost{number}")
    assert body(handler, "clicks") is not first
    assert body(handler, "clicks") == first


@pytest.mark.parametrize("version", [0, 1, 12])
def test_a_broker_lists_itself_until_a_controller_sends_others(version: int) -> None:
    cache = MetadataCache(1, CLUSTER_ID)
    cache.own = BrokerNode(1, (Endpoint(INSIDE, "one", 9092),))
    handler = Metadata(cache, TURNS)
    (told,) = ask(handler, "Metadata", version, topics=named("t")).brokers
    assert (1, "one", 9092) == (told.node_id, told.host, told.port)
    cache.update(2, [BrokerNode(2, (Endpoint(INSIDE, "two", 9092),))], {}, {})
    reply = ask(handler, "Metadata", version, topics=named("t"))
    assert [2] == [each.node_id for each in reply.brokers]


class ManyTopics:
    """A handler of a cluster with more topics than are answered at once, whose turns are short."""

    def __init__(self) -> None:
        self.clock = LookedAt()
        self.timers = MemoryTimers(self.clock)
        self.cache = cluster()
        self.names = [f"many-{number}" for number in range(2 * METADATA_TOPICS_AT_ONCE)]
        self.update(leader_epoch=1)
        self.handler = Metadata(self.cache, LoopTurns(self.timers, self.clock))

    def update(self, leader_epoch: int) -> None:
        """Let all of them have this leader epoch."""
        state = PartitionMetadata(1, leader_epoch, (1, 2), leader_epoch, (1, 2))
        self.cache.update(
            1,
            list(self.cache.brokers.values()),
            {TopicPartition(name, 0): state for name in self.names},
            {},
        )

    def ask(self, names: list[str] | None, version: int = 12) -> Any:
        request = message_class("MetadataRequest")(topics=None if names is None else named(*names))
        return self.handler.handle(request, exchange_of("Metadata", version))

    @staticmethod
    def rows(handled: Any, version: int = 12) -> list[Any]:
        response = handled.result() if isinstance(handled, Promise) else handled
        body = b"".join(response.parts)
        return list(message_codec("MetadataResponse", version).decode(body).topics)


class LookedAt(ManualClock):
    """A clock that goes on by a share whenever somebody looks at it."""

    def monotonic_ms(self) -> int:
        self.advance(SHARE_MS_MAX)
        return super().monotonic_ms()


@pytest.mark.parametrize("version", [0, 1, 8, 10, 12])
def test_thousands_of_topics_are_answered_in_several_turns(version: int) -> None:
    stage = ManyTopics()
    handled = stage.ask([] if version == 0 else None, version)
    assert not handled.is_kept
    turns: list[bool] = []
    stage.timers.call_soon(lambda: turns.append(handled.is_kept))
    stage.timers.run_until_idle()
    assert [False] == turns
    assert {"clicks", *stage.names} <= {row.name for row in stage.rows(handled, version)}


def test_an_answer_in_several_turns_is_of_one_version_of_the_metadata() -> None:
    stage = ManyTopics()
    handled = stage.ask(stage.names)
    stage.timers.call_soon(lambda: stage.update(leader_epoch=2))
    stage.timers.run_until_idle()
    epochs = {row.partitions[0].leader_epoch for row in stage.rows(handled)}
    assert {2} == epochs


def test_an_answer_that_is_overtaken_again_and_again_is_made_at_once() -> None:
    stage = ManyTopics()
    handled = stage.ask(stage.names)
    epoch = 2

    def change() -> None:
        nonlocal epoch
        if not handled.is_kept:
            stage.update(epoch)
            epoch += 1
            stage.timers.call_soon(change)

    stage.timers.call_soon(change)
    stage.timers.run_until_idle()
    assert 1 == len({row.partitions[0].leader_epoch for row in stage.rows(handled)})


def test_all_who_ask_the_same_meanwhile_get_the_answer_that_is_being_made() -> None:
    stage = ManyTopics()
    requested_first = [stage.ask(None) for _ in range(3)]
    stage.timers.run_until_idle()
    bodies = [handled.result().parts[0] for handled in requested_first]
    assert bodies[0] is bodies[1] is bodies[2]
    # And then it is kept.
    assert bodies[0] is stage.ask(None).parts[0]


def test_a_topic_deleted_between_two_turns_of_its_answer_is_unknown() -> None:
    stage = ManyTopics()
    handled = stage.ask(stage.names)
    gone = stage.names[-1]
    stage.timers.call_soon(
        lambda: stage.cache.update(
            1, list(stage.cache.brokers.values()), {TopicPartition(gone, 0): None}, {}
        )
    )
    stage.timers.run_until_idle()
    codes = {row.name: row.error_code for row in stage.rows(handled)}
    assert set(stage.names) == set(codes)
    assert {gone: 3} == {name: code for name, code in codes.items() if code}


def test_topics_come_in_the_order_of_a_real_broker() -> None:
    last = REAL["steps"][-1]["topics"]
    state = PartitionMetadata(1, 0, (1,), 0, (1,))
    states = {TopicPartition(name, i): state for name, order in last for i in range(len(order))}
    cache = MetadataCache(1, CLUSTER_ID)
    cache.update(1, [], states, {})
    handler = Metadata(cache, TURNS)
    reply = ask(handler, "Metadata", 9, topics=None)
    assert [name for name, _ in last] == [row.name for row in reply.topics]
    for names, order in REAL["named"]:
        reply = ask(handler, "Metadata", 9, topics=named(*names))
        assert order == [row.name for row in reply.topics]
