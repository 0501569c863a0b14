"""Groups and transactions whose coordinator is killed, in a cluster of our brokers and a Java one.

    make compat-mixed      or: KCTL_TEST_KAFKA_LIBS=DIR python -m tests.compat.mixed_cluster

Broker 11 is Kafka 3.9.1 of the jars in DIR; 1, which serves the metadata store, 12 and 13 are ours.
Coordinators pass from 11 to 12, from 12 to 11 and from 12 to 13:

1. a group that commits goes on at its new coordinator, and no committed offset goes back;
2. a transaction that is open is committed, and another aborted, by the new coordinator;
3. the same where the end of the transaction is decided and its markers wait for a paused leader:
   the new coordinator writes them;
4. in the end read_committed returns what was committed, once and in order.

Exit code: 0 if so; an AssertionError or a time-out ends it otherwise.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.cluster.embedded import EmbeddedCluster
from tests.cluster.test_replication import JavaBroker, JoinedBroker, eventually, running
from tests.soak.broker_process import free_port

_JAVA: Final = 11
_PASSES: Final = ((_JAVA, 12), (12, _JAVA), (12, 13))
_GROUP_TOPIC: Final = "read"
_COMMITTED_TOPIC: Final = "committed"
#: It leads the topic of transactions; it coordinates nothing that is killed.
_DATA_LEADER: Final = 13
_OFFSETS: Final = "__consumer_offsets"
_TRANSACTIONS: Final = "__transaction_state"
_PARTITIONS: Final = 24
_TIMEOUT_S: Final = 90.0
_SETTINGS: Final = {
    "replica.lag.time.max.ms": "3000",
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": str(_PARTITIONS),
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.num.partitions": str(_PARTITIONS),
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "auto.leader.rebalance.enable": "false",
}


def java_hash(text: str) -> int:
    """Return Java's hash of a text, without its sign: what picks a coordinator's partition."""
    result = 0
    for character in text:
        result = (31 * result + ord(character)) & 0xFFFFFFFF
    return result & 0x7FFFFFFF


class OwnBroker(JoinedBroker):
    """A broker of ours that has its port again when it comes back."""

    @staticmethod
    def port() -> int:
        """Return where it listens."""
        return free_port()


class MixedCluster:
    """The brokers, and the ids whose coordinator passes from one broker to another."""

    def __init__(self, first: EmbeddedCluster, folder: Path) -> None:
        zookeeper = first.status()["zookeeper"]
        self._first = first
        self.brokers: dict[int, JoinedBroker] = {
            _JAVA: JavaBroker(_JAVA, folder, zookeeper, _SETTINGS),
            12: OwnBroker(12, folder, zookeeper, _SETTINGS),
            13: OwnBroker(13, folder, zookeeper, _SETTINGS),
        }
        self.client_settings = {"bootstrap.servers": first.address, "log_level": 0}
        self.admin = AdminClient(dict(self.client_settings))
        self._counter = itertools.count()

    def ready(self) -> None:
        """Make the topics, those of coordinators too, and wait until all is in sync."""
        eventually(
            lambda: sorted(self.admin.list_topics(timeout=_TIMEOUT_S).brokers),
            [1, *sorted(self.brokers)],
        )
        topics = [
            NewTopic(_GROUP_TOPIC, 4, replication_factor=3),
            NewTopic(_COMMITTED_TOPIC, 1, replica_assignment=[[_DATA_LEADER, 1, 12]]),
        ]
        for made in self.admin.create_topics(topics).values():
            made.result(_TIMEOUT_S)
        consumer = Consumer({**self.client_settings, "group.id": "first"})
        consumer.subscribe([_GROUP_TOPIC])
        consumer.poll(5)
        consumer.close()
        self.producer("first")
        eventually(self.is_in_sync, True)

    def producer(self, transactional_id: str) -> Producer:
        """Return a transactional producer that has begun."""
        producer = Producer({**self.client_settings, "transactional.id": transactional_id})
        producer.init_transactions(_TIMEOUT_S)
        return producer

    def is_in_sync(self) -> bool:
        """Return whether every broker is there, and every replica in sync."""
        view = self.admin.list_topics(timeout=_TIMEOUT_S)
        partitions = [part for topic in view.topics.values() for part in topic.partitions.values()]
        return len(view.brokers) == len(self.brokers) + 1 and all(
            len(part.isrs) == len(part.replicas) and part.leader >= 0 for part in partitions
        )

    def id_that_passes(self, topic: str, victim: int, heir: int) -> str:
        """Return an id whose coordinator is `victim`, and `heir` once that is gone."""
        partitions = self.admin.list_topics(topic, timeout=_TIMEOUT_S).topics[topic].partitions
        numbers = {
            number
            for number, part in partitions.items()
            if part.leader == victim and part.replicas[:2] == [victim, heir]
        }
        assert numbers, f"no partition of {topic} passes from {victim} to {heir}"
        ids = (f"from-{victim}-to-{heir}-{number}" for number in self._counter)
        return next(name for name in ids if java_hash(name) % _PARTITIONS in numbers)

    def kill(self, broker_id: int) -> None:
        """Kill a broker."""
        self.brokers[broker_id].kill()

    def bring_back(self, broker_id: int) -> None:
        """Start it again, and have everything as it was: in sync, and led by the first replicas."""
        # A broker is refused while the session of its last life is open.
        eventually(lambda: broker_id in self.admin.list_topics(timeout=_TIMEOUT_S).brokers, False)
        self.brokers[broker_id].start()
        eventually(self.is_in_sync, True)
        done = self._first.run_kctl("leaders", "balance", "--yes", "-b", self._first.address)
        assert done.returncode == 0, done.stderr


class CommittingGroup(threading.Thread):
    """A member of a group that commits after every hundred records."""

    def __init__(self, settings: dict[str, object], group_id: str) -> None:
        super().__init__(daemon=True)
        self._settings = {**settings, "group.id": group_id, "session.timeout.ms": 10_000}
        self._is_over = threading.Event()
        self.committed: dict[int, int] = {}
        self.went_back: list[TopicPartition] = []

    def run(self) -> None:
        """Read and commit until it is stopped."""
        consumer = Consumer(
            {**self._settings, "auto.offset.reset": "earliest", "enable.auto.commit": False}
        )
        consumer.subscribe([_GROUP_TOPIC])
        count = 0
        while not self._is_over.is_set():
            message = consumer.poll(0.5)
            if message is None or message.error():
                continue
            count += 1
            if count % 100 == 0:
                # What a coordinator that loads refuses is committed with the next hundred.
                with suppress(KafkaException):
                    self._take(consumer.commit(asynchronous=False) or [])
        consumer.close()

    def _take(self, committed: list[TopicPartition]) -> None:
        for entry in committed:
            if entry.offset < 0:
                continue
            if entry.offset < self.committed.get(entry.partition, 0):
                self.went_back.append(entry)
            self.committed[entry.partition] = entry.offset

    def stop(self) -> None:
        """Leave the group."""
        self._is_over.set()
        self.join()

    def total(self) -> int:
        """Return the sum of its committed offsets."""
        return sum(self.committed.values())


def check_group(cluster: MixedCluster, victim: int, heir: int) -> None:
    """Kill a group's coordinator, and have it back; see that commits go on and never back (1)."""
    group_id = cluster.id_that_passes(_OFFSETS, victim, heir)
    group = CommittingGroup(dict(cluster.client_settings), group_id)
    with Records(cluster):
        group.start()
        eventually(lambda: group.total() > 0, True)
        cluster.kill(victim)
        before = dict(group.committed)
        eventually(lambda: group.total() > sum(before.values()), True)
        _check_stored(cluster, group_id, before)
        cluster.bring_back(victim)
        before = dict(group.committed)
        eventually(lambda: group.total() > sum(before.values()), True)
        group.stop()
    assert group.went_back == []
    _check_stored(cluster, group_id, before)
    print(f"group {group_id}: {group.total()} committed", flush=True)


