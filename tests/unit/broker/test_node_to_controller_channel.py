"""A broker's own requests find the current controller, and are asked until they are answered."""

from __future__ import annotations

from typing import Any

import pytest

from engine.broker.node_to_controller_channel import BrokerStopped, NodeToControllerChannel
from engine.broker.peers import Peers, PeerSecurity, Serve
from engine.errors import api_error
from engine.host.memory import ManualClock
from engine.host.memory_network import MemoryNetwork, MemoryTimers
from engine.host.promise import Promise
from engine.kafka_errors import NOT_CONTROLLER, UNKNOWN_SERVER_ERROR
from engine.limits import CONTROLLER_CHANNEL_RETRY_MS
from engine.replication.metadata_cache import BrokerNode, MetadataCache
from engine.wire.structs import message_class

RESPONSE = message_class("AllocateProducerIdsResponse")


class Stage:
    """Broker 1, which asks, and controllers of its process by id."""

    def __init__(self, controller_id: int | None = 2) -> None:
        self.clock = ManualClock()
        self.timers = MemoryTimers(self.clock)
        self.local: dict[int, Serve] = {}
        self.cache = MetadataCache(1, "cluster")
        self.requested: list[tuple[int, str, int]] = []
        peers = Peers(
            MemoryNetwork(self.timers),
            self.timers,
            self.clock,
            local=self.local,
            broker_id=1,
            security=PeerSecurity("PLAINTEXT"),
        )
        self.channel = NodeToControllerChannel(self.cache, peers, self.timers, self.clock)
        self.lead(controller_id)

    def lead(self, controller_id: int | None) -> None:
        self.cache.update(controller_id, [BrokerNode(2, ()), BrokerNode(3, ())], {}, {})

    def serve(self, broker_id: int, answer: Promise[Any]) -> None:
        def serve(name: str, version: int, _message: Any) -> Promise[Any]:
            self.requested.append((broker_id, name, version))
            return answer

        self.local[broker_id] = serve

    def ask(self) -> Promise[Any]:
        request = message_class("AllocateProducerIdsRequest")()
        return self.channel.send("AllocateProducerIds", lambda _version: request)

    def pause(self) -> None:
        self.clock.advance(CONTROLLER_CHANNEL_RETRY_MS)
        self.timers.run_until_idle()


def test_what_the_controller_answers_at_once_is_there_at_once() -> None:
    stage = Stage()
    stage.serve(2, Promise.of(RESPONSE(producer_id_len=5)))
    assert 5 == stage.ask().result().producer_id_len
    assert [(2, "AllocateProducerIds", 0)] == stage.requested


def test_requests_wait_for_those_before_them() -> None:
    stage = Stage()
    late: Promise[Any] = Promise()
    stage.serve(2, late)
    first, second = stage.ask(), stage.ask()
    assert 1 == len(stage.requested)
    stage.serve(2, Promise.of(RESPONSE(producer_id_len=2)))
    late.keep(RESPONSE(producer_id_len=1))
    assert [1, 2] == [promise.result().producer_id_len for promise in (first, second)]


def test_while_there_is_no_controller_a_request_waits() -> None:
    stage = Stage(None)
    promise = stage.ask()
    stage.pause()
    assert not promise.is_kept
    stage.lead(3)
    stage.serve(3, Promise.of(RESPONSE()))
    stage.pause()
    assert promise.is_kept


def test_one_that_is_the_controller_no_more_is_left_for_the_next() -> None:
    stage = Stage()
    stage.serve(2, Promise.of(RESPONSE(error_code=NOT_CONTROLLER)))
    promise = stage.ask()
    assert not promise.is_kept
    stage.lead(3)
    stage.serve(3, Promise.of(RESPONSE(producer_id_len=9)))
    stage.pause()
    assert 9 == promise.result().producer_id_len


def test_a_partition_that_says_so_is_enough() -> None:
    stage = Stage()
    response = message_class("AlterPartitionResponse")
    row = response.PartitionData(error_code=NOT_CONTROLLER)
    stage.serve(2, Promise.of(response(topics=[response.TopicData(partitions=[row])])))
    promise = stage.ask()
    stage.serve(2, Promise.of(response()))
    stage.pause()
    assert promise.is_kept


def test_a_broker_that_is_not_reached_is_asked_again() -> None:
    stage = Stage()
    stage.local[2] = lambda *_request: Promise.of(RESPONSE())
    del stage.local[2]
    promise = stage.ask()
    assert not promise.is_kept
    stage.serve(2, Promise.of(RESPONSE()))
    stage.pause()
    assert promise.is_kept


def test_a_controller_that_fails_to_serve_fails_the_request_alone() -> None:
    stage = Stage()
    error = api_error(UNKNOWN_SERVER_ERROR)
    stage.serve(2, Promise.failed(error))
    assert stage.ask().error is error
    stage.serve(2, Promise.of(RESPONSE()))
    assert stage.ask().error is None


def test_requests_to_one_controller_go_over_one_link(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    channel = Peers.channel

    def counting(self: Peers, broker: BrokerNode) -> Any:
        made.append(broker.broker_id)
        return channel(self, broker)

    monkeypatch.setattr(Peers, "channel", counting)
    stage = Stage()
    for controller_id in (2, 2, 3, 3):
        stage.lead(controller_id)
        stage.serve(controller_id, Promise.of(RESPONSE()))
        assert stage.ask().is_kept
    assert [2, 3] == made


def test_a_stop_fails_what_is_not_answered() -> None:
    stage = Stage()
    late: Promise[Any] = Promise()
    stage.serve(2, late)
    waiting = [stage.ask(), stage.ask()]
    stage.channel.stop()
    late.keep(RESPONSE())
    stage.pause()
    assert [BrokerStopped] * 3 == [type(promise.error) for promise in (*waiting, stage.ask())]
