from __future__ import annotations

from typing import Any

import pytest

from engine.client.blocking import CONTROLLER
from engine.client.errors import ConnectionLost, NotKafka, TimedOut, Unreachable
from engine.client.metadata import leader_of
from engine.client.offsets import FoundOffset, list_offsets
from engine.client.topic_admin import NewTopic, create_topics
from engine.errors import ApiError
from engine.host.streams import Stream, StreamEvent, TlsSettings
from engine.limits import NEXT_BROKER_MS
from engine.model import TopicPartition
from engine.wire import messages
from engine.wire.structs import message_class
from tests.client_session import FramedStream
from tests.unit.client.fake_broker import FakeCluster

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


def silent(cluster: FakeCluster, api_name: str, *ports: int) -> FakeCluster:
    """Have brokers, the first one without any, leave an API unanswered."""
    answer = cluster.handlers[api_name]
    cluster.handlers[api_name] = lambda body, version, address: (
        None if address[1] in (ports or (9001,)) else answer(body, version, address)
    )
    return cluster


class TestBootstrap:
    def test_one_connection_serves_all_questions_to_any_broker(self) -> None:
        cluster = FakeCluster()
        client = cluster.client(1, 2)
        client.view([])
        client.view(None)
        assert 1 == len(cluster.opened)

    def test_the_next_address_is_tried_when_one_does_not_answer(self) -> None:
        cluster = RefusingCluster({1})
        assert 1 == cluster.client(1, 2).view([]).controller_id
        assert [("Metadata", 2)] == [a for a in cluster.requested if a[0] == "Metadata"]

    def test_all_refused_names_all(self) -> None:
        with pytest.raises(Unreachable, match=r"9001: refused; 127\.0\.0\.1:9002: refused"):
            RefusingCluster({1, 2}).client(1, 2).view([])

    def test_nothing_is_waited_for_when_all_are_refused(self) -> None:
        cluster = RefusingCluster({1})
        with pytest.raises(Unreachable):
            cluster.client(1).view([])
        assert 1_000 == cluster.clock.now_ms

    def test_an_address_that_is_silent_is_not_waited_for_where_another_answers(self) -> None:
        cluster = silent(FakeCluster(), "ApiVersions")
        assert 1 == cluster.client(1, 2).view([]).controller_id
        assert 1_000 + NEXT_BROKER_MS == cluster.clock.now_ms

    def test_neither_is_a_broker_that_falls_silent_later(self) -> None:
        cluster = FakeCluster()
        client = cluster.client(1, 2)
        client.view([])
        silent(cluster, "Metadata")
        assert 1 == client.view([]).controller_id
        assert 1_000 + NEXT_BROKER_MS == cluster.clock.now_ms

    def test_a_question_to_any_broker_goes_to_one_that_connects(self) -> None:
        cluster = silent(FakeCluster(), "ApiVersions")
        response = message_class("FindCoordinatorResponse")
        cluster.handlers["FindCoordinator"] = lambda body, version, address: response(
            coordinators=[response.Coordinator(key="g", host="127.0.0.1", port=address[1])]
        )
        assert 9002 == cluster.client(1, 2).coordinator("g").port
        assert 1_000 + NEXT_BROKER_MS == cluster.clock.now_ms

    def test_all_that_are_silent_are_named(self) -> None:
        cluster = silent(FakeCluster(), "ApiVersions", 9001, 9002)
        client = cluster.client(1, 2, connect_timeout_ms=700)
        silence = "no answer to the first request in time"
        with pytest.raises(Unreachable, match=rf"9001: {silence}; 127\.0\.0\.1:9002: {silence}"):
            client.view([])
        assert 1_700 + NEXT_BROKER_MS == cluster.clock.now_ms

    def test_silence_after_the_handshake_is_a_timeout(self) -> None:
        cluster = FakeCluster()
        cluster.handlers["Metadata"] = lambda body, version, address: None
        with pytest.raises(TimedOut, match=r"Metadata to 127\.0\.0\.1:9001: no answer within 30 s"):
            cluster.client().view([])
        assert 31_000 == cluster.clock.now_ms

    def test_what_cannot_be_asked_again_is_waited_for_until_the_time_is_up(self) -> None:
        cluster = FakeCluster()
        cluster.handlers["CreateTopics"] = lambda body, version, address: None
        client = cluster.client()
        client.timeout_ms = 90_000
        with pytest.raises(TimedOut, match=r"CreateTopics .* no answer within 90 s"):
            create_topics(client, [NewTopic("t", 1, 1)])
        assert 1 == cluster.requested_apis().count("CreateTopics")


