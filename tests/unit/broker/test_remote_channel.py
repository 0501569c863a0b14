"""The controller's requests by the wire: in order, again until answered, none to a former life."""

from __future__ import annotations

import struct
from typing import Any

from engine.broker.controller_channel import InProcessChannel
from engine.broker.remote_channel import CONTROL_VERSIONS, BothChannels, RemoteChannel
from engine.host.memory import ManualClock
from engine.host.memory_network import MemoryNetwork, MemoryTimers
from engine.host.ports import Connection
from engine.limits import CONTROLLER_CHANNEL_RETRY_MS, CONTROLLER_CHANNEL_TIMEOUT_MS
from engine.replication.metadata_cache import BrokerNode, Endpoint
from engine.wire.codec import message_codec
from engine.wire.headers import api, read_request_header
from engine.wire.structs import message_class
from tests.unit.host.listening import Told

NODE = BrokerNode(2, (Endpoint("PLAINTEXT", "there", 9092),))
NAMES = ("UpdateMetadataRequest", "StopReplicaRequest")


class Far:
    """A broker elsewhere, which answers when it is told to."""

    def __init__(self, stage: Stage) -> None:
        self.requests: list[tuple[str, int, Any]] = []
        self.connections: list[Connection] = []
        stage.network.listen("there", 9092, self._accept, Told().options())

    def _accept(self, connection: Connection) -> None:
        self.connections.append(connection)
        connection.on_frame = self._take

    def _take(self, frame: memoryview) -> None:
        header = read_request_header(frame)
        name = f"{api(header.api_key).name}Request"
        assert header.api_version == CONTROL_VERSIONS[name]
        assert header.client_id == "1"
        body = message_codec(name, header.api_version).decode(frame[header.body_position :])
        self.requests.append((name, header.correlation_id, body))

    def answer(self, correlation_id: int | None = None) -> None:
        name, asked_id, _ = self.requests[-1]
        response = name.replace("Request", "Response")
        body = message_codec(response, CONTROL_VERSIONS[name]).encode(message_class(response)())
        given = asked_id if correlation_id is None else correlation_id
        self.connections[-1].send([struct.pack(">ix", given), body])


class Stage:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.timers = MemoryTimers(self.clock)
        self.network = MemoryNetwork(self.timers)
        self.replies: list[str] = []
        self.channel = RemoteChannel(
            self.network, self.timers, self.clock, broker_id=1, listener="PLAINTEXT"
        )

    def send(self, *names: str, to: int = 2) -> None:
        for name in names:
            self.channel.send(
                to, name, message_class(name)(), lambda reply: self.replies.append(str(type(reply)))
            )
        self.timers.run_until_idle()

    def wait(self, duration_ms: int) -> None:
        self.clock.advance(duration_ms)
        self.timers.run_until_idle()


def test_the_next_request_leaves_when_the_one_before_is_answered() -> None:
    stage = Stage()
    far = Far(stage)
    stage.channel.open(NODE)
    stage.send(*NAMES)
    assert [name for name, _, _ in far.requests] == [NAMES[0]]
    far.answer()
    stage.timers.run_until_idle()
    assert [name for name, _, _ in far.requests] == list(NAMES)
    far.answer()
    stage.timers.run_until_idle()
    assert len(stage.replies) == 2
    assert len(far.connections) == 1


def test_a_request_goes_out_again_after_a_lost_connection() -> None:
    stage = Stage()
    stage.channel.open(NODE)
    stage.send(NAMES[0])
    far = Far(stage)
    stage.wait(CONTROLLER_CHANNEL_RETRY_MS)
    far.connections[-1].close("it fell over")
    stage.timers.run_until_idle()
    stage.wait(CONTROLLER_CHANNEL_RETRY_MS)
    assert [name for name, _, _ in far.requests] == [NAMES[0]] * 2
    far.answer()
    stage.timers.run_until_idle()
    assert len(stage.replies) == 1
    far.connections[-1].close("idle")
    stage.send(NAMES[1])
    far.answer()
    stage.timers.run_until_idle()
    assert len(stage.replies) == 2


def test_silence_and_wrong_answers_begin_a_new_connection() -> None:
    stage = Stage()
    far = Far(stage)
    stage.channel.open(NODE)
    stage.send(NAMES[0])
    stage.wait(CONTROLLER_CHANNEL_TIMEOUT_MS)
    stage.wait(CONTROLLER_CHANNEL_RETRY_MS)
    far.answer(correlation_id=77)
    stage.timers.run_until_idle()
    stage.wait(CONTROLLER_CHANNEL_RETRY_MS)
    far.connections[-1].send([b"\0"])
    stage.timers.run_until_idle()
    stage.wait(CONTROLLER_CHANNEL_RETRY_MS)
    assert (len(far.connections), stage.replies) == (4, [])
    far.answer()
    stage.timers.run_until_idle()
    assert len(stage.replies) == 1


def test_an_answer_that_nobody_asked_for_ends_the_connection() -> None:
    stage = Stage()
    far = Far(stage)
    stage.channel.open(NODE)
    stage.send(NAMES[0])
    far.answer()
    far.answer()
    stage.timers.run_until_idle()
    assert len(stage.replies) == 1
    stage.send(NAMES[0])
    assert len(far.connections) == 2


def test_a_closed_queue_sends_and_tells_nothing_more() -> None:
    stage = Stage()
    far = Far(stage)
    stage.channel.open(NODE)
    stage.send(*NAMES)
    far.answer()
    stage.channel.close(2)
    stage.timers.run_until_idle()
    stage.wait(CONTROLLER_CHANNEL_TIMEOUT_MS)
    assert (len(far.requests), stage.replies) == (1, [])


def test_a_broker_without_a_plain_listener_has_no_queue() -> None:
    stage = Stage()
    far = Far(stage)
    for endpoint in (Endpoint("PLAINTEXT", "there", 9092, 1), Endpoint("OTHER", "there", 9092)):
        stage.channel.open(BrokerNode(2, (endpoint,)))
        stage.send(NAMES[0])
    assert far.requests == []


def test_brokers_of_this_process_are_called_and_others_written_to() -> None:
    stage = Stage()
    far = Far(stage)
    served: list[str] = []
    peers = {1: lambda name, request: served.append(name)}
    both = BothChannels(InProcessChannel(stage.timers, peers), stage.channel, peers.__contains__)
    both.open(BrokerNode(1, ()))
    both.open(NODE)
    for broker_id in (1, 2, 3):
        both.send(broker_id, NAMES[0], message_class(NAMES[0])(), lambda reply: None)
    stage.timers.run_until_idle()
    assert (served, [name for name, _, _ in far.requests]) == ([NAMES[0]], [NAMES[0]])
    both.close(2)
    both.send(2, NAMES[0], message_class(NAMES[0])(), lambda reply: None)
    stage.timers.run_until_idle()
    assert len(far.requests) == 1
