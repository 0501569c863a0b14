"""The main functions of a cluster's processes: the whole cluster, or one broker of it.

```
run_cluster  acquire lock ── open store ── start brokers ── ready: all brokers have metadata
             SIGTERM, SIGINT ── stop brokers ── close store ── release lock
run_member   one broker of a cluster whose store is in another process
run_broker   one broker with given settings, without a cluster plan
```

Signals are handled in `process.py`. The plan determines whether brokers are started in this process
or in separate ones.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from engine.cluster.broker_processes import BrokerInUse, running_processes
from engine.cluster.cluster import Cluster, MetadataStore, Sessions
from engine.cluster.data_directory import (
    BadClusterFile,
    ClusterInUse,
    DataDirectory,
    RunningBroker,
)
from engine.cluster.ensemble import Ensemble
from engine.cluster.member_processes import MemberProcesses
from engine.cluster.network_faults import apply_faults
from engine.cluster.ownership import check_start
from engine.cluster.plan import FIRST_BROKER_ID, ClusterPlan, broker_settings, check_plan
from engine.cluster.process import Process, watch_for_refusal
from engine.cluster.request_handler import ClusterSupervisor, Members
from engine.cluster.requests import answer_member
from engine.cluster.served_logs import read_served
from engine.cluster.store_security import store_security
from engine.config.settings import BrokerSettings
from engine.host.copy_on_write import CopyOnWriteFiles
from engine.host.coroutine import PromiseCoroutine, drive
from engine.host.fork_server import ForkServer
from engine.host.link_faults import STORE
from engine.host.linked_network import LinkedNetwork
from engine.host.lock_file import LockHeld, lock_file
from engine.host.ports import Entropy, Network
from engine.host.processes import kill, report_ready
from engine.host.real import RealFiles
from engine.host.real_network import CannotListen
from engine.znode.paths import broker_path

_log = logging.getLogger("kafka.cluster")
_LINE = "[%(asctime)s,%(msecs)03d] %(levelname)s %(message)s (%(name)s)"
_SESSION_TIMEOUT_MS = 60_000


class ClusterLife(NamedTuple):
    """The process that owns a cluster's process, and the server that forks brokers.

    The cluster's process ends when its owner has ended.
    """

    owner_pid: int | None = None
    forks: ForkServer | None = None


def run_cluster(
    data: DataDirectory,
    plan: ClusterPlan,
    on_ready: Callable[[], None] | None = None,
    life: ClusterLife | None = None,
) -> None:
    """Run the cluster of a data directory until a signal.

    `on_ready` runs once clients can connect. Raises ClusterInUse, and the errors of the plan, the
    settings, the store and the logs. The plan is not stored if the cluster does not start.
    """
    check_plan(plan)
    process = _create_process(data)
    check_start(data, process.files, plan)
    process.files.make_dir(data.path)
    try:
        release = lock_file(data.lock_path)
    except LockHeld as error:
        raise ClusterInUse(data.path) from error
    try:
        data.remove_running()
        # Network faults end with the cluster.
        data.remove_network(plan.broker_ids())
        with data.store_plan_while_starting(plan) as started:

            def ready() -> None:
                """Confirm the stored plan and call `on_ready`."""
                started()
                if on_ready is not None:
                    on_ready()

            _run_cluster(process, data, plan, ready, life or ClusterLife())
    finally:
        data.remove_running()
        data.remove_network(plan.broker_ids())
        release()


def _create_process(data: DataDirectory) -> Process:
    """Return the process of a cluster: copy-on-write if it serves copied log directories.

    Raises the errors of `read_served`.
    """
    served = read_served(data, RealFiles())
    if served is None:
        return Process()
    _log.info("serving %s, writable: %s", ", ".join(served.sources), served.is_writable)
    return Process(CopyOnWriteFiles(), is_read_only=not served.is_writable)


def _run_cluster(
    process: Process,
    data: DataDirectory,
    plan: ClusterPlan,
    on_ready: Callable[[], None],
    life: ClusterLife,
) -> None:
    """Open the store, start the brokers, and execute requests until the process is stopped."""
    security = store_security(BrokerSettings(plan.settings), listens=True)
    store = MetadataStore(data.store_path, process.clock, process.loop, security)
    try:
        znode_port = _listen_for_clients(process, data, store, plan)
        znode_address = f"{plan.host}:{znode_port}"
        # The supervisor of the brokers, once they are open.
        supervisors: list[ClusterSupervisor] = []

        def current_plan() -> ClusterPlan:
            """Return the supervisor's plan, which requests may have changed."""
            return supervisors[0].plan if supervisors else plan

        def kill_members() -> None:
            """Kill the brokers' processes, but not this one."""
            for running in running_processes(data, current_plan()).values():
                if running.pid != os.getpid():
                    kill(running.pid)

        async def open_members(on_fatal: Callable[[str], None]) -> Members:
            """Start all brokers, in separate processes or in this one."""
            if life.owner_pid is not None:
                process.end_without(life.owner_pid, lambda: True, kill_members)
            members: Members
            if plan.is_in_processes:
                store_address = StoreAddresses(process, data, store, plan.host).of
                members = MemberProcesses(
                    process, data, current_plan, store, store_address, life.forks
                )
                await members.open()
            else:
                settings_of = partial(_settings_of, data, current_plan, znode_address)
                # Broker processes that ended: nothing runs on their directories.
                for broker_id in plan.broker_ids():
                    await store.end_owning_session(broker_path(broker_id))
                members = Cluster(store, process.host, settings_of, on_fatal)
                await members.open(plan.broker_ids())
            return members

        def on_ready_members(members: Members) -> None:
            """Write the addresses for commands and report that the cluster is ready."""
            supervisor = ClusterSupervisor(
                data,
                process.files,
                plan,
                members,
                partial(store.client, _SESSION_TIMEOUT_MS),
                pid=os.getpid(),
                znode_address=znode_address,
            )
            supervisors.append(supervisor)
            servers = supervisor.write_running()
            _log.info("ready: %s", servers)
            on_ready()
            report_ready(servers)

        def poll() -> None:
            """Apply network faults and begin the pending request; called at a signal."""
            apply_faults(data, process.links, data.network_done_path)
            for supervisor in supervisors:
                supervisor.poll()

        process.run(open_members, on_ready_members, poll)
    finally:
        store.close()


