"""The cluster of a script: real controllers over a store, real replicas on disks, all in memory.

```
store (memory) <── controller of each node ── requests ──> leadership, partitions of each node
                        ^                                        │
                        └────────── proposals of in-sync sets ───┘
```

Everything runs in one thread and on one clock, until nothing is left to do.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from engine.api.leader_and_isr import LeaderAndIsr
from engine.api.stop_replica import StopReplica
from engine.api.update_metadata import UpdateMetadata
from engine.broker.isr_proposals import IsrProposalPorts, IsrProposals
from engine.config.broker_config import BrokerConfig
from engine.config.settings import BrokerSettings
from engine.controller.controller import Controller
from engine.controller.ports import ControllerPorts
from engine.errors import EngineError
from engine.host.coroutine import drive
from engine.host.memory import ManualClock, MemoryFiles, SeededEntropy
from engine.host.memory_network import MemoryTimers
from engine.host.promise import Promise
from engine.host.turns import Line, LoopTurns
from engine.ids import uuid_text
from engine.kafka_errors import kafka_error
from engine.log.directory.log_manager import LogManager
from engine.log.directory.log_manager_ports import LogManagerConfig, LogManagerPorts
from engine.log.log_config import LogConfig
from engine.log.tasks import InlineTasks
from engine.model import TopicPartition
from engine.replication.effects import FetchFrom, ProposeIsr
from engine.replication.leadership import Leadership
from engine.replication.metadata_cache import MetadataCache
from engine.replication.partition_types import IsrDecision, ReplicationConfig
from engine.replication.ports import ReplicaManagerPorts
from engine.replication.replica_manager import ReplicaManager
from engine.wire.structs import message_class
from engine.znode.embedded import EmbeddedZnodeClient
from engine.znode.memory_journal import MemoryJournal
from engine.znode.model import Create, SetData
from engine.znode.paths import (
    PERSISTENT_PATHS,
    broker_path,
    partition_state_path,
    topic_config_path,
    topic_path,
)
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
from tests.scripts.follower import unthrottled
from tests.scripts.on_the_way import PausableTimers, Reporter, Requests
from tests.unit.api.asking import exchange_of

TIMEOUT_MS = 18_000
_LOG_DIR = "/data"
#: The versions in which a controller of 3.9 sends its requests.
_VERSIONS = {"LeaderAndIsr": 7, "StopReplica": 4, "UpdateMetadata": 8}
_ALTER_PARTITION_VERSION = 3


def now(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run what never waits."""
    return drive(coroutine).result()


class NoFetching:
    """Scripts fetch by themselves, see `follower`."""

    def fetch_from(self, order: FetchFrom) -> None:
        """Leave it to the script."""

    def stop(self, topic_partition: TopicPartition) -> None:
        """Leave it to the script."""


class NoMoving:
    """In scripts every broker has one log directory."""

    def resume(self, topic_partition: TopicPartition) -> None:
        """There is nothing to go on with."""

    def stop(self, topic_partition: TopicPartition) -> None:
        """There is nothing to stop."""


