"""Calls on the loop: sent in order, each promised, all failed together when the connection ends."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from engine.client.connection import BrokerConnection, Call, Response
from engine.client.errors import ConnectionLost, NoCommonVersion, NotKafka, TimedOut, Unreachable
from engine.client.loop_connection import LoopConnection
from engine.client.settings import Address
from engine.host import ports
from engine.host.event_loop import EventLoop
from engine.host.memory import ManualClock
from engine.host.memory_network import LookupFault, MemoryConnection, MemoryNetwork, MemoryTimers
from engine.host.name_lookup import HostAddress
from engine.host.promise import Promise
from engine.host.real import RealClock
from engine.host.real_network import RealNetwork
from engine.host.stream_layer import LayerOf
from engine.kafka_errors import UNSUPPORTED_VERSION
from engine.wire.codec import message_codec
from engine.wire.headers import (
    API_VERSIONS_KEY,
    api,
    encode_request_header,
    read_request_header,
    response_header_bytes,
)
from engine.wire.structs import message_class
from tests.unit.host.listening import Told

TIMEOUT_MS = 5000
METADATA = api("Metadata").key


class Stage:
    """A connection to a broker that answers what it is told to."""

    def __init__(self, *, listens: bool = True) -> None:
        self.clock = ManualClock()
        self.timers = MemoryTimers(self.clock)
        self.network = MemoryNetwork(self.timers)
        self.connections: list[ports.Connection] = []
        self.requested: list[tuple[int, int]] = []
        self.answers_versions = True
        #: The highest version of the handshake that the broker knows.
        self.version_of_versions = 4
        if listens:
            self.listen()
        self.loop = LoopConnection(
            self.network,
            self.timers,
            self.clock,
            Address("there", 9092),
            lambda: BrokerConnection("7"),
            timeout_ms=TIMEOUT_MS,
        )

    def listen(self) -> None:
        self.network.listen("there", 9092, self._accept, Told().options())

    def _accept(self, connection: ports.Connection) -> None:
        self.connections.append(connection)
        connection.on_frame = self._take

    def _take(self, frame: memoryview) -> None:
        header = read_request_header(frame)
        version = header.api_version
        if header.api_key != API_VERSIONS_KEY:
            self.requested.append((version, header.correlation_id))
            return
        response = message_class("ApiVersionsResponse")
        rows = [response.ApiVersion(api_key=METADATA, min_version=0, max_version=9)]
        answer = response(api_keys=rows)
        if version > self.version_of_versions:
            version, answer = 0, response(error_code=UNSUPPORTED_VERSION)
        if self.answers_versions:
            body = message_codec("ApiVersionsResponse", version).encode(answer)
            head = response_header_bytes(API_VERSIONS_KEY, version, header.correlation_id)
            self.send(head + body)

    def send(self, frame: bytes) -> None:
        self.connections[-1].send([frame])

    def ask(self, **bounds: Any) -> Promise[Response]:
        request = message_class("MetadataRequest")(topics=None)
        promise = self.loop.send(Call("Metadata", request, **bounds))
        self.timers.run_until_idle()
        return promise

    def answer(self, number: int = -1) -> None:
        version, correlation_id = self.requested[number]
        body = message_codec("MetadataResponse", version).encode(
            message_class("MetadataResponse")(cluster_id="c")
        )
        self.send(response_header_bytes(METADATA, version, correlation_id) + body)
        self.timers.run_until_idle()

    def pass_time(self, duration_ms: int) -> None:
        self.clock.advance(duration_ms)
        self.timers.run_until_idle()


class BufferNetwork(MemoryNetwork):
    """A network that tells which receive buffers were wanted of it."""

    def __init__(self, timers: MemoryTimers) -> None:
        super().__init__(timers)
        self.wanted_bytes: list[int] = []

    def connect(
        self,
        host: str,
        port: int,
        address: str = "memory",
        *,
        receive_buffer_bytes: int = -1,
        layer: LayerOf | None = None,
    ) -> MemoryConnection:
        self.wanted_bytes.append(receive_buffer_bytes)
        return super().connect(host, port, address, receive_buffer_bytes=receive_buffer_bytes)


@pytest.mark.parametrize(
    ("options", "wanted_bytes"), [({}, -1), ({"receive_buffer_bytes": 70_000}, 70_000)]
)
def test_a_connection_has_the_systems_receive_buffer_unless_another_is_wanted(
    options: dict[str, int], wanted_bytes: int
) -> None:
    clock = ManualClock()
    timers = MemoryTimers(clock)
    network = BufferNetwork(timers)
    there = Address("there", 9092)
    loop = LoopConnection(
        network, timers, clock, there, lambda: BrokerConnection("7"), timeout_ms=1, **options
    )
    loop.send(Call("Metadata", message_class("MetadataRequest")(topics=None)))
    assert [wanted_bytes] == network.wanted_bytes


def test_calls_wait_for_the_handshake_and_go_in_order_by_one_connection() -> None:
    stage = Stage()
    first, second = stage.ask(), stage.ask(highest=5)
    assert [9, 5] == [version for version, _ in stage.requested]
    stage.answer(0)
    assert ("c", False) == (first.result().message.cluster_id, second.is_kept)
    stage.answer(1)
    assert (5, 1) == (second.result().version, len(stage.connections))
    assert 0 == stage.loop.pending_count


def test_a_version_that_nobody_shares_fails_its_call_alone() -> None:
    stage = Stage()
    other, refused = stage.ask(), stage.ask(lowest=10, highest=12)
    assert isinstance(refused.error, NoCommonVersion)
    stage.answer()
    assert other.error is None


def test_without_a_listener_the_broker_is_not_reached() -> None:
    stage = Stage(listens=False)
    error = stage.ask().error
    assert isinstance(error, Unreachable)
    assert not isinstance(error, ConnectionLost)
    stage.listen()
    again = stage.ask()
    stage.answer()
    assert again.error is None


def test_a_look_up_that_fails_fails_the_call_and_the_next_one_connects() -> None:
    stage = Stage()
    stage.network.lookup_faults["there"] = LookupFault(0, fails=True)
    error = stage.ask().error
    assert isinstance(error, Unreachable)
    assert "unknown host" in str(error)
    del stage.network.lookup_faults["there"]
    again = stage.ask()
    stage.answer()
    assert again.error is None


def test_a_slow_look_up_delays_the_call_alone() -> None:
    stage = Stage()
    stage.network.lookup_faults["there"] = LookupFault(TIMEOUT_MS - 1, fails=False)
    promise = stage.ask()
    assert [] == stage.requested
    stage.pass_time(TIMEOUT_MS - 1)
    stage.answer()
    assert promise.error is None


def test_a_look_up_that_never_ends_is_given_up_at_the_first_deadline() -> None:
    stage = Stage()
    stage.network.lookup_faults["there"] = LookupFault(100 * TIMEOUT_MS, fails=False)
    promise = stage.ask()
    stage.pass_time(TIMEOUT_MS)
    assert isinstance(promise.error, TimedOut)
    stage.pass_time(100 * TIMEOUT_MS)
    assert [] == stage.requested


@pytest.mark.parametrize("error", [socket.gaierror(-3, "try again"), UnicodeError("no label")])
def test_a_real_look_up_that_fails_fails_the_call_and_the_next_one_connects(
    error: Exception,
) -> None:
    loop = EventLoop()
    failures = [error]

    def resolve(_host: str) -> list[HostAddress]:
        if failures:
            raise failures.pop()
        return [HostAddress(socket.AF_INET, "127.0.0.1")]

    network = RealNetwork(loop, RealClock(), resolve=resolve)
    listener = network.listen("127.0.0.1", 0, lambda _connection: None, Told().options())
    calls = LoopConnection(
        network,
        loop,
        RealClock(),
        Address("broker-7", listener.port),
        lambda: BrokerConnection("7"),
        timeout_ms=20_000,
    )
    promise = calls.send(Call("Metadata", message_class("MetadataRequest")(topics=None)))
    while not promise.is_kept:
        loop.call_soon(loop.stop)
        loop.run()
    assert isinstance(promise.error, Unreachable)
    calls.send(Call("Metadata", message_class("MetadataRequest")(topics=None)))
    # One that came and one that went out.
    while network.connection_count < 2:
        loop.call_soon(loop.stop)
        loop.run()
    network.close()
    loop.close()


def test_a_lost_connection_fails_all_that_is_owed_and_the_next_call_connects() -> None:
    stage = Stage()
    owed = [stage.ask(), stage.ask()]
    stage.connections[-1].close("it fell over")
    stage.timers.run_until_idle()
    assert [ConnectionLost, ConnectionLost] == [type(promise.error) for promise in owed]
    again = stage.ask()
    stage.answer()
    assert (2, None) == (len(stage.connections), again.error)


def test_a_silent_broker_is_given_up_at_the_first_deadline() -> None:
    stage = Stage()
    first = stage.ask()
    stage.pass_time(TIMEOUT_MS - 1)
    second = stage.ask()
    assert not first.is_kept
    stage.pass_time(1)
    assert [TimedOut, TimedOut] == [type(promise.error) for promise in (first, second)]


def test_a_silent_handshake_is_given_up_too() -> None:
    stage = Stage()
    stage.answers_versions = False
    promise = stage.ask()
    stage.pass_time(TIMEOUT_MS)
    assert isinstance(promise.error, TimedOut)


def test_calls_behind_the_first_wait_for_the_handshake_too() -> None:
    stage = Stage()
    stage.answers_versions = False
    promises = [stage.ask(), stage.ask()]
    assert [] == stage.requested
    assert [False, False] == [promise.is_kept for promise in promises]


def test_an_older_broker_is_asked_again_in_the_version_of_the_handshake_that_it_knows() -> None:
    stage = Stage()
    stage.version_of_versions = 0
    promise = stage.ask()
    stage.answer()
    assert ("c", 1) == (promise.result().message.cluster_id, len(stage.connections))


def test_time_that_passes_between_calls_ends_nothing() -> None:
    stage = Stage()
    for _ in range(3):
        promise = stage.ask()
        stage.answer()
        assert promise.error is None
        stage.pass_time(TIMEOUT_MS - 1)
    assert 1 == len(stage.connections)


def test_an_answer_that_was_not_requested_ends_the_connection() -> None:
    stage = Stage()
    promise = stage.ask()
    stage.requested.append((9, 99))
    stage.answer()
    assert isinstance(promise.error, NotKafka)
    stage.ask()
    assert 2 == len(stage.connections)


def test_what_is_closed_fails_what_it_owes() -> None:
    stage = Stage()
    promise = stage.ask()
    stage.loop.close("it is over")
    assert isinstance(promise.error, ConnectionLost)
    stage.timers.run_until_idle()
    assert 0 == stage.loop.pending_count


def test_closed_and_abandoned_peers_are_logged() -> None:
    stage = Stage()
    stage.loop.close("nothing was asked")
    ends: list[str] = []
    stage.ask()
    stage.connections[-1].on_close = ends.append
    stage.loop.close("it is over")
    stage.timers.run_until_idle()
    assert 1 == len(ends)
    stage.ask()
    stage.connections[-1].on_close = ends.append
    stage.pass_time(TIMEOUT_MS)
    stage.timers.run_until_idle()
    assert 2 == len(ends)


def test_frames_behind_the_end_of_a_connection_go_nowhere() -> None:
    stage = Stage()
    stage.ask()
    ours = stage.loop._wire
    assert ours is not None
    stage.loop.close("it is over")
    ours.on_frame(memoryview(b"late"))
    again = stage.ask()
    ours.on_frame(memoryview(b"of the one before"))
    stage.answer()
    assert again.error is None


class Fast:
    """Reads so many responses, and asks again behind each but the last."""

    def __init__(self, count: int) -> None:
        self._left = count
        self.taken: list[int] = []

    def read(self, frame: memoryview, version: int) -> int | None:
        return version if self._left else None

    def take(self, read: int) -> bool:
        self.taken.append(read)
        self._left -= 1
        return self._left > 0

    def request(self, correlation_id: int) -> bytes:
        return encode_request_header(METADATA, 9, correlation_id, "7") + b"\x00\x00\x00"


def test_a_call_goes_on_by_itself_while_its_responses_are_fast() -> None:
    stage, fast = Stage(), Fast(3)
    fast.take = lambda read: Fast.take(fast, read) or True  # type: ignore[method-assign]
    promise = stage.ask(fast=fast)
    for _ in range(3):
        stage.answer()
        assert not promise.is_kept
    assert 4 == len(stage.requested)
    stage.answer()
    assert ([9, 9, 9], "c") == (fast.taken, promise.result().message.cluster_id)
    assert 0 == stage.loop.pending_count


def test_a_call_that_asks_for_nothing_behind_a_fast_response_is_kept_without_one() -> None:
    stage, fast = Stage(), Fast(2)
    promise = stage.ask(fast=fast)
    stage.answer()
    assert not promise.is_kept
    stage.answer()
    assert (None, 2, 0) == (
        promise.result().message,
        len(stage.requested),
        stage.loop.pending_count,
    )


def test_each_request_of_a_call_that_goes_on_has_its_own_time() -> None:
    stage = Stage()
    promise = stage.ask(fast=Fast(9))
    for _ in range(3):
        stage.pass_time(TIMEOUT_MS - 1)
        stage.answer()
    assert not promise.is_kept
    stage.pass_time(TIMEOUT_MS)
    assert isinstance(promise.error, TimedOut)


def test_a_call_whose_response_ends_the_connection_fails() -> None:
    stage, fast = Stage(), Fast(2)
    fast.take = lambda _read: bool(stage.loop.close("enough"))  # type: ignore[method-assign, func-returns-value]
    promise = stage.ask(fast=fast)
    stage.answer()
    assert isinstance(promise.error, ConnectionLost)
    assert 0 == stage.loop.pending_count


def test_a_response_to_something_else_is_not_taken_for_a_fast_one() -> None:
    stage, fast = Stage(), Fast(2)
    promise = stage.ask(fast=fast)
    stage.requested.append((9, 4711))
    stage.answer()
    assert ([], NotKafka) == (fast.taken, type(promise.error))