class RefusingCluster(FakeCluster):
    """A cluster some of whose brokers are not there."""

    def __init__(self, refusing: set[int]) -> None:
        super().__init__()
        self.refusing = refusing

    def connect(self, host: str, port: int, tls: Any = None) -> Any:
        if port - 9000 not in self.refusing:
            return super().connect(host, port, tls)
        stream = FramedStream(self, host, port)
        self.events.append(StreamEvent(stream, "closed", reason="refused"))
        return stream


class TestController:
    def test_creating_goes_to_the_controller(self) -> None:
        cluster = FakeCluster()
        cluster.controller = 2
        cluster.handlers["CreateTopics"] = created
        create_topics(cluster.client(), [NewTopic("n", 1, 1)])
        assert ("CreateTopics", 2) in cluster.requested

    def test_a_broker_that_is_no_controller_any_more_is_asked_once(self) -> None:
        cluster = FakeCluster()

        def moved(body: Any, version: int, address: tuple[str, int]) -> Any:
            cluster.controller = 2
            return created(body, version, address, code=0 if address[1] == 9002 else 41)

        cluster.handlers["CreateTopics"] = moved
        found = create_topics(cluster.client(), [NewTopic("n", 1, 1)])
        assert not isinstance(found["n"], ApiError)
        assert ["Metadata", "CreateTopics", "Metadata", "CreateTopics"] == cluster.requested_apis()

    def test_a_final_error_is_handed_out(self) -> None:
        cluster = FakeCluster()
        cluster.handlers["CreateTopics"] = lambda *args: created(*args, code=36)
        found = create_topics(cluster.client(), [NewTopic("n", 1, 1)])["n"]
        assert isinstance(found, ApiError)
        assert (36, "TOPIC_ALREADY_EXISTS") == (found.code, found.name)

    def test_a_change_is_not_asked_again_when_the_connection_breaks(self) -> None:
        cluster = FakeCluster()
        requested = []

        def breaks(body: Any, version: int, address: tuple[str, int]) -> Any:
            requested.append(address)
            stream = cluster.opened[-1]
            cluster.events.append(StreamEvent(stream, "closed", reason="gone"))

        cluster.handlers["CreateTopics"] = breaks
        with pytest.raises(ConnectionLost, match="gone"):
            create_topics(cluster.client(), [NewTopic("n", 1, 1)])
        assert 1 == len(requested)

    def test_a_listener_that_closes_at_the_first_request_may_want_sasl(self) -> None:
        cluster = FakeCluster()

        def closes(body: Any, version: int, address: tuple[str, int]) -> Any:
            cluster.events.append(StreamEvent(cluster.opened[-1], "closed", reason="gone"))

        cluster.handlers["Metadata"] = closes
        with pytest.raises(ConnectionLost) as caught:
            cluster.client().view(None)
        assert "a listener with SASL ends the connection so" in str(caught.value.hint)

    def test_a_missing_controller_is_awaited_and_then_reported(self) -> None:
        cluster = FakeCluster()
        cluster.controller = -1
        client, began_ms = cluster.client(), cluster.clock.now_ms
        with pytest.raises(TimedOut, match="controller"):
            client.send("CreateTopics", None, to=CONTROLLER)
        waited_ms = cluster.clock.now_ms - began_ms
        assert client.timeout_ms - 1_000 <= waited_ms <= client.timeout_ms

    def test_a_controller_that_is_elected_meanwhile_is_asked(self) -> None:
        cluster = FakeCluster()
        cluster.controller = -1
        cluster.handlers["CreateTopics"] = created
        metadata = cluster.handlers["Metadata"]

        def elect(body: Any, version: int, address: tuple[str, int]) -> Any:
            if cluster.requested_apis().count("Metadata") == 3:
                cluster.controller = 2
            return metadata(body, version, address)

        cluster.handlers["Metadata"] = elect
        with cluster.client() as client:
            client.send("CreateTopics", message_class("CreateTopicsRequest")(), to=CONTROLLER)
        assert ("CreateTopics", 2) == cluster.requested[-1]

    def test_a_broker_that_is_not_alive_names_those_that_are(self) -> None:
        with pytest.raises(ApiError, match="no broker 7 is alive; alive: 1, 2"):
            FakeCluster().client().send("Metadata", None, to=7)


def created(body: Any, version: int, address: tuple[str, int], code: int = 0) -> Any:
    response = message_class("CreateTopicsResponse")
    rows = [response.CreatableTopicResult(name=t.name, error_code=code) for t in body.topics]
    return response(topics=rows)