class Node:
    """One broker: its disk, its replicas, its session, its controller."""

    def __init__(self, stage: Stage, broker_id: int, files: MemoryFiles) -> None:
        self.broker_id = broker_id
        self.files = files
        self.epoch = -1
        #: Whether the controller's requests to it, and its proposals, stay on the way.
        self.is_cut = False
        self._stage = stage
        self.cache = MetadataCache(broker_id, "cluster")
        self.replicas = ReplicaManager(
            stage.clock,
            ReplicaManagerPorts(
                self.cache.is_known,
                self._propose,
                NoFetching(),
                NoMoving(),
                _raised,
                lambda _due: None,
                None,
                unthrottled(stage.clock),
            ),
        )
        self.logs = self._open_logs()
        self.leadership = Leadership(
            broker_id,
            stage.clock,
            self.replicas,
            self.logs,
            config_of=stage.replication_config,
            is_alive=self.cache.is_alive,
        )
        self.proposals = IsrProposals(
            broker_id,
            IsrProposalPorts(
                lambda: self.epoch,
                lambda name, message, *, highest=None: stage.send_to_controller(self, message),
                self._decided,
            ),
            stage.timers,
            stage.clock,
        )
        epoch = lambda: self.epoch  # noqa: E731
        turns, line = LoopTurns(stage.timers, stage.clock), Line(stage.timers)
        self._handlers: dict[str, Any] = {
            "LeaderAndIsr": LeaderAndIsr(self.leadership, epoch, _load_nothing, turns, line),
            "StopReplica": StopReplica(self.leadership, epoch, turns, line),
            "UpdateMetadata": UpdateMetadata(self.leadership, self.cache, epoch, turns, line),
        }
        self.timers = PausableTimers(stage.timers)
        self.client = EmbeddedZnodeClient(stage.store, TIMEOUT_MS)
        self.requests = Requests(stage)
        settings = BrokerSettings(stage.properties)
        self.controller = Controller(
            broker_id,
            BrokerConfig.parse(settings),
            lambda: settings,
            ControllerPorts(
                self.client,
                self.requests,
                stage.clock,
                self.timers,
                SeededEntropy(broker_id),
                Reporter(stage, broker_id),
            ),
        )

    def _open_logs(self) -> LogManager:
        stage = self._stage
        logs = LogManager(
            self.files,
            LogManagerConfig((_LOG_DIR,), self.broker_id, "cluster"),
            LogManagerPorts(
                InlineTasks(),
                stage.clock,
                SeededEntropy(),
                self._lock,
                lambda _topic: LogConfig(),
                lambda _key: 0,
                lambda _path, error, _lost: _raised(error),
            ),
        )
        logs.start()
        return logs

    def _lock(self, path: str) -> Callable[[], None]:
        self.files.open(path, write=True, create=True)
        return lambda: None

    def register(self) -> None:
        """Say that the broker is up, as a broker does: an empty node, then its data."""
        now(self.client.connect())
        endpoint = f"PLAINTEXT://localhost:{9090 + self.broker_id}"
        data = encode_broker(
            BrokerRegistration((endpoint,), {"PLAINTEXT": "PLAINTEXT"}, "localhost", 9092, 1)
        )
        path = broker_path(self.broker_id)
        now(self.client.multi((Create(path, ephemeral=True), SetData(path, data))))
        stat = now(self.client.exists(path))
        self.epoch = stat.czxid

    def take(self, name: str, request: Any) -> Any:
        """Do what a controller asks for; returns the response or its promise."""
        reply = self._handlers[name].handle(request, exchange_of(name, _VERSIONS[name]))
        if not isinstance(reply, Promise):
            return reply
        assert reply.is_kept
        return reply.result()

    def checkpoint(self) -> None:
        """Write the watermarks down, as the task does every five seconds."""
        self.logs.checkpoint_high_watermarks(self.replicas.high_watermarks())

    def _propose(self, proposal: ProposeIsr) -> None:
        isr = listed(proposal.isr)
        self._stage.note(f"{self.broker_id}: asks for isr {isr} of {proposal.topic_partition}")
        self.proposals.propose(proposal)

    def _decided(self, proposal: ProposeIsr, decision: IsrDecision) -> None:
        word = "granted" if decision.error_code == 0 else kafka_error(decision.error_code).name
        isr = listed(proposal.isr)
        self._stage.note(f"{self.broker_id}: isr {isr} of {proposal.topic_partition}: {word}")
        self.replicas.on_isr_decided(proposal, decision)


