"""Requests of the controller: in order, one at a time, again until answered, none to a former life.

Brokers of the same process are called, others are asked by the wire.
"""

from __future__ import annotations

import struct
from typing import Any

from engine.broker.controller_channel import CONTROL_VERSIONS, ControllerChannel, QueueClosed
from engine.broker.peers import ChannelSettings, Peers, PeerSecurity
from engine.errors import EngineError, api_error
from engine.host.memory import ManualClock
from engine.host.memory_network import MemoryNetwork, MemoryTimers
from engine.host.ports import Connection
from engine.host.promise import Promise
from engine.kafka_errors import UNKNOWN_SERVER_ERROR
from engine.limits import CONTROLLER_CHANNEL_RETRY_MS
from engine.replication.metadata_cache import BrokerNode, Endpoint
from engine.wire.codec import message_codec
from engine.wire.headers import API_VERSIONS_KEY, api, read_request_header, response_header_bytes
from engine.wire.structs import message_class
from tests.unit.host.listening import Told

LOCAL = BrokerNode(1, ())
FAR = BrokerNode(2, (Endpoint("PLAINTEXT", "there", 9092),))
NAMES = ("UpdateMetadataRequest", "StopReplicaRequest")
UPDATE, STOP = (name.removesuffix("Request") for name in NAMES)


