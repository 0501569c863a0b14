"""The process that brokers run in: who gives up is stopped, whenever that is."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import cast

import pytest

from engine.broker.broker import Broker
from engine.cluster import process as processes
from engine.cluster.process import BrokerGaveUp, Process, refusal_text, watch_for_refusal
from engine.host.promise import Promise


class NoBrokers:
    """Nothing that is served, and whether it was closed."""

    def __init__(self) -> None:
        self.brokers: Sequence[Broker] = ()
        self.is_closed = False

    def stop_with_all(self) -> None:
        """Wait for nobody."""

    async def close(self) -> None:
        """Take note of it."""
        self.is_closed = True


def test_who_gives_up_while_it_starts_is_stopped_as_soon_as_it_stands() -> None:
    process, served, ready = Process(), NoBrokers(), list[NoBrokers]()

    async def opening(give_up: Callable[[str], None]) -> NoBrokers:
        give_up("every log directory is offline")
        started: Promise[None] = Promise()
        process.loop.call_at(process.clock.monotonic_ms() + 1, lambda: started.keep(None))
        await started
        return served

    def fail_when_ready(served: NoBrokers) -> None:
        ready.append(served)
        process.loop.stop()

    with pytest.raises(BrokerGaveUp, match="every log directory is offline"):
        process.run(opening, fail_when_ready)
    assert served.is_closed
    assert [] == ready


def test_who_gives_up_while_it_serves_is_stopped() -> None:
    process, served = Process(), NoBrokers()
    told: list[Callable[[str], None]] = []

    async def opening(give_up: Callable[[str], None]) -> NoBrokers:
        told.append(give_up)
        return served

    with pytest.raises(BrokerGaveUp, match="the disk is gone"):
        process.run(opening, lambda _served: told[0]("the disk is gone"))
    assert served.is_closed


def test_a_process_that_serves_keeps_full_collections_short() -> None:
    process, served = Process(), NoBrokers()
    before, seen = list(gc.callbacks), list[int]()

    async def opening(_give_up: Callable[[str], None]) -> NoBrokers:
        return served

    def look() -> None:
        seen.append(len(gc.callbacks) - len(before))
        process.loop.stop()

    process.run(opening, lambda _served: process.loop.call_soon(look))
    assert [1] == seen
    assert before == gc.callbacks


class DeniedBroker:
    """A broker whose authorizer has denied a request of the controller, or none yet."""

    def __init__(self, principal: str | None) -> None:
        self.rules = SimpleNamespace(authorizer=SimpleNamespace(refused_controller=principal))


@pytest.mark.parametrize(
    ("principal", "is_wanted"), [("User:b", True), (None, True), ("User:b", False)]
)
def test_a_start_whose_controller_is_denied_is_given_up_with_the_cause(
    monkeypatch: pytest.MonkeyPatch, principal: str | None, *, is_wanted: bool
) -> None:
    monkeypatch.setattr(processes, "_REFUSAL_POLL_MS", 0)
    process, reasons = Process(), list[str]()
    brokers = cast("list[Broker]", [DeniedBroker(None), DeniedBroker(principal)])
    watch_for_refusal(process, brokers, lambda: is_wanted, reasons.append)
    process.loop.call_at(process.clock.monotonic_ms() + 5, process.loop.stop)
    process.loop.run()
    process.network.close()
    process.loop.close()
    assert [refusal_text("User:b")] * (is_wanted and principal is not None) == reasons
