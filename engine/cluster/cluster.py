"""Brokers and their metadata store in this process (D8, D9).

The store is a SQLite file next to the brokers' log directories. It also serves ZooKeeper's protocol
to other processes: tools, brokers in separate processes, Kafka's brokers (D10). At the start,
sessions of clients inside an earlier process are closed: those brokers have ended, because this
process holds the lock. Clients in other processes continue their sessions once the store listens.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Protocol

from engine.broker.broker import Broker
from engine.broker.host import BrokerHost
from engine.broker.peers import Serve
from engine.cluster.process import call_when_informed
from engine.cluster.requests import ClusterRequest, carry_out
from engine.cluster.store_security import StoreSecurity
from engine.config.settings import BrokerSettings
from engine.host.link_faults import STORE, LinkFaults
from engine.host.ports import Clock, Entropy, Network, Timers
from engine.host.promise import Promise
from engine.host.real_network import CannotListen
from engine.limits import ZNODE_HEARTBEATS_PER_TIMEOUT, ZOOKEEPER_TICK_MS
from engine.znode.client import ZnodeClient
from engine.znode.embedded import EmbeddedZnodeClient
from engine.znode.errors import ZnodeStoreFailed
from engine.znode.linked import LinkedZnodeClient
from engine.znode.sqlite_journal import SqliteJournal
from engine.znode.store import ZnodeStore
from engine.znode.zookeeper_server import ZookeeperServer

_log = logging.getLogger("zookeeper.server")
_SESSION_TIMEOUT_MS = 60_000
_OPEN = StoreSecurity({}, None)


class MetadataStore:
    """The metadata store of this process, with its local and remote sessions."""

    def __init__(
        self, path: str, clock: Clock, timers: Timers, security: StoreSecurity = _OPEN
    ) -> None:
        """Open or create the store's file and end the sessions of earlier processes.

        Raises ZnodeStoreFailed.
        """
        self._security = security
        self._clock = clock
        self._timers = timers
        self._store = ZnodeStore(SqliteJournal(path), clock)
        #: Open clients of this process, each with the function that stops its heartbeats.
        self._cancels: dict[EmbeddedZnodeClient, Callable[[], None]] = {}
        #: Cancels the timer of the next check for expired sessions.
        self._cancel_expiry: Callable[[], None] = lambda: None
        #: Serves the store to brokers in other processes. None until the first of them needs it.
        self._server: ZookeeperServer | None = None
        self._store.end_local_sessions()

    def client(self, session_timeout_ms: int) -> EmbeddedZnodeClient:
        """Create a client whose session gets heartbeats while this process's loop runs."""
        client = EmbeddedZnodeClient(self._store, session_timeout_ms, self._security.creator)
        client.on_closed = lambda: self._forget(client)
        self._schedule_heartbeat(client, session_timeout_ms // ZNODE_HEARTBEATS_PER_TIMEOUT)
        return client

    def _forget(self, client: EmbeddedZnodeClient) -> None:
        """Stop the heartbeats of a client that was closed."""
        cancel = self._cancels.pop(client, None)
        if cancel is not None:
            cancel()

    def listen(self, network: Network, host: str, port: int, entropy: Entropy) -> int:
        """Serve ZooKeeper clients at an address; return the port. Raises the network's errors."""
        if self._server is None:
            self._server = ZookeeperServer(self._store, entropy, self._security.users)
            self._expire_later()
        return self._server.listen(network, host, port).port

    async def end_owning_session(self, path: str) -> bool:
        """Close the session that owns an ephemeral node; return True if there was one.

        Called when the owner is known to have ended: clients that wait for the node would otherwise
        wait for the session time-out.
        """
        client = self.client(_SESSION_TIMEOUT_MS)
        await client.connect()
        try:
            stat = await client.exists(path)
        finally:
            await client.close()
        if stat is None or not stat.ephemeral_owner:
            return False
        self._store.close_session(stat.ephemeral_owner)
        return True

    def _schedule_heartbeat(self, client: EmbeddedZnodeClient, period_ms: int) -> None:
        """Send a heartbeat of a client's session every `period_ms`, until `_forget` cancels it."""

        def beat() -> None:
            """Send one heartbeat and schedule the next one, even after an error."""
            try:
                if client.is_open:
                    client.heartbeat()
            finally:
                self._schedule_heartbeat(client, period_ms)

        due_ms = self._clock.monotonic_ms() + period_ms
        self._cancels[client] = self._timers.call_at(due_ms, beat)

    def _expire_later(self) -> None:
        """Schedule the next check for expired sessions: at the next expiry, within one tick."""
        due_ms = self._clock.monotonic_ms() + ZOOKEEPER_TICK_MS
        next_ms = self._store.next_expiry_ms()
        due_ms = due_ms if next_ms is None else min(next_ms, due_ms)
        self._cancel_expiry = self._timers.call_at(due_ms, lambda: self._expire(due_ms))

    def _expire(self, due_ms: int) -> None:
        """Expire the sessions that are due at `due_ms`.

        After a pause of the process the loop first reads frames: clients may have sent heartbeats
        meanwhile.
        """
        if self._clock.monotonic_ms() - due_ms > ZOOKEEPER_TICK_MS:
            # The process was paused: first read the heartbeats received meanwhile.
            self._timers.call_soon(self._expire_now)
        else:
            self._expire_now()

    def _expire_now(self) -> None:
        """Send the local sessions' heartbeats, expire overdue sessions, schedule the next check.

        If the store has failed, no further check is scheduled: no session can be expired any more.
        """
        is_usable = True
        try:
            for client in self._cancels:
                if client.is_open:
                    client.heartbeat()
            self._store.expire_sessions()
        except ZnodeStoreFailed as error:
            _log.error("sessions cannot expire: %s", error)
            is_usable = False
        finally:
            # An error of one session must not keep other sessions alive forever.
            if is_usable:
                self._expire_later()

    def close(self) -> None:
        """Stop listening, stop all timers, and close the file."""
        if self._server is not None:
            self._server.close()
        self._cancel_expiry()
        for cancel in self._cancels.values():
            cancel()
        self._store.close()


class Sessions(Protocol):
    """Creates sessions of brokers with a metadata store."""

    def client(self, session_timeout_ms: int) -> ZnodeClient:
        """Return a client that is not connected yet."""
        ...


class Cluster:
    """The brokers of this process."""

    def __init__(
        self,
        store: Sessions,
        host: BrokerHost,
        settings_of: Callable[[int, int | None], BrokerSettings],
        on_fatal: Callable[[str], None],
        *,
        is_whole: bool = True,
        ports: Mapping[int, int] | None = None,
    ) -> None:
        """Create the brokers' container; none is opened.

        `settings_of` is called with a broker's id and its last port (or None). With `is_whole`, no
        other broker can lead after it closes. `on_fatal` is called when a broker cannot continue.
        """
        #: Open brokers, in the order of opening.
        self.brokers: list[Broker] = []
        self._store = store
        self._host = host
        self._settings_of = settings_of
        self._on_fatal = on_fatal
        self._is_whole = is_whole
        #: The last port of each broker: a restarted broker listens there again.
        self._ports = dict(ports or {})
        #: Handlers of the open brokers, by id, for requests between them; each broker adds and
        #: removes its own.
        self._peers: dict[int, Serve] = {}

    async def open(self, broker_ids: Iterable[int]) -> Cluster:
        """Open brokers; if one fails, close the opened ones. Raises the errors of `Broker.open`."""
        try:
            for broker_id in broker_ids:
                await self.start(broker_id)
        except BaseException:
            await _stop_brokers(self.brokers)
            raise
        return self

    async def start(self, broker_id: int) -> Broker:
        """Open one broker, on its last port unless another process listens there now."""
        port = self._ports.get(broker_id)
        try:
            broker = await self._open(self._settings_of(broker_id, port))
        except CannotListen as error:
            if port is None:
                raise
            _log.warning("%s; broker %d listens elsewhere", error, broker_id)
            broker = await self._open(self._settings_of(broker_id, None))
        self.brokers.append(broker)
        self._ports[broker_id] = next(iter(broker.ports.values()))
        return broker

    async def _open(self, settings: BrokerSettings) -> Broker:
        """Open a broker with its own client of the metadata store."""
        timeout_ms = settings.value("zookeeper.session.timeout.ms")
        assert isinstance(timeout_ms, int)
        znodes = self._link_client(self._store.client(timeout_ms), settings)
        return await Broker.open(settings, self._host, znodes, self._peers, on_fatal=self._on_fatal)

    def _link_client(self, znodes: ZnodeClient, settings: BrokerSettings) -> ZnodeClient:
        """Return the client with the faults of the broker's link to the store.

        A client of a store in another process has them in its network.
        """
        links, broker_id = self._host.links, settings.value("broker.id")
        if links is None or not isinstance(znodes, EmbeddedZnodeClient):
            return znodes
        return LinkedZnodeClient(znodes, links, str(broker_id), STORE)

    def addresses(self) -> dict[int, str]:
        """Return the address of each open broker for clients, by id."""
        return {broker.broker_id: broker.address_for_clients() for broker in self.brokers}

    async def start_again(self, broker_id: int) -> None:
        """Open one broker; return once it has cluster metadata.

        Raises the errors of `Broker.open`.
        """
        broker, informed = await self.start(broker_id), Promise[None]()
        call_when_informed([broker], partial(informed.keep, None))
        await informed

    async def stop(self, broker_id: int) -> None:
        """Move one broker's leaderships and stop it; other brokers keep running."""
        broker = next(broker for broker in self.brokers if broker.broker_id == broker_id)
        await broker.stop()
        self.brokers.remove(broker)

    async def carry_out(self, request: ClusterRequest) -> dict[int, list[dict[str, object]]]:
        """Execute a command's request on all open brokers; return each broker's rows."""
        brokers = list(self.brokers)
        return {broker.broker_id: await carry_out(broker, request) for broker in brokers}

    def stop_with_all(self) -> None:
        """Prepare to stop without moving leaderships, because all brokers of the cluster stop."""
        self._is_whole = True
        for broker in self.brokers:
            broker.stop_waiting()

    async def close(self) -> None:
        """Stop all brokers, the last opened first.

        If no other broker can lead, no leadership is moved. Controllers stop before brokers; the
        next start begins with the leaders and ISRs in the store.
        """
        if self._is_whole:
            if self._host.links is not None:
                # A complete stop must not wait for delayed links.
                self._host.links.set_faults(LinkFaults())
            await _stop_brokers(self.brokers)
            return
        for broker in reversed(self.brokers):
            await broker.stop()


async def _stop_brokers(brokers: Sequence[Broker]) -> None:
    """Stop brokers without moving leaderships, because no broker of the cluster remains."""
    for broker in brokers:
        broker.controller.stop()
    for broker in reversed(brokers):
        await broker.stop(moves_leaders=False)