class Stage:
    """A store and its brokers."""

    def __init__(self, **properties: str) -> None:
        self.clock = ManualClock(wall_ms=1_700_000_000_000)
        self.timers = MemoryTimers(self.clock)
        self.store = ZnodeStore(MemoryJournal(), self.clock)
        self.properties = {
            "zookeeper.connect": "embedded",
            "listeners": "PLAINTEXT://localhost:9092",
            **properties,
        }
        self.settings = BrokerConfig.parse(BrokerSettings(self.properties))
        self.min_isr: dict[str, int] = {}
        self.nodes: dict[int, Node] = {}
        self._disks: dict[int, MemoryFiles] = {}
        self._notes: list[str] = []
        self._requested: list[tuple[Node, Callable[[], None]]] = []
        self.admin = EmbeddedZnodeClient(self.store, TIMEOUT_MS)
        now(self.admin.connect())
        for path in PERSISTENT_PATHS:
            now(self.admin.create(path))

    # What happens

    def note(self, line: str) -> None:
        """Say what happened, behind the command that is running."""
        self._notes.append(line)

    def take_notes(self) -> list[str]:
        """Run until nothing is left to do, and return what happened."""
        self.timers.run_until_idle()
        notes, self._notes = self._notes, []
        return notes

    def pass_time(self, duration_ms: int) -> None:
        """Let time go by; every session that is there stays."""
        self.clock.advance(duration_ms)
        for client in (self.admin, *(node.client for node in self.nodes.values())):
            if client.is_open:
                client.heartbeat()
        for node in self.nodes.values():
            node.replicas.advance()
        self.timers.run_until_idle()

    # Brokers

    def start(self, broker_id: int) -> Node:
        """Start a broker from its disk."""
        assert broker_id not in self.nodes, f"broker {broker_id} runs"
        files = self._disks.get(broker_id)
        if files is None:
            # The directory of the logs is there before the first start.
            files = self._disks[broker_id] = MemoryFiles(clock=self.clock)
            files.make_dir(_LOG_DIR)
            files.sync_all()
        node = self.nodes[broker_id] = Node(self, broker_id, files)
        node.register()
        node.controller.start()
        self.timers.run_until_idle()
        return node

    def kill(self, broker_id: int, *, with_its_power: bool = False) -> None:
        """End a process, whose disk has all that was written, or with the power what was synced."""
        node = self._gone(broker_id)
        if with_its_power:
            self._disks[broker_id] = node.files.after_crash()

    def stop(self, broker_id: int) -> None:
        """Stop a broker cleanly, once the controller has taken its leaderships."""
        node = self.nodes[broker_id]
        request = message_class("ControlledShutdownRequest")(
            broker_id=broker_id, broker_epoch=node.epoch
        )
        response = self.active.controller.controlled_shutdown(request)
        self.timers.run_until_idle()
        for row in response.result().remaining_partitions:
            self.note(f"{broker_id}: still leads {row.topic_name}-{row.partition_index}")
        node.checkpoint()
        node.logs.stop()
        self._gone(broker_id)

    def _gone(self, broker_id: int) -> Node:
        node = self.nodes.pop(broker_id)
        if node.client.is_open:
            now(node.client.close())
        node.proposals.stop()
        node.controller.stop()
        self.timers.run_until_idle()
        return node

    def expire(self, broker_id: int) -> None:
        """Let the session of a broker end by its silence, which takes its timeout."""
        silent = self.nodes[broker_id].client
        self.clock.advance(TIMEOUT_MS + 1)
        for client in (self.admin, *(node.client for node in self.nodes.values())):
            if client is not silent:
                client.heartbeat()
        self.store.expire_sessions()
        self.timers.run_until_idle()

    def rejoin(self, broker_id: int) -> None:
        """Let a broker whose session has expired begin the next one, as its session keeper does."""
        node = self.nodes[broker_id]
        node.controller.session_expired()
        self.timers.run_until_idle()
        node.register()
        node.controller.session_began()

    def pass_on(self) -> None:
        """Deliver what was on its way to brokers that were cut off, and their proposals."""
        for node in list(self.nodes.values()):
            node.requests.pass_on()
        requested, self._requested = self._requested, []
        for node, ask in requested:
            if node.is_cut:
                self._requested.append((node, ask))
            elif self.nodes.get(node.broker_id) is node:
                ask()

    # The controller

    @property
    def active(self) -> Node:
        """The controller, the newest if an older one has not noticed."""
        active = [node for node in self.nodes.values() if node.controller.is_active]
        return max(active, key=lambda node: node.controller.epoch)

    def send_to_controller(self, node: Node, message: Callable[[int], Any]) -> Promise[Any]:
        """Bring a proposal to the controller, once its sender is not cut off."""
        response: Promise[Any] = Promise()
        request = message(_ALTER_PARTITION_VERSION)

        def ask() -> None:
            answer = self.active.controller.alter_partition(request, _ALTER_PARTITION_VERSION)
            answer.watch(lambda: response.keep(answer.result()))

        if node.is_cut:
            self._requested.append((node, ask))
        else:
            ask()
        return response

    # Topics

    def create_topic(
        self, topic: str, replicas: list[tuple[int, ...]], settings: dict[str, str]
    ) -> None:
        """Write what the admin path writes for a new topic."""
        self.min_isr[topic] = int(settings.get("min.insync.replicas", "1"))
        topic_id = uuid_text(SeededEntropy(len(topic)).random_bytes(15) + topic.encode()[-1:])
        partitions = {index: PartitionAssignment(ids) for index, ids in enumerate(replicas)}
        now(self.admin.create(topic_config_path(topic), encode_config(settings)))
        assignment = TopicAssignment(topic_id, partitions)
        now(self.admin.create(topic_path(topic), encode_topic(assignment)))

    def replication_config(self, topic: str) -> ReplicationConfig:
        """Return what a topic's in-sync sets go by."""
        return ReplicationConfig(self.settings.replica_lag_time_max_ms, self.min_isr[topic])

    def stored(self, partition: TopicPartition) -> PartitionStateNode:
        """Return leader and ISR as they stand in the store."""
        path = partition_state_path(partition)
        return decode_partition_state(now(self.admin.get(path))[0], path)


def listed(broker_ids: tuple[int, ...]) -> str:
    """Return broker ids as scripts show them."""
    return ",".join(map(str, broker_ids)) or "none"


def _raised(error: EngineError) -> None:
    raise error


async def _load_nothing(_topics: Any) -> None:
    """Leave topics with the settings of the stage."""
