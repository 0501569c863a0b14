"""The store of a simulation, and sessions over links that lose what is on its way."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from random import Random
from typing import Any

import pytest

from engine.host.coroutine import drive
from engine.sim.loop import VirtualLoop
from engine.sim.machine import Machine
from engine.sim.machine_links import MachineLinks
from engine.sim.store import StoreServer, WatchedJournal
from engine.sim.store_client import SimulatedZnodeClient
from engine.znode.kept_watches import KeptWatches
from engine.znode.model import Create, SetData, WatchEvent, WatchKind
from engine.znode.paths import CONTROLLER
from engine.znode.retrying_client import RetryingZnodeClient
from engine.znode.tree import Node
from engine.znode.values import encode_config


class Unseen:
    """Is shown transactions and machines, and notes nothing."""

    def on_callback_end(self, machine: Machine) -> None: ...

    def broke(self, machine: Machine, error: Exception) -> None:
        raise error

    def on_transaction(
        self,
        zxid: int,
        nodes: Mapping[str, Node | None],
        sessions: Mapping[int, int | None],
        writer: str,
    ) -> None: ...


class Stage:
    """A store, and clients over links."""

    def __init__(self) -> None:
        self.loop = VirtualLoop()
        unseen = Unseen()
        wires = MachineLinks(self.loop, Random(1), delay_ms_max=3)
        store = Machine("store", self.loop, unseen)
        self.server = StoreServer(store, wires, WatchedJournal(unseen))
        self.simulated: list[SimulatedZnodeClient] = []
        self.events: list[str] = []

    def client(self, name: str) -> RetryingZnodeClient:
        timers = Machine(name, self.loop, Unseen()).start()
        self.simulated.append(SimulatedZnodeClient(timers, self.server, 18_000))
        client = RetryingZnodeClient(self.simulated[-1])
        self.run(client.connect())
        return client

    def run(self, work: Coroutine[Any, None, Any], duration_ms: int = 1_000) -> Any:
        promise = drive(work)
        self.loop.run_until(self.loop.now_ms + duration_ms)
        return promise.result()

    def on_event(self, event: WatchEvent) -> None:
        self.events.append(event.type.name)


def _play(stage: Stage) -> None:
    """Watch `/controller`, lose the connection, and have the node created and deleted meanwhile.

    The deletion comes between a read that waited for the new connection and the next watch.
    """
    follower, other = stage.client("b1"), stage.client("b2")
    stage.run(follower.watch(CONTROLLER, WatchKind.DATA, stage.on_event))
    simulated = stage.simulated[0]
    simulated.reset()
    reading = drive(follower.exists(CONTROLLER))
    drive(other.create(CONTROLLER, b"2", ephemeral=True))
    stage.server.delete_before_watch_of(simulated.session_id)
    stage.loop.run_until(stage.loop.now_ms + 3_000)
    # It knows of no controller, or was told that the one it saw is gone.
    assert reading.result() is None or "DELETED" in stage.events


def test_a_deletion_between_a_lost_watch_and_the_next_is_not_missed() -> None:
    _play(Stage())


def test_reads_before_the_watches_of_a_new_connection_miss_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def at_once(_: KeptWatches) -> None: ...

    async def late(self: SimulatedZnodeClient) -> None:
        unsent, self._unsent = self._unsent, []
        for send in unsent:
            send()
        await self._watches.set_all_again()

    monkeypatch.setattr(KeptWatches, "_wait_until_readable", at_once)
    monkeypatch.setattr(SimulatedZnodeClient, "_restore_session", late)
    with pytest.raises(AssertionError):
        _play(Stage())


def test_a_request_to_watch_that_is_lost_is_repeated() -> None:
    stage = Stage()
    follower, other = stage.client("b1"), stage.client("b2")
    stage.run(other.create(CONTROLLER, b"2", ephemeral=True))
    stage.simulated[0].loses_watch_of = CONTROLLER
    setting = drive(follower.watch(CONTROLLER, WatchKind.DATA, stage.on_event))
    stage.loop.run_until(stage.loop.now_ms + 3_000)
    setting.result()
    # Somebody deleted the node just before the second request.
    assert stage.run(follower.exists(CONTROLLER)) is None
    stage.run(other.create(CONTROLLER, b"2", ephemeral=True))
    assert ["CREATED"] == stage.events


@pytest.mark.parametrize("directory", ["/config/clients", "/config/brokers"])
def test_the_store_has_limits_while_a_client_or_broker_has_settings(directory: str) -> None:
    server = Stage().server
    session = server.store.open_session(18_000)
    limited = f"{directory}/<default>"
    for path in ("/config", directory):
        server.store.apply(session, Create(path))
    assert not server.has_limits
    server.store.apply(session, Create(limited, encode_config({"producer_byte_rate": "1"})))
    assert server.has_limits
    server.store.apply(session, SetData(limited, encode_config({})))
    assert not server.has_limits
