"""Requests over a memory network: order, versions, refusals, faults."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from engine.api.admission import Session, allow_all
from engine.api.api_versions import ApiVersions
from engine.api.dispatch import ApiRow, DispatchTable, Rule
from engine.api.exchange import CloseConnection, Exchange
from engine.api.promised import in_order
from engine.errors import InvariantBroken, api_error
from engine.host.memory import ManualClock
from engine.host.memory_network import MemoryNetwork, MemoryTimers
from engine.host.ports import Connection
from engine.host.promise import Promise
from engine.host.turns import no_time
from engine.kafka_errors import UNKNOWN_SERVER_ERROR
from engine.limits import FRAMES_PER_TURN_MAX, OPEN_REQUESTS_PER_CONNECTION_MAX
from engine.server import RequestServer, ServerEvents
from engine.wire.codec import message_codec
from engine.wire.headers import encode_request_header
from engine.wire.structs import message_class
from tests.unit.host.listening import Told

API_VERSIONS, METADATA, HEARTBEAT = 18, 3, 12


class Stage:
    """A server with one scripted API, and a client of it."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.timers = MemoryTimers(self.clock)
        network = MemoryNetwork(self.timers)
        self.bad: list[str] = []
        self.faults: list[str] = []
        self.answers: dict[int, Any] = {}
        #: The heartbeats that have begun to be served.
        self.begun: list[int] = []
        #: What serving one heartbeat takes.
        self.heartbeat_ms = 0
        table = DispatchTable(allow_all())
        events = ServerEvents(
            lambda _peer, reason: self.bad.append(reason), self._fault, self._broken
        )
        self.server = RequestServer(network, self.clock, table, events, no_time)
        table.serve("ApiVersions", self.server.api_versions.handle, Rule.ANYONE)
        table.serve("Heartbeat", self._heartbeat, Rule.PER_RESOURCE, highest=3)
        self.network = network
        self.port = self.server.listen("here", 0, "PLAINTEXT", Told().options()).port
        self.replies: list[bytes] = []
        self.closed: list[str] = []
        self.broken: list[str] = []
        self.client = self.connect()
        self.client.on_frame = lambda frame: self.replies.append(bytes(frame))
        self.client.on_close = self.closed.append

    def connect(self) -> Connection:
        return self.network.connect("here", self.port)

    def _fault(self, row: ApiRow, error: Exception) -> None:
        self.faults.append(f"{row.name}: {error}")

    def _broken(self, row: ApiRow, error: AssertionError) -> None:
        self.broken.append(f"{row.name}: {error}")

    def _heartbeat(self, request: Any, exchange: Exchange) -> Any:
        self.clock.advance(self.heartbeat_ms)
        self.begun.append(request.generation_id)
        answer = self.answers.get(request.generation_id)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, Promise):
            return answer
        return heartbeat_reply(request.generation_id)

    def send(self, key: int, version: int, number: int, body: bytes) -> None:
        head = encode_request_header(key, version, number, "tester")
        self.client.send([head, body])
        self.timers.run_until_idle()

    def beat(self, number: int, version: int = 3) -> None:
        self.client.send([heartbeat_frame(number, version)])
        self.timers.run_until_idle()

    def errors(self) -> dict[str, int]:
        rows = self.server.table.request_metrics.errors()
        return {row.error: row.error_count for row in rows}

    def numbers(self) -> list[int]:
        return [struct.unpack_from(">i", reply)[0] for reply in self.replies]


def heartbeat_frame(number: int, version: int = 3) -> bytes:
    request = message_class("HeartbeatRequest")(group_id="g", generation_id=number, member_id="m")
    body = message_codec("HeartbeatRequest", version).encode(request)
    return encode_request_header(HEARTBEAT, version, number, "tester") + body


def heartbeat_reply(code: int) -> Any:
    return message_class("HeartbeatResponse")(error_code=code)


def test_an_answer_has_the_requests_number_and_form() -> None:
    stage = Stage()
    stage.beat(7, version=3)
    assert struct.pack(">iih", 7, 0, 7) == stage.replies[0]


def test_answers_keep_the_order_of_their_requests() -> None:
    stage = Stage()
    late = stage.answers[1] = Promise()
    stage.beat(1)
    stage.beat(2)
    assert [] == stage.numbers()
    late.keep(heartbeat_reply(1))
    stage.timers.run_until_idle()
    assert [1, 2] == stage.numbers()


def test_a_request_that_has_not_had_its_turns_is_not_overtaken() -> None:
    stage = Stage()
    response, turns = Promise[Any](), Promise[None]()
    stage.answers[1] = in_order(response, turns)
    for number in (1, 2, 3):
        stage.beat(number)
    assert [1] == stage.begun
    turns.keep(None)
    stage.timers.run_until_idle()
    assert ([1, 2, 3], []) == (stage.begun, stage.numbers())
    response.keep(heartbeat_reply(1))
    stage.timers.run_until_idle()
    assert [1, 2, 3] == stage.numbers()


