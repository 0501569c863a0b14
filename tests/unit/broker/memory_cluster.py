"""Several whole brokers in memory: one clock, one network, one metadata store, a disk each."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from engine.broker.broker import Broker
from engine.broker.host import BrokerHost
from engine.broker.peers import Serve
from engine.config.settings import BrokerSettings
from engine.host.coroutine import drive
from engine.host.link_faults import STORE
from engine.host.memory import ManualClock, MemoryFiles, SeededEntropy
from engine.host.memory_network import MemoryNetwork, MemoryTimers, MemoryWorkers
from engine.host.network_links import PlaceLinks
from engine.host.promise import Promise
from engine.model import TopicPartition
from engine.replication.partition import Partition
from engine.wire.codec import message_codec
from engine.wire.headers import api, response_header_version
from engine.wire.structs import message_class
from engine.znode.embedded import EmbeddedZnodeClient
from engine.znode.linked import LinkedZnodeClient
from engine.znode.memory_journal import MemoryJournal
from engine.znode.paths import partition_state_path
from engine.znode.store import ZnodeStore
from engine.znode.values import PartitionStateNode, decode_partition_state
from tests.unit.broker.memory_broker import LOG_DIR, request_frame
from tests.unit.log.writing import sent

SESSION_MS = 18_000
T0 = TopicPartition("t", 0)


class MemoryCluster:
    """Brokers 1 to 3, started; brokers of one process, or each alone behind the network.

    In a setting {id} stands for the broker's own id.
    """

    def __init__(self, *, is_one_process: bool, **settings: str) -> None:
        self.clock = ManualClock(wall_ms=1_700_000_000_000)
        self.timers = MemoryTimers(self.clock)
        self.network = MemoryNetwork(self.timers)
        #: What is wrong between the brokers, and between them and the store.
        self.links = PlaceLinks(self.timers, self.clock, SeededEntropy())
        self.store = ZnodeStore(MemoryJournal(), self.clock)
        self.brokers: dict[int, Broker] = {}
        self.disks: dict[int, MemoryFiles] = {}
        self.fatal: list[str] = []
        self._is_one_process = is_one_process
        #: Brokers of one process by id, as they reach each other.
        self.local: dict[int, Serve] = {}
        self._sessions: dict[int, EmbeddedZnodeClient] = {}
        self._settings = {name.replace("_", "."): text for name, text in settings.items()}
        self._admin = EmbeddedZnodeClient(self.store, 1 << 30)
        drive(self._admin.connect()).result()
        for broker_id in (1, 2, 3):
            self.start(broker_id)

    # Brokers

    def start(self, broker_id: int) -> Broker:
        """Start a broker from its disk."""
        assert broker_id not in self.brokers
        host = self.host_of(broker_id)
        settings = BrokerSettings(
            {
                "broker.id": str(broker_id),
                "listeners": "PLAINTEXT://here:0",
                "log.dirs": LOG_DIR,
                "zookeeper.connect": "here:2181",
                **{
                    name: text.replace("{id}", str(broker_id))
                    for name, text in self._settings.items()
                },
            }
        )
        session = self._sessions[broker_id] = EmbeddedZnodeClient(self.store, SESSION_MS)
        local = self.local if self._is_one_process else {}
        znodes = LinkedZnodeClient(session, self.links, str(broker_id), STORE)
        opening = Broker.open(settings, host, znodes, local, on_fatal=self.fatal.append)
        self.timers.run_until_idle()
        broker = self.brokers[broker_id] = drive(opening).result()
        self.timers.run_until_idle()
        return broker

    def host_of(self, broker_id: int) -> BrokerHost:
        """Return what a broker stands on: all but the disk is everybody's."""
        files = self.disks.setdefault(broker_id, MemoryFiles(clock=self.clock))
        return BrokerHost(
            self.clock,
            files,
            self.network,
            self.timers,
            SeededEntropy(broker_id),
            lambda path: self._lock(files, path),
            lambda: "here",
            lambda _count: MemoryWorkers(self.timers),
            links=self.links,
        )

    @staticmethod
    def _lock(files: MemoryFiles, path: str) -> Any:
        files.open(path, write=True, create=True)
        return lambda: None

    def stop(self, broker_id: int) -> None:
        """Stop a broker in order."""
        self.begin_stop(broker_id).result()

    def begin_stop(self, broker_id: int) -> Promise[None]:
        """Begin to stop a broker in order: what has no answer at once needs `pass_time`."""
        stopping = drive(self.brokers[broker_id].stop())
        stopping.watch(lambda: self._forget(broker_id))
        self.timers.run_until_idle()
        return stopping

    def _forget(self, broker_id: int) -> None:
        del self.brokers[broker_id]

    def cut_power(self, broker_id: int) -> None:
        """End a broker at once: its disk has what was synced, and its session ends by silence."""
        self.end_at_once(broker_id)
        self.timers.run_until_idle()

    def end_at_once(self, broker_id: int) -> None:
        """Do the same, but let nobody hear of it before the next turn: a call may be under way."""
        broker = self.brokers.pop(broker_id)
        self.disks[broker_id] = self.disks[broker_id].after_crash()
        self.local.pop(broker_id, None)
        broker.host.timers.stop()  # type: ignore[attr-defined]
        broker.server.close("the power is gone")
        broker.deadlines.stop()
        self.store.close_session(self._sessions.pop(broker_id).session_id)

    # Time

    def pass_time(self, duration_ms: int, step_ms: int = 100) -> None:
        """Let time go by; the brokers that run, and reach the store, keep their sessions."""
        for _ in range(duration_ms // step_ms):
            self.clock.advance(step_ms)
            for broker_id in self.brokers:
                if self._sessions[broker_id].is_open:
                    self._sessions[broker_id].heartbeat()
            self.store.expire_sessions()
            self.timers.run_until_idle()

    # What is seen

    def partition(self, broker_id: int, key: TopicPartition = T0) -> Partition:
        """Return a replica."""
        return self.brokers[broker_id].storage.replica_manager.partitions[key]

    def stored(self, key: TopicPartition = T0) -> PartitionStateNode:
        """Return leader and in-sync set as they stand in the store."""
        path = partition_state_path(key)
        return decode_partition_state(drive(self._admin.get(path)).result()[0], path)

    def content(self, broker_id: int, key: TopicPartition = T0) -> bytes:
        """Return all batches of a replica."""
        log = self.partition(broker_id, key).log
        return log.read(log.log_start_offset, 1 << 30).read()

    def ends(self, key: TopicPartition = T0) -> dict[int, tuple[int, int]]:
        """Return log end and watermark of each replica that runs."""
        found = {}
        for broker_id in sorted(self.brokers):
            partition = self.partition(broker_id, key)
            found[broker_id] = partition.log.log_end_offset, partition.high_watermark
        return found

    # Clients

    def ask(self, broker_id: int, name: str, version: int, /, **fields: Any) -> Requested:
        """Send a request to a broker."""
        requested = Requested(self, broker_id, name, version)
        requested.send(**fields)
        self.timers.run_until_idle()
        return requested

    def create_topic(
        self, name: str = "t", replicas: Sequence[Sequence[int]] = ((1, 2, 3),), **configs: str
    ) -> None:
        """Create a topic with these replicas for each partition."""
        create = message_class("CreateTopicsRequest")
        topic = create.CreatableTopic(
            name=name,
            num_partitions=-1,
            replication_factor=-1,
            assignments=[
                create.CreatableReplicaAssignment(partition_index=index, broker_ids=list(ids))
                for index, ids in enumerate(replicas)
            ],
            configs=[
                create.CreatableTopicConfig(name=key.replace("_", "."), value=value)
                for key, value in configs.items()
            ],
        )
        controller = next(
            broker_id for broker_id, b in self.brokers.items() if b.controller.is_active
        )
        requested = self.ask(controller, "CreateTopics", 7, topics=[topic], timeout_ms=5000)
        assert [0] == [row.error_code for row in requested.answer().topics]

    def produce(
        self, broker_id: int, count: int = 1, acks: int = -1, key: TopicPartition = T0
    ) -> Requested:
        """Send records to a broker."""
        request = message_class("ProduceRequest")
        data = request.PartitionProduceData(index=key.partition, records=sent(count))
        topic = request.TopicProduceData(name=key.topic, partition_data=[data])
        return self.ask(broker_id, "Produce", 9, acks=acks, timeout_ms=60_000, topic_data=[topic])


class Requested:
    """One request on a connection of its own."""

    def __init__(self, cluster: MemoryCluster, broker_id: int, name: str, version: int) -> None:
        self._name = name
        self._version = version
        self._frames: list[bytes] = []
        port = cluster.brokers[broker_id].ports["PLAINTEXT"]
        self._connection = cluster.network.connect("here", port)
        self._connection.on_frame = lambda frame: self._frames.append(bytes(frame))

    def send(self, **fields: Any) -> None:
        request = message_class(f"{self._name}Request")(**fields)
        self._connection.send([request_frame(self._name, self._version, request)])

    @property
    def is_open(self) -> bool:
        """Return whether an answer may still come."""
        return not self._connection.is_closed

    def answer(self) -> Any:
        """Return the answer, None while there is none."""
        if not self._frames:
            return None
        frame = self._frames[0]
        (_correlation_id,) = struct.unpack_from(">i", frame)
        start = 4 + response_header_version(api(self._name).key, self._version)
        return message_codec(f"{self._name}Response", self._version).decode(frame[start:])

    def code(self) -> int | None:
        """Return the error code of a produce to one partition, None while it waits."""
        answer = self.answer()
        return (
            None if answer is None else int(answer.responses[0].partition_responses[0].error_code)
        )