def _settings_of(
    data: DataDirectory,
    plan: Callable[[], ClusterPlan],
    znode_address: str,
    broker_id: int,
    port: int | None,
) -> BrokerSettings:
    """Return a broker's settings by the current plan; without a `port` any free one is used."""
    made = plan()
    log_dirs = data.broker_paths(broker_id, made.log_dir_count)
    settings = broker_settings(made, log_dirs, broker_id, port)
    # Clients find the metadata store at this address.
    settings["zookeeper.connect"] = znode_address
    return BrokerSettings(settings)


def _listen_for_clients(
    process: Process, data: DataDirectory, store: MetadataStore, plan: ClusterPlan
) -> int:
    """Serve ZooKeeper clients at the plan's port, else at the port of the last run; return it.

    So clients can keep their address over a restart. If the last run's port is in use now,
    another one is chosen.
    """
    network, entropy, host = process.network, process.host.entropy, plan.host
    if plan.zookeeper_port:
        return store.listen(network, host, plan.zookeeper_port, entropy)
    port = _listen_on_last_port(network, host, data.znode_port(), store, entropy)
    data.note_znode_port(port)
    return port


def _listen_on_last_port(
    network: Network, host: str, port: int, store: MetadataStore, entropy: Entropy
) -> int:
    """Serve ZooKeeper clients on a port, or on any free one if it is in use; return the port."""
    try:
        return store.listen(network, host, port, entropy)
    except CannotListen as error:
        _log.warning("%s; the metadata store listens elsewhere", error)
        return store.listen(network, host, 0, entropy)


class StoreAddresses:
    """The store's address for each broker process; each broker has a separate port."""

    def __init__(
        self, process: Process, data: DataDirectory, store: MetadataStore, host: str
    ) -> None:
        """Create it without addresses; the store listens on `host` when a broker needs one."""
        self._process = process
        self._data = data
        self._store = store
        self._host = host
        #: The store's port for each broker: connections to it have that broker's link faults.
        self._ports: dict[int, int] = {}

    def of(self, broker_id: int) -> str:
        """Return the store's address for one broker; the first call makes the store listen there.

        Each broker has its own address, so that network faults can separate one of them.
        """
        port = self._ports.get(broker_id)
        if port is None:
            process = self._process
            network = LinkedNetwork(process.network, process.links, STORE, str(broker_id))
            last = self._data.znode_port(broker_id)
            entropy = process.host.entropy
            port = _listen_on_last_port(network, self._host, last, self._store, entropy)
            self._ports[broker_id] = port
            self._data.note_znode_port(port, broker_id)
        return f"{self._host}:{port}"


class Member(NamedTuple):
    """One broker of a cluster, for a separate process."""

    broker_id: int
    #: Address of the metadata store.
    znode_address: str
    #: The broker's port if the plan does not set one and it is free; 0 for any.
    port: int
    #: The process that has the store; if it ends, the start is given up.
    starter_pid: int