class Records:
    """Records for the group while a block runs."""

    def __init__(self, cluster: MixedCluster) -> None:
        self._producer = Producer({**cluster.client_settings, "enable.idempotence": True})
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()
        assert self._producer.flush(_TIMEOUT_S) == 0

    def _run(self) -> None:
        while not self._is_over.wait(0.05):
            for _ in range(50):
                self._producer.produce(_GROUP_TOPIC, b"record")
            self._producer.poll(0)


def _check_stored(cluster: MixedCluster, group_id: str, at_least: dict[int, int]) -> None:
    reader = Consumer({**cluster.client_settings, "group.id": group_id})
    asked = [TopicPartition(_GROUP_TOPIC, number) for number in range(4)]
    stored = {entry.partition: entry.offset for entry in reader.committed(asked, _TIMEOUT_S)}
    reader.close()
    assert all(stored[number] >= offset for number, offset in at_least.items()), stored


def check_transactions(
    cluster: MixedCluster, victim: int, heir: int, *, is_prepared: bool
) -> list[bytes]:
    """Kill the coordinator of an aborted and of a committed transaction (2, 3).

    Return what was committed.
    """
    transactional_id = cluster.id_that_passes(_TRANSACTIONS, victim, heir)
    producer = cluster.producer(transactional_id)
    committed: list[bytes] = []
    for is_commit in (False, True):
        values = [b"%s %d" % (transactional_id.encode(), number) for number in range(5)]
        producer.begin_transaction()
        for value in values:
            producer.produce(_COMMITTED_TOPIC, value)
        assert producer.flush(_TIMEOUT_S) == 0
        end = producer.commit_transaction if is_commit else producer.abort_transaction
        if is_prepared:
            _end_while_paused(cluster, victim, end)
        else:
            cluster.kill(victim)
            end(_TIMEOUT_S)
        committed += values if is_commit else []
        cluster.bring_back(victim)
    print(f"transactional id {transactional_id}, prepared: {is_prepared}", flush=True)
    return committed


