"""Records tests/golden/brokers: what real brokers of one cluster say to each other.

python -m tools.record_broker_sessions LIBS VERSION PORT     LIBS are the jars of a Kafka release

Three brokers and a ZooKeeper run from PORT on for two minutes. Each broker advertises a proxy,
which keeps every frame with its time; what happens to processes is noted among them. See
`tests.broker_sessions` for the form, and for how a session is played to a broker of ours.
"""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine.wire.structs import message_class
from tests.broker_sessions import BROKER_IDS, SETTINGS, TOPIC, TOPIC_CONFIGS, recording_path
from tests.cluster.raw_client import RawClient
from tests.cluster.real_kafka import JAVA
from tests.unit.log.writing import sent

_DEADLINE_S = 60.0
_SETTLE_S = 2.5


class Recording:
    """Events in the order that the proxies saw them."""

    def __init__(self) -> None:
        self.events: list[list[Any]] = []
        self._start_s = time.monotonic()
        self._connections = 0

    def connection(self) -> int:
        """Return the number of a new connection."""
        self._connections += 1
        return self._connections

    def note(self, kind: str, *fields: Any) -> None:
        """Keep an event with its time in ms."""
        at_ms = round(1000 * (time.monotonic() - self._start_s))
        self.events.append([at_ms, kind, *fields])

    def frame(self, kind: str, connection: int, broker_id: int, frame: bytes) -> None:
        """Keep a frame to a broker or from it."""
        self.note(kind, connection, broker_id, base64.b64encode(frame).decode())


