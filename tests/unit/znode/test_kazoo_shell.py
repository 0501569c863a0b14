"""How the session of a shell connects, and what it reports when its server goes away."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from engine.host.real import RealClock
from engine.znode.errors import ZnodeConnectionLost
from engine.znode.kazoo_reader import ZookeeperUnreachable
from engine.znode.kazoo_shell import ZnodeShellSession
from engine.znode.model import EventType
from tests.unit.znode.zookeeper_loop import LoopServer


def _no_event(event: EventType, path: str) -> None:
    raise AssertionError(f"{event} of {path}")


@pytest.fixture
def server() -> Iterator[LoopServer]:
    server = LoopServer()
    yield server
    server.close()


class Shell:
    """A session on a thread; `states` are those that it reports."""

    def __init__(self, address: str, work: Callable[[ZnodeShellSession], None]) -> None:
        self.states: list[str] = []
        self.errors: list[Exception] = []
        self._address, self._work = address, work
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        try:
            with ZnodeShellSession(
                self._address, 20, RealClock(), _no_event, self.states.append
            ) as session:
                self._work(session)
        except Exception as error:
            self.errors.append(error)

    def is_done(self) -> bool:
        return not self.thread.is_alive()


def test_a_server_that_hangs_up_is_tried_once() -> None:
    accepted: list[None] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(20)

        def hang_up() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                accepted.append(None)
                connection.close()

        hanging_up = threading.Thread(target=hang_up)
        hanging_up.start()
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        session = ZnodeShellSession(address, 3, RealClock(), _no_event, print)
        with pytest.raises(ZookeeperUnreachable), session:
            pass
        listener.shutdown(socket.SHUT_RDWR)
        hanging_up.join()
    assert [None] == accepted


def test_the_next_server_of_a_list_is_tried(server: LoopServer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        absent = taken.getsockname()[1]
    shell = Shell(f"127.0.0.1:{absent},127.0.0.1:{server.port}", lambda session: session.sync("/"))
    server.until(shell.is_done)
    assert ([], []) == (shell.errors, shell.states)


def test_a_lost_connection_comes_back(server: LoopServer) -> None:
    is_up, may_go_on = threading.Event(), threading.Event()

    def work(session: ZnodeShellSession) -> None:
        is_up.set()
        may_go_on.wait(20)
        session.sync("/")

    shell = Shell(f"127.0.0.1:{server.port}", work)
    server.until(is_up.is_set)
    (connection,) = server.connections
    connection.close("cable")
    server.until(lambda: shell.states == ["Disconnected", "SyncConnected"])
    may_go_on.set()
    server.until(shell.is_done)
    assert [] == shell.errors


def test_requests_fail_while_the_server_is_away(server: LoopServer) -> None:
    failures: list[str] = []
    is_up, is_away = threading.Event(), threading.Event()

    def work(session: ZnodeShellSession) -> None:
        is_up.set()
        is_away.wait(20)
        for path in ("/a", "/b"):
            with pytest.raises(ZnodeConnectionLost):
                session.sync(path)
            failures.append(path)

    shell = Shell(f"127.0.0.1:{server.port}", work)
    server.until(is_up.is_set)
    server.network.close()
    is_away.set()
    shell.thread.join(15)
    assert (["/a", "/b"], []) == (failures, shell.errors)
    assert ["Disconnected"] == shell.states
