"""Controllers of several brokers over one store, whose brokers answer when the test lets them."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from engine.config.broker_config import BrokerConfig
from engine.config.settings import BrokerSettings
from engine.controller.controller import Controller
from engine.controller.ports import ControllerPorts
from engine.errors import EngineError
from engine.host.coroutine import drive
from engine.host.memory import ManualClock, SeededEntropy
from engine.host.memory_network import MemoryTimers
from engine.host.promise import Promise
from engine.ids import uuid_text
from engine.model import TopicPartition
from engine.replication.metadata_cache import BrokerNode
from engine.wire.structs import message_class
from engine.znode.embedded import EmbeddedZnodeClient
from engine.znode.errors import NoNode, ZnodeConnectionLost
from engine.znode.memory_journal import MemoryJournal
from engine.znode.model import Check, Create, Delete, Operation, OperationResult, SetAcl, SetData
from engine.znode.paths import (
    PERSISTENT_PATHS,
    broker_path,
    partition_state_path,
    topic_config_path,
    topic_path,
)
from engine.znode.permissions import Identities
from engine.znode.store import ZnodeStore
from engine.znode.values import (
    BrokerRegistration,
    PartitionAssignment,
    PartitionStateNode,
    TopicAssignment,
    decode_partition_state,
    encode_broker,
    encode_config,
    encode_topic,
)

R = TypeVar("R")
TIMEOUT_MS = 18_000
_VERBS = {Create: "create", SetData: "set", Delete: "delete", Check: "check"}


def now(coroutine: Coroutine[Any, Any, R]) -> R:
    """Run what never waits."""
    return drive(coroutine).result()


class TracedStore(ZnodeStore):
    """A store that notes its transactions."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(MemoryJournal(), clock)
        self.transactions: list[list[str]] = []

    def multi(
        self,
        session_id: int,
        operations: Sequence[Operation | SetAcl],
        identities: Identities | None = None,
    ) -> list[OperationResult]:
        """Do it, and note what was done."""
        results = super().multi(session_id, operations, identities)
        self.transactions.append([f"{_VERBS[type(each)]} {each.path}" for each in operations])
        return results

    def take(self) -> list[list[str]]:
        """Return the transactions since the last call."""
        taken, self.transactions = self.transactions, []
        return taken


class FakeChannel:
    """Notes requests and answers them without an error, unless told otherwise."""

    def __init__(self, timers: MemoryTimers) -> None:
        self._timers = timers
        self.open_ids: set[int] = set()
        self.sent: list[tuple[int, str, Any]] = []
        #: Brokers that do not answer.
        self.silent: set[int] = set()
        #: Error codes of partitions, by broker.
        self.errors: dict[tuple[int, TopicPartition], int] = {}

    def open(self, broker: BrokerNode) -> None:
        """Begin to pass on requests."""
        assert broker.broker_id not in self.open_ids
        self.open_ids.add(broker.broker_id)

    def close(self, broker_id: int) -> None:
        """Pass on no more."""
        self.open_ids.remove(broker_id)

    def send(self, broker_id: int, name: str, request: Any) -> Promise[Any]:
        """Note a request, and answer it on a later turn."""
        promise: Promise[Any] = Promise()
        if broker_id not in self.open_ids:
            return promise
        self.sent.append((broker_id, name, request))
        if broker_id not in self.silent:
            reply = self._reply(broker_id, name, request)
            self._timers.call_soon(
                lambda: promise.keep(reply) if broker_id in self.open_ids else None
            )
        return promise

    def take(self, name: str | None = None) -> list[tuple[int, str, Any]]:
        """Return the requests since the last call, of one kind or all."""
        taken, self.sent = self.sent, []
        return [each for each in taken if name in (None, each[1])]

    def _reply(self, broker_id: int, name: str, request: Any) -> Any:
        reply = message_class(name.replace("Request", "Response"))()
        if name == "LeaderAndIsrRequest":
            for topic in request.topic_states:
                reply.topics.append(
                    reply.LeaderAndIsrTopicError(
                        topic_id=topic.topic_id,
                        partition_errors=[
                            reply.LeaderAndIsrPartitionError(
                                partition_index=each.partition_index,
                                error_code=self._code(
                                    broker_id, topic.topic_name, each.partition_index
                                ),
                            )
                            for each in topic.partition_states
                        ],
                    )
                )
        if name == "StopReplicaRequest":
            reply.partition_errors = [
                reply.StopReplicaPartitionError(
                    topic_name=topic.topic_name,
                    partition_index=each.partition_index,
                    error_code=self._code(broker_id, topic.topic_name, each.partition_index),
                )
                for topic in request.topic_states
                for each in topic.partition_states
            ]
        return reply

    def _code(self, broker_id: int, topic: str, index: int) -> int:
        return self.errors.get((broker_id, TopicPartition(topic, index)), 0)


class LaterClient:
    """A client whose answers come on a later turn, as those of a remote store do."""

    def __init__(self, client: EmbeddedZnodeClient, timers: MemoryTimers) -> None:
        self._client = client
        self._timers = timers
        #: Failures of the next multis: True if it is done all the same.
        self.lost: list[bool] = []

    @property
    def session_id(self) -> int:
        """Return the session."""
        return self._client.session_id

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._client, name)

        async def later(*arguments: Any, **options: Any) -> Any:
            turn: Promise[None] = Promise()
            self._timers.call_soon(lambda: turn.keep(None))
            await turn
            lost = self.lost.pop(0) if name == "multi" and self.lost else None
            result = None if lost is False else await call(*arguments, **options)
            if lost is not None:
                raise ZnodeConnectionLost("the test wants it")
            return result

        return later