class TestLeaders:
    def offsets(self, cluster: FakeCluster, codes: dict[int, list[int]]) -> None:
        """Answer ListOffsets with the broker's id as the offset, or first with some codes."""
        response = message_class("ListOffsetsResponse")

        def answer(body: Any, version: int, address: tuple[str, int]) -> Any:
            broker = address[1] - 9000
            code = codes[broker].pop(0) if codes.get(broker) else 0
            if code == 6:
                cluster.leaders = dict.fromkeys(cluster.leaders, 2)
            return response(
                topics=[
                    response.ListOffsetsTopicResponse(
                        name=topic.name,
                        partitions=[
                            response.ListOffsetsPartitionResponse(
                                partition_index=p.partition_index,
                                error_code=code,
                                offset=broker,
                                leader_epoch=-1,
                            )
                            for p in topic.partitions
                        ],
                    )
                    for topic in body.topics
                ]
            )

        cluster.handlers["ListOffsets"] = answer

    def ask(self, cluster: FakeCluster, *partitions: TopicPartition) -> dict[Any, Any]:
        return list_offsets(cluster.client(), dict.fromkeys(partitions, -1))

    def test_each_leader_gets_one_request(self) -> None:
        cluster = FakeCluster()
        self.offsets(cluster, {})
        assert {P0: FoundOffset(1, -1, -1), P1: FoundOffset(2, -1, -1)} == self.ask(cluster, P0, P1)
        assert ["Metadata", "ListOffsets", "ListOffsets"] == cluster.requested_apis()

    def test_a_leader_that_moved_is_looked_up_again(self) -> None:
        cluster = FakeCluster()
        self.offsets(cluster, {1: [6]})
        found = self.ask(cluster, P0, P1)
        assert 2 == found[P0].offset
        assert 2 == cluster.requested_apis().count("Metadata")

    def test_a_lasting_error_is_the_partitions_own(self) -> None:
        cluster = FakeCluster()
        self.offsets(cluster, {1: [29]})
        found = self.ask(cluster, P0, P1)
        assert (29, 2) == (found[P0].code, found[P1].offset)

    def test_a_partition_without_a_leader_does_not_hold_up_the_others(self) -> None:
        cluster = FakeCluster()
        cluster.leaders[P0] = -1
        self.offsets(cluster, {})
        found = self.ask(cluster, P0, P1)
        assert (5, 2) == (found[P0].code, found[P1].offset)
        assert cluster.clock.now_ms < 4_000

    def test_an_unknown_topic_is_reported_soon(self) -> None:
        cluster = FakeCluster()
        unknown = TopicPartition("nope", 0)
        found = self.ask(cluster, unknown)
        assert 3 == found[unknown].code
        assert cluster.clock.now_ms < 1_500

    def test_a_dead_leader_fails_its_partitions_alone(self) -> None:
        cluster = RefusingCluster({2})
        self.offsets(cluster, {})
        found = self.ask(cluster, P0, P1)
        assert 1 == found[P0].offset
        assert isinstance(found[P1], Unreachable)

    def test_what_an_answer_leaves_out_is_an_error(self) -> None:
        cluster = FakeCluster()
        cluster.handlers["ListOffsets"] = lambda *_: message_class("ListOffsetsResponse")()
        assert "leaves out t-0" in str(self.ask(cluster, P0)[P0])


class TestCoordinator:
    @pytest.mark.parametrize("version", [0, 3, 4, 6])
    def test_it_is_found_in_every_version(self, version: int) -> None:
        cluster = FakeCluster({"FindCoordinator": (0, version)})
        cluster.handlers["FindCoordinator"] = coordinator_is(2)
        assert 9002 == cluster.client().coordinator("g").port

    @pytest.mark.parametrize("version", [1, 3, 4])
    def test_that_of_a_transactional_id_is_requested_as_such(self, version: int) -> None:
        cluster = FakeCluster({"FindCoordinator": (0, version)})
        asked: list[int] = []

        def answer(body: Any, version: int, address: tuple[str, int]) -> Any:
            asked.append(body.key_type)
            return coordinator_is(2)(body, version, address)

        cluster.handlers["FindCoordinator"] = answer
        assert 9002 == cluster.client().coordinator("id", 1).port
        assert [1] == asked

    def test_one_that_moved_is_looked_up_again(self) -> None:
        cluster = FakeCluster()
        cluster.handlers["FindCoordinator"] = coordinator_is(1)

        def groups(body: Any, version: int, address: tuple[str, int]) -> Any:
            cluster.handlers["FindCoordinator"] = coordinator_is(2)
            response = message_class("DescribeGroupsResponse")
            code = 16 if address[1] == 9001 else 0
            return response(groups=[response.DescribedGroup(group_id="g", error_code=code)])

        cluster.handlers["DescribeGroups"] = groups
        request = message_class("DescribeGroupsRequest")(groups=["g"])
        reply = cluster.client().send_to_coordinator(
            "g", "DescribeGroups", request, retriable_code=lambda m: int(m.groups[0].error_code)
        )
        assert 0 == reply.message.groups[0].error_code
        assert [1, 2] == [broker for name, broker in cluster.requested if name == "DescribeGroups"]