def test_the_response_ends_the_turns_of_its_request() -> None:
    stage = Stage()
    response = stage.answers[1] = in_order(Promise())
    stage.beat(1)
    stage.beat(2)
    assert [1] == stage.begun
    response.keep(heartbeat_reply(1))
    stage.timers.run_until_idle()
    assert ([1, 2], [1, 2]) == (stage.begun, stage.numbers())


def test_a_response_that_is_there_holds_nobody() -> None:
    stage = Stage()
    stage.answers[1] = in_order(Promise.of(heartbeat_reply(1)))
    stage.beat(1)
    stage.beat(2)
    assert [1, 2] == stage.numbers()


def test_turns_that_end_behind_their_connection_are_nobodys() -> None:
    stage = Stage()
    turns = Promise[None]()
    stage.answers[1] = in_order(Promise(), turns)
    stage.beat(1)
    stage.client.close("gone")
    stage.timers.run_until_idle()
    turns.keep(None)
    assert stage.answers[1].is_abandoned


def test_others_are_served_while_a_client_has_its_turns() -> None:
    stage = Stage()
    stage.answers[1] = in_order(Promise())
    stage.beat(1)
    replies: list[bytes] = []
    other = stage.connect()
    other.on_frame = lambda frame: replies.append(bytes(frame))
    other.send([heartbeat_frame(2)])
    stage.timers.run_until_idle()
    assert 1 == len(replies)


def test_an_order_to_end_the_connection_may_come_in_a_later_turn() -> None:
    stage = Stage()
    first, second = Promise[Any](), Promise[Any]()
    stage.answers[1], stage.answers[2] = first, in_order(second)
    for number in (1, 2, 3):
        stage.beat(number)
    second.keep(CloseConnection("acks=0 failed"))
    stage.timers.run_until_idle()
    assert ([], []) == (stage.replies, stage.closed)
    first.keep(heartbeat_reply(1))
    stage.timers.run_until_idle()
    assert ([1], 1, [1, 2]) == (stage.numbers(), len(stage.closed), stage.begun)
    assert [] == stage.faults


def test_a_client_with_too_many_open_requests_waits() -> None:
    stage = Stage()
    held = [Promise() for _ in range(OPEN_REQUESTS_PER_CONNECTION_MAX + 1)]
    for number, deferred in enumerate(held):
        stage.answers[number] = deferred
    for number in range(len(held)):
        stage.beat(number)
    late = held[-1]
    late.keep(heartbeat_reply(0))
    for deferred in held[:-1]:
        deferred.keep(heartbeat_reply(0))
    stage.timers.run_until_idle()
    assert list(range(len(held))) == stage.numbers()


@pytest.mark.parametrize("is_promised", [True, False])
def test_responses_behind_a_waiting_request_count_as_open_too(is_promised: bool) -> None:
    stage = Stage()
    count = OPEN_REQUESTS_PER_CONNECTION_MAX * 2
    late: Promise[Any] = Promise()
    stage.answers[0] = late
    for number in range(1, count):
        if is_promised:
            stage.answers[number] = Promise.of(heartbeat_reply(0))
    for number in range(count):
        stage.beat(number)
    assert OPEN_REQUESTS_PER_CONNECTION_MAX == len(stage.begun)
    late.keep(heartbeat_reply(0))
    stage.timers.run_until_idle()
    assert list(range(count)) == stage.numbers()


def test_responses_of_a_fast_path_behind_a_waiting_request_count_as_open_too() -> None:
    stage = Stage()
    count = OPEN_REQUESTS_PER_CONNECTION_MAX * 2
    late: Promise[Any] = Promise()
    stage.answers[0] = late
    stage.beat(0)
    taken: list[int] = []

    def serve_fast(frame: memoryview, _session: Session) -> bytes:
        (number,) = struct.unpack_from(">i", frame, 4)
        taken.append(number)
        return struct.pack(">iih", number, 0, 0)

    stage.server.table.serve_fast[HEARTBEAT] = serve_fast
    for number in range(1, count):
        stage.beat(number)
    assert OPEN_REQUESTS_PER_CONNECTION_MAX - 1 == len(taken)
    late.keep(heartbeat_reply(0))
    stage.timers.run_until_idle()
    assert list(range(count)) == stage.numbers()