class Stage:
    """The channel of broker 3, with broker 1 in its process."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.timers = MemoryTimers(self.clock)
        self.network = MemoryNetwork(self.timers)
        self.served: list[tuple[str, int]] = []
        self.promised: dict[str, Promise[Any]] = {}
        self.answers: list[Any] = []
        self.errors: list[EngineError] = []
        self.local = {1: self.serve}
        peers = Peers(
            self.network,
            self.timers,
            self.clock,
            local=self.local,
            broker_id=3,
            security=PeerSecurity("PLAINTEXT"),
        )
        self.channel = ControllerChannel(peers, self.timers, self.clock)

    def serve(self, name: str, version: int, _request: Any) -> Promise[Any]:
        self.served.append((name, version))
        return self.promised.get(name) or Promise.of(f"{name} done")

    def send(self, *names: str, to: int = 1) -> None:
        for name in names:
            self._note(self.channel.send(to, name, message_class(name)()))

    def _note(self, answer: Promise[Any]) -> None:
        def note() -> None:
            if answer.error is not None:
                self.errors.append(answer.error)
            else:
                self.answers.append(answer.result())

        answer.watch(note)

    def turn(self, duration_ms: int = 0) -> None:
        self.clock.advance(duration_ms)
        self.timers.run_until_idle()


class RemoteBroker:
    """A broker elsewhere, which answers when it is told to."""

    def __init__(self, stage: Stage) -> None:
        self.requests: list[tuple[str, int, Any]] = []
        self.connections: list[Connection] = []
        stage.network.listen("there", 9092, self._accept, Told().options())

    def _accept(self, connection: Connection) -> None:
        self.connections.append(connection)
        connection.on_frame = lambda frame: self._take(connection, frame)

    def _take(self, connection: Connection, frame: memoryview) -> None:
        header = read_request_header(frame)
        assert header.client_id == "3"
        if header.api_key == API_VERSIONS_KEY:
            connection.send([self._versions(header.correlation_id)])
            return
        name = api(header.api_key).name
        assert header.api_version == CONTROL_VERSIONS[name]
        codec = message_codec(f"{name}Request", header.api_version)
        body = codec.decode(frame[header.body_position :])
        self.requests.append((name, header.correlation_id, body))

    def _versions(self, correlation_id: int) -> bytes:
        response = message_class("ApiVersionsResponse")
        rows = [
            response.ApiVersion(api_key=api(name).key, min_version=0, max_version=version)
            for name, version in CONTROL_VERSIONS.items()
        ]
        body = message_codec("ApiVersionsResponse", 4).encode(response(api_keys=rows))
        return response_header_bytes(API_VERSIONS_KEY, 4, correlation_id) + body

    def names(self) -> list[str]:
        return [name for name, _, _ in self.requests]

    def answer(self, correlation_id: int | None = None) -> None:
        name, requested_id, _ = self.requests[-1]
        response = f"{name}Response"
        body = message_codec(response, CONTROL_VERSIONS[name]).encode(message_class(response)())
        given = requested_id if correlation_id is None else correlation_id
        self.connections[-1].send([struct.pack(">ix", given), body])


# Brokers of this process


def test_requests_are_served_later_and_in_order() -> None:
    stage = Stage()
    stage.channel.open(LOCAL)
    stage.send(*NAMES)
    assert stage.served == []
    stage.turn()
    assert stage.served == [(UPDATE, 8), (STOP, 4)]
    assert stage.answers == [f"{UPDATE} done", f"{STOP} done"]


def test_the_next_request_waits_for_the_answer_of_the_one_before() -> None:
    stage = Stage()
    stage.channel.open(LOCAL)
    late = stage.promised[UPDATE] = Promise()
    stage.send(*NAMES)
    stage.turn()
    assert stage.served == [(UPDATE, 8)]
    late.keep("late")
    stage.turn()
    assert stage.answers == ["late", f"{STOP} done"]


def test_a_request_that_a_broker_fails_to_serve_fails_alone() -> None:
    stage = Stage()
    stage.channel.open(LOCAL)
    error = api_error(UNKNOWN_SERVER_ERROR)
    stage.promised[UPDATE] = Promise.failed(error)
    stage.send(*NAMES)
    stage.turn()
    assert (stage.errors, stage.answers) == ([error], [f"{STOP} done"])


def test_a_broker_that_is_not_running_is_asked_again_until_it_is() -> None:
    stage = Stage()
    stage.channel.open(LOCAL)
    serve = stage.local.pop(1)
    stage.send(NAMES[0])
    stage.turn()
    stage.local[1] = serve
    stage.turn(CONTROLLER_CHANNEL_RETRY_MS)
    assert stage.answers == [f"{UPDATE} done"]


def test_a_broker_without_a_queue_answers_nothing() -> None:
    stage = Stage()
    stage.send(NAMES[0], to=2)
    stage.turn()
    assert (stage.served, stage.answers) == ([], [])
    assert isinstance(stage.errors[0], QueueClosed)


def test_a_closed_queue_gives_no_answers_even_if_it_is_opened_again() -> None:
    stage = Stage()
    stage.channel.open(LOCAL)
    late = stage.promised.setdefault(UPDATE, Promise())
    stage.send(NAMES[0])
    stage.turn()
    stage.channel.close(1)
    stage.channel.open(LOCAL)
    late.keep("of a former life")
    stage.send(NAMES[1])
    stage.turn()
    assert stage.answers == [f"{STOP} done"]
    assert [type(error) for error in stage.errors] == [QueueClosed]


# Brokers of other processes


def test_the_next_request_leaves_by_the_same_connection_when_the_one_before_is_answered() -> None:
    stage = Stage()
    far = RemoteBroker(stage)
    stage.channel.open(FAR)
    stage.send(*NAMES, to=2)
    stage.turn()
    assert far.names() == [UPDATE]
    far.answer()
    stage.turn()
    assert far.names() == [UPDATE, STOP]
    far.answer()
    stage.turn()
    assert (len(stage.answers), len(far.connections)) == (2, 1)


def test_a_request_goes_out_again_after_a_lost_connection() -> None:
    stage = Stage()
    stage.channel.open(FAR)
    stage.send(NAMES[0], to=2)
    stage.turn()
    far = RemoteBroker(stage)
    stage.turn(CONTROLLER_CHANNEL_RETRY_MS)
    far.connections[-1].close("it fell over")
    stage.turn()
    stage.turn(CONTROLLER_CHANNEL_RETRY_MS)
    assert far.names() == [UPDATE] * 2
    far.answer()
    stage.turn()
    far.connections[-1].close("idle")
    stage.turn()
    stage.send(NAMES[1], to=2)
    stage.turn()
    far.answer()
    stage.turn()
    assert len(stage.answers) == 2


def test_silence_and_wrong_answers_begin_a_new_connection() -> None:
    stage = Stage()
    far = RemoteBroker(stage)
    stage.channel.open(FAR)
    stage.send(NAMES[0], to=2)
    stage.turn()
    stage.turn(ChannelSettings().controller_timeout_ms)
    stage.turn(CONTROLLER_CHANNEL_RETRY_MS)
    far.answer(correlation_id=77)
    stage.turn()
    stage.turn(CONTROLLER_CHANNEL_RETRY_MS)
    far.connections[-1].send([b"\0"])
    stage.turn()
    stage.turn(CONTROLLER_CHANNEL_RETRY_MS)
    assert (len(far.connections), stage.answers) == (4, [])
    far.answer()
    stage.turn()
    assert len(stage.answers) == 1


def test_an_answer_that_nobody_requested_ends_the_connection() -> None:
    stage = Stage()
    far = RemoteBroker(stage)
    stage.channel.open(FAR)
    stage.send(NAMES[0], to=2)
    stage.turn()
    far.answer()
    far.answer()
    stage.turn()
    assert len(stage.answers) == 1
    stage.send(NAMES[0], to=2)
    stage.turn()
    assert len(far.connections) == 2


def test_a_closed_queue_sends_and_notifies_nothing_more() -> None:
    stage = Stage()
    far = RemoteBroker(stage)
    stage.channel.open(FAR)
    stage.send(*NAMES, to=2)
    stage.turn()
    far.answer()
    stage.channel.close(2)
    stage.turn(ChannelSettings().controller_timeout_ms)
    assert (far.names(), stage.answers) == ([UPDATE], [])
    assert [type(error) for error in stage.errors] == [QueueClosed] * 2


def test_a_broker_without_a_plain_listener_has_no_queue() -> None:
    stage = Stage()
    far = RemoteBroker(stage)
    for endpoint in (Endpoint("PLAINTEXT", "there", 9092, 1), Endpoint("OTHER", "there", 9092)):
        stage.channel.open(BrokerNode(2, (endpoint,)))
        stage.send(NAMES[0], to=2)
        stage.turn()
    assert far.connections == []


def test_brokers_of_this_process_are_called_and_others_written_to() -> None:
    stage = Stage()
    far = RemoteBroker(stage)
    stage.channel.open(LOCAL)
    stage.channel.open(FAR)
    for broker_id in (1, 2):
        stage.send(NAMES[0], to=broker_id)
    stage.turn()
    assert (stage.served, far.names()) == ([(UPDATE, 8)], [UPDATE])
