"""What a tool is told of the nodes of any ZooKeeper, here one of ours."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from engine.host.real import RealClock
from engine.znode.errors import NoNode
from engine.znode.kazoo_reader import (
    NodeChange,
    ZnodeReader,
    ZookeeperUnreachable,
    changes_between,
)
from engine.znode.model import Create, Delete, Operation, SetData, Stat
from tests.unit.znode.stores import TIMEOUT_MS
from tests.unit.znode.zookeeper_loop import LoopServer


def _stat(czxid: int, mzxid: int) -> Stat:
    return Stat(czxid, mzxid, 0, 0, 0, 0, 0, 0, 0, mzxid)


def _shown(changes: list[NodeChange]) -> list[tuple[str, str]]:
    return [(change.event, change.path) for change in changes]


def test_changes_are_removals_and_then_all_else_by_transaction() -> None:
    before = {
        "/gone": _stat(1, 1),
        "/same": _stat(2, 2),
        "/set": _stat(3, 3),
        "/again": _stat(4, 4),
    }
    after = {"/new": _stat(9, 9), "/same": _stat(2, 2), "/set": _stat(3, 7), "/again": _stat(8, 8)}
    changes = changes_between(before, after)
    assert [
        ("deleted", "/gone"),
        ("deleted", "/again"),
        ("changed", "/set"),
        ("created", "/again"),
        ("created", "/new"),
    ] == _shown(changes)
    assert [None, None, 7, 8, 9] == [change.stat and change.stat.mzxid for change in changes]
    assert [] == changes_between(after, after)


class Watched:
    """A server on this thread, and a tool that watches a path on another."""

    def __init__(self) -> None:
        self.server = LoopServer()
        self.me = self.server.store.open_session(TIMEOUT_MS)
        self.changes: list[NodeChange] = []

    def apply(self, *operations: Operation) -> None:
        self.server.store.multi(self.me, list(operations))

    def watch(self, path: str, count: int, *steps: tuple[Operation, ...]) -> list[tuple[str, str]]:
        """Return the first changes; each step is done when the one before it was told."""

        def run() -> None:
            with ZnodeReader(f"127.0.0.1:{self.server.port}", 20, RealClock()) as reader:
                for change in reader.changes(path):
                    self.changes.append(change)
                    if len(self.changes) == count:
                        return

        tool = threading.Thread(target=run)
        tool.start()
        # Of a node that is not there, and of its children that cannot be watched yet.
        self.server.until(lambda: self.server.store.watch_count == 1)
        for number, step in enumerate(steps):
            self.server.until(lambda told=number: len(self.changes) == told)  # type: ignore[misc]
            self.apply(*step)
        self.server.until(lambda: not tool.is_alive())
        tool.join()
        return _shown(self.changes)


@pytest.fixture
def watched() -> Iterator[Watched]:
    watched = Watched()
    yield watched
    watched.server.close()


def test_a_node_that_is_created_is_notified(watched: Watched) -> None:
    assert [("created", "/w"), ("created", "/w/a"), ("changed", "/w/a"), ("deleted", "/w/a")] == (
        watched.watch(
            "/w",
            4,
            (Create("/w"),),
            (Create("/w/a"),),
            (SetData("/w/a", b"x"),),
            (Delete("/w/a"),),
        )
    )


def test_a_node_that_is_not_there_is_said_to_be_missing(watched: Watched) -> None:
    failures: list[NoNode] = []

    def run() -> None:
        with ZnodeReader(f"127.0.0.1:{watched.server.port}", 20, RealClock()) as reader:
            try:
                reader.stat("/none")
            except NoNode as error:
                failures.append(error)

    tool = threading.Thread(target=run)
    tool.start()
    watched.server.until(lambda: not tool.is_alive())
    assert ["/none"] == [error.path for error in failures]


def _seconds_until_unreachable(address: str) -> float:
    clock = RealClock()
    begun_ms = clock.monotonic_ms()
    with (
        pytest.raises(ZookeeperUnreachable, match=r"within 0\.3 s"),
        ZnodeReader(address, 0.3, clock),
    ):
        raise AssertionError("nobody answers there")
    return (clock.monotonic_ms() - begun_ms) / 1000


def test_a_server_that_accepts_and_says_nothing_costs_the_time_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert _seconds_until_unreachable(f"127.0.0.1:{silent.getsockname()[1]}") < 1


def test_a_name_that_nobody_looks_up_costs_the_time_out(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = threading.Event()

    def look_up(*_arguments: object, **_named: object) -> list[object]:
        answered.wait(20)
        raise OSError("nobody knows the name")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    try:
        assert _seconds_until_unreachable("slow.example:2181") < 1
    finally:
        answered.set()


def test_a_server_that_falls_silent_costs_the_time_out_once(watched: Watched) -> None:
    clock = RealClock()
    taken: list[float] = []

    def run() -> None:
        with (
            pytest.raises(ZookeeperUnreachable),
            ZnodeReader(f"127.0.0.1:{watched.server.port}", 0.5, clock) as reader,
        ):
            connected.set()
            silent.wait(20)
            begun_ms = clock.monotonic_ms()
            try:
                list(reader.tree("/", None))
            finally:
                taken.append((clock.monotonic_ms() - begun_ms) / 1000)

    connected, silent = threading.Event(), threading.Event()
    tool = threading.Thread(target=run)
    tool.start()
    watched.server.until(connected.is_set)
    # The loop does not turn any more.
    silent.set()
    tool.join(20)
    assert not tool.is_alive()
    assert taken[0] < 1.5


def test_a_watch_goes_on_in_a_new_session_and_says_so(watched: Watched) -> None:
    told: list[str] = []

    def run() -> None:
        with ZnodeReader(f"127.0.0.1:{watched.server.port}", 20, RealClock()) as reader:
            changes = reader.changes(
                "/w", lambda: told.append("lost"), lambda: told.append("new session")
            )
            for change in changes:
                told.append(change.event)
                if len(watched.changes) == 1:
                    return
                watched.changes.append(change)

    tool = threading.Thread(target=run)
    tool.start()
    server = watched.server
    server.until(lambda: server.store.watch_count == 1)
    watched.apply(Create("/w"))
    server.until(lambda: told == ["created"] and server.store.watch_count == 2)
    (session_id,) = [each for each in server.store.session_ids() if each != watched.me]
    server.store.close_session(session_id)
    watched.apply(SetData("/w", b"unseen"))
    server.connections[-1].close("cut by the test")
    server.until(lambda: not tool.is_alive())
    assert ["created", "lost", "new session", "changed"] == told
