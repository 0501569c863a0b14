"""One broker of ours in memory, among recorded ones; see `tests.broker_sessions`."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any, NamedTuple

from engine.broker.broker import Broker
from engine.broker.host import BrokerHost
from engine.broker.registration import create_persistent_paths, register
from engine.config.settings import BrokerSettings
from engine.host.coroutine import drive
from engine.host.memory import ManualClock, MemoryFiles, SeededEntropy
from engine.host.memory_network import (
    MemoryConnection,
    MemoryNetwork,
    MemoryTimers,
    MemoryWorkers,
)
from engine.host.ports import Connection
from engine.kafka_errors import UNKNOWN_LEADER_EPOCH, UNKNOWN_TOPIC_ID
from engine.wire.codec import message_codec
from engine.wire.headers import read_request_header
from engine.znode.embedded import EmbeddedZnodeClient
from engine.znode.memory_journal import MemoryJournal
from engine.znode.paths import CLUSTER, CLUSTER_ID, CONTROLLER, topic_config_path
from engine.znode.store import ZnodeStore
from engine.znode.values import BrokerRegistration, encode_cluster_id, encode_config
from tests.broker_sessions import (
    BROKER_IDS,
    CONTROLLER_ID,
    SETTINGS,
    TOPIC,
    TOPIC_CONFIGS,
    Event,
    Frame,
    differences,
    read_answer,
    read_ask,
)
from tests.unit.host.listening import Told

_LOG_DIR = "/data"
_SESSION_MS = 1 << 30
#: How long after a recorded event ours may come.
_LATE_MS = 6000
_STEP_MS = 10
_PAD = "/pad"
_ID_BYTES = 16
_CREATE_TOPICS = 7
#: Fields that ours fills in and Kafka with ZooKeeper does not heed: that an update is a full one.
_OURS_ALONE = frozenset({("UpdateMetadata", "type")})
#: A session, and the node of its broker.
_ZXIDS_OF_A_START = 2


class Requested(NamedTuple):
    """A request of ours to a recorded broker."""

    connection: Connection
    frame: bytes


class PlayedBroker:
    """Broker `broker_id`, with the recorded events as all that it sees of the world."""

    def __init__(self, broker_id: int, events: tuple[Event, ...]) -> None:
        self.broker_id = broker_id
        self.events = events
        self.differences: list[str] = []
        self.compared_count = 0
        self.clock = ManualClock(wall_ms=1_700_000_000_000)
        self.timers = MemoryTimers(self.clock)
        self.network = MemoryNetwork(self.timers)
        self.store = ZnodeStore(MemoryJournal(), self.clock)
        self.fatal: list[str] = []
        self.broker: Broker | None = None
        self._files = MemoryFiles(clock=self.clock)
        self._admin = EmbeddedZnodeClient(self.store, _SESSION_MS)
        # Connections to ours by their recorded number, and what came back on each.
        self._incoming: dict[int, MemoryConnection] = {}
        self._answers: dict[int, deque[bytes]] = defaultdict(deque)
        self._versions: dict[tuple[int, bytes], int] = {}
        # What ours asks, by the broker and the API; and where recorded answers are to go.
        self._requested: dict[tuple[int, str], deque[Requested]] = defaultdict(deque)
        self._to_answer: dict[tuple[int, bytes], Requested] = {}
        #: Fetch sessions that ours has given, by the recorded ones.
        self._sessions: dict[int, int] = {}
        #: The recorded epoch of the session with a leader at which ours began.
        self._session_starts: dict[int, int] = defaultdict(int)
        self._ports = _ports_of(events)
        self._epochs = deque(_epochs_of(broker_id, events))
        self._others = OtherBrokers(self.store, self.timers, events)
        self._prepare()

    def _prepare(self) -> None:
        admin = self._admin
        drive(admin.connect()).result()
        drive(create_persistent_paths(admin)).result()
        drive(admin.create(CLUSTER)).result()
        drive(admin.create(CLUSTER_ID, encode_cluster_id("recorded"))).result()
        drive(admin.create(topic_config_path(TOPIC), encode_config(dict(TOPIC_CONFIGS)))).result()
        drive(admin.create(_PAD, b"")).result()
        if self.broker_id != CONTROLLER_ID:
            node = b'{"version":2,"brokerid":%d,"timestamp":"1"}' % CONTROLLER_ID
            drive(admin.create(CONTROLLER, node)).result()
        for broker_id in BROKER_IDS:
            if broker_id != self.broker_id:
                self._listen(broker_id)

    def _listen(self, broker_id: int) -> None:
        def on_connect(connection: Connection) -> None:
            connection.on_frame = lambda frame: self._is_requested(
                broker_id, connection, bytes(frame)
            )

        self.network.listen("127.0.0.1", self._ports[broker_id], on_connect, Told().options())

    def _is_requested(self, broker_id: int, connection: Connection, frame: bytes) -> None:
        requested = read_ask(frame)
        if requested.api_name == "ApiVersions":
            recorded = next(
                event.frame
                for event in self.events
                if event.kind == "answer" and event.api_name == "ApiVersions"
            )
            connection.send([frame[4:8] + recorded[4:]])
            return
        self._requested[broker_id, requested.api_name].append(Requested(connection, frame))

    # Playing

    def play(self) -> None:
        """Play all events."""
        for event in self.events:
            self._pass_time_to(event.at_ms)
            if self.broker_id == CONTROLLER_ID:
                self._others.see(event)
            if event.broker_id == self.broker_id:
                self._on_own(event)
            elif event.asker == self.broker_id:
                self._on_other(event)
            if self.fatal:
                self.differences.append(f"{event.at_ms}: ours ends: {self.fatal}")
                return

    def _pass_time_to(self, at_ms: int) -> None:
        while self.clock.monotonic_ms() < at_ms:
            self._tick()

    def _tick(self) -> None:
        self.clock.advance(_STEP_MS)
        self.timers.run_until_idle()

    def _wait_for(self, seen: Callable[[], bool]) -> bool:
        self.timers.run_until_idle()
        end_ms = self.clock.monotonic_ms() + _LATE_MS
        while not seen() and self.clock.monotonic_ms() < end_ms:
            self._tick()
        return seen()

    def _on_own(self, event: Event) -> None:
        if event.kind == "start":
            self._start()
        elif event.kind == "SIGKILL":
            self._kill()
        elif event.kind == "SIGTERM":
            assert self.broker is not None
            drive(self.broker.stop())
            self.timers.run_until_idle()
        elif event.kind == "closed":
            incoming = self._incoming.pop(event.connection, None)
            if incoming is not None:
                incoming.close("recorded")
                self.timers.run_until_idle()
        elif event.asker == self.broker_id:
            # What it says to itself needs no connection here.
            return
        elif event.kind == "ask":
            self._ask(event)
        elif event.kind == "answer":
            self._compare_answer(event)

    def _ask(self, event: Event) -> None:
        connection = self._incoming.get(event.connection)
        if connection is None:
            connection = self.network.connect("127.0.0.1", self._ports[self.broker_id])
            answers = self._answers[event.connection]
            connection.on_frame = lambda frame: answers.append(bytes(frame))
            self._incoming[event.connection] = connection
        self._versions[event.connection, event.frame[4:8]] = read_ask(event.frame).version
        connection.send([self._in_our_session(event)])
        self.timers.run_until_idle()

    def _in_our_session(self, event: Event) -> bytes:
        """Return a request with the fetch session that ours has given in place of the recorded."""
        requested = read_ask(event.frame)
        if requested.api_name != "Fetch" or requested.message.session_id == 0:
            return event.frame
        requested.message.session_id = self._sessions[requested.message.session_id]
        head = event.frame[: read_request_header(event.frame).body_position]
        return head + message_codec("FetchRequest", requested.version).encode(requested.message)

    def _compare_answer(self, event: Event) -> None:
        answers = self._answers[event.connection]
        if not self._wait_for(lambda: bool(answers)):
            self._differ(event, "ours does not answer")
            return
        ours = answers.popleft()
        version = self._versions[event.connection, event.frame[:4]]
        if ours != event.frame and event.api_name != "ApiVersions":
            recorded = read_answer(event.frame, event.api_name, version)
            answer = read_answer(ours, event.api_name, version)
            if event.api_name == "Fetch":
                self._take_session(recorded.message, answer.message)
                _let_ours_hear_first(recorded.message, answer.message)
            self._compare(event, recorded, answer)
        self.compared_count += 1

    def _take_session(self, recorded: Any, ours: Any) -> None:
        """Note which fetch session stands for a recorded one; ids are drawn at random."""
        if recorded.session_id and ours.session_id:
            kept = self._sessions.setdefault(recorded.session_id, ours.session_id)
            if kept == ours.session_id:
                ours.session_id = recorded.session_id

    def _follow_session(self, leader_id: int, recorded: Any, ours: Any) -> None:
        """Let our session with a leader begin again, which it does after its log was cut."""
        if ours.session_epoch == 0:
            self._session_starts[leader_id] = recorded.session_epoch
            ours.session_id = recorded.session_id
        ours.session_epoch += self._session_starts[leader_id]

    def _on_other(self, event: Event) -> None:
        """Compare what ours asks; bring it what was answered."""
        key = event.connection, event.frame[4:8] if event.kind == "ask" else event.frame[:4]
        if event.kind == "closed" or event.api_name == "ApiVersions":
            return
        if event.kind == "ask":
            requested = self._requested[event.broker_id, event.api_name]
            if not self._wait_for(lambda: bool(requested)):
                self._differ(event, "ours does not ask")
                return
            ours = requested.popleft()
            if ours.frame != event.frame:
                recorded, request = read_ask(event.frame), read_ask(ours.frame)
                if event.api_name == "Fetch":
                    self._follow_session(event.broker_id, recorded.message, request.message)
                if event.api_name == "AlterPartition":
                    _keep_requested(recorded.message, request.message)
                self._compare(event, recorded, request)
            self.compared_count += 1
            self._to_answer[key] = ours
        elif event.kind == "answer" and key in self._to_answer:
            requested_by_ours = self._to_answer.pop(key)
            requested_by_ours.connection.send([requested_by_ours.frame[4:8] + event.frame[4:]])
            self.timers.run_until_idle()

    def _compare(self, event: Event, recorded: Frame, ours: Frame) -> None:
        for difference in differences(recorded, ours):
            if (event.api_name, difference.partition(":")[0]) not in _OURS_ALONE:
                self._differ(event, difference)

    def _differ(self, event: Event, text: str) -> None:
        where = f"{event.at_ms} {event.kind} {event.api_name} of {event.broker_id}"
        self.differences.append(f"{where}: {text}")

    # Its lives

    def _start(self) -> None:
        port = self._ports[self.broker_id]
        settings = BrokerSettings(
            {
                "broker.id": str(self.broker_id),
                "listeners": f"PLAINTEXT://127.0.0.1:{port}",
                "log.dirs": _LOG_DIR,
                "zookeeper.connect": "127.0.0.1:2181",
                **SETTINGS,
            }
        )
        host = BrokerHost(
            self.clock,
            self._files,
            self.network,
            self.timers,
            RecordedIds(self.broker_id, self.events),
            self._lock,
            lambda: "127.0.0.1",
            lambda _count: MemoryWorkers(self.timers),
        )
        epoch = self._epochs.popleft()
        pass_zxids_to(self._admin, self.store, epoch - _ZXIDS_OF_A_START)
        session = EmbeddedZnodeClient(self.store, _SESSION_MS)
        opening = Broker.open(settings, host, session, {}, on_fatal=self.fatal.append)
        self._session = session
        self.timers.run_until_idle()
        self.broker = drive(opening).result()
        assert self.broker.epoch == epoch, (self.broker.epoch, epoch)
        self.timers.run_until_idle()

    def _lock(self, path: str) -> Callable[[], None]:
        self._files.open(path, write=True, create=True)
        return lambda: None

    def _kill(self) -> None:
        broker, self.broker = self.broker, None
        assert broker is not None
        self._files = self._files.after_crash(kept_changes=self._files.unsynced_changes())
        broker.host.timers.stop()  # type: ignore[attr-defined]
        broker.server.close("killed")
        broker.deadlines.stop()
        self.store.close_session(self._session.session_id)
        self.timers.run_until_idle()
        self._requested.clear()
        self._incoming.clear()


def _let_ours_hear_first(recorded: Any, ours: Any) -> None:
    """Leave out partitions of which the recorded leader had not heard yet.

    It worked on the order to lead and on the fetch at once; ours does one after the other.
    """
    unheard = {
        (topic.topic_id, row.partition_index)
        for topic in recorded.responses
        for row in topic.partitions
        if row.error_code in (UNKNOWN_LEADER_EPOCH, UNKNOWN_TOPIC_ID)
    }
    for topic in (*recorded.responses, *ours.responses):
        topic.partitions = [
            row for row in topic.partitions if (topic.topic_id, row.partition_index) not in unheard
        ]


class RecordedIds(SeededEntropy):
    """Draws the ids of topics that the recorded controller drew."""

    def __init__(self, seed: int, events: tuple[Event, ...]) -> None:
        super().__init__(seed)
        self._ids = deque(
            topic.topic_id
            for event in events
            if (event.kind, event.api_name) == ("answer", "CreateTopics")
            for topic in read_answer(event.frame, event.api_name, _CREATE_TOPICS).message.topics
        )

    def random_bytes(self, length: int) -> bytes:
        """Return an id, or other bytes."""
        is_id = length == _ID_BYTES and bool(self._ids)
        return self._ids.popleft() if is_id else super().random_bytes(length)


class OtherBrokers:
    """The nodes of the recorded brokers, which come and go when their controller sees it."""

    def __init__(self, store: ZnodeStore, timers: MemoryTimers, events: tuple[Event, ...]) -> None:
        self._store = store
        self._timers = timers
        self._epochs = {id_: deque(_epochs_of(id_, events)) for id_ in BROKER_IDS}
        self._ports = _ports_of(events)
        self._sessions: dict[int, EmbeddedZnodeClient] = {}
        self._stopping: set[int] = set()
        self._coming: list[int] = []
        self._going: list[int] = []

    def see(self, event: Event) -> None:
        """Note who starts and ends; with the controller's next order it has seen them."""
        if event.broker_id != CONTROLLER_ID and event.kind == "start":
            self._coming.append(event.broker_id)
        elif event.kind == "SIGTERM":
            self._stopping.add(event.broker_id)
        elif self._is_end(event):
            self._stopping.discard(event.broker_id)
            self._going.append(event.broker_id)
        elif event.kind == "ask" and event.asker == CONTROLLER_ID:
            for broker_id in self._going:
                drive(self._sessions.pop(broker_id).close()).result()
            for broker_id in self._coming:
                self._register(broker_id)
            self._coming.clear()
            self._going.clear()
            self._timers.run_until_idle()

    def _is_end(self, event: Event) -> bool:
        """Return whether a session ends: one that is stopped closes its connections before."""
        if event.kind == "gone":
            return event.broker_id in self._sessions and event.broker_id not in self._going
        is_closed = event.kind == "closed" and event.asker == CONTROLLER_ID
        return is_closed and event.broker_id in self._stopping

    def _register(self, broker_id: int) -> None:
        session = self._sessions[broker_id] = EmbeddedZnodeClient(self._store, _SESSION_MS)
        epoch = self._epochs[broker_id].popleft()
        drive(session.connect()).result()
        pass_zxids_to(session, self._store, epoch - 1)
        endpoint = f"PLAINTEXT://127.0.0.1:{self._ports[broker_id]}"
        told = BrokerRegistration((endpoint,), {"PLAINTEXT": "PLAINTEXT"}, "127.0.0.1", 9, 1)
        assert drive(register(session, broker_id, told)).result() == epoch


