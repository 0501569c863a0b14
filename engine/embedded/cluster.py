"""An embedded cluster in its own processes, and the faults that a test can inject.

```
start ── stop ── start …     the data is kept
   └──── close               processes are killed, the data is removed
```

The processes end with the one that started them, even if that is killed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from types import TracebackType
from typing import Final

from engine.client.sasl import SaslSettings
from engine.client.settings import ClientSettings, parse_addresses
from engine.cluster import daemon
from engine.cluster.broker_processes import (
    BrokerState,
    NoSuchBroker,
    kill_broker,
    pause_broker,
    resume_broker,
    running_processes,
)
from engine.cluster.data_directory import ClusterState, DataDirectory
from engine.cluster.network_faults import change_faults
from engine.cluster.plan import ClusterPlan, check_plan
from engine.cluster.requests import Action, request_action
from engine.cluster.warm_process import start_warm, warm_up
from engine.embedded.access import KafkaAccess
from engine.embedded.login import (
    BROKER_USER,
    PLAIN,
    Login,
    await_login,
    check_login,
    create_login_user,
    login_settings,
)
from engine.embedded.short_timeouts import short_timeout_settings
from engine.errors import EngineError
from engine.host import processes
from engine.host.deferred_signals import block_signals
from engine.host.held_file import RealHeldFiles
from engine.host.link_faults import STORE, LinkFaults
from engine.host.lock_file import is_held
from engine.host.real import RealClock, RealEntropy, pause_ms
from engine.security.passwords import random_password

_KILL_POLL_MS: Final = 2


class NotStarted(EngineError):
    """A request needs a running cluster."""

    hint = "call start(), or use the cluster in a `with` block"

    def __init__(self, path: str) -> None:
        super().__init__(f"the cluster in {path} was not started, or has stopped")
        self.path = path


class AlreadyStarted(EngineError):
    """A cluster is already running in the directory."""

    def __init__(self, path: str) -> None:
        super().__init__(f"the cluster in {path} runs already")
        self.path = path


class EmbeddedCluster(KafkaAccess):
    """Brokers and their metadata store. Not safe for use by several threads."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        brokers: int = 1,
        *,
        in_processes: bool | None = None,
        port: int = 0,
        settings: Mapping[str, str] | None = None,
        login: Login | None = None,
        is_quick: bool = True,
        timeout_s: float = 60.0,
    ) -> None:
        """Create a cluster whose data directory is `path`; `start` starts it.

        `port` is the first broker's, 0 for any free one. Several brokers have a process each unless
        `in_processes` is False: only those can be killed and paused. `settings` are broker settings
        by Kafka's names; `is_quick` adds those of `short_timeout_settings`, which `settings`
        override. With a `login` clients have to authenticate. Raises BadLogin, and ConfigError for
        settings.
        """
        super().__init__("", login, timeout_s)
        if login is not None:
            check_login(login)
        warm_up()
        #: Random password with which the brokers log in to each other.
        self._broker_password = random_password(RealEntropy())
        self._clock = RealClock()
        self._files = RealHeldFiles()
        self._data = DataDirectory(self._files, os.path.abspath(path))
        self._plan = ClusterPlan(
            broker_count=brokers,
            port=port,
            settings={
                **(short_timeout_settings(brokers) if is_quick else {}),
                **({} if login is None else login_settings(login, self._broker_password)),
                **(settings or {}),
            },
            is_in_processes=brokers > 1 if in_processes is None else in_processes,
        )
        check_plan(self._plan)

    def __enter__(self) -> EmbeddedCluster:
        """Start the cluster for a `with` block; raises the errors of `start`."""
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Kill the processes and remove the data at the end of a `with` block."""
        self.close()

    # -- from start to end

    def start(self) -> None:
        """Start the cluster, and return when clients can connect and log in.

        Raises AlreadyStarted, ClusterDidNotStart, ClusterNotReadyInTime, StorageError, and the
        errors
        of a client for the login.
        """
        if is_held(self._data.lock_path):
            raise AlreadyStarted(self._data.path)
        with self._hold_lock():
            daemon.start(self._data, self._files, self._plan, self.timeout_s, start_warm)
        try:
            self._read_addresses()
            if self.login is not None:
                self._create_login(self.login)
        except BaseException:
            self.close()
            raise

    def stop(self) -> None:
        """Stop the cluster cleanly and keep its data; raises ClusterDidNotStop."""
        running = self._data.running()
        daemon.stop(self._data, self._clock, self.timeout_s, pause_ms)
        if running is not None:
            self._await_gone([running.pid])
        self._bootstrap = ""

    def close(self) -> None:
        """Kill the cluster's processes, if they run, and remove its data.

        Files in the directory that are not the cluster's are kept.
        """
        with block_signals():
            self._kill_all()
            if self._data.state() is not ClusterState.ABSENT:
                with self._hold_lock():
                    daemon.destroy(self._data, self._files)
            self._bootstrap = ""

    def _kill_all(self) -> None:
        """Kill all processes of the cluster, and wait until they have ended."""
        # All at once: the first process must not see the others end and log it.
        pids = self.pids
        for pid in pids:
            processes.kill(pid)
        self._await_gone(pids)

    def _await_gone(self, pids: Iterable[int]) -> None:
        """Wait until processes have ended, without a timeout."""
        for pid in pids:
            while processes.is_running(pid):
                pause_ms(_KILL_POLL_MS)

    def _create_login(self, login: Login) -> None:
        """Create the login's user, and wait until every broker accepts its password."""
        sasl = SaslSettings(PLAIN, BROKER_USER, self._broker_password)
        with self._client(settings=ClientSettings(sasl=sasl)) as client:
            create_login_user(client, login)
        for address in parse_addresses(self.bootstrap):
            await_login(lambda known: self._client([known]), address)

    def _read_addresses(self) -> None:
        """Set the addresses to those of the running cluster, to an empty text if none runs."""
        running = self._data.running()
        self._bootstrap = "" if running is None else running.bootstrap_servers

    # -- where it is

    @property
    def path(self) -> str:
        """The data directory, for `kctl … --data`."""
        return self._data.path

    @property
    def bootstrap(self) -> str:
        """The brokers' addresses, separated by commas; raises NotStarted."""
        if not self._bootstrap:
            raise NotStarted(self._data.path)
        return self._bootstrap

    @property
    def broker_ids(self) -> list[int]:
        """The ids of all brokers, from 1."""
        return self._plan.broker_ids()

    def address(self, broker_id: int) -> str:
        """Return the address of a broker, also of a killed or paused one.

        Raises NoSuchBroker, NotStarted.
        """
        running = self._data.running()
        if running is None:
            raise NotStarted(self._data.path)
        address = running.brokers.get(str(broker_id))
        if address is None:
            raise NoSuchBroker(self._data.path, broker_id, self.broker_ids)
        return address

    @property
    def broker_states(self) -> dict[int, BrokerState]:
        """The state of each broker by its id."""
        status = daemon.status_as(self._data, self._data.state())
        return {broker.broker_id: broker.state for broker in status.brokers}

    @property
    def pids(self) -> list[int]:
        """The ids of the cluster's processes.

        The first is that of the process with the metadata store; those of brokers follow.
        """
        running = self._data.running()
        members = running_processes(self._data, self._plan).values()
        first = [] if running is None else [running.pid]
        return [*first, *(member.pid for member in members if member.pid not in first)]

    # -- faults of brokers

    def kill(self, broker_id: int) -> None:
        """Kill the process of a broker, as in a crash.

        Other brokers become leaders of its partitions when its session expires, after
        `zookeeper.session.timeout.ms`. Raises NoSuchBroker, BrokersShareProcess, BrokerNotRunning.
        """
        kill_broker(self._data, self._plan, broker_id, pause_ms)

    def pause(self, broker_id: int) -> None:
        """Suspend the process of a broker (SIGSTOP), as in a long GC pause.

        Raises the errors of `kill`.
        """
        pid = pause_broker(self._data, self._plan, broker_id)
        while processes.is_running(pid) and not processes.is_paused(pid):
            pause_ms(_KILL_POLL_MS)

    def resume(self, broker_id: int) -> None:
        """Continue the process of a paused broker; raises the errors of `kill`."""
        resume_broker(self._data, self._plan, broker_id)

    def restart(self, broker_id: int) -> None:
        """Start a killed broker, or stop a running one cleanly and start it again.

        It keeps its port. Raises NoSuchBroker, ClusterRefused, RequestNotCarriedOut.
        """
        if broker_id not in self.broker_ids:
            raise NoSuchBroker(self._data.path, broker_id, self.broker_ids)
        self._request(Action.RESTART, broker_id)

    def stop_broker(self, broker_id: int) -> None:
        """Stop a broker cleanly: its leaderships are moved first.

        Raises the errors of `restart`.
        """
        self._request(Action.STOP, broker_id)

    def _request(self, action: Action, broker_id: int) -> None:
        """Request an action on a broker from the cluster's process, and wait for the response."""
        with self._hold_lock():
            request_action(self._data, action, broker_id, self._clock, self.timeout_s, pause_ms)

    # -- faults of the network

    def isolate(self, *broker_ids: int) -> None:
        """Cut brokers off from the other brokers and the metadata store, until `heal`.

        Clients still reach them. Raises the errors of `partition_network`.
        """
        cut = [str(broker_id) for broker_id in broker_ids]
        rest = [str(id_) for id_ in self.broker_ids if id_ not in broker_ids]
        self._check_brokers(broker_ids)
        self._cut_links([cut, [*rest, STORE]])

    def partition_network(self, *groups: Iterable[int], store_with: int = 0) -> None:
        """Cut the groups of brokers off from each other until `heal`.

        Replaces an earlier partition.

        The metadata store is in the group at the index `store_with`. Clients reach every broker.
        Raises NoSuchBroker, ClusterNotRunning, RequestNotCarriedOut.
        """
        named = [[*map(str, group)] for group in groups]
        self._check_brokers(int(place) for group in named for place in group)
        named[store_with].append(STORE)
        self._cut_links(named)

    def heal(self) -> None:
        """Remove all faults of the network; raises ClusterNotRunning, RequestNotCarriedOut."""
        self._change_faults(lambda _faults: LinkFaults())

    def _cut_links(self, groups: list[list[str]]) -> None:
        """Cut the links between groups of places; other faults of the network are kept."""
        self._change_faults(lambda faults: faults.with_partition(groups))

    def _change_faults(self, change: Callable[[LinkFaults], LinkFaults]) -> None:
        """Change the present faults, and wait until the cluster has applied them."""
        with self._hold_lock(self._data.network_lock_path):
            change_faults(self._data, self._plan, change, self._clock, self.timeout_s, pause_ms)

    def _check_brokers(self, broker_ids: Iterable[int]) -> None:
        """Raise NoSuchBroker if one of the ids is not a broker's."""
        for broker_id in broker_ids:
            if broker_id not in self.broker_ids:
                raise NoSuchBroker(self._data.path, broker_id, self.broker_ids)

    # -- replicas

    def wait_in_sync(self, *, brokers: int | None = None, timeout_s: float | None = None) -> None:
        """Wait until all brokers are up and every partition has all its replicas in sync.

        `brokers` is the number to wait for, if some are to remain down. Raises NotInSync.
        """
        count = len(self.broker_ids) if brokers is None else brokers
        super().wait_in_sync(brokers=count, timeout_s=timeout_s)

    def _hold_lock(self, lock_path: str | None = None) -> AbstractContextManager[None]:
        """Wait for a lock that commands on this cluster take too, and return it."""
        turn = partial(
            daemon.hold_start_lock, self._data, self._files, self._clock, self.timeout_s, pause_ms
        )
        return turn(lock_path=lock_path)
