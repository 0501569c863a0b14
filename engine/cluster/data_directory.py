"""The files of a cluster's data directory.

```
cluster.json     the plan of the cluster: {"brokers": 1, "host": …, "port": 9092, "settings": {…},
                 "zookeeper_port": 0, "racks": ["a", …], "processes": false, "removed": [2, …],
                 "log_dirs": 1}             the last five may be missing in older files
cluster.lock     locked by the process that runs it
cluster.start    locked by a command while it starts or removes the cluster
running.json     that process: {"pid": …, "bootstrap_servers": …, "brokers": {"1": "host:port"},
                 "znode_address": "host:port"}      the last is missing in older files
zookeeper.port   the last port of the metadata store, reused at a start: {"port": …}, and for each
                 broker in a process of its own {"brokers": {"1": port}}
cluster.log      the log of that process
served.json      the sources, if log directories of another owner are served
znodes.sqlite    the metadata store
request.json     a command's request to the process, and the response: see `requests.py`
response.json
network.json     the faults of the network between brokers and store, while there are any, and
network.done     the number of the change in force: see `network_faults.py`
cluster.network  locked by a command while it changes the faults
security/        keys, certificates and passwords, if `kctl cluster start --secure` made them
broker-<id>/     the log directory of a broker, its first one
broker-<id>-2/   the second one, and so on
```

A broker in a separate process has additional files:

```
broker-<id>.lock     locked by its process
broker-<id>.json     that process: {"pid": …, "address": "host:port", "zookeeper": "host:port"}
                     without an address while it starts
broker-<id>.log      the log of that process
broker-<id>.request  a request of the cluster's process, and the response: see `requests.py`
broker-<id>.response
broker-<id>.network  the number of the change of network.json in force
```

| lock | running.json | cluster.json | state |
|---|---|---|---|
| held | exists | | running; hung if it does not respond |
| held | missing | | starting, or stopping |
| free | exists | | crashed: it was killed, the next start recovers |
| free | missing | exists | stopped |
| free | missing | missing | absent |

The states of a broker's process derive from its own files in the same way (`broker_processes.py`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from engine.errors import EngineError, StorageError
from engine.host.lock_file import is_held
from engine.host.ports import FileMissing, Files
from engine.host.replace import TEMPORARY_SUFFIX
from engine.json_text import JsonObject

# Every command imports this module for the cluster's address, and few use the rest.
if TYPE_CHECKING:
    from engine.cluster.halts import Halt
    from engine.cluster.plan import ClusterPlan

_BROKER_LOCK = re.compile(r"broker-([0-9]{1,10})\.lock")


class ClusterState(Enum):
    """The state of a cluster, derived from its data directory."""

    RUNNING = "running"
    #: The process exists and does not respond; only `daemon.status_of` detects it.
    HUNG = "hung"
    STARTING = "starting"
    CRASHED = "crashed"
    STOPPED = "stopped"
    ABSENT = "absent"


class BadClusterFile(StorageError):
    """A file of a data directory is malformed."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        folder = path.rpartition("/")[0]
        self.hint = f"`kctl cluster repair --data {folder}` writes it again from what is beside it"
        self.path = path
        self.reason = reason


class BadRunningFile(BadClusterFile):
    """running.json is damaged, and a process holds the cluster's lock."""

    def __init__(self, path: str, reason: str, lock_path: str) -> None:
        """Create the error; `lock_path` is the file whose lock the process holds."""
        super().__init__(path, reason)
        folder = path.rpartition("/")[0]
        self.hint = (
            f"end the process by hand: `fuser {lock_path}` names it, `kill PID` has it stop; "
            f"then `kctl cluster start --data {folder}`"
        )
        self.lock_path = lock_path


class ClusterInUse(EngineError):
    """Another process runs the cluster."""

    hint = "`kctl cluster status` shows it; give another --data for a second cluster"

    def __init__(self, path: str) -> None:
        super().__init__(f"the cluster in {path} is running already")
        self.path = path


class BrokersStillRun(EngineError):
    """Brokers' processes outlived the process of their cluster."""

    def __init__(self, path: str, broker_ids: list[int]) -> None:
        named = ", ".join(map(str, broker_ids))
        super().__init__(f"the cluster in {path} does not run, but its brokers do: {named}")
        self.hint = f"`kctl cluster stop --data {path}` stops them"
        self.path = path
        self.broker_ids = broker_ids


class RunningCluster(NamedTuple):
    """The process that runs a cluster, with the brokers' addresses by id."""

    pid: int
    bootstrap_servers: str
    brokers: dict[str, str]
    #: The address of the metadata store for ZooKeeper clients.
    znode_address: str | None = None