def pass_zxids_to(client: EmbeddedZnodeClient, store: ZnodeStore, zxid: int) -> None:
    """Write until a store has come to a transaction."""
    assert store.zxid <= zxid
    while store.zxid < zxid:
        drive(client.set(_PAD, b"")).result()


def _keep_requested(recorded: Any, ours: Any) -> None:
    """Leave out partitions that are not in the recorded request: ours sends one for many.

    The answer lacks them, and they are asked for again, as the recorded broker does then.
    """
    indexes = {row.partition_index for topic in recorded.topics for row in topic.partitions}
    for topic in ours.topics:
        topic.partitions = [row for row in topic.partitions if row.partition_index in indexes]


def _ports_of(events: tuple[Event, ...]) -> dict[int, int]:
    """Return where brokers listen, as a controller told."""
    ports: dict[int, int] = {}
    for event in events:
        if event.kind == "ask" and event.api_name == "UpdateMetadata":
            for row in read_ask(event.frame).message.live_brokers:
                ports[row.id] = row.endpoints[0].port
    return ports


def _epochs_of(broker_id: int, events: tuple[Event, ...]) -> list[int]:
    """Return the epochs of a broker's lives, as a controller knew them."""
    epochs: dict[int, None] = {}
    for event in events:
        if (event.kind, event.api_name, event.broker_id) == ("ask", "UpdateMetadata", broker_id):
            epochs[read_ask(event.frame).message.broker_epoch] = None
    return list(epochs)
