"""A whole broker in memory, and a client of it that speaks messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.broker.broker import Broker
from engine.broker.controller_channel import Serve
from engine.broker.host import BrokerHost
from engine.config.settings import BrokerSettings
from engine.host.coroutine import drive
from engine.host.memory import ManualClock, MemoryFiles, SeededEntropy
from engine.host.memory_network import MemoryNetwork, MemoryTimers
from engine.wire.codec import message_codec
from engine.wire.headers import api, read_response_header, request_header_bytes
from engine.wire.structs import message_class
from engine.znode.embedded import EmbeddedZnodeClient
from engine.znode.sqlite_journal import IN_MEMORY, SqliteJournal
from engine.znode.store import ZnodeStore

_SESSION_TIMEOUT_MS = 18_000


def no_lock(_path: str) -> Callable[[], None]:
    """Lock nothing: there is one process."""
    return lambda: None


class BrokerStage:
    """A broker of id 1 with a controller; nothing moves but by the calls of a test."""

    def __init__(self, files: MemoryFiles | None = None, **settings: str) -> None:
        self.clock = ManualClock()
        self.timers = MemoryTimers(self.clock)
        self.network = MemoryNetwork(self.timers)
        self.files = files or MemoryFiles()
        self.entropy = SeededEntropy(7)
        self.store = ZnodeStore(SqliteJournal(IN_MEMORY), self.clock)
        self.settings = {
            "broker.id": "1",
            "listeners": "PLAINTEXT://here:9092",
            "log.dirs": "/data",
            "offsets.topic.replication.factor": "1",
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
        self.peers: dict[int, Serve] = {}
        self.broker = self.new_broker()

    def new_broker(self) -> Broker:
        """Return a broker that is not started, on the same files and store."""
        host = BrokerHost(
            self.clock,
            self.files,
            self.network,
            self.timers,
            self.entropy,
            no_lock,
            lambda: "this-host",
        )
        client = EmbeddedZnodeClient(self.store, _SESSION_TIMEOUT_MS)
        return Broker(BrokerSettings(self.settings), host, client, self.peers)

    def start(self) -> BrokerStage:
        """Start the broker, and let the controller finish."""
        drive(self.broker.start()).result()
        self.timers.run_until_idle()
        return self

    def stop(self) -> None:
        """Stop the broker cleanly."""
        done = drive(self.broker.stop())
        self.timers.run_until_idle()
        done.result()

    def pass_time(self, duration_ms: int) -> None:
        """Let time pass, and what is due run."""
        self.clock.advance(duration_ms)
        self.timers.run_until_idle()

    def client(self) -> StageClient:
        """Return a new connection to the broker."""
        return StageClient(self)


class StageClient:
    """One connection; requests are sent and answers read by hand."""

    def __init__(self, stage: BrokerStage) -> None:
        self._stage = stage
        self._number = 0
        self.frames: list[bytes] = []
        self.closed: list[str] = []
        self.connection = stage.network.connect("here", stage.broker.ports["PLAINTEXT"])
        self.connection.on_frame = lambda frame: self.frames.append(bytes(frame))
        self.connection.on_close = self.closed.append

    def ask(self, name: str, version: int, **fields: Any) -> Any:
        """Send a request and return its answer; None if none has come."""
        self.send(name, version, message_class(f"{name}Request")(**fields))
        if not self.frames:
            return None
        return self.answer(name, version)

    def send(self, name: str, version: int, request: Any) -> None:
        """Send a request message and let everything that is due run."""
        self._number += 1
        head = request_header_bytes(api(name).key, version, self._number, "stage")
        body = message_codec(f"{name}Request", version).encode(request)
        self.connection.send([head, body])
        self._stage.timers.run_until_idle()

    def answer(self, name: str, version: int) -> Any:
        """Take the first answer that has come."""
        frame = self.frames.pop(0)
        _, position = read_response_header(frame, api(name).key, version)
        return message_codec(f"{name}Response", version).decode(frame[position:])
