"""The client of a real ZooKeeper, here one of ours: results, errors, watches, sessions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest
from kazoo.client import KazooClient

from engine.host.coroutine import drive
from engine.host.event_loop import EventLoop
from engine.znode.errors import (
    BadVersion,
    InvalidZnodePath,
    NoChildrenForEphemerals,
    NodeError,
    NodeExists,
    NoNode,
    NotEmpty,
    SessionExpired,
    ZnodeConnectionLost,
    ZnodeLimitExceeded,
)
from engine.znode.kazoo_client import KazooZnodeClient, ZookeeperAddress
from engine.znode.model import Check, Create, Delete, SetData, Stat, WatchKind
from tests.unit.znode.stores import TIMEOUT_MS, Told
from tests.unit.znode.zookeeper_loop import LoopServer, Sessions


@pytest.fixture
def server() -> Iterator[LoopServer]:
    server = LoopServer()
    yield server
    server.close()


@pytest.fixture
def client(server: LoopServer) -> KazooZnodeClient:
    client = server.client()
    server.run(client.connect())
    return client


def test_nodes_are_created_read_changed_and_removed(
    server: LoopServer, client: KazooZnodeClient
) -> None:
    run = server.run
    assert run(client.create("/a")) == "/a"
    assert run(client.get("/a"))[0] is None
    assert run(client.create("/a/e", b"x", ephemeral=True)) == "/a/e"
    assert run(client.create("/a/s-", b"", sequential=True)) == "/a/s-0000000001"
    assert run(client.children("/a")) == ["e", "s-0000000001"]
    stat = run(client.set("/a", b"two", 0))
    assert (stat.version, stat.data_length_bytes, stat.child_count) == (1, 3, 2)
    data, seen = run(client.get("/a"))
    assert (data, seen) == (b"two", stat)
    found = run(client.exists("/a/e"))
    assert found is not None
    assert found.ephemeral_owner == client.session_id != 0
    run(client.delete("/a/e"))
    assert run(client.exists("/a/e")) is None


def test_refusals_are_typed(server: LoopServer, client: KazooZnodeClient) -> None:
    run = server.run
    run(client.create("/a"))
    run(client.create("/a/e", ephemeral=True))
    with pytest.raises(NodeExists):
        run(client.create("/a"))
    with pytest.raises(NoNode):
        run(client.get("/none"))
    with pytest.raises(NoChildrenForEphemerals):
        run(client.create("/a/e/x"))
    with pytest.raises(NotEmpty):
        run(client.delete("/a"))
    with pytest.raises(BadVersion) as bad:
        run(client.set("/a", b"", 7))
    assert (bad.value.path, bad.value.expected) == ("/a", 7)
    with pytest.raises(InvalidZnodePath):
        run(client.get("a"))
    with pytest.raises(ZnodeLimitExceeded):
        run(client.set("/a", bytes(1 << 20) + b"x"))
    # Within a transaction too: a real server would cut the connection.
    with pytest.raises(ZnodeLimitExceeded):
        run(client.multi([Check("/a", 0), SetData("/a", bytes(1 << 20) + b"x")]))
    with pytest.raises(InvalidZnodePath):
        run(client.multi([Create("a")]))


def test_a_multi_is_done_whole_or_not_at_all(server: LoopServer, client: KazooZnodeClient) -> None:
    results = server.run(
        client.multi(
            [Create("/a"), SetData("/a", b"x"), Check("/a", 1), Create("/b"), Delete("/b")]
        )
    )
    assert (results[0], results[2:]) == ("/a", [None, "/b", None])
    assert isinstance(results[1], Stat)
    with pytest.raises(NodeError) as error:
        server.run(client.multi([Create("/c"), Check("/a", 5), Create("/d")]))
    assert isinstance(error.value, BadVersion)
    assert (error.value.operation_index, error.value.path) == (1, "/a")
    assert server.run(client.exists("/c")) is None


def test_watches_go_off_once_and_before_what_is_read_later(
    server: LoopServer, client: KazooZnodeClient
) -> None:
    told = Told()
    watcher = told.watcher()
    other = server.store.open_session(TIMEOUT_MS)

    async def work() -> list[str]:
        await client.watch("/", WatchKind.CHILDREN, watcher)
        await client.watch("/a", WatchKind.DATA, watcher)
        await client.watch("/a", WatchKind.DATA, watcher)
        server.store.apply(other, Create("/a"))
        names = await client.children("/")
        assert told.take() == [("w", "CREATED", "/a"), ("w", "CHILDREN_CHANGED", "/")]
        server.store.apply(other, SetData("/a", b"x"))
        await client.exists("/a")
        return names

    assert server.run(work()) == ["a"]
    assert told.take() == []
    with pytest.raises(NoNode):
        server.run(client.watch("/none", WatchKind.CHILDREN, watcher))


def test_a_removal_is_notified_once_to_a_watcher_of_node_and_children(
    server: LoopServer, client: KazooZnodeClient
) -> None:
    told = Told()
    watcher = told.watcher()

    async def work() -> None:
        await client.create("/a")
        await client.watch("/a", WatchKind.DATA, watcher)
        await client.watch("/a", WatchKind.CHILDREN, watcher)
        await client.delete("/a")

    server.run(work())
    assert told.take() == [("w", "DELETED", "/a")]


def test_a_lost_connection_keeps_session_and_watches_and_notifies_missed_events(
    server: LoopServer, client: KazooZnodeClient
) -> None:
    sessions, told = Sessions(client), Told()
    other = server.store.open_session(60_000)
    for path in ("/same", "/changed", "/gone", "/parent"):
        server.store.apply(other, Create(path))

    async def watch_all() -> None:
        for path in ("/same", "/changed", "/gone", "/new"):
            await client.watch(path, WatchKind.DATA, told.watcher(path))
        for path in ("/parent", "/gone", "/same"):
            await client.watch(path, WatchKind.CHILDREN, told.watcher(f"{path}/"))

    server.run(watch_all())
    session_id = client.session_id
    server.connections[-1].close("cable")
    server.store.apply(other, SetData("/changed", b"x"))
    server.store.apply(other, Delete("/gone"))
    server.store.apply(other, Create("/new"))
    server.store.apply(other, Create("/parent/child"))
    server.until(lambda: "RECONNECTED" in sessions.events)
    assert sessions.events == ["SUSPENDED", "RECONNECTED"]
    assert client.session_id == session_id
    assert sorted(told.take()) == [
        ("/changed", "DATA_CHANGED", "/changed"),
        ("/gone", "DELETED", "/gone"),
        ("/gone/", "DELETED", "/gone"),
        ("/new", "CREATED", "/new"),
        ("/parent/", "CHILDREN_CHANGED", "/parent"),
    ]
    server.store.apply(other, SetData("/same", b"x"))
    server.run(client.exists("/same"))
    assert told.take() == [("/same", "DATA_CHANGED", "/same")]


def test_an_expired_session_is_notified_and_connect_begins_again(
    server: LoopServer, client: KazooZnodeClient
) -> None:
    sessions, told = Sessions(client), Told()
    server.run(client.watch("/", WatchKind.CHILDREN, told.watcher()))
    server.run(client.create("/e", ephemeral=True))
    told.take()
    before = client.session_id
    server.store.close_session(before)
    server.connections[-1].close("cable")
    server.until(lambda: "EXPIRED" in sessions.events)
    with pytest.raises(SessionExpired):
        server.run(client.exists("/e"))
    server.run(client.connect())
    assert sessions.events == ["SUSPENDED", "EXPIRED", "CONNECTED"]
    assert client.session_id != before
    assert server.run(client.exists("/e")) is None
    assert told.take() == []


def test_closing_removes_what_the_session_owns(server: LoopServer) -> None:
    client = server.client()
    server.run(client.connect())
    server.run(client.create("/e", ephemeral=True))
    session_id = client.session_id
    server.run(client.close())
    server.run(client.close())
    assert session_id not in server.store.session_ids()


def test_a_chroot_is_made_and_is_the_root(server: LoopServer) -> None:
    told = Told()
    client = server.client("/kafka/one")
    server.run(client.connect())

    async def work() -> list[str]:
        await client.watch("/", WatchKind.CHILDREN, told.watcher())
        await client.create("/a")
        await client.multi([Create("/m"), Check("/", 0)])
        return await client.children("/")

    assert server.run(work()) == ["a", "m"]
    assert told.take() == [("w", "CHILDREN_CHANGED", "/")]
    me = server.store.open_session(TIMEOUT_MS)
    assert server.store.children(me, "/kafka/one")[0] == ["a", "m"]


def test_nobody_there_is_an_error_in_time(server: LoopServer) -> None:
    server.network.close()
    client = server.client(connection_timeout_ms=100)
    with pytest.raises(ZnodeConnectionLost, match="within 100 ms"):
        server.run(client.connect())


def test_a_fault_while_a_session_is_closed_keeps_nobody_waiting(
    server: LoopServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = server.client()
    server.run(client.connect())
    close = KazooClient.close

    def closed_with_a_fault(kazoo: KazooClient) -> None:
        close(kazoo)
        raise KeyError("a fault that is not ours")

    faults: list[str] = []
    monkeypatch.setattr(KazooClient, "close", closed_with_a_fault)
    monkeypatch.setattr(threading, "excepthook", lambda hook: faults.append(repr(hook.exc_value)))
    server.run(client.close())
    # The thread tells of its fault behind the end of the session.
    for thread in threading.enumerate():
        if thread.name == "zookeeper-close":
            thread.join()
    assert ["KeyError('a fault that is not ours')"] == faults


class HeldCalls:
    """The timers of a loop, which hold the calls of other threads until they are released."""

    def __init__(self, loop: EventLoop) -> None:
        self._loop = loop
        self.call_soon = loop.call_soon
        self.call_at = loop.call_at
        self.held: list[Callable[[], None]] = []
        self._is_holding = True

    def call_from_thread(self, callback: Callable[[], None]) -> None:
        """Hold the call, or hand it over."""
        if self._is_holding:
            self.held.append(callback)
        else:
            self._loop.call_from_thread(callback)

    def release(self) -> None:
        """Run the calls that were held, and hold no more."""
        self._is_holding = False
        for callback in self.held:
            callback()


@pytest.mark.parametrize("noticed_late", [2, 3])
def test_a_connection_that_is_lost_as_a_session_begins_keeps_no_later_read_waiting(
    server: LoopServer, noticed_late: int
) -> None:
    calls = HeldCalls(server.loop)
    address = ZookeeperAddress(f"127.0.0.1:{server.port}/kafka")
    client = KazooZnodeClient(
        address, calls, server.clock, session_timeout_ms=6000, connection_timeout_ms=5000
    )
    server.clients.append(client)
    connecting = drive(client.connect())
    server.until(lambda: len(calls.held) == 1)
    (session_id,) = server.store.session_ids()
    server.store.close_session(session_id)
    server.connections[-1].close("cable")
    server.until(lambda: len(calls.held) >= noticed_late)
    # Kazoo's thread goes on by itself, up to where it needs the server.
    while client._kazoo is not None and client._kazoo.client_state != "CONNECTING":
        continue
    calls.release()
    server.until(lambda: connecting.is_kept)
    if connecting.error is not None:
        server.run(client.connect())
    assert server.run(client.exists("/")) is not None
    assert client.session_id in server.store.session_ids()
