"""What lies in a cluster's data directory.

```
cluster.json     how the cluster was made: {"brokers": 1, "host": …, "port": 9092, "settings": {…}}
cluster.lock     locked by the process that runs it
running.json     that process: {"pid": …, "bootstrap_servers": …, "brokers": {"1": "host:port"}}
cluster.log      what it has to say
znodes.sqlite    the metadata store
broker-<id>/     the log directory of a broker
```

| lock | running.json | cluster.json | state |
|---|---|---|---|
| held | there | | running |
| held | no | | starting, or stopping |
| free | there | | crashed: it was killed, the next start recovers |
| free | no | there | stopped |
| free | no | no | absent |
"""

from __future__ import annotations

import json
from enum import Enum
from typing import Any, NamedTuple

from engine.errors import StorageError
from engine.host.lock_file import is_held
from engine.host.ports import FileMissing, Files

#: What a cluster is made with if nothing else is said.
FIRST_BROKER_ID = 1


class ClusterState(Enum):
    """What a data directory says of its cluster."""

    RUNNING = "running"
    STARTING = "starting"
    CRASHED = "crashed"
    STOPPED = "stopped"
    ABSENT = "absent"


class BadClusterFile(StorageError):
    """A file of a data directory is not what it should be."""

    hint = "restore it, or destroy the cluster and make it anew"

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class ClusterPlan(NamedTuple):
    """How a cluster is made; settings are broker keys in Kafka's names."""

    broker_count: int = 1
    host: str = "127.0.0.1"
    port: int = 9092
    settings: dict[str, str] = {}  # noqa: RUF012 (never changed in place)

    def broker_ids(self) -> list[int]:
        """Return the ids of the brokers."""
        return list(range(FIRST_BROKER_ID, FIRST_BROKER_ID + self.broker_count))


class RunningCluster(NamedTuple):
    """The process that runs a cluster; addresses of brokers by id."""

    pid: int
    bootstrap_servers: str
    brokers: dict[str, str]


class DataDirectory:
    """The files of one cluster."""

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self.path = path
        self.lock_path = f"{path}/cluster.lock"
        self.log_path = f"{path}/cluster.log"
        self.store_path = f"{path}/znodes.sqlite"
        self._plan_path = f"{path}/cluster.json"
        self._running_path = f"{path}/running.json"

    def broker_path(self, broker_id: int) -> str:
        """Return the log directory of a broker."""
        return f"{self.path}/broker-{broker_id}"

    def state(self) -> ClusterState:
        """Return what the files and the lock say; not to be asked by who holds the lock."""
        is_known = self._files.exists(self._running_path)
        if is_held(self.lock_path):
            return ClusterState.RUNNING if is_known else ClusterState.STARTING
        if is_known:
            return ClusterState.CRASHED
        has_plan = self._files.exists(self._plan_path)
        return ClusterState.STOPPED if has_plan else ClusterState.ABSENT

    def plan(self) -> ClusterPlan | None:
        """Return how the cluster was made, None if there is none; raises BadClusterFile."""
        found = self._read(self._plan_path)
        if found is None:
            return None
        try:
            return ClusterPlan(
                int(found["brokers"]),
                str(found["host"]),
                int(found["port"]),
                {str(key): str(value) for key, value in found["settings"].items()},
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise BadClusterFile(self._plan_path, f"not the plan of a cluster: {error}") from error

    def write_plan(self, plan: ClusterPlan) -> None:
        """Keep how the cluster is made, for its next starts."""
        self._files.make_dir(self.path)
        content = {
            "brokers": plan.broker_count,
            "host": plan.host,
            "port": plan.port,
            "settings": plan.settings,
        }
        self._write(self._plan_path, content)

    def running(self) -> RunningCluster | None:
        """Return the process that runs or ran the cluster; raises BadClusterFile."""
        found = self._read(self._running_path)
        if found is None:
            return None
        try:
            return RunningCluster(
                int(found["pid"]), str(found["bootstrap_servers"]), dict(found["brokers"])
            )
        except (KeyError, TypeError, ValueError) as error:
            raise BadClusterFile(self._running_path, f"not of a process: {error}") from error

    def write_running(self, running: RunningCluster) -> None:
        """Say who runs the cluster."""
        self._write(self._running_path, running._asdict())

    def remove_running(self) -> None:
        """Say that nobody runs it any more."""
        try:
            self._files.remove(self._running_path)
        except FileMissing:
            return

    def _read(self, path: str) -> dict[str, Any] | None:
        try:
            found = json.loads(self._files.read_bytes(path))
        except FileMissing:
            return None
        except ValueError as error:
            raise BadClusterFile(path, f"not JSON: {error}") from error
        if not isinstance(found, dict):
            raise BadClusterFile(path, "not a JSON object")
        return found

    def _write(self, path: str, content: dict[str, Any]) -> None:
        self._files.replace_file(path, json.dumps(content, indent=2).encode() + b"\n")
