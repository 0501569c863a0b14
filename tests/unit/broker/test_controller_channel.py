"""Requests of the controller: in order, one at a time, none to a former life."""

from __future__ import annotations

from typing import Any

from engine.api.exchange import Deferred
from engine.broker.controller_channel import InProcessChannel
from engine.host.memory import ManualClock
from engine.host.memory_network import MemoryTimers
from engine.replication.metadata_cache import BrokerNode

NODE = BrokerNode(1, ())


class Stage:
    def __init__(self) -> None:
        self.timers = MemoryTimers(ManualClock())
        self.served: list[str] = []
        self.replies: list[Any] = []
        self.promised: dict[str, Deferred] = {}
        self.channel = InProcessChannel(self.timers, {1: self.serve})
        self.channel.open(NODE)

    def serve(self, name: str, request: Any) -> Any:
        self.served.append(name)
        return self.promised.get(name, f"{name} done")

    def send(self, *names: str, to: int = 1) -> None:
        for name in names:
            self.channel.send(to, name, object(), self.replies.append)


def test_requests_are_served_later_and_in_order() -> None:
    stage = Stage()
    stage.send("a", "b")
    assert stage.served == []
    stage.timers.run_until_idle()
    assert stage.served == ["a", "b"]
    assert stage.replies == ["a done", "b done"]


def test_the_next_request_waits_for_the_answer_of_the_one_before() -> None:
    stage = Stage()
    stage.promised["a"] = Deferred()
    stage.send("a", "b")
    stage.timers.run_until_idle()
    assert stage.served == ["a"]
    stage.promised["a"].complete("late")
    stage.timers.run_until_idle()
    assert stage.replies == ["late", "b done"]


def test_a_broker_without_a_queue_is_passed_over() -> None:
    stage = Stage()
    stage.send("a", to=2)
    stage.timers.run_until_idle()
    assert stage.served == []


def test_a_closed_queue_gives_no_answers_even_if_it_is_opened_again() -> None:
    stage = Stage()
    stage.promised["a"] = Deferred()
    stage.send("a")
    stage.timers.run_until_idle()
    stage.channel.close(1)
    stage.channel.open(NODE)
    stage.promised["a"].complete("of a former life")
    stage.send("b")
    stage.timers.run_until_idle()
    assert stage.replies == ["b done"]