class RunningBroker(NamedTuple):
    """The process that runs a broker, and the metadata store it is connected to."""

    pid: int
    #: None while the broker starts.
    address: str | None
    zookeeper: str


def _do_nothing() -> None:
    """Do nothing: confirms a start whose plan is stored already."""


class DataDirectory:
    """The files of one cluster."""

    def __init__(self, files: Files, path: str) -> None:
        """Set the paths of the cluster's files; nothing is read or created."""
        self._files = files
        self.path = path
        #: Locked while a supervisor runs; the next one while a command starts it.
        self.lock_path = f"{path}/cluster.lock"
        self.start_lock_path = f"{path}/cluster.start"
        self.log_path = f"{path}/cluster.log"
        #: Brokers and settings of the cluster.
        self.plan_path = f"{path}/cluster.json"
        self.served_path = f"{path}/served.json"
        self._running_path = f"{path}/running.json"
        self._znode_port_path = f"{path}/zookeeper.port"
        #: Request of a command to the supervisor, and the supervisor's response.
        self.request_path = f"{path}/request.json"
        self.response_path = f"{path}/response.json"
        #: Faults of the network as a command set them, the file that confirms them, and the lock of
        #: such commands.
        self.network_path = f"{path}/network.json"
        self.network_done_path = f"{path}/network.done"
        self.network_lock_path = f"{path}/cluster.network"

    @property
    def store_path(self) -> str:
        """The path of the metadata store's file."""
        from engine.naming import STORE_FILE

        return f"{self.path}/{STORE_FILE}"

    def broker_path(self, broker_id: int) -> str:
        """Return the log directory of a broker, the first one if it has several."""
        return f"{self.path}/broker-{broker_id}"

    def broker_paths(self, broker_id: int, count: int) -> list[str]:
        """Return the paths of all `count` log directories of a broker."""
        first = self.broker_path(broker_id)
        return [first, *(f"{first}-{number}" for number in range(2, count + 1))]

    def own_log_dirs(self, plan: ClusterPlan) -> dict[str, int]:
        """Return the log directories inside the data directory, with the broker id of each."""
        return {
            path: broker_id
            for broker_id in plan.broker_ids()
            for path in self.broker_paths(broker_id, plan.log_dir_count)
        }

    def broker_lock_path(self, broker_id: int) -> str:
        """Return the path of the file that a broker's process locks."""
        return f"{self.broker_path(broker_id)}.lock"

    def broker_lock_ids(self) -> list[int]:
        """Return the ids of brokers that have or had their own process, in order."""
        names = self._files.list_dir(self.path) if self._files.is_dir(self.path) else []
        found = map(_BROKER_LOCK.fullmatch, names)
        return sorted(int(match[1]) for match in found if match is not None)

    def held_broker_ids(self) -> list[int]:
        """Return the ids of brokers whose process exists, in the plan or not."""
        return [id_ for id_ in self.broker_lock_ids() if is_held(self.broker_lock_path(id_))]

    def broker_log_path(self, broker_id: int) -> str:
        """Return the path of the log of a broker's process."""
        return f"{self.broker_path(broker_id)}.log"

    def _broker_running_path(self, broker_id: int) -> str:
        """Return the path of the file that records the process of a broker."""
        return f"{self.broker_path(broker_id)}.json"

    def member_request_path(self, broker_id: int) -> str:
        """Return the path of the file with a request to a broker's process."""
        return f"{self.broker_path(broker_id)}.request"

    def member_response_path(self, broker_id: int) -> str:
        """Return the path of the file with the response of a broker's process."""
        return f"{self.broker_path(broker_id)}.response"

    def member_network_path(self, broker_id: int) -> str:
        """Return the path of the file in which a broker confirms network changes."""
        return f"{self.broker_path(broker_id)}.network"

    def broker_files(self, broker_id: int) -> list[str]:
        """Return the paths of the files next to a broker's log directory, existing or not."""
        replaced = [
            self._broker_running_path(broker_id),
            self.member_request_path(broker_id),
            self.member_response_path(broker_id),
            self.member_network_path(broker_id),
        ]
        return [
            *replaced,
            *(f"{path}{TEMPORARY_SUFFIX}" for path in replaced),
            self.broker_lock_path(broker_id),
            self.broker_log_path(broker_id),
        ]

    @property
    def security_path(self) -> str:
        """The path of the directory of keys and passwords, existing or not."""
        return f"{self.path}/security"

    def own_files(self) -> list[str]:
        """Return the paths of the cluster's files, existing or not, in the order of removal."""
        replaced = [self._znode_port_path, self._running_path]
        replaced += [self.request_path, self.response_path]
        replaced += [self.network_path, self.network_done_path]
        half = [f"{path}{TEMPORARY_SUFFIX}" for path in (*replaced, self.plan_path)]
        locks = [self.lock_path, self.start_lock_path, self.network_lock_path]
        served = [self.served_path, f"{self.served_path}{TEMPORARY_SUFFIX}"]
        own = [*self.store_files(), *half, *replaced, self.log_path, *locks, *served]
        return [*own, self.plan_path]

    def store_files(self) -> list[str]:
        """Return the paths of the metadata store's files, existing or not."""
        return [f"{self.store_path}{suffix}" for suffix in ("", "-wal", "-shm", "-journal")]

    def log_dirs(self, plan: ClusterPlan) -> list[str]:
        """Return the log directories of a plan's brokers.

        They are those in `log.dirs`, or the default ones.
        """
        named = plan.settings.get("log.dirs") or ""
        paths = [path.strip() for path in named.split(",") if path.strip()]
        return paths or list(self.own_log_dirs(plan))

    def state(self) -> ClusterState:
        """Return the cluster's state; must not be called in the process that holds the lock."""
        is_known = self._files.exists(self._running_path)
        if is_held(self.lock_path):
            return ClusterState.RUNNING if is_known else ClusterState.STARTING
        if is_known:
            return ClusterState.CRASHED
        has_plan = self._files.exists(self.plan_path)
        return ClusterState.STOPPED if has_plan else ClusterState.ABSENT

    def plan(self) -> ClusterPlan | None:
        """Return the cluster's stored plan, None if there is none; raises BadClusterFile."""
        from engine.cluster.plan import ClusterPlan

        content = self._read(self.plan_path)
        if content is None:
            return None
        try:
            return ClusterPlan(
                int(content["brokers"]),
                str(content["host"]),
                int(content["port"]),
                {str(key): str(value) for key, value in content["settings"].items()},
                int(content.get("zookeeper_port", 0)),
                tuple(map(str, content.get("racks", ()))),
                bool(content.get("processes", False)),
                tuple(map(int, content.get("removed", ()))),
                int(content.get("log_dirs", 1)),
                bool(content.get("insecure", False)),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise BadClusterFile(self.plan_path, f"not the plan of a cluster: {error}") from error

    def write_plan(self, plan: ClusterPlan) -> None:
        """Store the cluster's plan for its next starts; only this user can read the file."""
        self._files.make_dir(self.path)
        content = {
            "brokers": plan.broker_count,
            "host": plan.host,
            "port": plan.port,
            "settings": plan.settings,
            "zookeeper_port": plan.zookeeper_port,
            "racks": list(plan.racks),
            "processes": plan.is_in_processes,
            "removed": list(plan.removed_ids),
            "log_dirs": plan.log_dir_count,
            "insecure": plan.is_insecure,
        }
        # The plan may have passwords: the file is made private before content is written.
        temporary = self.plan_path + TEMPORARY_SUFFIX
        self._files.open(temporary, write=True, create=True).close()
        self._files.make_private(temporary)
        self._write(self.plan_path, content)

    @contextmanager
    def store_plan_while_starting(self, plan: ClusterPlan) -> Iterator[Callable[[], None]]:
        """Store a plan while the block starts its cluster.

        Yields the function that confirms the start.

        Without the confirmation the earlier plan is restored, because the next start would fail
        with this one too. If the plan is stored already, the command that waits for the start
        handles it.
        """
        from engine.cluster.plan import ClusterPlan

        kept = self.plan() or ClusterPlan(plan.broker_count)
        if kept == plan and self._files.exists(self.plan_path):
            yield _do_nothing
            return
        has_started = False

        def started() -> None:
            """Confirm that the cluster has started."""
            nonlocal has_started
            has_started = True

        self.write_plan(plan)
        try:
            yield started
        finally:
            if not has_started:
                self.write_plan(kept)

    def running(self) -> RunningCluster | None:
        """Return the process that runs or ran the cluster, None if none is recorded.

        Raises BadRunningFile.
        """
        try:
            content = self._read(self._running_path)
        except BadClusterFile as error:
            raise BadRunningFile(error.path, error.reason, self.lock_path) from error
        if content is None:
            return None
        try:
            return RunningCluster(
                int(content["pid"]),
                str(content["bootstrap_servers"]),
                dict(content["brokers"]),
                content.get("znode_address"),
            )
        except (KeyError, TypeError, ValueError) as error:
            reason = f"not of a process: {error}"
            raise BadRunningFile(self._running_path, reason, self.lock_path) from error

    def write_running(self, running: RunningCluster) -> None:
        """Record the process that runs the cluster, for later commands."""
        self._write(self._running_path, running._asdict())

    def remove_running(self) -> None:
        """Remove the record of the cluster's process, if there is one."""
        try:
            self._files.remove(self._running_path)
        except FileMissing:
            return

    def running_broker(self, broker_id: int) -> RunningBroker | None:
        """Return the process that runs or ran a broker, None if none is recorded.

        Raises BadRunningFile.
        """
        path, lock_path = self._broker_running_path(broker_id), self.broker_lock_path(broker_id)
        try:
            content = self._read(path)
            if content is None:
                return None
            return RunningBroker(int(content["pid"]), content["address"], str(content["zookeeper"]))
        except BadClusterFile as error:
            raise BadRunningFile(error.path, error.reason, lock_path) from error
        except (KeyError, TypeError, ValueError) as error:
            raise BadRunningFile(path, f"not of a process: {error}", lock_path) from error

    def write_running_broker(self, broker_id: int, running: RunningBroker) -> None:
        """Record the process that runs a broker, for later commands."""
        self._write(self._broker_running_path(broker_id), running._asdict())

    def broker_log_end(self, broker_id: int) -> tuple[str, ...]:
        """Return the last lines in the log of a broker's process."""
        from engine.cluster.process_log import log_end

        return log_end(self._files, self.broker_log_path(broker_id))

    def last_halt(self, broker_id: int | None = None) -> Halt | None:
        """Return the last halt of a broker's process, or of the process of all brokers for None.

        None if it ended otherwise.
        """
        from engine.cluster.halts import read_last_halt

        if broker_id is None:
            again = f"`kctl cluster start --data {self.path}`"
            return read_last_halt(self._files, self.log_path, self.path, again)
        again = f"`kctl cluster restart {broker_id} --data {self.path}`"
        return read_last_halt(self._files, self.broker_log_path(broker_id), self.path, again)

    def remove_running_broker(self, broker_id: int) -> None:
        """Remove the record of a broker's process, if there is one."""
        try:
            self._files.remove(self._broker_running_path(broker_id))
        except FileMissing:
            return

    def read_message(self, path: str) -> JsonObject | None:
        """Return a request or a response, None if there is none; raises BadClusterFile."""
        return self._read(path)

    def write_message(self, path: str, content: JsonObject) -> None:
        """Write a request or a response in place of the earlier one."""
        self._write(path, content)

    def remove_network(self, broker_ids: Iterable[int]) -> None:
        """Remove the files about network faults, those of the brokers' processes too."""
        members = map(self.member_network_path, broker_ids)
        for path in (self.network_path, self.network_done_path, *members):
            try:
                self._files.remove(path)
            except FileMissing:
                continue

    def znode_port(self, broker_id: int | None = None) -> int:
        """Return the last port of the metadata store, 0 if it is unknown.

        With a broker id: the store's last port for that broker's process.
        """
        content = self._znode_ports()
        try:
            if broker_id is None:
                return int(content.get("port", 0))
            return int(content.get("brokers", {}).get(str(broker_id), 0))
        except (AttributeError, TypeError, ValueError):
            # Any free port can be used.
            return 0

    def note_znode_port(self, port: int, broker_id: int | None = None) -> None:
        """Record the port of the metadata store, so that the next start uses it."""
        if port == self.znode_port(broker_id):
            return
        content = self._znode_ports()
        if broker_id is None:
            content["port"] = port
        else:
            brokers = content.get("brokers")
            kept = brokers if isinstance(brokers, dict) else {}
            content["brokers"] = {**kept, str(broker_id): port}
        self._write(self._znode_port_path, content)

    def _znode_ports(self) -> JsonObject:
        """Return the recorded ports, empty if unknown: any free port can be used."""
        try:
            return self._read(self._znode_port_path) or {}
        except BadClusterFile:
            return {}

    def _read(self, path: str) -> JsonObject | None:
        """Return the JSON object in a file, None without the file; raises BadClusterFile."""
        try:
            content = json.loads(self._files.read_bytes(path))
        except FileMissing:
            return None
        except ValueError as error:
            raise BadClusterFile(path, f"not JSON: {error}") from error
        if not isinstance(content, dict):
            raise BadClusterFile(path, "not a JSON object")
        return content

    def _write(self, path: str, content: JsonObject) -> None:
        """Replace a file by one with a JSON object."""
        self._files.replace_file(path, json.dumps(content, indent=2).encode() + b"\n")
