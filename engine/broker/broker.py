"""A broker: its start, its parts and its stop.

```
open   1 session with the metadata store, persistent paths, cluster id
       2 its id (configured, or generated and kept in meta.properties), its dynamic settings
       3 logs opened, recovered after an unclean shutdown
       4 listeners bound   5 registered: it has an epoch   6 controller election, requests served
stop   7 controlled shutdown: leaders moved to other brokers (`controlled_shutdown.py`)
       8 listeners and connections closed   9 the controller module resigns
      10 tasks ended, parked requests abandoned and their timer stopped, high watermarks and
         recovery points written, logs closed, .kafka_cleanshutdown written, locks released
      11 watches of settings ended, timers cancelled, requests of local brokers failed,
         levels of loggers restored
      12 the session with the metadata store is closed: the registration is removed
```

If a step of `open` fails, the earlier steps are undone in the order of `stop` (`close_stack.py`).

Requests before the controller's first LeaderAndIsr get the same retriable errors as in Kafka. After
the session expires, a new session begins with the steps 5 and 6 (`session.py`).

Source: kafka.server.KafkaServer.startup and shutdown.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from itertools import chain

from engine.admin.policies import load_policies
from engine.admin.topic_waiting import TopicWaiting
from engine.api.dispatch import ApiRow, DispatchTable
from engine.api.fetch_session import FetchSessionCache
from engine.broker.access_rules import AccessRules
from engine.broker.api_table import ApiDeps, serve_apis
from engine.broker.broker_admission import broker_admission
from engine.broker.broker_timers import BrokerTimers
from engine.broker.close_stack import CloseStack
from engine.broker.connection_limits import channel_settings
from engine.broker.controlled_shutdown import ShutdownRequests
from engine.broker.controller_channel import ControllerChannel
from engine.broker.controller_log import ControllerLog
from engine.broker.coordinator_topic import read_stored_topic
from engine.broker.deadlines import Deadlines
from engine.broker.delegation_tokens import BrokerTokens, secret_key
from engine.broker.dynamic_config import DynamicConfigWatch, LiveConfig
from engine.broker.fetcher_metrics import fetcher_metrics, purgatory_metrics, session_metrics
from engine.broker.groups import open_groups
from engine.broker.histograms import (
    controller_histograms,
    fold_requests,
    folded,
    request_histograms,
)
from engine.broker.host import BrokerHost
from engine.broker.identity import known_broker_id
from engine.broker.jwks import JwksCache
from engine.broker.listeners import BrokerListeners, TokenAuthentication
from engine.broker.live_tls import LiveTls
from engine.broker.local_requests import LocalRequests
from engine.broker.local_server import LocalServer
from engine.broker.loggers import PythonLoggers
from engine.broker.meters import EVICTIONS, FLUSHES, broker_counts, open_meters
from engine.broker.metric_text import BrokerMetric
from engine.broker.metrics import controller_metrics, group_metrics, storage_metrics
from engine.broker.node_to_controller_channel import NodeToControllerChannel
from engine.broker.peer_security import peer_security
from engine.broker.peers import Peers, Serve
from engine.broker.quota_settings import QuotaSettings
from engine.broker.refusals import Refusals
from engine.broker.registration import (
    cluster_id,
    create_persistent_paths,
    generated_broker_id,
    register,
    registration_of,
)
from engine.broker.session import BrokerSession
from engine.broker.storage import Storage, StoragePorts
from engine.broker.stored_passwords import password_encoder, re_encode_passwords
from engine.broker.tasks import LoopTasks
from engine.broker.tls_file_watch import TlsFileWatch
from engine.broker.transactions import TransactionDeps, open_transactions
from engine.broker.unserved import check_served, passed_over
from engine.config.broker_config import BrokerConfig
from engine.config.settings import BrokerSettings
from engine.controller.cluster_reader import parse_registration
from engine.controller.controller import Controller
from engine.controller.ports import ControllerPorts
from engine.errors import EngineError
from engine.host.coroutine import drive
from engine.host.promise import Promise
from engine.host.turns import LoopTurns
from engine.log.cleaner.compaction_state import LogCompaction
from engine.naming import CONSUMER_OFFSETS, TRANSACTION_STATE
from engine.replication.metadata_cache import MetadataCache
from engine.server import RequestServer, ServerEvents
from engine.timing.histogram import Histogram
from engine.timing.purgatory import PurgatoryCount
from engine.wire.structs import Message
from engine.znode.client import ZnodeClient
from engine.znode.errors import SessionExpired
from engine.znode.paths import LOG_DIR_EVENT_PREFIX, broker_path
from engine.znode.values import BrokerRegistration, encode_log_dir_event

_log = logging.getLogger("kafka.server.KafkaServer")


class Broker:
    """A broker of a cluster; `open` creates and starts it, `stop` stops it."""

    def __init__(
        self,
        settings: BrokerSettings,
        host: BrokerHost,
        znodes: ZnodeClient,
        peers: dict[int, Serve],
        on_fatal: Callable[[str], None],
    ) -> None:
        """Create the parts that `open` starts; only `open` calls this.

        `on_fatal` is called with a reason when the broker cannot continue.
        """
        #: Cancelled by `stop`.
        self._timers = BrokerTimers(host.timers)
        #: The ports of the process, with timers that `stop` cancels.
        self.host = host._replace(timers=self._timers)
        self.znodes = znodes
        self.refusals = Refusals(host.clock)
        self.loggers = PythonLoggers()
        #: Port numbers of the listeners, by name.
        self.ports: dict[str, int] = {}
        #: Timers that `stop` does not cancel, for deadlines during the shutdown.
        self._process_timers = host.timers
        self._peers = peers
        #: Requests between brokers in this process, which fail when this broker stops.
        self._local_requests = LocalRequests(lambda: self.broker_id)
        self._settings = settings
        self._on_fatal = on_fatal
        #: The broker epoch of the registration now in force, −1 before the first.
        self._epoch = -1
        #: Steps that end the parts opened so far, in reverse order: for `stop`, and for an `open`
        #: that fails.
        self._closing = CloseStack()
        #: Whether `stop` has begun to move leaders away; a second call does not repeat it.
        self._is_stopping = False
        #: None before the broker is up.
        self._shutdown: ShutdownRequests | None = None

    @classmethod
    async def open(
        cls,
        settings: BrokerSettings,
        host: BrokerHost,
        znodes: ZnodeClient,
        peers: dict[int, Serve],
        *,
        on_fatal: Callable[[str], None],
    ) -> Broker:
        """Start a broker and return it; if a step fails, undo the earlier ones.

        `peers` are the brokers in this process, by id. `on_fatal` is called with a reason when the
        broker cannot continue; its runner then stops it. Raises the errors of the metadata store,
        the settings, the logs and the network.
        """
        broker = cls(settings, host, znodes, peers, on_fatal)
        try:
            await broker._open()
        except BaseException:
            await broker._closing.run()
            raise
        return broker

    @property
    def broker_id(self) -> int:
        """Return the broker's id."""
        return self.live.config.broker_id

    # Opening

    async def _open(self) -> None:
        """Start the parts of the broker in order; each first adds the function that closes it."""
        self._closing.add("the session", self.znodes.close)
        self._closing.add("the loggers", self.loggers.restore)
        self._closing.add("requests of brokers in this process", self._local_requests.end)
        self._closing.add("the timers", self._timers.stop)
        await self.znodes.connect()
        await create_persistent_paths(self.znodes)
        self.cluster_id = await cluster_id(self.znodes, self.host.entropy)
        await self._open_settings()
        self._coordinator_topics = {
            topic: await read_stored_topic(self.znodes, topic)
            for topic in (CONSUMER_OFFSETS, TRANSACTION_STATE)
        }
        self._open_services()
        self._open_controller()
        self._open_listeners()
        self.live.on_topic(self._on_topic_change)
        self.live.on_broker(self._on_settings_change)
        await self._register_first()
        self._join_cluster()
        self.meters = open_meters(
            self.storage,
            lambda: self.metadata_cache.topics,
            self._broker_counts,
            self.host.clock,
            self.tasks,
        )
        fold_requests(self.table.request_metrics, self.host.clock, self.tasks)
        # Not before: a request that the controller repeats may be for a former life, by its epoch.
        self.server.begin()
        self._shutdown = ShutdownRequests(
            self.live.config, self.metadata_cache, self.peers, self.host.timers, self.host.clock
        )
        _log.info("broker %d is up, cluster %s", self.broker_id, self.cluster_id)

    async def _open_settings(self) -> None:
        """Load the settings, policies, quotas, ACLs and tokens, and watch them for changes."""
        settings = await self._settings_with_id(self._settings)
        self.passwords = password_encoder(BrokerConfig.parse(settings), self.host.entropy)
        self.live = LiveConfig(settings, self.passwords)
        check_served(self._settings, self.live.config)
        await self._re_encode_passwords()
        for name in passed_over(self._settings):
            _log.warning("%s is no setting of this broker and is passed over", name)
        config = self.live.config
        self.policies = load_policies(
            config.create_topic_policy_class_name,
            config.alter_config_policy_class_name,
            self._settings.static,
        )
        self._closing.add("the policies", self.policies.close)
        self.metadata_cache = MetadataCache(self.broker_id, self.cluster_id)
        self.quotas = QuotaSettings(self.znodes, self.host.network.address_of)
        self.dynamic = DynamicConfigWatch(
            self.znodes,
            self.broker_id,
            self.live,
            quotas=self.quotas,
            clock=self.host.clock,
            timers=self.host.timers,
        )
        self._closing.add("the watch of settings", self.dynamic.stop)
        await self.dynamic.start()
        self.rules = self._open_access_rules()
        if self.rules is not None:
            self._closing.add("the watch of access rules", self.rules.stop)
            await self.rules.start()
        self.tokens = self._open_delegation_tokens()
        if self.tokens is not None:
            self._closing.add("the watch of delegation tokens", self.tokens.stop)
            await self.tokens.start()

    async def _re_encode_passwords(self) -> None:
        """Encode the stored passwords with the present secret, after that secret has changed.

        Done only if `password.encoder.old.secret` is set.
        """
        old = password_encoder(self.live.config, self.host.entropy, is_old=True)
        if old is not None and self.passwords is not None:
            await re_encode_passwords(self.znodes, self.broker_id, old, self.passwords)

    def _open_delegation_tokens(self) -> BrokerTokens | None:
        """Create the delegation tokens; None if they are disabled: without their secret key."""
        secret = secret_key(self.live.config)
        if secret is None:
            return None
        return BrokerTokens(
            self.live.config,
            secret,
            self.znodes,
            clock=self.host.clock,
            timers=self.host.timers,
            entropy=self.host.entropy,
        )

    def _open_access_rules(self) -> AccessRules | None:
        """Create the ACLs and their watch; None if `authorizer.class.name` is not set."""
        if not self.live.config.authorizer_class_name:
            return None
        return AccessRules(
            self._settings, self.znodes, clock=self.host.clock, timers=self.host.timers
        )

    def _open_services(self) -> None:
        """Create channels, storage and coordinators, then load the logs.

        Each part uses the ones created before it, and is closed before them.
        """
        self._open_channels()
        self._open_storage()
        self._open_coordinators()
        self.storage.start()
        self._closing.add("the logs", self._close_storage)

    def _open_channels(self) -> None:
        """Create the tasks, the deadline timer, and the channels to brokers and controller."""
        self.tasks = LoopTasks(
            self.host.timers,
            self.host.clock,
            workers=self.host.workers(self.live.config.background_threads),
            on_failure=lambda name, error: _log.error("%s failed: %s", name, error),
            ends_early=self.host.ends_early,
        )
        self._closing.add("the tasks", self.tasks.stop)
        # One timer for the deadlines of all purgatories.
        self.deadlines = Deadlines(self._process_timers)
        self.tls = LiveTls(self.live)
        self.peers = Peers(
            self.host.network,
            self.host.timers,
            self.host.clock,
            local=self._peers,
            broker_id=self.broker_id,
            security=peer_security(self.live, self.host.entropy, self.tls, self.host.clock),
            settings=channel_settings(self.live)._replace(
                encodes_local_messages=self.host.encodes_local_messages
            ),
            links=self.host.links,
        )
        self._closing.add("the channels", self.peers.close)
        # Two channels, as in Kafka: AlterPartition does not wait for AllocateProducerIds.
        self.isr_channel = self._new_controller_channel()
        self.admin_channel = self._new_controller_channel()

    def _open_storage(self) -> None:
        """Create the log manager and the replica manager; `storage.start` loads the logs."""
        self.storage = Storage(
            self.host,
            self.live,
            self.metadata_cache,
            self.tasks,
            deadlines=self.deadlines,
            ports=StoragePorts(
                lambda: self.epoch,
                self.znodes,
                self.peers,
                self.isr_channel.send,
                self._on_offline_directory,
            ),
        )
        self.waiting = TopicWaiting(self.metadata_cache, self.host.clock, self.deadlines.note)
        self.deadlines.add(self.waiting)
        self.metadata_cache.on_update(self.waiting.check)

    def _open_coordinators(self) -> None:
        """Create the coordinators of groups and of transactions."""
        self.groups = open_groups(
            self.host,
            self.live.config,
            self.metadata_cache,
            self.storage,
            self.tasks,
            self.deadlines,
            self._coordinator_topics[CONSUMER_OFFSETS],
        )
        self.transactions = open_transactions(
            TransactionDeps(
                self.host,
                lambda: self.live.config,
                self.metadata_cache,
                self.storage,
                self.tasks,
                self.peers,
                self.admin_channel.send,
                lambda: (self.broker_id, self.epoch),
                self._coordinator_topics[TRANSACTION_STATE],
            )
        )

    def _new_controller_channel(self) -> NodeToControllerChannel:
        """Return a channel that sends requests to the controller, whichever broker that is."""
        return NodeToControllerChannel(
            self.metadata_cache, self.peers, self.host.timers, self.host.clock
        )

    def _close_storage(self) -> None:
        """Stop the coordinators, the cleaner and the tasks, then close the logs."""
        self.groups.stop()
        self.transactions.stop()
        self.storage.cleaner.stop()
        # Tasks on worker threads use open logs.
        self.tasks.stop()
        self.storage.cleaner.close()
        self.deadlines.stop()
        self.isr_channel.stop()
        self.admin_channel.stop()
        self.waiting.stop()
        self.storage.stop()

    async def _settings_with_id(self, settings: BrokerSettings) -> BrokerSettings:
        """Return the settings with the broker id.

        The id is configured, stored in meta.properties, or generated.
        """
        live = LiveConfig(settings).config
        broker_id = known_broker_id(self.host.files, live.data_dirs, live.broker_id)
        if broker_id is None:
            broker_id = await generated_broker_id(self.znodes, live.reserved_broker_max_id)
        if broker_id == live.broker_id:
            return settings
        # A generated id is stored in meta.properties.
        return settings.with_generated_id(broker_id)

    def _open_controller(self) -> None:
        """Create the controller and the broker's session with the store.

        The function that closes them resigns.
        """
        self.controller = Controller(
            self.broker_id,
            self.live.config,
            lambda: self.live.settings,
            ControllerPorts(
                self.znodes,
                ControllerChannel(self.peers, self.host.timers, self.host.clock),
                self.host.clock,
                self.host.timers,
                self.host.entropy,
                ControllerLog(self.broker_id, self._on_elected),
                self.host.ends_early,
                self.host.work_ns,
            ),
        )
        self.session = BrokerSession(
            self.znodes,
            self.host.timers,
            self.host.clock,
            on_expired=self.controller.session_expired,
            begin=self._begin_session,
        )
        self._closing.add("the controller", self._leave_cluster)

    def _on_elected(self) -> None:
        """Schedule the removal of expired delegation tokens, which is the new controller's task."""
        if self.tokens is not None:
            self.host.timers.call_soon(self.tokens.remove_expired)

    def _leave_cluster(self) -> None:
        """Stop serving brokers of this process, end the session, and resign."""
        if self._peers.get(self.broker_id) == self.serve_local:
            del self._peers[self.broker_id]
        self.session.stop()
        self.controller.stop()

    def _open_listeners(self) -> None:
        """Fill the dispatch table with the APIs, and open the listeners.

        Requests are accepted but not served before `server.begin`.
        """
        self.table = DispatchTable(
            broker_admission(self.live.config, self.quotas, self.rules, self.host)
        )
        self.server = RequestServer(
            self.host.network,
            self.host.clock,
            self.table,
            ServerEvents(self.refusals.note, self._on_handler_fault, self._on_broken_rule),
            self.host.work_ns,
        )
        self.fetch_sessions = FetchSessionCache(
            self.metadata_cache,
            self.host.entropy,
            slots=self.live.config.max_incremental_fetch_session_cache_slots,
        )
        self._local_server = LocalServer(self.server, self.peers.listener, self._local_requests)
        serve_apis(self.table, self._api_deps())
        self.server.hold()
        self._closing.add("the listeners", lambda: self.server.close("the broker stops"))
        jwks = JwksCache(self.host.files, self.host.http, self.host.clock)
        jwks.run_on(self.tasks)
        self.listeners = BrokerListeners(
            self.host,
            self.server,
            self.live,
            self.refusals,
            self.quotas,
            self.tls,
            TokenAuthentication(jwks, None if self.tokens is None else self.tokens.login),
        )
        self.ports = self.listeners.open()
        TlsFileWatch(self.tls, self.tasks).start()
        self.metadata_cache.own = parse_registration(
            self.broker_id, self._registration(), broker_path(self.broker_id)
        )

    def _broker_counts(self) -> dict[str, int | Histogram]:
        """Return the broker-wide meters and timers by their JMX object names."""
        now_s = self.host.clock.monotonic_ms() // 1000
        counts = broker_counts(
            self.storage.replica_manager.isr_counts,
            self.controller,
            self.table.request_metrics,
            self.session.expired_count,
        )
        return counts | {
            EVICTIONS: self.fetch_sessions.evicted_count,
            FLUSHES: self.storage.logs.flush_times.collect_times(now_s),
        }

    def _purgatory_counts(self) -> dict[str, PurgatoryCount]:
        """Return the counts of waiting operations by the names of Kafka's purgatories."""
        return {
            **self.storage.replica_manager.purgatory_counts,
            **self.groups.delays.purgatory_counts(),
            "topic": self.waiting.purgatory_count,
        }

    def _join_cluster(self) -> None:
        """Serve brokers of this process, keep the session alive, and take part in the controller
        election.
        """
        self._peers[self.broker_id] = self.serve_local
        self.session.start()
        self.controller.start()
        if self.tokens is not None:
            self.tokens.remove_expired_on(self.tasks, lambda: self.controller.is_active)

    def _api_deps(self) -> ApiDeps:
        """Return the parts of this broker that API handlers need."""
        return ApiDeps(
            self.broker_id,
            self.live.config,
            lambda: self.live.settings,
            lambda: self.epoch,
            self.host.clock,
            self.host.files,
            self.host.entropy,
            self.znodes,
            self.metadata_cache,
            self.storage.logs,
            self.storage.replica_manager,
            self.storage.leadership,
            self.dynamic.load_topics,
            self.waiting,
            self.controller,
            self.admin_channel.send,
            self.loggers,
            self.storage.moves.move_to,
            self.groups,
            self.transactions,
            LoopTurns(self.host.timers, self.host.clock, self.host.ends_early),
            None if self.rules is None else self.rules.admin,
            self.host.network.address_of,
            self.policies,
            self.tls,
            self.passwords,
            None if self.tokens is None else self.tokens.admin,
            lambda listener: self.live.config.security_protocols[listener],
            self.fetch_sessions,
        )

    async def _register_first(self) -> None:
        """Register the broker (step 5); use a new session if the first has expired.

        The recovery of logs may take longer than a session.

        Source: KafkaZkClient.retryRequestUntilConnected, ZooKeeperClient.reinitialize.
        """
        register_now = self._register
        while True:
            try:
                await register_now()
            except SessionExpired as error:
                _log.warning("%s before the broker was registered: another one begins", error)
                await self.znodes.connect()
                register_now = self._register_again
            else:
                return

    async def _register(self) -> None:
        """Create the broker's znode; store the broker epoch that this gives."""
        self._epoch = await register(self.znodes, self.broker_id, self._registration())

    def _registration(self) -> BrokerRegistration:
        """Return the content of the broker's znode: its endpoints, with the ports now open."""
        clock = self.host.clock
        return registration_of(self.live.config, self.ports, self.host.name, clock.wall_ms())

    async def _begin_session(self) -> None:
        """Register in a new session of the store, and join the election again."""
        await self._register_again()
        self.controller.session_began()
        _log.info("broker %d is registered again, epoch %d", self.broker_id, self._epoch)

    async def _register_again(self) -> None:
        """Register in a new session; read settings, ACLs and tokens, and watch them again.

        The watches of the earlier session have ended with it.
        """
        await create_persistent_paths(self.znodes)
        await self._register()
        await self.dynamic.start()
        if self.rules is not None:
            await self.rules.start()
        if self.tokens is not None:
            await self.tokens.start()

    @property
    def epoch(self) -> int:
        """Return the broker epoch of the present registration, −1 before the first."""
        return self._epoch

    # Running

    def address_for_clients(self) -> str:
        """Return host:port for clients of this process.

        It is that of the first advertised listener without TLS and SASL, else of the first one.
        """
        advertised = self.live.config.effective_advertised_listeners
        plain = (listener for listener in advertised if listener.security_protocol == "PLAINTEXT")
        first = next(plain, advertised[0])
        host = first.host or self.host.name()
        port = first.port or self.ports[first.name]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def serve_local(self, name: str, version: int, request: object) -> Promise[Message]:
        """Serve a request of a broker in this process, without a connection.

        Promises the response.
        """
        return self._local_server.serve(name, version, request)

    def _on_topic_change(self, topic: str) -> None:
        """Apply a topic's changed settings to its logs.

        Unclean elections start if they are allowed now.
        """
        self.storage.reconfigure(topic)
        if self.live.topic_config(topic).unclean_leader_election_enable:
            self.controller.elect_after_setting_change(topic)

    def _on_settings_change(self, old: BrokerConfig, new: BrokerConfig) -> None:
        """Apply changed dynamic settings to storage, listeners, TLS and elections."""
        self.storage.reconfigure()
        self.listeners.reconfigure()
        self.tls.follow_settings()
        if new.unclean_leader_election_enable and not old.unclean_leader_election_enable:
            self.controller.elect_after_setting_change()

    def _on_handler_fault(self, row: ApiRow, error: Exception) -> None:
        """Log an exception of a request handler."""
        _log.error("%s was not served: %r", row.name, error, exc_info=error)

    def _on_broken_rule(self, row: ApiRow, error: AssertionError) -> None:
        """Log a failed assertion in a handler, with the broker's state, and call `on_fatal`."""
        reason = f"{row.name} broke a rule of the broker: {error!r}"
        _log.critical("%s", reason, exc_info=error)
        _log.critical("%s", self.state_text())
        self._on_fatal(reason)

    def state_text(self) -> str:
        """Return the state of the broker's partitions as text, for the log."""
        return f"broker {self.broker_id}, epoch {self.epoch}: {self.storage.state_text()}"

    def _on_offline_directory(self, path: str) -> None:
        """Write a log directory's failure to the metadata store, which notifies the controller.

        If it was the last directory that was online, call `on_fatal` instead.
        """
        if not any(directory.is_online for directory in self.storage.logs.directories):
            self._on_fatal(f"every log directory is offline, the last was {path}")
            return
        note = drive(
            self.znodes.create(
                LOG_DIR_EVENT_PREFIX, encode_log_dir_event(self.broker_id), sequential=True
            )
        )
        note.watch(lambda: self._on_log_dir_event(path, note))

    def _on_log_dir_event(self, path: str, note: Promise[str]) -> None:
        """Log a failed notification; the response to a later LeaderAndIsr reports the replicas."""
        try:
            note.result()
        except EngineError as error:
            _log.error("%s is offline, and the controller was not notified: %s", path, error)

    # Stopping

    async def stop(self, *, moves_leaders: bool = True) -> None:
        """Stop the broker, so that the next start needs no recovery.

        May be called twice. `moves_leaders` False skips the controlled shutdown, for a stop of the
        complete cluster.
        """
        if self._shutdown is not None and moves_leaders and not self._is_stopping:
            self._is_stopping = True
            # A follower that joined the ISR of a new leader now would have to leave it at once.
            self.storage.fetchers.begin_no_more()
            await self._shutdown.run(self.epoch)
        await self._closing.run()
        _log.info("broker %d has stopped", self.broker_id)

    async def clean_up_logs(self) -> None:
        """Delete the segments past retention now, spread over turns of the event loop (RET-2)."""
        await self._process_turns().each(self.storage.logs.apply_retention(), lambda _: None)

    def clean_logs_soon(self, topics: Collection[str] | None) -> None:
        """Compact the logs of `topics` next, at any dirty ratio; None means all topics."""
        logs = self.storage.logs.logs
        self.storage.cleaner.request_cleaning(
            [key for key in sorted(logs) if topics is None or key.topic in topics]
        )

    async def compaction(self) -> list[LogCompaction]:
        """Return the cleaner's progress in each compacted log.

        It is collected in turns of the event loop.
        """
        states: list[LogCompaction] = []
        await self._process_turns().each(self.storage.compaction(), states.append)
        return states

    async def metrics(self) -> list[BrokerMetric]:
        """Return the broker's metrics by Kafka's names; collected in turns of the event loop."""
        turns, requests = self._process_turns(), self.table.request_metrics
        await turns.each(folded(requests, self.host.clock), lambda _: None)
        gauges = storage_metrics(self.storage, await self.compaction())
        context, is_active = self.controller.context, self.controller.is_active
        others = (
            controller_metrics(context, is_active=is_active),
            group_metrics(self.groups.registry),
            self.meters.metrics(),
            fetcher_metrics(self.storage.fetchers.followed()),
            purgatory_metrics(self._purgatory_counts()),
            session_metrics(len(self.fetch_sessions), self.fetch_sessions.partition_count),
            request_histograms(requests),
            controller_histograms(self.controller),
        )
        found: list[BrokerMetric] = []
        await turns.each(chain(gauges, *others), found.append)
        return found

    def _process_turns(self) -> LoopTurns:
        """Return turns of the loop that continue after `stop`, so that no call waits for ever."""
        return LoopTurns(self._process_timers, self.host.clock, self.host.ends_early)

    def stop_waiting(self) -> None:
        """End the controlled shutdown of a present or later `stop` early."""
        if self._shutdown is not None:
            self._shutdown.end_waits()
