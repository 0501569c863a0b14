"""A real Kafka broker on the log directory and the metadata store of an embedded cluster."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from engine.wire.structs import message_class
from tests.cluster.raw_client import RawClient
from tests.soak.broker_process import free_port

_START_S = 60.0
_POLL_S = 0.05
#: How a broker of Java's is run, small.
JAVA = ("java", "-Xmx384m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


class RealKafka:
    """Broker 1 as a Java process; our cluster on the same data must be stopped."""

    def __init__(self, libs: str, data: Path, **settings: str) -> None:
        self.address = f"127.0.0.1:{free_port()}"
        self._libs = libs
        self._data = data
        self._settings = settings
        self._processes: list[subprocess.Popen[str]] = []

    def start(self) -> None:
        """Return once it has a topic's leader for every partition that is there."""
        store = self._run(
            [sys.executable, "-m", "tests.cluster.serve_store", str(self._data / "znodes.sqlite")]
        )
        assert store.stdout is not None
        properties = self._data.with_suffix(".properties")
        given = {
            "broker.id": "1",
            "listeners": f"PLAINTEXT://{self.address}",
            "log.dirs": str(self._data / "broker-1"),
            "zookeeper.connect": f"127.0.0.1:{store.stdout.readline().strip()}",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "2",
            "offsets.topic.num.partitions": "2",
            **{key.replace("_", "."): value for key, value in self._settings.items()},
        }
        properties.write_text("".join(f"{key}={value}\n" for key, value in given.items()))
        self._run([*JAVA, "-cp", f"{self._libs}/*", "kafka.Kafka", str(properties)])
        deadline = time.monotonic() + _START_S
        while not self._is_ready():
            assert time.monotonic() < deadline, "Kafka did not start"
            assert self._processes[-1].poll() is None, "Kafka ended"
            time.sleep(_POLL_S)

    def _run(self, command: list[str]) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._processes.append(process)
        return process

    def _is_ready(self) -> bool:
        try:
            with RawClient(self.address) as client:
                reply = client.ask("Metadata", 9, topics=None)
        except OSError:
            return False
        topics = reply.topics
        leaders = [part.leader_id for topic in topics for part in topic.partitions]
        return bool(leaders) and set(leaders) == {1}

    @property
    def pid(self) -> int:
        """Return the broker's process."""
        return self._processes[-1].pid

    def stop(self) -> None:
        """Stop it cleanly, then the store."""
        for process in reversed(self._processes):
            process.terminate()
            assert process.wait(60) in (0, 143)
            assert process.stdout is not None
            process.stdout.close()
        self._processes.clear()

    def kill(self) -> None:
        """End what is left of it."""
        for process in self._processes:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()
        self._processes.clear()


def create_topic(address: str, name: str, partitions: int = 1, **configs: str) -> None:
    """Create a topic; `_` in the names of settings stands for `.`."""
    made = message_class("CreateTopicsRequest")
    given = [
        made.CreatableTopicConfig(name=key.replace("_", "."), value=value)
        for key, value in configs.items()
    ]
    topic = made.CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=1, configs=given
    )
    with RawClient(address) as client:
        reply = client.ask("CreateTopics", 7, topics=[topic], timeout_ms=20_000)
    assert reply.topics[0].error_code == 0, reply
