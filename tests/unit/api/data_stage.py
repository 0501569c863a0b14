"""A broker's data APIs behind a server over a memory network, and a client of it."""

from __future__ import annotations

import struct
from collections.abc import Collection
from typing import Any

from engine.api.admission import Admission, allow_all
from engine.api.delete_records import DeleteRecords
from engine.api.describe_producers import DescribeProducers
from engine.api.dispatch import ApiRow, DispatchTable, Rule
from engine.api.fast_follower_fetch import FastFollowerFetch
from engine.api.fast_produce import FastProduce
from engine.api.fetch import Fetch, FetchDeps
from engine.api.fetch_session import FetchSessionCache
from engine.api.list_offsets import ListOffsets
from engine.api.offset_for_leader_epoch import OffsetForLeaderEpoch
from engine.api.produce import Produce
from engine.api.transaction_verifier import TransactionVerifier
from engine.host.memory import ManualClock, MemoryFiles, SeededEntropy
from engine.host.memory_network import MemoryNetwork, MemoryTimers
from engine.host.ports import Files
from engine.host.promise import Promise
from engine.host.turns import LoopTurns, no_time
from engine.ids import uuid_text
from engine.kafka_errors import INVALID_PRODUCER_ID_MAPPING
from engine.log.log_config import LogConfig
from engine.log.recovery.loader import LoadRequest, load_log
from engine.model import TopicPartition
from engine.replication.effects import ProposeIsr
from engine.replication.metadata_cache import (
    BrokerNode,
    Endpoint,
    MetadataCache,
    PartitionMetadata,
)
from engine.replication.partition import Partition
from engine.replication.partition_types import (
    FetchParams,
    FetchSpec,
    PartitionState,
    ReplicationConfig,
)
from engine.replication.replica_manager import ReplicaManager
from engine.replication.watermark import Isolation
from engine.server import RequestServer, ServerEvents
from engine.wire.codec import message_codec
from engine.wire.fast_fetch_bytes import read_fetch_request
from engine.wire.fetch_bytes import decode_fetch_request
from engine.wire.headers import api, encode_request_header, response_header_version
from engine.wire.produce_bytes import decode_produce_request
from engine.wire.structs import message_class
from tests.unit.host.listening import Told
from tests.unit.log.hooks import hooks_of
from tests.unit.log.writing import NOW_MS
from tests.unit.replication.replicas import ports_of

LEADER = 1
TOPIC_ID = bytes(range(16))
T0 = TopicPartition("t", 0)