def run_member(data: DataDirectory, member: Member) -> None:
    """Run one broker of a data directory's cluster until a signal.

    Its metadata is in the store of the cluster's process. Raises BrokerInUse, and the errors of
    the settings, the store, the logs and the network. After an error the file about the process
    remains: it shows that the broker has crashed.
    """
    broker_id = member.broker_id
    try:
        release = lock_file(data.broker_lock_path(broker_id))
    except LockHeld as error:
        raise BrokerInUse(data.path, broker_id) from error
    try:
        starting = RunningBroker(os.getpid(), None, member.znode_address)
        data.write_running_broker(broker_id, starting)
        _run_member(_create_process(data), data, data.plan() or ClusterPlan(), member)
        data.remove_running_broker(broker_id)
    finally:
        release()


def _run_member(process: Process, data: DataDirectory, plan: ClusterPlan, member: Member) -> None:
    """Run one broker whose store is in another process.

    Until it is ready, it ends if the process that started it ends; later it outlives that
    process.
    """
    broker_id, znode_address, port, starter_pid = member
    settings_of = partial(_settings_of, data, lambda: plan, znode_address)
    sessions = Ensemble(
        settings_of(broker_id, None), process.clock, process.loop, process.host.entropy
    )
    is_ready = False
    clusters: list[Cluster] = []
    network_path = data.member_network_path(broker_id)
    apply_faults(data, process.links, network_path)

    def open_broker(on_fatal: Callable[[str], None]) -> PromiseCoroutine[Cluster]:
        """Start the broker; it ends if the supervisor ends before it is ready."""
        process.end_without(starter_pid, lambda: not is_ready)
        cluster = Cluster(
            sessions,
            process.host,
            settings_of,
            on_fatal,
            is_whole=False,
            ports={broker_id: port} if port else {},
        )
        watch_for_refusal(process, cluster.brokers, lambda: not is_ready, on_fatal)
        return cluster.open([broker_id])

    def on_ready_broker(cluster: Cluster) -> None:
        """Publish the broker's address and report it to the process that started this one."""
        nonlocal is_ready
        is_ready = True
        clusters.append(cluster)
        address = cluster.addresses()[broker_id]
        data.write_running_broker(broker_id, RunningBroker(os.getpid(), address, znode_address))
        # The process received no signal of changes while it started.
        apply_faults(data, process.links, network_path)
        _log.info("ready: %s", address)
        report_ready(address)

    is_answering = False

    async def answer() -> None:
        """Execute the request that is waiting in this broker's request file."""
        nonlocal is_answering
        is_answering = True
        try:
            for broker in list(clusters[0].brokers) if clusters else ():
                await answer_member(data, broker_id, broker)
        except BadClusterFile as error:
            _log.error("%s", error)
        finally:
            is_answering = False

    def poll() -> None:
        """Apply network faults and begin the waiting request; called at a signal."""
        apply_faults(data, process.links, network_path)
        # A request may take several turns of the loop: do not begin it twice.
        if not is_answering:
            drive(answer())

    process.run(open_broker, on_ready_broker, poll)


def run_broker(settings: BrokerSettings, store_path: str | None) -> None:
    """Run one broker with given settings until a signal; its metadata is in the file `store_path`.

    Without a file its metadata is in the ZooKeeper of its settings.
    """
    process = Process()
    if store_path is None:
        _run_broker(
            process, settings, Ensemble(settings, process.clock, process.loop, process.host.entropy)
        )
        return
    security = store_security(settings, listens=False)
    store = MetadataStore(store_path, process.clock, process.loop, security)
    try:
        _run_broker(process, settings, store)
    finally:
        store.close()


def _run_broker(process: Process, settings: BrokerSettings, sessions: Sessions) -> None:
    """Run a single broker with the given settings until the process is stopped."""

    def open_broker(on_fatal: Callable[[str], None]) -> PromiseCoroutine[Cluster]:
        """Start the broker; `on_fatal` ends the process."""
        cluster = Cluster(
            sessions, process.host, lambda _id, _port: settings, on_fatal, is_whole=False
        )
        return cluster.open([FIRST_BROKER_ID])

    def on_ready_broker(cluster: Cluster) -> None:
        """Log the ports on which the broker listens."""
        ports = cluster.brokers[0].ports
        _log.info("ready: %s", ", ".join(f"{name} on port {ports[name]}" for name in ports))

    process.run(open_broker, on_ready_broker)


def log_to_stderr() -> None:
    """Write the brokers' log to stderr, in the line format of Kafka's own log."""
    logging.addLevelName(logging.CRITICAL, "FATAL")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogLines(_LINE, "%Y-%m-%d %H:%M:%S"))
    logging.getLogger().addHandler(handler)
    logging.getLogger().setLevel(logging.INFO)


class LogLines(logging.Formatter):
    """Formats a message as one line, followed by an exception's traceback.

    Differs: Kafka writes names chosen by clients unchanged, so that a name with a line break can
    forge log lines, such as those of the authorizer.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        """Return the message of a record with escaped line breaks, so that it is one line."""
        return super().formatMessage(record).replace("\r", "\\r").replace("\n", "\\n")
