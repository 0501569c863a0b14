"""Whether a broker that was drained is empty."""

from __future__ import annotations

from typing import Any

import pytest

from engine.client.errors import Unreachable
from engine.client.reassignments import alter_reassignments
from engine.host.streams import Stream, StreamEvent, TlsSettings
from engine.model import TopicPartition
from engine.reassign.broker_drain import await_replicas_left
from tests.unit.client.fake_broker import FakeCluster
from tests.unit.reassign.memory_streams import client_of
from tests.unit.reassign.moved_cluster import MovedTopic


def test_a_broker_that_has_not_deleted_its_replicas_yet_is_asked_again() -> None:
    moved = MovedTopic()
    targets = {0: (3, 2), 1: (2, 3), 2: (3, 2), 3: (2, 3)}
    keys = {TopicPartition("t", number): ids for number, ids in targets.items()}
    other = client_of(moved.cluster)

    def delete() -> None:
        moved.streams.on_wait = lambda: None
        alter_reassignments(other, keys)

    moved.streams.on_wait = delete
    assert 0 == await_replicas_left(moved.client, 1)


def test_replicas_that_stay_are_counted_when_the_time_is_over() -> None:
    moved = MovedTopic()
    assert 4 == await_replicas_left(moved.client, 1)
    assert 0 == await_replicas_left(moved.client, 9)


def test_replicas_of_a_broker_that_is_gone_are_those_that_metadata_lists() -> None:
    with DyingBroker().client(1) as client:
        assert 2 == await_replicas_left(client, 2)


class DyingBroker(FakeCluster):
    """Broker 2 refuses connections, and its session ends after 5 s."""

    def __init__(self, *, is_emptied: bool = False) -> None:
        super().__init__()
        self.is_emptied = is_emptied
        self.handlers["DescribeLogDirs"] = lambda *_request: None

    def connect(self, host: str, port: int, tls: TlsSettings | None = None) -> Stream:
        stream = super().connect(host, port, tls)
        if port == 9002:
            self.events.pop()
            self.events.append(StreamEvent(stream, "closed", reason="refused"))
        return stream

    def metadata(self, body: Any, version: int, address: tuple[str, int]) -> Any:
        self.brokers = [1] if self.clock.now_ms >= 5_000 else [1, 2]
        response = super().metadata(body, version, address)
        if self.is_emptied:
            response.topics = []
        return response


def test_a_broker_that_died_holds_nothing_once_its_session_is_over() -> None:
    with DyingBroker(is_emptied=True).client(1) as client:
        assert 0 == await_replicas_left(client, 2)
    assert 5_000 <= client.clock.monotonic_ms() <= 6_000


def test_a_broker_that_stays_unreachable_is_the_error() -> None:
    cluster = DyingBroker()
    with cluster.client(1) as client:
        client.timeout_ms = 1_000
        with pytest.raises(Unreachable):
            await_replicas_left(client, 2)