def _end_while_paused(cluster: MixedCluster, victim: int, end: Callable[[float], None]) -> None:
    """End a transaction whose markers cannot be written before the coordinator is killed."""
    leader = cluster.brokers[_DATA_LEADER]
    leader.send_signal(signal.SIGSTOP)
    # Until the others do without it: the decision needs the replicas that are in sync.
    time.sleep(4.5)
    ending = threading.Thread(target=end, args=(_TIMEOUT_S,))
    ending.start()
    time.sleep(1)
    cluster.kill(victim)
    time.sleep(1)
    leader.send_signal(signal.SIGCONT)
    ending.join()


def read_committed(cluster: MixedCluster, count: int) -> list[bytes]:
    """Return what a consumer sees of the topic of transactions, to its end."""
    consumer = Consumer(
        {
            **cluster.client_settings,
            "group.id": "unused",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(_COMMITTED_TOPIC, 0, OFFSET_BEGINNING)])
    values: list[bytes] = []
    end_s = time.monotonic() + _TIMEOUT_S
    while time.monotonic() < end_s:
        message = consumer.poll(1)
        if message is None:
            continue
        if message.error():
            break
        values.append(message.value() or b"")
    consumer.close()
    assert len(values) >= count, f"{len(values)} of {count}"
    return values


def main() -> int:
    """Run everything; the output is a line for each coordinator that has passed."""
    if "KCTL_TEST_KAFKA_LIBS" not in os.environ:
        print("set KCTL_TEST_KAFKA_LIBS to a directory with the jars of Kafka", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="kctl-mixed-") as folder:
        first = EmbeddedCluster(Path(folder) / "first")
        first.start(**{key.replace(".", "_"): value for key, value in _SETTINGS.items()})
        cluster = MixedCluster(first, Path(folder))
        try:
            with running(*cluster.brokers.values()):
                cluster.ready()
                for victim, heir in _PASSES:
                    check_group(cluster, victim, heir)
                committed: list[bytes] = []
                for is_prepared in (False, True):
                    for victim, heir in _PASSES[:2]:
                        committed += check_transactions(
                            cluster, victim, heir, is_prepared=is_prepared
                        )
                assert read_committed(cluster, len(committed)) == committed
        finally:
            first.destroy()
    print("nothing lost, nothing repeated")
    return 0


if __name__ == "__main__":
    sys.exit(main())
