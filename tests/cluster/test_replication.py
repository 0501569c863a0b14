"""librdkafka against brokers that replicate: in one process, in three, and beside a Java broker."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.cluster.embedded import EmbeddedCluster
from tests.cluster.java_tools import NO_TOOLS, JavaTools
from tests.cluster.real_kafka import JAVA
from tests.soak.broker_process import free_port

_DEADLINE_S = 60.0


@pytest.fixture
def three(tmp_path: Path) -> Iterator[EmbeddedCluster]:
    """Return three brokers in one process."""
    cluster = EmbeddedCluster(tmp_path / "three", brokers=3)
    cluster.start(replica_lag_time_max_ms="3000")
    yield cluster
    cluster.destroy()


def create(admin: AdminClient, topic: str, replicas: list[int]) -> None:
    """Make a topic of one partition with these replicas, the leader first."""
    made = admin.create_topics(
        [NewTopic(topic, 1, replica_assignment=[replicas], config={"min.insync.replicas": "2"})]
    )
    made[topic].result(_DEADLINE_S)


class Load:
    """An idempotent producer, and what it was told is stored."""

    def __init__(self, address: str, topic: str) -> None:
        self.acknowledged: list[bytes] = []
        self.errors: list[object] = []
        self._topic = topic
        self._number = 0
        self._producer = Producer(
            {
                "bootstrap.servers": address,
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 1,
            }
        )

    def produce(self, count: int) -> None:
        for _ in range(count):
            value = b"value %d" % self._number
            self._number += 1
            self._producer.produce(self._topic, value, partition=0, on_delivery=self._told)
            self._producer.poll(0)

    def _told(self, error: object, message: Any) -> None:
        if error:
            self.errors.append(error)
        else:
            self.acknowledged.append(message.value())

    def finish(self) -> None:
        assert self._producer.flush(_DEADLINE_S) == 0
        assert self.errors == []


def consumed(address: str, topic: str, count: int) -> list[bytes]:
    consumer = Consumer(
        {"bootstrap.servers": address, "group.id": "unused", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    values: list[bytes] = []
    end_s = time.monotonic() + _DEADLINE_S
    while len(values) < count and time.monotonic() < end_s:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            values.append(message.value())
    consumer.close()
    return values


def eventually(seen: Callable[[], object], wanted: object) -> None:
    """Ask until an answer is the one that is wanted."""
    end_s = time.monotonic() + _DEADLINE_S
    while seen() != wanted and time.monotonic() < end_s:
        time.sleep(0.1)
    assert seen() == wanted


def described(admin: AdminClient, topic: str) -> Any:
    return admin.list_topics(topic, timeout=_DEADLINE_S).topics[topic].partitions[0]


def contents(log_dirs: list[Path], topic: str) -> set[bytes]:
    """Return the different contents that the replicas of a partition have."""
    return {
        b"".join(path.read_bytes() for path in sorted(log_dir.glob(f"{topic}-0/*.log")))
        for log_dir in log_dirs
    }


def test_three_brokers_of_one_process_have_the_same_bytes(
    three: EmbeddedCluster, topic: str
) -> None:
    admin = AdminClient({"bootstrap.servers": three.address})
    create(admin, topic, [1, 2, 3])
    load = Load(three.address, topic)
    load.produce(5000)
    load.finish()
    assert load.acknowledged == consumed(three.address, topic, 5000)
    assert sorted(described(admin, topic).isrs) == [1, 2, 3]
    log_dirs = [three.data / f"broker-{broker_id}" for broker_id in (1, 2, 3)]
    eventually(lambda: len(contents(log_dirs, topic)), 1)
    assert contents(log_dirs, topic) != {b""}


class JoinedBroker:
    """A broker in a process of its own, with its metadata in another cluster's store."""

    def __init__(
        self,
        broker_id: int,
        folder: Path,
        zookeeper: str,
        settings: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.log_dir = folder / f"joined-{broker_id}"
        self._config = folder / f"joined-{broker_id}.properties"
        self._config.write_text(
            f"broker.id={broker_id}\nlisteners=PLAINTEXT://127.0.0.1:{self.port()}\n"
            f"log.dirs={self.log_dir}\nzookeeper.connect={zookeeper}\n"
            "replica.lag.time.max.ms=3000\nzookeeper.session.timeout.ms=3000\n"
            + "".join(f"{key}={value}\n" for key, value in settings.items())
        )
        self._process: subprocess.Popen[bytes] | None = None

    @staticmethod
    def port() -> int:
        """Return where it listens; 0 for any."""
        return 0

    def command(self, config: Path) -> list[str]:
        """Return what runs it."""
        return [sys.executable, "-m", "kctl", "broker", "run", "--config", str(config)]

    def start(self) -> None:
        with open(self._config.with_suffix(".log"), "ab") as log:
            words = self.command(self._config)
            self._process = subprocess.Popen(words, stdout=log, stderr=log)

    def send_signal(self, number: int) -> None:
        """Send its process a signal."""
        assert self._process is not None
        os.kill(self._process.pid, number)

    def kill(self) -> None:
        """End it at once, and see it gone."""
        if self._process is not None:
            os.kill(self._process.pid, signal.SIGKILL)
            self._process.wait(_DEADLINE_S)
            self._process = None


class JavaBroker(JoinedBroker):
    """The same, as a real broker of Kafka 3.9.1."""

    @staticmethod
    def port() -> int:
        """Return where it listens."""
        return free_port()

    def command(self, config: Path) -> list[str]:
        """Return what runs it."""
        libs = os.environ["KCTL_TEST_KAFKA_LIBS"]
        return [*JAVA, "-cp", f"{libs}/*", "kafka.Kafka", str(config)]


@pytest.fixture
def first(tmp_path: Path) -> Iterator[EmbeddedCluster]:
    """Return a cluster of one broker, which others may join."""
    cluster = EmbeddedCluster(tmp_path / "first")
    cluster.start(replica_lag_time_max_ms="3000")
    yield cluster
    cluster.destroy()


@contextmanager
def running(*brokers: JoinedBroker) -> Iterator[None]:
    """Run brokers, and end what is left of them."""
    try:
        for broker in brokers:
            broker.start()
        yield
    finally:
        for broker in brokers:
            broker.kill()


def test_leaders_that_are_killed_lose_nothing_that_was_acknowledged(
    first: EmbeddedCluster, tmp_path: Path, topic: str
) -> None:
    zookeeper = first.status()["zookeeper"]
    brokers = {id_: JoinedBroker(id_, tmp_path, zookeeper) for id_ in (11, 12)}
    with running(*brokers.values()):
        _kill_each_leader(first, brokers, topic)


@pytest.mark.slow
@pytest.mark.skipif(JavaTools.found() is None, reason=NO_TOOLS)
def test_beside_a_java_broker_both_follow_and_both_lead(
    first: EmbeddedCluster, tmp_path: Path, topic: str
) -> None:
    zookeeper = first.status()["zookeeper"]
    brokers = {11: JavaBroker(11, tmp_path, zookeeper), 12: JoinedBroker(12, tmp_path, zookeeper)}
    with running(*brokers.values()):
        _kill_each_leader(first, brokers, topic)


def _kill_each_leader(
    cluster: EmbeddedCluster, brokers: Mapping[int, JoinedBroker], topic: str
) -> None:
    """Kill 11, which leads first, then 12, each during a load; each comes back before the next."""
    admin = AdminClient({"bootstrap.servers": cluster.address})
    eventually(lambda: sorted(admin.list_topics(timeout=_DEADLINE_S).brokers), [1, 11, 12])
    create(admin, topic, [11, 12, 1])
    load = Load(cluster.address, topic)
    for victim in (11, 12):
        eventually(lambda: len(described(admin, topic).isrs), 3)
        assert described(admin, topic).leader == victim
        load.produce(500)
        brokers[victim].kill()
        load.produce(500)
        load.finish()
        assert described(admin, topic).leader != victim
        eventually(lambda: victim in admin.list_topics(timeout=_DEADLINE_S).brokers, False)  # noqa: B023
        brokers[victim].start()
    eventually(lambda: sorted(described(admin, topic).isrs), [1, 11, 12])
    assert load.acknowledged == consumed(cluster.address, topic, 2000)
    log_dirs = [cluster.data / "broker-1", *(broker.log_dir for broker in brokers.values())]
    eventually(lambda: len(contents(log_dirs, topic)), 1)


@pytest.mark.slow
@pytest.mark.skipif(JavaTools.found() is None, reason=NO_TOOLS)
def test_a_partition_moves_between_a_java_broker_and_ours(
    first: EmbeddedCluster, tmp_path: Path, topic: str
) -> None:
    zookeeper = first.status()["zookeeper"]
    brokers = {11: JavaBroker(11, tmp_path, zookeeper), 12: JoinedBroker(12, tmp_path, zookeeper)}
    with running(*brokers.values()):
        admin = AdminClient({"bootstrap.servers": first.address})
        eventually(lambda: sorted(admin.list_topics(timeout=_DEADLINE_S).brokers), [1, 11, 12])
        create(admin, topic, [11, 12])
        load = Load(first.address, topic)
        log_dirs = {1: first.data / "broker-1"}
        log_dirs |= {broker_id: broker.log_dir for broker_id, broker in brokers.items()}
        for replicas in ([12, 1], [1, 11], [11, 12]):
            load.produce(500)
            _move(first.address, topic, replicas, tmp_path)
            load.produce(500)
            load.finish()
            eventually(lambda: described(admin, topic).replicas, replicas)
            eventually(lambda: sorted(described(admin, topic).isrs), sorted(replicas))
            assert described(admin, topic).leader in replicas
            here = [log_dirs[broker_id] for broker_id in replicas]
            eventually(lambda: len(contents(here, topic)), 1)  # noqa: B023
        assert load.acknowledged == consumed(first.address, topic, 3000)


def _move(address: str, topic: str, replicas: list[int], folder: Path) -> None:
    """Have Kafka's own tool move a partition, and see it end."""
    tools = JavaTools.found()
    assert tools is not None
    plan = folder / "plan.json"
    partition = {"topic": topic, "partition": 0, "replicas": replicas}
    plan.write_text(json.dumps({"version": 1, "partitions": [partition]}))
    words = ("--bootstrap-server", address, "--reassignment-json-file", str(plan))
    tools.ok("reassign-partitions", *words, "--execute")
    eventually(lambda: "is completed" in tools.ok("reassign-partitions", *words, "--verify"), True)
