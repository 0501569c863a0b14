"""No window of a second has more than so many requests to a broker."""

from __future__ import annotations

from typing import Any

import pytest

from engine.client.connection import Call
from engine.client.settings import Address
from engine.exporter.gathering import gather_sample
from engine.exporter.request_pace import RequestPace
from engine.host.memory import ManualClock
from engine.wire import messages
from tests.unit.exporter.test_exporter import Stage

A, B = Address("a", 1), Address("b", 1)
CALL = Call("ListGroups", messages.ListGroupsRequest())


def pace_of(clock: ManualClock) -> RequestPace:
    return RequestPace(clock, clock.advance, request_count=2, window_ms=1000, response_wait_ms=3000)


def test_requests_of_each_address_are_spread() -> None:
    clock = ManualClock()
    pace, began_ms = pace_of(clock), clock.monotonic_ms()
    calls = {f"a{n}": (A, CALL) for n in range(5)} | {"b": (B, CALL)}
    waves = []
    while calls:
        waves.append((sorted(pace.take(calls)), clock.monotonic_ms() - began_ms))
    assert [(["a0", "a1", "b"], 0), (["a2", "a3"], 1000), (["a4"], 2000)] == waves


def test_a_question_to_any_broker_waits_for_room_at_all() -> None:
    clock = ManualClock()
    pace, began_ms = pace_of(clock), clock.monotonic_ms()
    pace.await_room()
    pace.note([A, B], began_ms)
    pace.note([A], began_ms + 300)
    pace.await_room()
    assert began_ms + 1000 == clock.monotonic_ms()


def test_a_sample_by_pace_asks_no_broker_more_often_in_any_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage()
    clock, connections = stage.client.clock, stage.client.connections
    pace = RequestPace(
        clock, connections.pause, request_count=2, window_ms=1000, response_wait_ms=3000
    )
    asked: list[tuple[Address, int]] = []
    submit = connections.submit

    def counted(address: Address, call: Call, *rest: Any, **options: Any) -> None:
        asked.append((address, clock.monotonic_ms()))
        submit(address, call, *rest, **options)

    monkeypatch.setattr(connections, "submit", counted)
    for _ in range(3):
        sample = gather_sample(stage.client, 3_000, pace=pace)
        assert {"t": 1, "__consumer_offsets": 1} == sample.min_isr
        assert [2] == [len(group.commits) for group in sample.groups]
    for address, at_ms in asked:
        near = [at for to, at in asked if to == address and at_ms <= at < at_ms + 1000]
        assert len(near) <= 2
    assert len(asked) > 30


def test_a_broker_that_keeps_silent_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage()
    connections = stage.client.connections
    pace = RequestPace(
        stage.client.clock,
        connections.pause,
        request_count=2,
        window_ms=1000,
        response_wait_ms=3000,
    )
    gone = Address("here", stage.cluster.brokers[2].ports["PLAINTEXT"])
    lost_calls = []
    submit = connections.submit

    def lost(address: Address, call: Call, *rest: Any, **options: Any) -> None:
        is_lost = address == gone and call.api_name != "Metadata"
        lost_calls.extend([call] if is_lost else [])
        submit(Address("nowhere", 1) if is_lost else address, call, *rest, **options)

    stage.client.view(None)
    monkeypatch.setattr(connections, "submit", lost)
    sample = gather_sample(stage.client, 3_000, pace=pace)
    assert frozenset({2}) == sample.silent
    assert len(lost_calls) <= 2
    assert {1, 3} == set(sample.log_dirs)