class NotingReporter:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.epochs: list[int | None] = []
        self.failures: list[tuple[str, EngineError]] = []
        self.refusals: list[tuple[str, str, str]] = []

    def on_controller_change(self, epoch: int | None) -> None:
        """Note an epoch."""
        self.epochs.append(epoch)

    def event_failed(self, event: str, error: EngineError) -> None:
        """Note a failure."""
        self.failures.append((event, error))

    def change_refused(self, subject: str, target: str, reason: str) -> None:
        """Note a refusal."""
        self.refusals.append((subject, target, reason))


class Node:
    """One broker: its session, its registration, its controller."""

    def __init__(self, cluster: Cluster, broker_id: int) -> None:
        self.broker_id = broker_id
        self.client = EmbeddedZnodeClient(cluster.store, TIMEOUT_MS)
        self.channel = FakeChannel(cluster.timers)
        self.reporter = NotingReporter()
        self.settings = BrokerSettings(cluster.properties)
        self.later = LaterClient(self.client, cluster.timers)
        self.ports = ControllerPorts(
            self.later if cluster.answers_later else self.client,  # type: ignore[arg-type]
            self.channel,
            cluster.clock,
            cluster.timers,
            SeededEntropy(broker_id),
            self.reporter,
            lambda: cluster.ends_shares,
        )
        self.controller = Controller(
            broker_id, BrokerConfig.parse(self.settings), lambda: self.settings, self.ports
        )
        self._cluster = cluster

    def register(self, port: int = 9092) -> None:
        """Write the registration as a broker does: empty, then its data."""
        now(self.client.connect())
        endpoint = f"PLAINTEXT://localhost:{port + self.broker_id % 10_000}"
        data = encode_broker(
            BrokerRegistration((endpoint,), {"PLAINTEXT": "PLAINTEXT"}, "localhost", port, 1)
        )
        path = broker_path(self.broker_id)
        now(self.client.multi((Create(path, ephemeral=True), SetData(path, data))))

    def die(self) -> None:
        """End the session, and the process with it."""
        now(self.client.close())
        self.controller.stop()


class Cluster:
    """A store and its brokers; started ones are registered, the first is the controller."""

    def __init__(self, brokers: int = 1, *, answers_later: bool = False, **properties: str) -> None:
        self.answers_later = answers_later
        #: Whether shares of turns end before their time.
        self.ends_shares = False
        self.clock = ManualClock(wall_ms=1_000_000)
        self.timers = MemoryTimers(self.clock)
        self.store = TracedStore(self.clock)
        self.properties = {
            "zookeeper.connect": "embedded",
            "listeners": "PLAINTEXT://localhost:9092",
            **{name.replace("_", "."): value for name, value in properties.items()},
        }
        self.admin = EmbeddedZnodeClient(self.store, TIMEOUT_MS)
        now(self.admin.connect())
        for path in PERSISTENT_PATHS:
            now(self.admin.create(path))
        self.nodes: dict[int, Node] = {}
        for broker_id in range(1, brokers + 1):
            self.start(broker_id)

    def start(self, broker_id: int) -> Node:
        """Start a broker and let everything settle."""
        for other in self.nodes.values():
            other.channel.silent.discard(broker_id)
        node = self.nodes[broker_id] = Node(self, broker_id)
        node.register()
        node.controller.start()
        self.settle()
        return node

    def kill(self, broker_id: int) -> None:
        """Let a broker die; its channel answers no more."""
        node = self.nodes.pop(broker_id)
        for other in self.nodes.values():
            other.channel.silent.add(broker_id)
        node.die()
        self.settle()

    def settle(self) -> None:
        """Run until nothing is left to do."""
        self.timers.run_until_idle()

    @property
    def controller(self) -> Controller:
        """The active controller."""
        return self.active.controller

    @property
    def active(self) -> Node:
        """The broker that is the controller."""
        (found,) = [each for each in self.nodes.values() if each.controller.is_active]
        return found

    def create_topic(self, topic: str, *replicas: tuple[int, ...], settle: bool = True) -> None:
        """Write what the admin path writes for a new topic."""
        topic_id = uuid_text(SeededEntropy(len(topic)).random_bytes(15) + topic.encode()[-1:])
        assignment = TopicAssignment(
            topic_id, {index: PartitionAssignment(each) for index, each in enumerate(replicas)}
        )
        now(self.admin.create(topic_config_path(topic), encode_config({})))
        now(self.admin.create(topic_path(topic), encode_topic(assignment)))
        if settle:
            self.settle()

    def state(self, topic: str, index: int = 0) -> PartitionStateNode:
        """Return leader and ISR as they are stored."""
        path = partition_state_path(TopicPartition(topic, index))
        return decode_partition_state(now(self.admin.get(path))[0], path)

    def leader_isr_epoch(self, topic: str, index: int = 0) -> tuple[int, tuple[int, ...], int]:
        """Return the three together."""
        state = self.state(topic, index)
        return state.leader, state.isr, state.leader_epoch

    def exists(self, path: str) -> bool:
        """Return whether a node is there."""
        return now(self.admin.exists(path)) is not None

    def children(self, path: str) -> list[str]:
        """Return a node's children, none if it is not there."""
        try:
            return now(self.admin.children(path))
        except NoNode:
            return []

    def failures(self) -> list[tuple[str, EngineError]]:
        """Return what failed anywhere."""
        return [each for node in self.nodes.values() for each in node.reporter.failures]
