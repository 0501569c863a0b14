"""Brokers and their metadata store in this process (D8, D9).

The store is a SQLite file beside the brokers' log directories. Sessions of an earlier process are
ended at the start: whoever had them is gone, for the file is locked by this one.
"""

from __future__ import annotations

from collections.abc import Callable

from engine.broker.broker import Broker
from engine.broker.controller_channel import Serve
from engine.broker.host import BrokerHost
from engine.cluster.plan import ClusterPlan, TooManyBrokers
from engine.config.settings import BrokerSettings
from engine.errors import EngineError
from engine.host.ports import Clock, Timers
from engine.limits import ZNODE_HEARTBEATS_PER_TIMEOUT
from engine.znode.embedded import EmbeddedZnodeClient
from engine.znode.sqlite_journal import SqliteJournal
from engine.znode.store import ZnodeStore


class MetadataStore:
    """The store of this process, and the sessions of its brokers."""

    def __init__(self, path: str, clock: Clock, timers: Timers) -> None:
        """Open or make the file; raises ZnodeStoreFailed."""
        self._clock = clock
        self._timers = timers
        self._store = ZnodeStore(SqliteJournal(path), clock)
        self._clients: list[tuple[EmbeddedZnodeClient, int]] = []
        self._cancels: dict[int, Callable[[], None]] = {}
        for session_id in self._store.session_ids():
            self._store.close_session(session_id)

    def client(self, session_timeout_ms: int) -> EmbeddedZnodeClient:
        """Return a client whose session lives as long as this process's loop turns."""
        client = EmbeddedZnodeClient(self._store, session_timeout_ms)
        self._beat(client, session_timeout_ms // ZNODE_HEARTBEATS_PER_TIMEOUT, len(self._cancels))
        return client

    def _beat(self, client: EmbeddedZnodeClient, period_ms: int, number: int) -> None:
        def beat() -> None:
            if client.is_open:
                client.heartbeat()
            self._beat(client, period_ms, number)

        due_ms = self._clock.monotonic_ms() + period_ms
        self._cancels[number] = self._timers.call_at(due_ms, beat)

    def close(self) -> None:
        """Let go of the file."""
        for cancel in self._cancels.values():
            cancel()
        self._store.close()


class Cluster:
    """All brokers of a plan; `settings_of` gives the settings of one by its id."""

    def __init__(
        self,
        plan: ClusterPlan,
        store: MetadataStore,
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
