"""A process that is a cluster and nothing else: its loop, its signals, its log.

```
lock taken ── store opened ── brokers started ── loop turns ── ready: controller knows all brokers
SIGTERM, SIGINT ── brokers stopped in order ── store closed ── lock released
```

A second signal ends the process at once; the next start then recovers. So does a broken rule of
the engine's own, wherever it is met: in a handler, an effect, a timer or a task. What the brokers
believe is not so then, and a clean end would write it down.
"""

from __future__ import annotations

import gc
import logging
import os
import sys
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, TypeAlias, TypeVar

from engine.broker.broker import Broker
from engine.broker.host import BrokerHost, real_directory_lock
from engine.cluster.cluster import Cluster, MetadataStore, Sessions
from engine.cluster.data_directory import ClusterInUse, DataDirectory, RunningCluster
from engine.cluster.ensemble import Ensemble
from engine.cluster.ownership import check_start
from engine.cluster.plan import ClusterPlan, broker_settings, check_plan
from engine.cluster.served_logs import read_served
from engine.config.settings import BrokerSettings
from engine.errors import EngineError
from engine.host.copy_on_write import CopyOnWriteFiles
from engine.host.coroutine import drive
from engine.host.descriptors import connections_below, raise_descriptor_limit
from engine.host.event_loop import EventLoop
from engine.host.lock_file import LockHeld, acquire
from engine.host.ports import Files
from engine.host.processes import say_ready
from engine.host.real import RealClock, RealEntropy, RealFiles
from engine.host.real_network import CannotListen, RealNetwork, local_host_name
from engine.host.real_workers import ThreadWorkers
from engine.native.compiled_walk import WalkTakeUp, start_compiler

_EXIT_KILLED = 137
#: Internal error, as the commands have it.
_EXIT_BROKEN = 70
_log = logging.getLogger("kafka.cluster")
T = TypeVar("T")
#: Opens brokers; what it is given is told when one of them cannot go on.
OpenCluster: TypeAlias = Callable[[Callable[[str], None]], Coroutine[Any, None, Cluster]]
_LINE = "[%(asctime)s,%(msecs)03d] %(levelname)s %(message)s (%(name)s)"


