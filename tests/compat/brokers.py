"""Brokers of ours or of Kafka's jars, a process each, that are killed and started again."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Final, Protocol

from engine.embedded import EmbeddedCluster
from tests.cluster.raw_client import RawClient
from tests.cluster.real_kafka import JAVA
from tests.soak.broker_process import free_port

_START_S: Final = 120.0
_POLL_S: Final = 0.2
_OFFSETS_PARTITIONS: Final = 50
_SETTINGS: Final = MappingProxyType(
    {
        "offsets.topic.num.partitions": str(_OFFSETS_PARTITIONS),
        "group.initial.rebalance.delay.ms": "0",
        "auto.create.topics.enable": "false",
        "auto.leader.rebalance.enable": "false",
    }
)


def _settings(broker_count: int) -> dict[str, str]:
    """Return Kafka's defaults but for `_SETTINGS`, and replicas that so many brokers can have."""
    replicas = min(3, broker_count)
    return {
        **_SETTINGS,
        "offsets.topic.replication.factor": str(replicas),
        "transaction.state.log.replication.factor": str(replicas),
        "transaction.state.log.min.isr": str(min(2, replicas)),
    }


class Cluster(Protocol):
    """What a scenario needs of a cluster."""

    @property
    def bootstrap(self) -> str:
        """Return the brokers' addresses."""
        ...

    def kill(self, broker_id: int) -> None:
        """Kill a broker."""
        ...

    def restart(self, broker_id: int) -> None:
        """Start a broker that was killed, and return once its process runs."""
        ...

    def close(self) -> None:
        """Kill all."""
        ...


def embedded_cluster(folder: Path, broker_count: int = 3) -> Cluster:
    """Start ours, numbered from 1 on, with the defaults of Kafka but for `_settings`."""
    cluster = EmbeddedCluster(
        folder / "data",
        broker_count,
        in_processes=True,
        settings=_settings(broker_count),
        is_quick=False,
        timeout_s=_START_S,
    )
    cluster.start()
    return cluster


class KafkaCluster:
    """Brokers of Kafka's jars on a ZooKeeper of theirs."""

    def __init__(self, folder: Path, libs: str, broker_count: int = 3) -> None:
        """Start them, numbered from 1 on; raises RuntimeError where they do not serve in time."""
        self._folder = folder
        self._libs = libs
        self._ports: Mapping[int, int] = {
            broker_id: free_port() for broker_id in range(1, broker_count + 1)
        }
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        zookeeper_port = free_port()
        self._zookeeper = self._spawn(
            "zookeeper",
            "-Dzookeeper.admin.enableServer=false",
            "org.apache.zookeeper.server.ZooKeeperServerMain",
            str(zookeeper_port),
            str(folder / "znodes"),
        )
        for broker_id, port in self._ports.items():
            settings = _settings(broker_count) | {
                "broker.id": str(broker_id),
                "listeners": f"PLAINTEXT://127.0.0.1:{port}",
                "log.dirs": str(folder / f"broker-{broker_id}"),
                "zookeeper.connect": f"127.0.0.1:{zookeeper_port}",
            }
            text = "".join(f"{key}={value}\n" for key, value in settings.items())
            self._config(broker_id).write_text(text)
            self.restart(broker_id)
        self._await(broker_count)

    @property
    def bootstrap(self) -> str:
        """Return the brokers' addresses."""
        return ",".join(f"127.0.0.1:{port}" for port in self._ports.values())

    def kill(self, broker_id: int) -> None:
        """Kill a broker."""
        self._processes[broker_id].kill()
        self._processes[broker_id].wait()

    def restart(self, broker_id: int) -> None:
        """Start a broker; one whose earlier session still holds its id is started again."""
        deadline_s = time.monotonic() + _START_S
        while True:
            process = self._spawn(
                f"broker-{broker_id}", "kafka.Kafka", str(self._config(broker_id))
            )
            self._processes[broker_id] = process
            while process.poll() is None:
                if self._serves(broker_id):
                    return
                self._check(deadline_s)
                time.sleep(_POLL_S)
            self._check(deadline_s)

    def close(self) -> None:
        """Kill all."""
        for process in (*self._processes.values(), self._zookeeper):
            process.kill()
            process.wait()

    def _config(self, broker_id: int) -> Path:
        return self._folder / f"broker-{broker_id}.properties"

    def _spawn(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [*JAVA, "-cp", f"{self._libs}/*", *arguments]
        with (self._folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log)

    def _serves(self, broker_id: int) -> bool:
        with (
            suppress(OSError),
            RawClient(f"127.0.0.1:{self._ports[broker_id]}", timeout_s=2) as client,
        ):
            client.ask("ApiVersions", 0)
            return True
        return False

    def _await(self, broker_count: int) -> None:
        deadline_s = time.monotonic() + _START_S
        while True:
            with suppress(OSError), RawClient(self.bootstrap.partition(",")[0]) as client:
                if len(client.ask("Metadata", 9, topics=[]).brokers) == broker_count:
                    return
            self._check(deadline_s)
            time.sleep(_POLL_S)

    def _check(self, deadline_s: float) -> None:
        if time.monotonic() > deadline_s:
            raise RuntimeError(f"brokers do not serve; their logs are in {self._folder}")


def print_cells(cluster: Cluster, cells: Iterable[Callable[[], list[str]]]) -> bool:
    """Run cells, print their lines and close the cluster; return whether all pass."""
    has_failed = False
    try:
        for run in cells:
            lines = run()
            has_failed |= any(line.startswith("FAILED") for line in lines)
            print("\n".join(lines), flush=True)
    finally:
        cluster.close()
    return not has_failed


def started_cluster(brokers: str, folder: Path, libs: str | None, broker_count: int = 3) -> Cluster:
    """Start brokers of ours, or of `kafka` by the jars of a folder."""
    if brokers == "ours":
        return embedded_cluster(folder, broker_count)
    assert libs is not None, "brokers of Kafka need a folder of its jars"
    return KafkaCluster(folder, libs, broker_count)