def coordinator_is(broker: int) -> Any:
    def answer(body: Any, version: int, address: tuple[str, int]) -> Any:
        response = message_class("FindCoordinatorResponse")
        where = {"host": "127.0.0.1", "port": 9000 + broker}
        if version < 4:
            return response(node_id=broker, **where)
        row = response.Coordinator(key=body.coordinator_keys[0], node_id=broker, **where)
        return response(coordinators=[row])

    return answer


def test_bytes_of_another_protocol_end_the_question_at_once() -> None:
    cluster = FakeCluster()

    class Web(FakeCluster):
        def connect(self, host: str, port: int, tls: Any = None) -> Any:
            stream = super().connect(host, port, tls)
            self.events.append(StreamEvent(stream, "received", b"HTTP/1.1 400 Bad Request"))
            return stream

    with pytest.raises(NotKafka):
        Web().client().view([])
    assert 1_000 == cluster.clock.now_ms


def test_pauses_grow_to_their_bound() -> None:
    client = FakeCluster().client(retry_backoff_ms=100, retry_backoff_ms_max=1_000)
    assert [100, 200, 400, 800, 1_000, 1_000] == [client.backoff_ms(n) for n in range(6)]
    assert 1_000 == client.backoff_ms(10_000)


def test_a_pause_of_a_century_asks_no_selector_for_it_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster, waits = FakeCluster(), list[int]()

    def wait(timeout_ms: int) -> list[Any]:
        waits.append(timeout_ms)
        cluster.clock.now_ms += timeout_ms
        return []

    client = cluster.client()
    monkeypatch.setattr(cluster, "wait", wait)
    client.connections.pause(9_000_000)
    assert [3_600_000, 3_600_000, 1_800_000] == waits


def test_why_a_partition_has_no_leader() -> None:
    cluster = FakeCluster()
    cluster.leaders = {("t", 0): 1, ("t", 1): -1, ("t", 2): 9}
    view = cluster.client().view(["t", "nope"])
    assert 1 == leader_of(view, P0)
    for partition, code in ((P1, 5), (TopicPartition("t", 2), 5), (TopicPartition("t", 3), 3)):
        found = leader_of(view, partition)
        assert isinstance(found, ApiError)
        assert code == found.code
    found = leader_of(view, TopicPartition("nope", 0))
    assert isinstance(found, ApiError)
    assert "nope" in str(found)


def test_a_coordinator_that_does_not_answer_is_looked_up_again() -> None:
    cluster = FakeCluster()
    response = message_class("FindCoordinatorResponse")
    ports = iter((9001, 9002))
    cluster.handlers["FindCoordinator"] = lambda *_: response(
        coordinators=[response.Coordinator(key="g", host="127.0.0.1", port=next(ports))]
    )
    cluster.handlers["Heartbeat"] = lambda _body, _version, address: (
        None if address[1] == 9001 else message_class("HeartbeatResponse")()
    )
    client = cluster.client(1)
    request = message_class("HeartbeatRequest")(group_id="g")

    def heartbeat() -> int:
        response = client.send_to_coordinator(
            "g", "Heartbeat", request, retriable_code=lambda message: int(message.error_code)
        )
        return int(response.message.error_code)

    with pytest.raises(TimedOut):
        heartbeat()
    assert 0 == heartbeat()


def test_a_connection_that_a_broker_closed_while_it_was_idle_is_opened_again() -> None:
    cluster = FakeCluster()
    cluster.brokers = [1]
    client = cluster.client(1)
    client.view([])
    (first,) = cluster.opened
    cluster.clock.now_ms += 1000
    cluster.events.append(StreamEvent(first, "closed", reason="the broker closed it"))
    assert {1} == set(client.view([]).brokers)
    assert 2 == len(cluster.opened)