class DataStage:
    """Broker 1 leads t-0 and t-1; brokers 2 and 3 are up."""

    def __init__(
        self,
        isr: tuple[int, ...] = (LEADER,),
        *,
        fetch_slots: int = 1000,
        files: Files | None = None,
        root: str = "/data",
        is_fast_path: bool = True,
        admission: Admission | None = None,
    ) -> None:
        """Without `is_fast_path` nothing is answered the fast path."""
        self.clock = ManualClock()
        self.timers = MemoryTimers(self.clock)
        #: Lets others go behind each few rows of a large request.
        self.turns = LoopTurns(self.timers, self.clock, lambda: True)
        self.metadata = MetadataCache(LEADER, "cluster")
        self.proposed: list[ProposeIsr] = []
        ports = ports_of(is_known=self.metadata.is_known, proposed=self.proposed)
        self.manager = ReplicaManager(self.clock, ports)
        self.files = files or MemoryFiles()
        self.root = root
        self.isr = isr
        self.sessions = FetchSessionCache(self.metadata, SeededEntropy(7), slots=fetch_slots)
        self.bad: list[str] = []
        self.faults: list[str] = []
        self.closed: list[str] = []
        self.frames: list[bytes] = []
        #: What a coordinator of transactions was asked, and what it says; held up in a list.
        self.questions: list[tuple[str, int, int]] = []
        self.verifies = True
        self.coordinator_code = INVALID_PRODUCER_ID_MAPPING
        self.answers: list[Promise[dict[TopicPartition, int]]] | None = None
        self.table = DispatchTable(admission or allow_all())
        self._serve_data(is_fast_path=is_fast_path)
        self.connect()
        self.add("t", 0)
        self.add("t", 1)

    def _coordinator(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: Collection[TopicPartition],
    ) -> Promise[dict[TopicPartition, int]]:
        """Answer what `coordinator_code` says of every partition."""
        self.questions.append((transactional_id, producer_id, epoch))
        if self.answers is not None:
            self.answers.append(Promise())
            return self.answers[-1]
        return Promise.of(dict.fromkeys(partitions, self.coordinator_code))

    def _serve_data(self, *, is_fast_path: bool) -> None:
        verifier = TransactionVerifier(self.manager.find, self._coordinator, lambda: self.verifies)
        produce = Produce(self.manager, self.metadata, self.turns, verifier)
        self.followers = FastFollowerFetch(self.metadata, self.sessions, self.clock)
        fetch_deps = FetchDeps(self.manager, self.metadata, self.sessions)
        fetch = Fetch(fetch_deps, self.turns, self.followers if is_fast_path else None)
        serve, rule = self.table.serve, Rule.PER_RESOURCE
        if is_fast_path:
            fast = FastProduce(produce, self.metadata, self.clock).answer
            serve("Produce", produce.handle, rule, decode=decode_produce_request, serve_fast=fast)
            fast_fetch = self.followers.answer
            serve("Fetch", fetch.handle, rule, decode=read_fetch_request, serve_fast=fast_fetch)
        else:
            serve("Produce", produce.answer, rule, decode=decode_produce_request)
            serve("Fetch", fetch.answer, rule, decode=decode_fetch_request)
        serve("ListOffsets", ListOffsets(self.manager, self.clock).handle, rule)
        serve("OffsetForLeaderEpoch", OffsetForLeaderEpoch(self.manager).handle, rule)
        serve("DeleteRecords", DeleteRecords(self.manager, self.metadata).handle, rule)
        serve("DescribeProducers", DescribeProducers(self.manager, self.metadata).handle, rule)

    def connect(self) -> None:
        """Serve on a memory network and connect the client."""
        self.network = network = MemoryNetwork(self.timers)
        events = ServerEvents(
            lambda _peer, reason: self.bad.append(reason), self._fault, self._fault
        )
        self.server = RequestServer(network, self.clock, self.table, events, no_time)
        listener = self.server.listen("here", 0, "PLAINTEXT", Told().options())
        self.port = listener.port
        self.client = network.connect("here", listener.port)
        self.client.on_frame = lambda frame: self.frames.append(bytes(frame))
        self.client.on_close = self.closed.append

    def _fault(self, row: ApiRow, error: Exception) -> None:
        self.faults.append(f"{row.name}: {error}")
        raise error

    def add(
        self,
        topic: str,
        index: int,
        *,
        leader: int = LEADER,
        config: LogConfig | None = None,
        min_isr: int = 1,
    ) -> Partition:
        """Take a partition in and let everybody know of it."""
        topic_partition = TopicPartition(topic, index)
        directory = f"{self.root}/{topic_partition}"
        self.files.make_dir(directory)
        request = LoadRequest(directory, topic_partition, config or LogConfig(), NOW_MS)
        log, _ = load_log(self.files, request, hooks_of())
        if topic == "t":
            log.assign_topic_id(uuid_text(TOPIC_ID))
        replication = ReplicationConfig(min_insync_replicas=min_isr)
        partition = Partition(
            LEADER, log, self.clock, config=replication, is_alive=self.metadata.is_alive
        )
        replicas = self.isr if self.isr == (LEADER,) else (1, 2, 3)
        state = PartitionState(leader, 0, self.isr, 0, replicas)
        role = partition.become_leader if leader == LEADER else partition.become_follower
        role(state)
        self.manager.add(partition)
        self.tell(topic_partition, leader)
        return partition

    def tell(self, topic_partition: TopicPartition, leader: int = LEADER, epoch: int = 0) -> None:
        """Make a partition known, wherever it is."""
        brokers = [
            BrokerNode(number, (Endpoint("PLAINTEXT", f"host{number}", 9092),), f"rack{number}")
            for number in (1, 2, 3)
        ]
        found = PartitionMetadata(leader, epoch, (leader,), 0, (1, 2, 3))
        ids = {"t": TOPIC_ID} if topic_partition.topic == "t" else {}
        self.metadata.update(1, brokers, {topic_partition: found}, ids)

    def ask(self, name: str, version: int, request: Any, client_id: str = "tester") -> Any:
        """Send a request and return the answer, None while there is none."""
        body = message_codec(f"{name}Request", version).encode(request)
        self.send_raw(name, version, body, client_id)
        return self.answer(name, version)

    def send_raw(self, name: str, version: int, body: bytes, client_id: str = "tester") -> None:
        """Send the body of a request."""
        head = encode_request_header(api(name).key, version, 77, client_id)
        self.client.send([head, body])
        self.timers.run_until_idle()

    def answer(self, name: str, version: int) -> Any:
        """Return the next answer, None while there is none."""
        self.timers.run_until_idle()
        if not self.frames:
            return None
        frame = self.frames.pop(0)
        assert struct.unpack_from(">i", frame) == (77,)
        start = 4 + response_header_version(api(name).key, version)
        return message_codec(f"{name}Response", version).decode(frame[start:])

    def produce(self, *records: Any, version: int = 11, acks: int = -1, **more: Any) -> Any:
        """Produce records to partitions 0, 1, … of t; return the partitions' answers."""
        request = produce_request({"t": list(enumerate(records))}, acks=acks, **more)
        answer = self.ask("Produce", version, request)
        return answer and answer.responses[0].partition_responses

    def fetch(self, offset: int = 0, *, version: int = 17, index: int = 0, **more: Any) -> Any:
        """Fetch one partition of t; return its answer."""
        request = fetch_request(version, {index: offset}, **more)
        answer = self.ask("Fetch", version, request)
        return answer and answer.responses[0].partitions[0]

    def follow(self, offset: int, replica_id: int = 2, *, log_start: int = 0) -> None:
        """Let a follower of t-0 fetch, over a connection of its own."""
        params = FetchParams(replica_id, max_wait_ms=0, isolation=Isolation.LOG_END)
        spec = FetchSpec(offset, 1 << 20, log_start_offset=log_start)
        self.manager.fetch(params, [(T0, spec)])

    def pass_time(self, duration_ms: int) -> None:
        """Let time go by."""
        self.clock.advance(duration_ms)
        self.manager.advance()
        self.timers.run_until_idle()


