"""Brokers and their metadata store in this process (D8, D9).

The store is a SQLite file beside the brokers' log directories. It listens as a ZooKeeper server, so
that other processes take part: tools, brokers of their own, Kafka's brokers (D10). Sessions of an
earlier process are ended at the start: its brokers are gone, for the file is locked by this one,
and whoever came from outside begins anew.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from engine.broker.broker import Broker
from engine.broker.host import BrokerHost
from engine.broker.peers import Serve
from engine.cluster.plan import ClusterPlan
from engine.config.settings import BrokerSettings
from engine.host.ports import Clock, Entropy, Network, Timers
from engine.limits import ZNODE_HEARTBEATS_PER_TIMEOUT, ZOOKEEPER_TICK_MS
from engine.znode.client import ZnodeClient
from engine.znode.embedded import EmbeddedZnodeClient
from engine.znode.errors import ZnodeStoreFailed
from engine.znode.sqlite_journal import SqliteJournal
from engine.znode.store import ZnodeStore
from engine.znode.zookeeper_server import ZookeeperServer

_log = logging.getLogger("zookeeper.server")


class MetadataStore:
    """The store of this process, and the sessions of its brokers and of others."""

    def __init__(self, path: str, clock: Clock, timers: Timers) -> None:
        """Open or make the file; raises ZnodeStoreFailed."""
        self._clock = clock
        self._timers = timers
        self._store = ZnodeStore(SqliteJournal(path), clock)
        # The clients of this process that are not closed, each with what ends its heartbeats.
        self._cancels: dict[EmbeddedZnodeClient, Callable[[], None]] = {}
        self._cancel_expiry: Callable[[], None] = lambda: None
        self._server: ZookeeperServer | None = None
        for session_id in self._store.session_ids():
            self._store.close_session(session_id)

    def client(self, session_timeout_ms: int) -> EmbeddedZnodeClient:
        """Return a client whose session lives as long as this process's loop turns."""
        client = EmbeddedZnodeClient(self._store, session_timeout_ms)
        client.on_closed = lambda: self._forget(client)
        self._beat(client, session_timeout_ms // ZNODE_HEARTBEATS_PER_TIMEOUT)
        return client

    def _forget(self, client: EmbeddedZnodeClient) -> None:
        cancel = self._cancels.pop(client, None)
        if cancel is not None:
            cancel()

    def listen(self, network: Network, host: str, port: int, entropy: Entropy) -> int:
        """Serve ZooKeeper's clients; returns the port. The errors are the network's."""
        server = ZookeeperServer(self._store, entropy)
        listener = server.listen(network, host, port)
        self._server = server
        self._expire_later()
        return listener.port

    def _beat(self, client: EmbeddedZnodeClient, period_ms: int) -> None:
        def beat() -> None:
            if client.is_open:
                client.heartbeat()
            self._beat(client, period_ms)

        due_ms = self._clock.monotonic_ms() + period_ms
        self._cancels[client] = self._timers.call_at(due_ms, beat)

    def _expire_later(self) -> None:
        """Look for silent sessions when the next may be one, and every tick: new ones come."""
        due_ms = self._clock.monotonic_ms() + ZOOKEEPER_TICK_MS
        next_ms = self._store.next_expiry_ms()
        due_ms = due_ms if next_ms is None else min(next_ms, due_ms)
        self._cancel_expiry = self._timers.call_at(due_ms, lambda: self._expire(due_ms))

    def _expire(self, due_ms: int) -> None:
        if self._clock.monotonic_ms() - due_ms > ZOOKEEPER_TICK_MS:
            # The process stood still: what its clients said meanwhile is to be read first.
            self._timers.call_soon(self._expire_now)
        else:
            self._expire_now()

    def _expire_now(self) -> None:
        for client in self._cancels:
            if client.is_open:
                client.heartbeat()
        try:
            self._store.expire_sessions()
        except ZnodeStoreFailed as error:
            _log.error("sessions cannot expire: %s", error)
            return
        self._expire_later()

    def close(self) -> None:
        """Listen no more, and let go of the file."""
        if self._server is not None:
            self._server.close()
        self._cancel_expiry()
        for cancel in self._cancels.values():
            cancel()
        self._store.close()


class Sessions(Protocol):
    """Where brokers get their sessions with a metadata store."""

    def client(self, session_timeout_ms: int) -> ZnodeClient:
        """Return a client that is not connected yet."""
        ...


class Cluster:
    """The brokers of a plan, all of them open; `open` makes one."""

    def __init__(self, brokers: list[Broker]) -> None:
        self.brokers = brokers

    @classmethod
    async def open(
        cls,
        plan: ClusterPlan,
        store: Sessions,
        host: BrokerHost,
        settings_of: Callable[[int], BrokerSettings],
        on_fatal: Callable[[str], None],
    ) -> Cluster:
        """Open the brokers of a plan; the errors are those of `open_brokers`."""
        settings = [settings_of(broker_id) for broker_id in plan.broker_ids()]
        return cls(await open_brokers(settings, store, host, on_fatal))

    async def close(self) -> None:
        """Close all brokers, the last opened first.

        Nobody is left to lead, so nothing is moved: the controllers end before the brokers do. What
        stands in the store of leaders and in-sync sets is what the next start begins with.
        """
        await _close(self.brokers)


async def open_brokers(
    settings: Sequence[BrokerSettings],
    store: Sessions,
    host: BrokerHost,
    on_fatal: Callable[[str], None],
) -> list[Broker]:
    """Open one broker after the other; if one fails, those before it are closed.

    The errors are those of `Broker.open`. `on_fatal` is told when one of them cannot go on.
    """
    peers: dict[int, Serve] = {}
    brokers: list[Broker] = []
    try:
        for one in settings:
            timeout_ms = one.value("zookeeper.session.timeout.ms")
            assert isinstance(timeout_ms, int)
            brokers.append(
                await Broker.open(one, host, store.client(timeout_ms), peers, on_fatal=on_fatal)
            )
    except BaseException:
        await _close(brokers)
        raise
    return brokers


async def _close(brokers: Sequence[Broker]) -> None:
    for broker in brokers:
        broker.controller.stop()
    for broker in reversed(brokers):
        await broker.stop(moves_leaders=False)