def test_a_client_waits_for_one_share_of_another_that_sends_30000_requests() -> None:
    stage = Stage()
    stage.server.hold()
    greedy, patient = stage.connect(), stage.connect()
    order: list[str] = []
    greedy.on_frame = lambda _frame: order.append("greedy")
    patient.on_frame = lambda _frame: order.append("patient")
    for number in range(30_000):
        greedy.send([heartbeat_frame(number)])
    patient.send([heartbeat_frame(1)])
    stage.timers.run_until_idle()
    stage.server.begin()
    stage.timers.run_until_idle()
    assert FRAMES_PER_TURN_MAX == order.index("patient")
    assert 30_001 == len(order)


def test_a_client_waits_for_a_few_ms_of_another_whose_requests_take_long() -> None:
    stage = Stage()
    stage.server.hold()
    greedy, patient = stage.connect(), stage.connect()
    order: list[str] = []
    greedy.on_frame = lambda _frame: order.append("greedy")
    patient.on_frame = lambda _frame: order.append("patient")
    stage.heartbeat_ms = 2
    for number in range(100):
        greedy.send([heartbeat_frame(number)])
    patient.send([heartbeat_frame(1)])
    stage.timers.run_until_idle()
    stage.server.begin()
    stage.timers.run_until_idle()
    assert 3 == order.index("patient")
    assert 101 == len(order)


def test_api_versions_lists_what_is_served() -> None:
    stage = Stage()
    stage.send(API_VERSIONS, 0, 1, b"")
    reply = message_codec("ApiVersionsResponse", 0).decode(stage.replies[0][4:])
    served = [(k.api_key, k.min_version, k.max_version) for k in reply.api_keys]
    assert [(HEARTBEAT, 0, 3), (API_VERSIONS, 0, 4)] == served


def test_an_unknown_version_of_api_versions_is_answered_in_version_0() -> None:
    stage = Stage()
    stage.send(API_VERSIONS, 99, 1, b"\x00\x01\x02")
    assert struct.pack(">ihihhh", 1, 35, 1, API_VERSIONS, 0, 4) == stage.replies[0]
    assert [] == stage.closed


@pytest.mark.parametrize(("name", "code"), [("good-name.1", 0), ("-bad", 42), ("", 42)])
def test_software_names_are_checked_and_kept(name: str, code: int) -> None:
    stage = Stage()
    request = message_class("ApiVersionsRequest")(
        client_software_name=name, client_software_version="1.0"
    )
    stage.send(API_VERSIONS, 3, 1, message_codec("ApiVersionsRequest", 3).encode(request))
    reply = message_codec("ApiVersionsResponse", 3).decode(stage.replies[0][4:])
    assert code == reply.error_code


@pytest.mark.parametrize(
    ("key", "version", "body"),
    [
        (METADATA, 1, b""),
        (9999, 0, b""),
        (HEARTBEAT, 4, b""),
        (HEARTBEAT, 3, b""),
        (HEARTBEAT, 3, b"\x7f\xff" + b"x" * 40),
    ],
)
def test_what_cannot_be_served_ends_the_connection_only(
    key: int, version: int, body: bytes
) -> None:
    stage = Stage()
    head = struct.pack(">hhih", key, version, 1, -1)
    stage.client.send([head, body])
    stage.timers.run_until_idle()
    assert ([], 1, 1) == (stage.replies, len(stage.bad), len(stage.closed))
    assert 0 == stage.server.client_count


def test_a_fault_in_a_handler_is_reported_and_ends_its_connection() -> None:
    stage = Stage()
    stage.answers[5] = RuntimeError("lost my way")
    stage.beat(5)
    assert ["Heartbeat: lost my way"] == stage.faults
    assert 1 == len(stage.closed)


def test_a_handler_can_end_a_connection_without_an_answer() -> None:
    stage = Stage()
    stage.answers[5] = CloseConnection("acks=0 failed")
    stage.beat(5)
    assert ([], [], 1) == (stage.replies, stage.faults, len(stage.closed))


def test_what_is_owed_is_answered_before_a_connection_ends() -> None:
    stage = Stage()
    late = stage.answers[1] = Promise()
    stage.answers[5] = CloseConnection("acks=0 failed")
    stage.beat(1)
    stage.beat(5)
    stage.beat(6)
    assert ([], []) == (stage.replies, stage.closed)
    late.keep(heartbeat_reply(0))
    stage.timers.run_until_idle()
    assert (1, 1) == (len(stage.replies), len(stage.closed))


def test_an_answer_that_comes_after_the_end_goes_nowhere() -> None:
    stage = Stage()
    late = stage.answers[1] = Promise()
    stage.beat(1)
    stage.client.close("gone")
    stage.timers.run_until_idle()
    late.keep(heartbeat_reply(0))
    assert [] == stage.replies


