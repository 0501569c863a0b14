"""The brokers of both clusters, as processes, on one ZooKeeper of Kafka's jars.

The roots of the clusters are `/real` and `/ours`; a broker has the same id, rack and settings in
both, and two log directories.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from kazoo.client import KazooClient

from tests.cluster.real_kafka import JAVA

BROKER_IDS: Final = (1, 2, 3)
LOG_DIRS: Final = ("d0", "d1")
RACKS: Final = {1: "a", 2: "b", 3: "a"}
_LOST: Final = ".lost"
_START_S: Final = 90.0
#: Small, quick in what they do by the clock, and without what is done by the clock alone.
_SETTINGS: Final = {
    "num.network.threads": "1",
    "num.io.threads": "2",
    "background.threads": "2",
    "log.cleaner.dedupe.buffer.size": "2097152",
    "log.index.size.max.bytes": "65536",
    "zookeeper.session.timeout.ms": "5000",
    "auto.create.topics.enable": "false",
    "auto.leader.rebalance.enable": "false",
    "log.initial.task.delay.ms": "500",
    "log.retention.check.interval.ms": "1000",
    "log.segment.delete.delay.ms": "1000",
    "log.flush.offset.checkpoint.interval.ms": "1000",
    "log.flush.start.offset.checkpoint.interval.ms": "1000",
    "replica.high.watermark.checkpoint.interval.ms": "1000",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.min.isr": "1",
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS",
    "allow.everyone.if.no.acl.found": "true",
}


def _client_of(port: int) -> KazooClient:
    client = KazooClient(f"127.0.0.1:{port}")
    client.start(30)
    for root in ("/real", "/ours"):
        client.ensure_path(root)
    return client


class OwnStore:
    """A metadata store of ours as a ZooKeeper server, for our brokers alone."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        command = [sys.executable, "-m", "tests.cluster.serve_store", str(folder / "znodes.sqlite")]
        with open(folder / "store.log", "wb") as log:
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log)
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())
        self.client = _client_of(self.port)

    def stop(self) -> None:
        """End it."""
        self.client.stop()
        self.client.close()
        self._process.kill()
        self._process.wait()


class Zookeeper:
    """A server for both clusters, or for that of Kafka."""

    def __init__(self, folder: Path, libs: str, port: int) -> None:
        self.port = port
        folder.mkdir(parents=True)
        config = folder / "zookeeper.properties"
        config.write_text(
            f"dataDir={folder}/data\nclientPort={port}\nclientPortAddress=127.0.0.1\n"
            "tickTime=1000\nadmin.enableServer=false\nmaxClientCnxns=0\n"
        )
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        with open(folder / "zookeeper.log", "wb") as log:
            self._process = subprocess.Popen(
                [*JAVA, "-cp", f"{libs}/*", main, str(config)], stdout=log, stderr=log
            )
        wait_for_port(port)
        self.client = _client_of(port)

    def stop(self) -> None:
        """End it."""
        self.client.stop()
        self.client.close()
        self._process.kill()
        self._process.wait()


class Cluster:
    """Three brokers of one kind."""

    def __init__(
        self, name: str, folder: Path, zookeeper_port: int, ports: dict[int, int], libs: str | None
    ) -> None:
        """`libs` are the jars of Kafka, None for brokers of ours."""
        self.name = name
        self.root = f"/{name}"
        self.ports = ports
        self._libs = libs
        self._zookeeper = f"127.0.0.1:{zookeeper_port}{self.root}"
        self._folder = folder
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        for broker_id in BROKER_IDS:
            self._write_config(broker_id)

    def log_dir(self, broker_id: int, name: str) -> Path:
        """Return a log directory of a broker."""
        return self._folder / f"b{broker_id}" / name

    def lose(self, broker_id: int, name: str) -> None:
        """Take a log directory away from a broker, as a disk that fails."""
        path = self.log_dir(broker_id, name)
        path.rename(path.with_suffix(_LOST))

    def start(self, broker_id: int) -> None:
        """Start a broker, its directories as they were; `wait_for_port` tells when it listens."""
        for name in LOG_DIRS:
            path = self.log_dir(broker_id, name)
            if path.with_suffix(_LOST).exists():
                shutil.rmtree(path, ignore_errors=True)
                path.with_suffix(_LOST).rename(path)
        config = str(self._folder / f"b{broker_id}.properties")
        if self._libs is None:
            command = [sys.executable, "-m", "kctl", "broker", "run", "--config", config]
        else:
            command = [*JAVA, "-cp", f"{self._libs}/*", "kafka.Kafka", config]
        with open(self._folder / f"b{broker_id}.log", "ab") as log:
            self._processes[broker_id] = subprocess.Popen(
                command, stdout=log, stderr=log, env={**os.environ, "HOME": str(self._folder)}
            )

    def end(self, broker_id: int, *, is_clean: bool) -> None:
        """Stop a broker by SIGTERM, or kill it; return when its process is gone."""
        process = self._processes.pop(broker_id)
        process.send_signal(signal.SIGTERM if is_clean else signal.SIGKILL)
        try:
            process.wait(_START_S)
        except subprocess.TimeoutExpired:
            print(f"{self.name} broker {broker_id} does not stop", flush=True)
            process.kill()
            process.wait()

    def pause(self, broker_id: int) -> None:
        """Stop a broker's process in the middle of what it does."""
        self._processes[broker_id].send_signal(signal.SIGSTOP)

    def go_on(self, broker_id: int) -> None:
        """Let a paused broker go on."""
        self._processes[broker_id].send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """Kill what runs."""
        for process in self._processes.values():
            process.kill()
            process.wait()

    def _write_config(self, broker_id: int) -> None:
        folder = self._folder / f"b{broker_id}"
        dirs = [folder / name for name in LOG_DIRS]
        folder.mkdir(parents=True)
        settings = {
            "broker.id": str(broker_id),
            "broker.rack": RACKS[broker_id],
            "listeners": f"PLAINTEXT://127.0.0.1:{self.ports[broker_id]}",
            "log.dirs": ",".join(map(str, dirs)),
            "zookeeper.connect": self._zookeeper,
            **_SETTINGS,
        }
        text = "".join(f"{key}={value}\n" for key, value in settings.items())
        (self._folder / f"b{broker_id}.properties").write_text(text)


def wait_for_port(port: int) -> None:
    """Return when something listens there."""
    deadline_s = time.monotonic() + _START_S
    while True:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 5):
            return
        assert time.monotonic() < deadline_s, f"nothing listens on port {port}"
        time.sleep(0.1)
