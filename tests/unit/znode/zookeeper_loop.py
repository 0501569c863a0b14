"""A server and a kazoo client on one loop, over real sockets."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from engine.host.coroutine import drive
from engine.host.event_loop import EventLoop
from engine.host.ports import Connection, Listener, ListenOptions
from engine.host.promise import Promise
from engine.host.real import RealClock, RealEntropy
from engine.host.real_network import RealNetwork
from engine.znode.kazoo_client import KazooZnodeClient, ZookeeperAddress, ZookeeperSecurity
from engine.znode.memory_journal import MemoryJournal
from engine.znode.model import SessionEvent
from engine.znode.store import ZnodeStore
from engine.znode.zookeeper_server import ZookeeperServer

T = TypeVar("T")
DEADLINE_MS = 20_000


class LoopServer:
    """A store that listens, and the loop it runs on."""

    def __init__(self, users: dict[str, str] | None = None) -> None:
        self.clock = RealClock()
        self.loop = EventLoop()
        self.network = RealNetwork(self.loop, self.clock)
        self.store = ZnodeStore(MemoryJournal(), self.clock)
        self.connections: list[Connection] = []
        self.users = users or {}
        server = ZookeeperServer(self.store, RealEntropy(), self.users)
        self.port = server.listen(self, "127.0.0.1", 0).port
        self.clients: list[KazooZnodeClient] = []

    def listen(
        self, host: str, port: int, on_connect: Callable[[Connection], None], options: ListenOptions
    ) -> Listener:
        """Listen as the network does, keeping the connections."""

        def note(connection: Connection) -> None:
            self.connections.append(connection)
            on_connect(connection)

        return self.network.listen(host, port, note, options)

    def connect(self, host: str, port: int, *, receive_buffer_bytes: int = -1) -> Connection:
        return self.network.connect(host, port, receive_buffer_bytes=receive_buffer_bytes)

    def address_of(self, host: str) -> str | None:
        return self.network.address_of(host)

    def client(
        self,
        chroot: str = "",
        connection_timeout_ms: int = 5000,
        security: ZookeeperSecurity | None = None,
    ) -> KazooZnodeClient:
        client = KazooZnodeClient(
            ZookeeperAddress(f"127.0.0.1:{self.port}{chroot}"),
            self.loop,
            self.clock,
            session_timeout_ms=6000,
            connection_timeout_ms=connection_timeout_ms,
            security=security,
        )
        self.clients.append(client)
        return client

    def run(self, work: Coroutine[Any, None, T]) -> T:
        """Turn the loop until the work is done."""
        promise: Promise[T] = drive(work)
        self.until(lambda: promise.is_kept)
        return promise.result()

    def until(self, condition: Callable[[], bool]) -> None:
        """Turn the loop until a condition holds."""
        due_ms = self.clock.monotonic_ms() + DEADLINE_MS

        def look() -> None:
            if condition() or self.clock.monotonic_ms() > due_ms:
                self.loop.stop()
            else:
                self.loop.call_at(self.clock.monotonic_ms() + 1, look)

        self.loop.call_soon(look)
        self.loop.run()
        assert condition()

    def close(self) -> None:
        for client in self.clients:
            self.run(client.close())
        self.network.close()
        self.store.close()
        self.loop.close()


class Sessions:
    """Takes note of what happens to a session."""

    def __init__(self, client: KazooZnodeClient) -> None:
        self.events: list[str] = []
        client.on_session = self._note

    def _note(self, event: SessionEvent) -> None:
        self.events.append(event.name)