def test_a_promise_is_abandoned_when_its_connection_closes() -> None:
    stage = Stage()
    for number in (1, 2, 3):
        stage.answers[number] = Promise()
        stage.beat(number)
    stage.answers[2].keep(heartbeat_reply(2))
    assert not any(stage.answers[number].is_abandoned for number in (1, 2, 3))
    stage.client.close("gone")
    stage.timers.run_until_idle()
    # The second has its response, which nobody takes.
    assert [True, False, True] == [stage.answers[number].is_abandoned for number in (1, 2, 3)]


def test_errors_count_once_their_response_leaves() -> None:
    """Counts never go back: a scrape in between would take that for a restart of the broker."""
    stage = Stage()
    late = stage.answers[1] = Promise()
    stage.beat(0)
    stage.beat(1)
    stage.beat(27)
    assert {"NONE": 1} == stage.errors()
    late.keep(heartbeat_reply(25))
    assert {"NONE": 1, "UNKNOWN_MEMBER_ID": 1, "REBALANCE_IN_PROGRESS": 1} == stage.errors()


def test_a_response_that_comes_after_the_end_counts_for_nothing() -> None:
    stage = Stage()
    late = stage.answers[1] = Promise()
    stage.beat(0)
    stage.beat(1)
    stage.beat(27)
    stage.client.close("gone")
    stage.timers.run_until_idle()
    assert {"NONE": 1, "REBALANCE_IN_PROGRESS": 1} == stage.errors()
    late.keep(heartbeat_reply(25))
    assert {"NONE": 1, "REBALANCE_IN_PROGRESS": 1} == stage.errors()


def test_what_is_parked_between_two_requests_ends_with_the_connection() -> None:
    session, ended = Session("peer", allow_all()), list[str]()
    session.parked["a"] = lambda: ended.append("a")
    session.parked["b"] = lambda: ended.append("b")
    del session.parked["b"]
    session.end()
    session.end()
    assert ["a"] == ended


def test_every_served_api_has_an_authorization_rule() -> None:
    assert all(isinstance(row.rule, Rule) for row in Stage().server.table.rows())


def test_apis_that_are_not_advertised_are_served_to_any_client() -> None:
    table = DispatchTable(allow_all())
    table.serve("Heartbeat", lambda _request, _exchange: None, Rule.PER_RESOURCE)
    table.serve(
        "LeaveGroup", lambda _request, _exchange: None, Rule.PER_RESOURCE, is_advertised=False
    )
    versions = ApiVersions(table)
    exchange = Exchange(Session("peer", allow_all()), API_VERSIONS, 0, 1, None, 0)
    reply = versions.handle(message_class("ApiVersionsRequest")(), exchange)
    assert [entry.api_key for entry in reply.api_keys] == [HEARTBEAT]
    assert table.row(13) is not None


def test_bytes_behind_a_request_are_passed_over() -> None:
    stage = Stage()
    request = message_class("HeartbeatRequest")(group_id="g", generation_id=9, member_id="m")
    body = message_codec("HeartbeatRequest", 3).encode(request)
    stage.send(HEARTBEAT, 3, 5, body + b"\0\0\0")
    assert stage.numbers() == [5]
    assert stage.bad == []


def test_a_promise_that_fails_is_a_fault_of_its_request() -> None:
    stage = Stage()
    late = stage.answers[1] = Promise()
    stage.beat(1)
    late.fail(api_error(UNKNOWN_SERVER_ERROR))
    stage.timers.run_until_idle()
    assert stage.closed
    (fault,) = stage.faults
    assert fault.startswith("Heartbeat: UNKNOWN_SERVER_ERROR")


@pytest.mark.parametrize("error", [AssertionError("no"), InvariantBroken("no")])
def test_a_broken_rule_is_logged_and_raised_to_the_owner_of_the_loop(error: AssertionError) -> None:
    stage = Stage()
    stage.answers[1] = error
    with pytest.raises(AssertionError):
        stage.beat(1)
    assert (["Heartbeat: no"], []) == (stage.broken, stage.faults)


def test_who_connects_to_a_held_server_is_served_from_its_begin_on() -> None:
    stage = Stage()
    stage.server.hold()
    replies: list[bytes] = []
    held = stage.connect()
    held.on_frame = lambda frame: replies.append(bytes(frame))
    stage.beat(1)
    assert [1] == stage.numbers(), "who was there before is served"
    held.send([heartbeat_frame(2)])
    held.send([heartbeat_frame(3)])
    stage.timers.run_until_idle()
    assert [] == replies
    stage.server.begin()
    stage.timers.run_until_idle()
    assert [2, 3] == [struct.unpack_from(">i", reply)[0] for reply in replies]
    later = stage.connect()
    later.on_frame = lambda frame: replies.append(bytes(frame))
    later.send([heartbeat_frame(4)])
    stage.timers.run_until_idle()
    assert 3 == len(replies)
