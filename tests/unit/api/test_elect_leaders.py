"""ElectLeaders as clients see it, in every version."""

from __future__ import annotations

from typing import Any

import pytest

from engine.api.elect_leaders import ElectLeaders
from engine.wire.structs import message_class
from tests.unit.controller.admin import AdminBench, exchange, over_the_wire, reply_of

REQUEST = message_class("ElectLeadersRequest")
NOT_NEEDED = (84, "Leader election not needed for topic partition.")
PREFERRED, UNCLEAN = 0, 1


class Bench(AdminBench):
    """An admin bench with the handler of its first broker."""

    def __init__(self, brokers: int = 1) -> None:
        super().__init__(brokers)
        clock = self.cluster.clock
        self.handler = ElectLeaders(self.node.controller, self.cache, self.waiting, clock)

    def ask(self, version: int, *topics: Any, is_all: bool = False, **fields: Any) -> Any:
        """Ask and return the answer, None if it is not there yet."""
        requested = REQUEST(
            topic_partitions=None if is_all else list(topics), **{"timeout_ms": 1000, **fields}
        )
        request = over_the_wire(requested, version)
        answer = reply_of(self, self.handler.handle(request, exchange(version)))
        return answer and over_the_wire(answer, version)


def topic(name: str, *indexes: int) -> Any:
    return REQUEST.TopicPartitions(topic=name, partitions=list(indexes))


def rows(reply: Any) -> list[tuple[str, int, int, str | None]]:
    return [
        (found.topic, each.partition_id, each.error_code, each.error_message)
        for found in reply.replica_election_results
        for each in found.partition_result
    ]


def leaderless() -> Bench:
    """Return a bench whose t-0 has lost broker 2, the last in sync, while 3 is alive."""
    bench = Bench(3)
    bench.cluster.create_topic("t", (2, 3))
    for broker_id in (3, 2):
        bench.cluster.kill(broker_id)
    bench.cluster.start(3)
    bench.node.channel.take()
    return bench


@pytest.mark.parametrize("version", range(3))
def test_what_is_requested_is_answered_once_each(version: int) -> None:
    bench = Bench()
    bench.cluster.create_topic("t", (1,), (1,))
    reply = bench.ask(version, topic("t", 1, 0, 1), topic("gone", 0))
    assert 0 == reply.error_code
    assert [
        ("t", 1, *NOT_NEEDED),
        ("t", 0, *NOT_NEEDED),
        ("gone", 0, 3, "The partition does not exist."),
    ] == rows(reply)
    assert [] == rows(bench.ask(version))


@pytest.mark.parametrize("version", range(3))
def test_all_partitions_are_those_where_something_was_done(version: int) -> None:
    bench = Bench()
    bench.cluster.create_topic("t", (1,))
    assert [] == rows(bench.ask(version, is_all=True))


@pytest.mark.parametrize("version", [1, 2])
def test_a_new_leader_is_answered_when_the_metadata_shows_it(version: int) -> None:
    bench = leaderless()
    bench.is_listening = False
    request = over_the_wire(
        REQUEST(election_type=UNCLEAN, topic_partitions=None, timeout_ms=1000), version
    )
    answer = bench.handler.handle(request, exchange(version))
    assert reply_of(bench, answer) is None
    assert 3 == bench.cluster.state("t").leader
    bench.is_listening = True
    for _, _, told in bench.node.channel.take("UpdateMetadataRequest"):
        bench.learn(told)
    assert [("t", 0, 0, None)] == rows(answer.result())


def test_a_leader_that_the_metadata_does_not_show_in_time_is_timed_out() -> None:
    bench = leaderless()
    bench.is_listening = False
    request = REQUEST(election_type=UNCLEAN, topic_partitions=None, timeout_ms=1000)
    answer = bench.handler.handle(request, exchange(2))
    assert reply_of(bench, answer) is None
    bench.cluster.clock.advance(1000)
    bench.settle()
    assert [("t", 0, 7, None)] == rows(answer.result())


def test_an_election_that_cannot_be_held_says_so() -> None:
    ((_, _, code, message),) = rows(leaderless().ask(2, topic("t", 0)))
    assert 80 == code
    assert str(message).startswith("Failed to elect leader for partition t-0 under strategy ")


@pytest.mark.parametrize("kind", [-1, 2])
def test_another_kind_of_election_is_an_unknown_error(kind: int) -> None:
    bench = Bench()
    bench.cluster.create_topic("t", (1,))
    reply = bench.ask(2, topic("t", 0, 1), election_type=kind)
    assert -1 == reply.error_code
    assert [("t", 0, -1, None), ("t", 1, -1, None)] == rows(reply)
    reply = bench.ask(1, is_all=True, election_type=kind)
    assert (-1, []) == (reply.error_code, rows(reply))


def test_another_broker_than_the_controller_refuses() -> None:
    bench = Bench(2)
    bench.cluster.create_topic("t", (1,))
    other = bench.cluster.nodes[2].controller
    bench.handler = ElectLeaders(other, bench.cache, bench.waiting, bench.cluster.clock)
    assert [("t", 0, 41, None)] == rows(bench.ask(2, topic("t", 0)))