def produce_request(topics: dict[str, list[tuple[int, Any]]], **more: Any) -> Any:
    """Return a Produce request."""
    made = message_class("ProduceRequest")
    more.setdefault("acks", -1)
    more.setdefault("timeout_ms", 1000)
    return made(
        topic_data=[
            made.TopicProduceData(
                name=name,
                partition_data=[
                    made.PartitionProduceData(index=index, records=records)
                    for index, records in partitions
                ],
            )
            for name, partitions in topics.items()
        ],
        **more,
    )


def fetch_request(
    version: int,
    offsets: dict[int, int],
    *,
    topic: str = "t",
    topic_id: bytes = TOPIC_ID,
    requested: dict[str, Any] | None = None,
    forgotten: list[int] | None = None,
    **more: Any,
) -> Any:
    """Return a Fetch request for partitions of one topic; no topic for no offsets."""
    made = message_class("FetchRequest")
    named = {"topic_id": topic_id} if version >= 13 else {"topic": topic}
    more.setdefault("max_wait_ms", 0)
    more.setdefault("min_bytes", 1)
    if version >= 3:
        more.setdefault("max_bytes", 1 << 20)
    partitions = [
        made.FetchPartition(
            partition=index, fetch_offset=offset, partition_max_bytes=1 << 20, **(requested or {})
        )
        for index, offset in offsets.items()
    ]
    topics = [made.FetchTopic(partitions=partitions, **named)] if partitions else []
    if forgotten:
        more["forgotten_topics_data"] = [made.ForgottenTopic(partitions=forgotten, **named)]
    return made(topics=topics, **more)
