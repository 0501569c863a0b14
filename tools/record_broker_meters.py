"""Records tests/golden/brokers/meters-<version>.json: what the meters of a real broker count.

python -m tools.record_broker_meters LIBS VERSION PORT     LIBS are the jars of a Kafka release

A broker and a ZooKeeper run from PORT on; JMX is at PORT + 2. See `tests.broker_meters`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from engine.wire.codec import message_codec
from tests.broker_meters import (
    GROUP,
    SETTINGS,
    STEPS,
    TOPICS,
    TYPES,
    Step,
    raised,
    recording_path,
)
from tests.cluster.raw_client import RawClient
from tests.cluster.real_kafka import JAVA, create_topic

_DEADLINE_S = 60.0
_SETTLE_S = 0.3


def _run(libs: str, log: Path, *arguments: str) -> subprocess.Popen[bytes]:
    with log.open("wb") as out:
        return subprocess.Popen(
            [*JAVA, *arguments[:-2], "-cp", f"{libs}/*", *arguments[-2:]], stdout=out, stderr=out
        )


def _start(libs: str, folder: Path, port: int) -> list[subprocess.Popen[bytes]]:
    """Start ZooKeeper and the broker."""
    zookeeper, broker = folder / "zk.properties", folder / "broker.properties"
    zookeeper.write_text(f"dataDir={folder}/zk\nclientPort={port + 1}\nadmin.enableServer=false\n")
    settings = {
        "broker.id": "1",
        "listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "log.dirs": f"{folder}/data",
        "zookeeper.connect": f"127.0.0.1:{port + 1}",
        **SETTINGS,
    }
    broker.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    server = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
    store = _run(libs, folder / "zk.log", server, str(zookeeper))
    time.sleep(3)
    remote = [
        f"-Dcom.sun.management.jmxremote.{name}"
        for name in (f"port={port + 2}", f"rmi.port={port + 2}", "authenticate=false", "ssl=false")
    ]
    host = "-Djava.rmi.server.hostname=127.0.0.1"
    kafka = _run(libs, folder / "broker.log", *remote, host, "kafka.Kafka", str(broker))
    return [kafka, store]


def _counts(libs: str, port: int) -> dict[str, int]:
    """Return the counts of the meters: those that have a rate."""
    url = f"service:jmx:rmi:///jndi/rmi://127.0.0.1:{port + 2}/jmxrmi"
    command = [*JAVA, "-cp", f"{libs}/*", "org.apache.kafka.tools.JmxTool", "--jmx-url", url]
    for kind in TYPES:
        command += ["--object-name", f"{kind},*"]
    command += ["--attributes", "Count,MeanRate", "--one-time", "--report-format", "properties"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    values = dict(line.rsplit("=", 1) for line in text.splitlines() if ":Count=" in line)
    rates = {line.rsplit(":", 1)[0] for line in text.splitlines() if ":MeanRate=" in line}
    found = {name.removesuffix(":Count"): int(value) for name, value in values.items()}
    return {name: count for name, count in found.items() if name in rates}


def _send(address: str, step: Step) -> None:
    with RawClient(address) as client:
        for request in step.requests:
            codec = message_codec(f"{request.name}Request", request.version)
            client.send(request.name, request.version, codec.encode(request.message))
            if request.is_answered:
                client.frame()
        time.sleep(_SETTLE_S)


def _prepare(address: str) -> None:
    deadline = time.monotonic() + _DEADLINE_S
    while True:
        try:
            with RawClient(address) as client:
                client.ask("Metadata", 9, topics=None)
            break
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.2)
    time.sleep(2)
    for name, (partitions, configs) in TOPICS.items():
        create_topic(address, name, partitions, **configs)
    with RawClient(address) as client:
        while True:
            found = client.ask("FindCoordinator", 4, coordinator_keys=[GROUP])
            if not found.coordinators[0].error_code:
                break
            time.sleep(0.5)
    time.sleep(3)


def main(libs: str, version: str, port: int) -> None:
    """Record all steps."""
    address = f"127.0.0.1:{port}"
    with tempfile.TemporaryDirectory() as folder:
        processes = _start(libs, Path(folder), port)
        try:
            _prepare(address)
            steps = {}
            before = _counts(libs, port)
            for step in STEPS:
                _send(address, step)
                after = _counts(libs, port)
                steps[step.name] = raised(before, after)
                before = after
        finally:
            for process in processes:
                process.terminate()
                process.wait()
    recording_path(version).write_text(json.dumps(steps, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
