"""The client over the store of its own process."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from engine.host.memory import ManualClock
from engine.znode.client import ZnodeClient
from engine.znode.embedded import EmbeddedZnodeClient
from engine.znode.errors import BadVersion, NoNode, SessionExpired
from engine.znode.memory_journal import MemoryJournal
from engine.znode.model import Check, Create, SessionEvent, SetData, WatchKind
from engine.znode.store import ZnodeStore
from tests.unit.znode.stores import TIMEOUT_MS, Told

R = TypeVar("R")


def now(coroutine: Coroutine[Any, Any, R]) -> R:
    """Run what never waits."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
    raise AssertionError("the embedded client made its caller wait")


def connected() -> tuple[EmbeddedZnodeClient, ZnodeStore, ManualClock]:
    clock = ManualClock()
    store = ZnodeStore(MemoryJournal(), clock)
    client = EmbeddedZnodeClient(store, TIMEOUT_MS)
    now(client.connect())
    return client, store, clock


def test_every_call_answers_at_once() -> None:
    client: ZnodeClient = connected()[0]
    told = Told()
    assert "/a" == now(client.create("/a", b"1"))
    assert "/a/n0000000000" == now(client.create("/a/n", ephemeral=True, sequential=True))
    now(client.watch("/a", WatchKind.DATA, told.watcher()))
    assert 1 == now(client.set("/a", b"2", 0)).version
    assert [("w", "DATA_CHANGED", "/a")] == told.take()
    data, stat = now(client.get("/a"))
    assert (b"2", 1) == (data, stat.child_count)
    assert ["n0000000000"] == now(client.children("/a"))
    assert stat == now(client.exists("/a"))
    assert now(client.exists("/no")) is None
    now(client.delete("/a/n0000000000"))
    with pytest.raises(BadVersion):
        now(client.delete("/a", 0))
    with pytest.raises(BadVersion) as error:
        now(client.multi([SetData("/a", b"3"), Check("/a", 0)]))
    assert 1 == error.value.operation_index
    assert ["/b"] == now(client.multi([Create("/b")]))
    with pytest.raises(NoNode):
        now(client.get("/no"))


def test_the_end_of_a_session_is_notified_and_another_begins_by_connecting() -> None:
    client, store, clock = connected()
    told: list[SessionEvent] = []
    client.on_session = told.append
    first = client.session_id
    now(client.connect())
    assert first == client.session_id
    now(client.create("/e", ephemeral=True))
    clock.advance(TIMEOUT_MS - 1)
    client.heartbeat()
    clock.advance(TIMEOUT_MS)
    assert [first] == store.expire_sessions()
    assert [SessionEvent.EXPIRED] == told
    for call in (client.exists("/e"), client.create("/x")):
        with pytest.raises(SessionExpired):
            now(call)
    with pytest.raises(SessionExpired):
        client.heartbeat()
    now(client.connect())
    assert [SessionEvent.EXPIRED, SessionEvent.CONNECTED] == told
    assert client.session_id > first
    assert now(client.exists("/e")) is None


def test_closing_ends_what_the_session_owns() -> None:
    client, store, _ = connected()
    now(client.create("/e", ephemeral=True))
    now(client.close())
    now(client.close())
    assert [] == store.session_ids()
    assert 1 == store.node_count
    with pytest.raises(SessionExpired):
        now(client.get("/e"))


def test_a_client_that_never_connected_has_no_session() -> None:
    store = ZnodeStore(MemoryJournal(), ManualClock())
    client = EmbeddedZnodeClient(store, TIMEOUT_MS)
    assert 0 == client.session_id
    with pytest.raises(SessionExpired):
        now(client.exists("/"))
    now(client.close())