class Proxies:
    """One proxy in front of each broker, on a thread with a loop of its own."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def open(self, broker_id: int, port: int, target: int) -> None:
        """Listen for a broker."""

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._serve(broker_id, target, reader, writer)

        listening = asyncio.start_server(serve, "127.0.0.1", port)
        asyncio.run_coroutine_threadsafe(listening, self._loop).result(_DEADLINE_S)

    async def _serve(
        self,
        broker_id: int,
        target: int,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", target)
        except OSError:
            writer.close()
            return
        number = self._recording.connection()
        await asyncio.gather(
            self._pass_on("ask", number, broker_id, reader, far_writer),
            self._pass_on("answer", number, broker_id, far_reader, writer),
        )
        self._recording.note("closed", number, broker_id)

    async def _pass_on(
        self,
        kind: str,
        number: int,
        broker_id: int,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        try:
            while True:
                head = await reader.readexactly(4)
                frame = await reader.readexactly(struct.unpack(">i", head)[0])
                self._recording.frame(kind, number, broker_id, frame)
                writer.write(head + frame)
        except (OSError, asyncio.IncompleteReadError):
            writer.close()


class RecordedCluster:
    """ZooKeeper and three brokers behind proxies."""

    def __init__(self, libs: str, folder: Path, port: int, recording: Recording) -> None:
        self._libs = libs
        self._folder = folder
        self._port = port
        self.recording = recording
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        proxies = Proxies(recording)
        for broker_id in BROKER_IDS:
            proxies.open(broker_id, self.proxy_port(broker_id), self._broker_port(broker_id))

    def proxy_port(self, broker_id: int) -> int:
        """Return where others reach a broker."""
        return self._port + broker_id

    def _broker_port(self, broker_id: int) -> int:
        return self._port + 10 + broker_id

    def start_store(self) -> None:
        """Start ZooKeeper."""
        config = self._folder / "zk.properties"
        config.write_text(
            f"dataDir={self._folder}/zk\nclientPort={self._port}\ntickTime=500\n"
            "clientPortAddress=127.0.0.1\nadmin.enableServer=false\nmaxClientCnxns=0\n"
        )
        self._run(0, "org.apache.zookeeper.server.quorum.QuorumPeerMain", config)

    def start(self, broker_id: int) -> None:
        """Start a broker, and note its life."""
        config = self._folder / f"broker-{broker_id}.properties"
        settings = {
            "broker.id": broker_id,
            "listeners": f"PLAINTEXT://127.0.0.1:{self._broker_port(broker_id)}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.proxy_port(broker_id)}",
            "log.dirs": f"{self._folder}/data-{broker_id}",
            "zookeeper.connect": f"127.0.0.1:{self._port}",
            "zookeeper.session.timeout.ms": 12_000,
            **SETTINGS,
        }
        config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        self.recording.note("start", broker_id)
        self._run(broker_id, "kafka.Kafka", config)
        self.wait(lambda: broker_id in self.brokers())

    def _run(self, number: int, name: str, config: Path) -> None:
        with (self._folder / f"{number}.log").open("ab") as log:
            self._processes[number] = subprocess.Popen(
                [*JAVA, "-cp", f"{self._libs}/*", name, str(config)], stdout=log, stderr=log
            )

    def signal(self, broker_id: int, kind: signal.Signals) -> None:
        """Send a signal to a broker, and note it."""
        self.recording.note(kind.name, broker_id)
        self._processes[broker_id].send_signal(kind)
        if kind in (signal.SIGKILL, signal.SIGTERM):
            self._processes.pop(broker_id).wait(_DEADLINE_S)
            self.recording.note("gone", broker_id)

    def end(self) -> None:
        """End what is left."""
        for process in self._processes.values():
            process.kill()
            process.wait()

    # Clients: not through the proxies, but for what is to be recorded

    def ask(self, broker_id: int, name: str, version: int, /, **fields: Any) -> Any:
        """Ask a broker through its proxy."""
        with RawClient(f"127.0.0.1:{self.proxy_port(broker_id)}", timeout_s=40) as client:
            return client.ask(name, version, **fields)

    def brokers(self) -> set[int]:
        """Return which brokers broker 1 knows."""
        try:
            with RawClient(f"127.0.0.1:{self._broker_port(1)}") as client:
                return {row.node_id for row in client.ask("Metadata", 9, topics=[]).brokers}
        except (OSError, ConnectionError):
            return set()

    def isrs(self) -> list[tuple[int, list[int]]]:
        """Return leader and in-sync set of each partition, as broker 1 knows them."""
        request = message_class("MetadataRequest")
        with RawClient(f"127.0.0.1:{self._broker_port(1)}") as client:
            reply = client.ask("Metadata", 9, topics=[request.MetadataRequestTopic(name=TOPIC)])
        rows = sorted(reply.topics[0].partitions, key=lambda row: row.partition_index)
        return [(row.leader_id, sorted(row.isr_nodes)) for row in rows]

    def wait(self, seen: Callable[[], bool]) -> None:
        """Wait for something, and a little longer, so that everybody has heard."""
        end_s = time.monotonic() + _DEADLINE_S
        while not seen():
            assert time.monotonic() < end_s
            time.sleep(0.1)
        time.sleep(_SETTLE_S)

    def move(self, partition: int, replicas: list[int]) -> None:
        """Ask the controller for other replicas."""
        request = message_class("AlterPartitionReassignmentsRequest")
        row = request.ReassignablePartition(partition_index=partition, replicas=replicas)
        topic = request.ReassignableTopic(name=TOPIC, partitions=[row])
        reply = self.ask(1, "AlterPartitionReassignments", 0, topics=[topic], timeout_ms=20_000)
        assert reply.responses[0].partitions[0].error_code == 0, reply

    def produce(self, broker_id: int, partition: int, value: bytes, acks: int = -1) -> None:
        """Send one record, of now: one that is older than retention allows would go."""
        now_ms = int(1000 * time.time())
        request = message_class("ProduceRequest")
        data = request.PartitionProduceData(
            index=partition, records=sent(value=value, at_ms=now_ms)
        )
        topic = request.TopicProduceData(name=TOPIC, partition_data=[data])
        reply = self.ask(broker_id, "Produce", 9, acks=acks, timeout_ms=30_000, topic_data=[topic])
        assert reply.responses[0].partition_responses[0].error_code == 0, reply
        time.sleep(1.2)


def play(cluster: RecordedCluster) -> None:
    """Do what is recorded: a story of two partitions, 0 led by broker 2 and 1 by broker 3."""
    cluster.start_store()
    for broker_id in BROKER_IDS:
        cluster.start(broker_id)
    _begin(cluster)
    _part_and_meet(cluster)
    _lag_and_catch_up(cluster)
    _move_and_end(cluster)


def _begin(cluster: RecordedCluster) -> None:
    """Make the topic, fill it, and delete some of it."""
    note = cluster.recording.note
    note("step", "a topic, and records for both partitions")
    create = message_class("CreateTopicsRequest")
    assigned = [
        create.CreatableReplicaAssignment(partition_index=index, broker_ids=ids)
        for index, ids in enumerate(([2, 3], [3, 2]))
    ]
    configs = [create.CreatableTopicConfig(name=key, value=value) for key, value in TOPIC_CONFIGS]
    made = create.CreatableTopic(
        name=TOPIC,
        num_partitions=-1,
        replication_factor=-1,
        assignments=assigned,
        configs=configs,
    )
    reply = cluster.ask(1, "CreateTopics", 7, topics=[made], timeout_ms=20_000)
    assert reply.topics[0].error_code == 0, reply
    cluster.wait(lambda: cluster.isrs() == [(2, [2, 3]), (3, [2, 3])])
    for value in (b"a", b"b"):
        cluster.produce(2, 0, value)
        cluster.produce(3, 1, value)
    note("step", "records are deleted at their leader")
    delete = message_class("DeleteRecordsRequest")
    row = delete.DeleteRecordsPartition(partition_index=1, offset=1)
    topic = delete.DeleteRecordsTopic(name=TOPIC, partitions=[row])
    cluster.ask(3, "DeleteRecords", 2, topics=[topic], timeout_ms=20_000)
    time.sleep(_SETTLE_S)


def _part_and_meet(cluster: RecordedCluster) -> None:
    """Let broker 2 lose records to an unclean election."""
    note = cluster.recording.note
    note("step", "broker 3 dies; broker 2 takes records that it will lose")
    cluster.signal(3, signal.SIGKILL)
    cluster.wait(lambda: cluster.isrs() == [(2, [2]), (2, [2])])
    cluster.produce(2, 0, b"lost")
    cluster.produce(2, 1, b"lost")
    cluster.signal(2, signal.SIGKILL)
    cluster.wait(lambda: cluster.brokers() == {1})
    note("step", "broker 3 leads without them, and takes others")
    cluster.start(3)
    cluster.wait(lambda: cluster.isrs() == [(3, [3]), (3, [3])])
    for value in (b"d", b"e"):
        cluster.produce(3, 0, value)
        cluster.produce(3, 1, value)
    note("step", "broker 2 is back: its log parts from the leader's")
    cluster.start(2)
    cluster.wait(lambda: cluster.isrs() == [(3, [2, 3]), (3, [2, 3])])


def _lag_and_catch_up(cluster: RecordedCluster) -> None:
    """Let broker 3 stop in order, and later be silent for a while."""
    note = cluster.recording.note
    note("step", "broker 3 stops in order, and comes back")
    cluster.signal(3, signal.SIGTERM)
    cluster.wait(lambda: cluster.isrs() == [(2, [2]), (2, [2])])
    cluster.produce(2, 0, b"f")
    cluster.start(3)
    cluster.wait(lambda: cluster.isrs() == [(2, [2, 3]), (2, [2, 3])])
    note("step", "broker 3 is silent for a while: out of the in-sync sets, and in again")
    cluster.signal(3, signal.SIGSTOP)
    for partition in (0, 1):
        cluster.produce(2, partition, b"g", acks=1)
    cluster.wait(lambda: cluster.isrs() == [(2, [2]), (2, [2])])
    cluster.signal(3, signal.SIGCONT)
    cluster.wait(lambda: cluster.isrs() == [(2, [2, 3]), (2, [2, 3])])
    note("step", "broker 3 leads again what it should")
    elect = message_class("ElectLeadersRequest")
    requested = elect.TopicPartitions(topic=TOPIC, partitions=[1])
    cluster.ask(
        1, "ElectLeaders", 2, election_type=0, topic_partitions=[requested], timeout_ms=20_000
    )
    cluster.wait(lambda: cluster.isrs()[1] == (3, [2, 3]))
    cluster.produce(3, 1, b"h")


def _move_and_end(cluster: RecordedCluster) -> None:
    """Move a partition, and delete the topic."""
    note = cluster.recording.note
    note("step", "a producer gets an id, of a block that its broker asks for")
    cluster.ask(2, "InitProducerId", 4, transactional_id=None, transaction_timeout_ms=60_000)
    note("step", "partition 0 moves to broker 3 alone, and grows to broker 2 again")
    for replicas in ([3], [3, 2]):
        cluster.move(0, replicas)
        cluster.wait(lambda: cluster.isrs()[0] == (3, sorted(replicas)))  # noqa: B023
        cluster.produce(3, 0, b"i")
    note("step", "the topic is deleted")
    gone = message_class("DeleteTopicsRequest")
    cluster.ask(1, "DeleteTopics", 6, topics=[gone.DeleteTopicState(name=TOPIC)], timeout_ms=20_000)
    time.sleep(2 * _SETTLE_S)
    note("step", "the end")


def main() -> int:
    """Record the story."""
    libs, version, port = sys.argv[1:]
    folder = Path(tempfile.mkdtemp(prefix="kctl-record-"))
    recording = Recording()
    cluster = RecordedCluster(libs, folder, int(port), recording)
    try:
        play(cluster)
    finally:
        cluster.end()
    events = recording.events
    path = recording_path(version)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(json.dumps(events).encode(), mtime=0))
    shutil.rmtree(folder)
    print(f"{path}: {len(events)} events, {path.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