class BrokerGaveUp(EngineError):
    """A broker could not go on, and was stopped as far as that was possible."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the broker stopped: {reason}")
        self.reason = reason


class Process:
    """The loop of a process, and what its brokers stand on."""

    def __init__(self, files: Files | None = None, *, is_read_only: bool = False) -> None:
        self.clock = RealClock()
        self.files = files or RealFiles()
        self.loop = EventLoop()
        descriptors_max = raise_descriptor_limit()
        _log.info(
            "%d descriptors, of which connections have those below %d",
            descriptors_max,
            connections_below(descriptors_max),
        )
        self.network = RealNetwork(self.loop, self.clock, descriptors_max=descriptors_max)
        self.host = BrokerHost(
            self.clock,
            self.files,
            self.network,
            self.loop,
            RealEntropy(),
            real_directory_lock(),
            local_host_name,
            ThreadWorkers,
            is_read_only,
        )
        self._failure: str | None = None
        self._is_stopping = False
        self._brokers: Sequence[Broker] = ()
        self.loop.on_faults(self._fault)

    def run(self, opening: OpenCluster, on_ready: Callable[[Cluster], None]) -> None:
        """Open brokers, serve until a signal, and stop them; errors are those of the opening.

        `on_ready` runs once, when every broker knows the cluster. Raises BrokerGaveUp when one
        could not go on.
        """
        try:
            cluster = self._finish(opening(self._give_up))
            self._brokers = cluster.brokers
            try:
                self._serve(cluster, on_ready)
            finally:
                self._finish(cluster.close())
        finally:
            self.network.close()
            self.loop.close()
        if self._failure is not None:
            raise BrokerGaveUp(self._failure)

    def _serve(self, cluster: Cluster, on_ready: Callable[[Cluster], None]) -> None:
        _when_informed(cluster.brokers, lambda: on_ready(cluster))
        WalkTakeUp(self.loop, self.clock, start_compiler).begin()
        self.loop.on_signals(self._signalled)
        # What was loaded stays: without it a collection has only requests to look at. What little
        # of it is garbage is not worth the time of a look, which is part of every start.
        gc.freeze()
        gc.enable()
        self.loop.run()

    def _finish(self, work: Coroutine[Any, None, T]) -> T:
        """Turn the loop until work is done that may wait for a metadata store elsewhere."""
        promise = drive(work)
        if not promise.is_kept:
            promise.watch(self.loop.stop)
        while not promise.is_kept:
            # Whoever gives up stops the loop too.
            self.loop.run()
        return promise.result()

    def _give_up(self, reason: str) -> None:
        _log.critical("%s", reason)
        self._failure = reason
        self.loop.stop()

    def _fault(self, error: BaseException) -> None:
        """End the process at once for a broken rule; any other fault is told, and the loop goes on.

        Source: D22; Kafka's Exit.halt.
        """
        if not isinstance(error, AssertionError):
            _log.error("a callback failed: %r", error, exc_info=error)
            return
        _log.critical("a rule is broken, the next start recovers: %r", error, exc_info=error)
        for broker in self._brokers:
            _log.critical("%s", broker.state_text())
        logging.shutdown()
        os._exit(_EXIT_BROKEN)

    def _signalled(self) -> None:
        if self._is_stopping:
            _log.warning("a second signal: ending at once, the next start recovers")
            os._exit(_EXIT_KILLED)
        self._is_stopping = True
        _log.info("stopping")
        self.loop.stop()


def run_cluster(
    data: DataDirectory, plan: ClusterPlan, on_ready: Callable[[], None] | None = None
) -> None:
    """Run a cluster of a data directory until a signal; `on_ready` runs once clients can connect.

    Errors: ClusterInUse; those of the plan, the settings, the store and the logs. The plan is kept
    unless it does not start.
    """
    check_plan(plan)
    process = _process_of(data)
    check_start(data, process.files, plan)
    process.files.make_dir(data.path)
    try:
        release = acquire(data.lock_path)
    except LockHeld as error:
        raise ClusterInUse(data.path) from error
    try:
        data.remove_running()
        with data.trying(plan) as started:

            def ready() -> None:
                started()
                if on_ready is not None:
                    on_ready()

            _run_cluster(process, data, plan, ready)
    finally:
        data.remove_running()
        release()


def _process_of(data: DataDirectory) -> Process:
    """Return the process of a cluster: of one that serves others' logs, on copies of what changes.

    Errors: those of `read_served`.
    """
    served = read_served(data, RealFiles())
    if served is None:
        return Process()
    _log.info("serving %s, writable: %s", ", ".join(served.sources), served.is_writable)
    return Process(CopyOnWriteFiles(), is_read_only=not served.is_writable)


def _run_cluster(
    process: Process, data: DataDirectory, plan: ClusterPlan, on_ready: Callable[[], None]
) -> None:
    store = MetadataStore(data.store_path, process.clock, process.loop)
    try:
        znode_port = _listen_again(process, data, store, plan)
        znode_address = f"{plan.host}:{znode_port}"

        def settings_of(broker_id: int) -> BrokerSettings:
            settings = broker_settings(plan, data.broker_path(broker_id), broker_id)
            # It is one for whoever connects there.
            settings["zookeeper.connect"] = znode_address
            return BrokerSettings(settings)

        def opening(on_fatal: Callable[[str], None]) -> Coroutine[Any, None, Cluster]:
            return Cluster.open(plan, store, process.host, settings_of, on_fatal)

        def ready(cluster: Cluster) -> None:
            addresses = {
                str(broker.broker_id): broker.address_for_clients() for broker in cluster.brokers
            }
            servers = ",".join(addresses.values())
            data.write_running(RunningCluster(os.getpid(), servers, addresses, znode_address))
            _log.info("ready: %s", servers)
            on_ready()
            say_ready(servers)

        process.run(opening, ready)
    finally:
        store.close()


def _listen_again(
    process: Process, data: DataDirectory, store: MetadataStore, plan: ClusterPlan
) -> int:
    """Serve ZooKeeper's clients where the plan says, else where the last run did.

    Where only the last run says it, another port is taken if others listen there now.
    """
    network, entropy, host = process.network, process.host.entropy, plan.host
    if plan.zookeeper_port:
        return store.listen(network, host, plan.zookeeper_port, entropy)
    try:
        port = store.listen(network, host, data.znode_port(), entropy)
    except CannotListen as error:
        _log.warning("%s; the metadata store listens elsewhere", error)
        port = store.listen(network, host, 0, entropy)
    data.note_znode_port(port)
    return port


def run_broker(settings: BrokerSettings, store_path: str | None) -> None:
    """Run one broker of given settings until a signal, its metadata in a file.

    Without a file its metadata is in the ZooKeeper that its settings name.
    """
    process = Process()
    if store_path is None:
        _run_broker(process, settings, Ensemble(settings, process.clock, process.loop))
        return
    store = MetadataStore(store_path, process.clock, process.loop)
    try:
        _run_broker(process, settings, store)
    finally:
        store.close()


def _run_broker(process: Process, settings: BrokerSettings, sessions: Sessions) -> None:
    def opening(on_fatal: Callable[[str], None]) -> Coroutine[Any, None, Cluster]:
        plan, host = ClusterPlan(), process.host
        return Cluster.open(plan, sessions, host, lambda broker_id: settings, on_fatal)

    def ready(cluster: Cluster) -> None:
        ports = cluster.brokers[0].ports
        _log.info("ready: %s", ", ".join(f"{name} on port {ports[name]}" for name in ports))

    process.run(opening, ready)


def log_to_stderr() -> None:
    """Write what the brokers say to stderr, in the form of Kafka's own logs."""
    logging.addLevelName(logging.CRITICAL, "FATAL")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter(_LINE, "%Y-%m-%d %H:%M:%S"))
    logging.getLogger().addHandler(handler)
    logging.getLogger().setLevel(logging.INFO)


def _when_informed(brokers: Sequence[Broker], action: Callable[[], None]) -> None:
    """Run once when every broker knows itself and the controller."""
    missing = {broker.broker_id for broker in brokers}

    def check(broker: Broker, _topics: frozenset[str]) -> None:
        cache = broker.metadata_cache
        is_informed = cache.controller_id is not None and cache.is_alive(broker.broker_id)
        if is_informed and broker.broker_id in missing:
            missing.discard(broker.broker_id)
            if not missing:
                action()

    for broker in brokers:
        broker.metadata_cache.on_update(partial(check, broker))
