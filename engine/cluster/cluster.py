"""Brokers and their metadata store in this process (D8, D9).

The store is a SQLite file beside the brokers' log directories. It listens as a ZooKeeper server, so
that other processes take part: tools, brokers of their own, Kafka's brokers (D10). Sessions of an
earlier process are ended at the start: its brokers are gone, for the file is locked by this one,
and whoever came from outside begins anew.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from engine.broker.broker import Broker
from engine.broker.host import BrokerHost
from engine.broker.peers import Serve
from engine.cluster.plan import ClusterPlan, TooManyBrokers
from engine.config.settings import BrokerSettings
from engine.errors import EngineError
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
        self._clients: list[EmbeddedZnodeClient] = []
        self._cancels: dict[int, Callable[[], None]] = {}
        self._cancel_expiry: Callable[[], None] = lambda: None
        for session_id in self._store.session_ids():
            self._store.close_session(session_id)

    def client(self, session_timeout_ms: int) -> EmbeddedZnodeClient:
        """Return a client whose session lives as long as this process's loop turns."""
        client = EmbeddedZnodeClient(self._store, session_timeout_ms)
        self._clients.append(client)
        self._beat(client, session_timeout_ms // ZNODE_HEARTBEATS_PER_TIMEOUT, len(self._cancels))
        return client

    def listen(self, network: Network, host: str, port: int, entropy: Entropy) -> int:
        """Serve ZooKeeper's clients; returns the port. The errors are the network's."""
        port = ZookeeperServer(self._store, entropy).listen(network, host, port)
        self._expire_later()
        return port

    def _beat(self, client: EmbeddedZnodeClient, period_ms: int, number: int) -> None:
        def beat() -> None:
            if client.is_open:
                client.heartbeat()
            self._beat(client, period_ms, number)

        due_ms = self._clock.monotonic_ms() + period_ms
        self._cancels[number] = self._timers.call_at(due_ms, beat)

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
        for client in self._clients:
            if client.is_open:
                client.heartbeat()
        try:
            self._store.expire_sessions()
        except ZnodeStoreFailed as error:
            _log.error("sessions cannot expire: %s", error)
            return
        self._expire_later()

    def close(self) -> None:
        """Let go of the file."""
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
    """All brokers of a plan; `settings_of` gives the settings of one by its id."""

    def __init__(
        self,
        plan: ClusterPlan,
        store: Sessions,
        host: BrokerHost,
        settings_of: Callable[[int], BrokerSettings],
    ) -> None:
        if plan.broker_count > 1:
            raise TooManyBrokers(plan.broker_count)
        peers: dict[int, Serve] = {}
        self.brokers = []
        for broker_id in plan.broker_ids():
            settings = settings_of(broker_id)
            timeout_ms = settings.value("zookeeper.session.timeout.ms")
            assert isinstance(timeout_ms, int)
            self.brokers.append(Broker(settings, host, store.client(timeout_ms), peers))

    async def start(self) -> None:
        """Start the brokers one after the other; what was started is stopped if one fails."""
        for count, broker in enumerate(self.brokers):
            try:
                await broker.start()
            except EngineError:
                for started in self.brokers[:count]:
                    await started.stop()
                raise

    async def stop(self) -> None:
        """Stop the brokers, the last started first."""
        for broker in reversed(self.brokers):
            await broker.stop()