class OneWake(FakeCluster):
    """Streams whose next wait alone is ended by a wake, as the byte in a pair of sockets does."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[int] = []

    def wait(self, timeout_ms: int) -> list[StreamEvent]:
        self.waits.append(timeout_ms)
        return super().wait(timeout_ms)

    def wake(self) -> None:
        """Do nothing: the byte was taken by another wait."""

    def close(self) -> None:
        """Do nothing."""


def test_an_interruption_that_another_wait_has_taken_still_ends_a_wait() -> None:
    cluster = OneWake()
    connections = cluster.client(1).connections
    connections.interrupt()
    assert [] == connections.wait(5_000, may_be_interrupted=True)
    connections.proceed()
    connections.wait(5_000, may_be_interrupted=True)
    assert [0, 5_000] == cluster.waits


class Restartable(FakeCluster):
    """Brokers of which some take no connections."""

    def __init__(self) -> None:
        super().__init__()
        self.down: set[int] = set()
        #: When all are up again.
        self.up_ms = 1 << 62
        self.handlers["FindCoordinator"] = self.find_coordinator

    def find_coordinator(self, body: Any, version: int, address: tuple[str, int]) -> Any:
        response = message_class("FindCoordinatorResponse")
        row = response.Coordinator(key="g", node_id=1, host="127.0.0.1", port=9001)
        return response(coordinators=[row])

    def stop(self, *broker_ids: int) -> None:
        self.down.update(broker_ids)
        for stream in self.opened:
            if stream.address[1] - 9000 in broker_ids:
                self.events.append(StreamEvent(stream, "closed", reason="reset"))

    def connect(self, host: str, port: int, tls: TlsSettings | None = None) -> Stream:
        if port - 9000 not in self.down or self.clock.now_ms >= self.up_ms:
            return super().connect(host, port, tls)
        stream = FramedStream(self, host, port)
        self.events.append(StreamEvent(stream, "closed", reason="refused"))
        return stream


def test_brokers_that_were_known_are_asked_as_those_given_are_down() -> None:
    cluster = Restartable()
    cluster.handlers["DescribeGroups"] = lambda *_: message_class("DescribeGroupsResponse")()
    client = cluster.client(1)
    client.view([])
    cluster.stop(1)
    cluster.brokers, cluster.controller = [2], 2
    request = messages.DescribeGroupsRequest()
    assert client.send("DescribeGroups", request, to=CONTROLLER).message is not None
    assert ("DescribeGroups", 2) in cluster.requested


def test_a_coordinator_is_waited_for_while_all_brokers_restart() -> None:
    cluster = Restartable()
    cluster.handlers["Heartbeat"] = lambda *_: message_class("HeartbeatResponse")()
    client = cluster.client(1)
    client.view([])
    cluster.stop(1, 2)
    cluster.up_ms = cluster.clock.now_ms + 5_000
    request = messages.HeartbeatRequest(group_id="g")
    client.send_to_coordinator("g", "Heartbeat", request, retriable_code=lambda m: m.error_code)
    assert cluster.up_ms <= cluster.clock.now_ms < cluster.up_ms + 2_000


def test_a_coordinator_of_a_cluster_that_was_never_there_is_not_waited_for() -> None:
    cluster = Restartable()
    cluster.stop(1, 2)
    began_ms = cluster.clock.now_ms
    with pytest.raises(Unreachable):
        cluster.client(1).send_to_coordinator(
            "g", "Heartbeat", messages.HeartbeatRequest(), retriable_code=lambda m: m.error_code
        )
    assert cluster.clock.now_ms < began_ms + 100


def test_calls_of_a_block_are_repeated_until_its_time_is_up() -> None:
    cluster = Restartable()
    client = cluster.client(1)
    client.view([])
    cluster.stop(1, 2)
    began_ms = cluster.clock.now_ms
    with client.bound_retries(began_ms + 1_000):
        with pytest.raises(Unreachable):
            client.send_to_coordinator(
                "g", "Heartbeat", messages.HeartbeatRequest(), retriable_code=lambda m: m.error_code
            )
        assert began_ms < cluster.clock.now_ms <= began_ms + 1_000


def test_a_connection_that_is_dropped_is_closed() -> None:
    cluster = FakeCluster()
    client = cluster.client(1)
    client.view([])
    (stream,) = cluster.opened
    client.connections.drop(client.bootstrap[0])
    assert stream.is_closed
    assert client.connections.ready_address() is None
