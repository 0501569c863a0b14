"""Watches over lost connections, on a server whose requests are served when the test says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from engine.host.coroutine import drive
from engine.host.promise import Promise
from engine.znode.errors import NoNode, SessionExpired, ZnodeConnectionLost
from engine.znode.kept_watches import KeptWatches
from engine.znode.model import EventType, Watcher, WatchEvent, WatchKind
from tests.unit.znode.stores import Told

DATA, CHILDREN = WatchKind.DATA, WatchKind.CHILDREN
CREATED, DELETED, CHANGED = EventType.CREATED, EventType.DELETED, EventType.DATA_CHANGED


class Server:
    """One node `/n` with a zxid, and the requests that wait to be served, in order."""

    def __init__(self) -> None:
        self.zxid: int | None = None
        self.watches = KeptWatches(self.arm)
        self.told = Told()
        self.on_event: list[Callable[[EventType], None]] = []
        self.waiting: list[tuple[str, Promise[Any], Callable[[], Any]]] = []

    async def arm(
        self, path: str, kind: WatchKind, on_event: Callable[[EventType], None]
    ) -> int | None:
        def set_watch() -> int | None:
            if kind is CHILDREN and self.zxid is None:
                raise NoNode(path)
            self.on_event.append(on_event)
            return self.zxid

        zxid: int | None = await self._request("watch", set_watch)
        return zxid

    def _request(self, name: str, work: Callable[[], Any]) -> Promise[Any]:
        promise: Promise[Any] = Promise()
        self.waiting.append((name, promise, work))
        return promise

    def read(self) -> Promise[Any]:
        def exists() -> int:
            if self.zxid is None:
                raise NoNode("/n")
            return self.zxid

        async def ask() -> Any:
            return await self._request("read", exists)

        return drive(self.watches.read(ask))

    def watch(self, watcher: Watcher, kind: WatchKind = DATA) -> Promise[None]:
        return drive(self.watches.watch("/n", kind, watcher))

    def serve(self, count: int | None = None) -> list[str]:
        """Serve the first requests; returns what they were."""
        served = self.waiting[:count]
        self.waiting = self.waiting[len(served) :]
        for _, promise, work in served:
            try:
                promise.keep(work())
            except NoNode as error:
                promise.fail(error)
        return [name for name, _, _ in served]

    def fire(self, type_: EventType) -> None:
        for on_event in self.on_event:
            on_event(type_)
        self.on_event = []

    def lose(self) -> None:
        """Lose the connection: requests fail, watches go."""
        waiting, self.waiting = self.waiting, []
        self.on_event = []
        for _, promise, _ in waiting:
            promise.fail(ZnodeConnectionLost("cable"))
        self.watches.on_connection_loss()

    def reconnect(self) -> Promise[bool]:
        return drive(self.watches.set_all_again())


def test_reads_go_after_the_watches_on_a_new_connection() -> None:
    server = Server()
    server.watch(server.told.watcher())
    server.serve()
    server.lose()
    # Another broker has the node by now, and loses it a moment after the first request.
    server.zxid = 7
    reading = server.read()
    assert [] == server.waiting
    server.reconnect()
    assert ["watch"] == server.serve(1)
    assert [("w", "CREATED", "/n")] == server.told.take()
    assert ["read"] == server.serve()
    assert 7 == reading.result()


def test_a_watch_that_was_never_set_missed_no_event() -> None:
    server = Server()
    server.zxid = 7
    failed = server.watch(server.told.watcher("first"))
    again: list[Promise[None]] = []
    # Whoever hears of the failed request sets the watch again before the loss is noticed.
    failed.watch(lambda: again.append(server.watch(server.told.watcher("second"))))
    server.lose()
    assert isinstance(failed.error, ZnodeConnectionLost)
    connected = server.reconnect()
    assert connected.result()
    # It may have been sent on the connection that is gone.
    assert ["watch"] == server.serve()
    assert isinstance(again[0].error, ZnodeConnectionLost)
    assert [] == server.told.take()
    server.watch(server.told.watcher("third"))
    assert ["watch"] == server.serve()
    server.fire(CHANGED)
    assert [("third", "DATA_CHANGED", "/n")] == server.told.take()


def test_a_watch_that_was_set_for_the_first_time_as_the_connection_was_lost_is_set_again() -> None:
    server = Server()
    server.zxid = 7
    server.watch(server.told.watcher())
    server.serve()
    server.lose()
    server.reconnect()
    assert ["watch"] == server.serve()
    server.fire(CHANGED)
    assert [("w", "DATA_CHANGED", "/n")] == server.told.take()


def test_a_read_of_a_connection_without_watches_counts_as_lost() -> None:
    server = Server()
    server.watch(server.told.watcher())
    server.serve()
    server.zxid = 7
    reading = server.read()
    # It was sent on the new connection before this thread heard of the loss.
    server.watches.on_connection_loss()
    server.serve()
    with pytest.raises(ZnodeConnectionLost):
        reading.result()


def test_a_node_that_was_not_there_then_counts_as_lost_too() -> None:
    server = Server()
    reading = server.read()
    server.watches.on_connection_loss()
    server.serve()
    with pytest.raises(ZnodeConnectionLost):
        reading.result()


def test_a_connection_that_is_lost_twice_loses_no_watch() -> None:
    server = Server()
    server.watch(server.told.watcher())
    server.serve()
    server.lose()
    again = server.reconnect()
    server.lose()
    assert not again.result()
    server.zxid = 3
    again = server.reconnect()
    assert ["watch"] == server.serve()
    assert again.result()
    assert [("w", "CREATED", "/n")] == server.told.take()


@pytest.mark.parametrize(
    ("kind", "before", "after", "event"),
    [
        (DATA, None, None, None),
        (DATA, 3, 3, None),
        (DATA, None, 3, "CREATED"),
        (DATA, 3, 4, "DATA_CHANGED"),
        (DATA, 3, None, "DELETED"),
        (CHILDREN, 3, 3, None),
        (CHILDREN, 3, 4, "CHILDREN_CHANGED"),
        (CHILDREN, 3, None, "DELETED"),
    ],
)
def test_what_was_missed_is_an_event(
    kind: WatchKind, before: int | None, after: int | None, event: str | None
) -> None:
    server = Server()
    server.zxid = before
    server.watch(server.told.watcher(), kind)
    server.serve()
    server.lose()
    server.zxid = after
    again = server.reconnect()
    server.serve()
    assert again.result()
    assert ([("w", event, "/n")] if event else []) == server.told.take()
    # An event ends a watch; without one it is there as before.
    server.fire(CHANGED)
    assert ([] if event else [("w", "DATA_CHANGED", "/n")]) == server.told.take()


def test_a_watch_that_is_not_set_yet_is_waited_for() -> None:
    server = Server()
    watcher = server.told.watcher()
    first, second = server.watch(watcher), server.watch(watcher)
    assert not second.is_kept
    server.lose()
    for setting in (first, second):
        with pytest.raises(ZnodeConnectionLost):
            setting.result()
    third = server.watch(watcher)
    server.reconnect()
    server.serve()
    assert third.is_kept
    assert server.watch(watcher).is_kept
    server.fire(CREATED)
    assert [("w", "CREATED", "/n")] == server.told.take()


def test_a_watch_of_no_nodes_children_is_refused_and_forgotten() -> None:
    server = Server()
    setting = server.watch(server.told.watcher(), CHILDREN)
    server.serve()
    with pytest.raises(NoNode):
        setting.result()
    server.lose()
    server.reconnect()
    assert [] == server.waiting


def test_one_removal_is_one_event_for_a_node_and_its_children() -> None:
    server = Server()
    server.zxid = 1
    watcher = server.told.watcher()
    server.watch(watcher)
    server.watch(watcher, CHILDREN)
    server.serve()
    server.fire(DELETED)
    assert [("w", "DELETED", "/n")] == server.told.take()


def test_an_event_of_an_earlier_setting_is_none_of_the_next() -> None:
    server = Server()
    watcher = server.told.watcher()
    server.watch(watcher)
    server.serve()
    (late,) = server.on_event
    server.fire(CREATED)
    server.told.take()
    server.watch(watcher)
    server.serve()
    late(CREATED)
    assert [] == server.told.take()


def test_the_end_of_a_session_lets_reads_fail() -> None:
    server = Server()
    server.watch(server.told.watcher())
    server.serve()
    server.lose()
    reading = server.read()
    server.watches.end()
    server.waiting[0][1].fail(SessionExpired(1))
    with pytest.raises(SessionExpired):
        reading.result()
    server.waiting.clear()
    server.reconnect()
    assert [] == server.waiting


@pytest.mark.parametrize("faulty", [0, 1])
def test_a_fault_of_one_watcher_keeps_no_other_from_what_it_missed(faulty: int) -> None:
    server = Server()
    told: list[int] = []

    def watcher(number: int) -> Watcher:
        def tell(_event: WatchEvent) -> None:
            told.append(number)
            if number == faulty:
                raise KeyError("a fault of our own")

        return tell

    for number in range(2):
        server.watch(watcher(number))
    server.serve()
    server.watches.on_connection_loss()
    server.zxid = 7
    read = server.read()
    setting = drive(server.watches.set_all_again())
    for _ in range(2):
        try:
            server.serve(1)
        except KeyError:
            told.append(-1)
    server.serve()
    assert ([-1, 0, 1], True) == (sorted(told), setting.result())
    assert 7 == read.result()
