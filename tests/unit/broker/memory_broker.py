"""A whole broker in memory: its disk, its clock, its network and its metadata store."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from engine.api.dispatch import ApiRow
from engine.broker.broker import Broker
from engine.broker.host import BrokerHost
from engine.config.settings import BrokerSettings
from engine.host.coroutine import drive
from engine.host.memory import ManualClock, MemoryFiles, SeededEntropy
from engine.host.memory_network import (
    MemoryConnection,
    MemoryNetwork,
    MemoryTimers,
    MemoryWorkers,
)
from engine.wire.codec import message_codec
from engine.wire.headers import api, encode_request_header, response_header_version
from engine.wire.structs import message_class
from engine.znode.embedded import EmbeddedZnodeClient
from engine.znode.memory_journal import MemoryJournal
from engine.znode.model import Create, SetData
from engine.znode.paths import broker_path
from engine.znode.store import ZnodeStore
from engine.znode.values import BrokerRegistration, encode_broker

LOG_DIR = "/data"
_SESSION_MS = 18_000
_CORRELATION_ID = 77


def _lock(files: MemoryFiles) -> Callable[[str], Callable[[], None]]:
    def lock(path: str) -> Callable[[], None]:
        files.open(path, write=True, create=True)
        return lambda: None

    return lock


class MemoryBroker:
    """Broker 1, started; `files` and `store` may be those of an earlier life."""

    def __init__(
        self, files: MemoryFiles | None = None, store: ZnodeStore | None = None, **settings: str
    ) -> None:
        self.clock = ManualClock()
        self.timers = MemoryTimers(self.clock)
        self.files = files or MemoryFiles(clock=self.clock)
        self.store = store or ZnodeStore(MemoryJournal(), self.clock)
        self.network = MemoryNetwork(self.timers)
        #: What handlers failed at.
        self.faults: list[tuple[str, Exception]] = []
        self.fatal: list[str] = []
        host = BrokerHost(
            self.clock,
            self.files,
            self.network,
            self.timers,
            SeededEntropy(7),
            _lock(self.files),
            lambda: "here",
            lambda _count: MemoryWorkers(self.timers),
            work_ns=lambda: self.clock.monotonic_ms() * 1_000_000,
        )
        given = {name.replace("_", "."): text for name, text in settings.items()}
        self._settings = BrokerSettings(
            {
                "broker.id": "1",
                "listeners": "PLAINTEXT://here:0",
                "log.dirs": LOG_DIR,
                "zookeeper.connect": "here:2181",
                **given,
            }
        )
        self._host = host

    def set(self, name: str, text: str) -> None:
        """Set one more thing before the start."""
        static = {**self._settings.static, name: text}
        self._settings = BrokerSettings(static)

    def open(self) -> MemoryBroker:
        """Open it; what it is told comes on a later turn."""
        znodes = EmbeddedZnodeClient(self.store, _SESSION_MS)
        opening = Broker.open(self._settings, self._host, znodes, {}, on_fatal=self.fatal.append)
        self.broker = drive(opening).result()
        self.broker.server.events = self.broker.server.events._replace(on_fault=self._faulty)
        return self

    def start(self) -> MemoryBroker:
        """Open it and let it hear of everything."""
        self.open()
        self.timers.run_until_idle()
        return self

    def _faulty(self, row: ApiRow, error: Exception) -> None:
        self.faults.append((row.name, error))

    def stop(self) -> None:
        """Stop it cleanly."""
        drive(self.broker.stop()).result()

    def pass_time(self, duration_ms: int) -> None:
        """Let time go by."""
        self.clock.advance(duration_ms)
        self.timers.run_until_idle()

    def join(self, broker_id: int) -> None:
        """Let the cluster know of another broker, which nobody reaches."""
        session = EmbeddedZnodeClient(self.store, 1 << 30)
        drive(session.connect()).result()
        endpoint = f"PLAINTEXT://there{broker_id}:9092"
        data = encode_broker(
            BrokerRegistration((endpoint,), {"PLAINTEXT": "PLAINTEXT"}, "there", 9092, 1)
        )
        path = broker_path(broker_id)
        drive(session.multi((Create(path, ephemeral=True), SetData(path, data)))).result()
        self.timers.run_until_idle()

    def connect(self) -> MemoryClient:
        """Return a new client."""
        return MemoryClient(self)


class MemoryClient:
    """One connection to a broker in memory."""

    def __init__(self, stage: MemoryBroker) -> None:
        self._stage = stage
        self.frames: list[bytes] = []
        self.connection: MemoryConnection = stage.network.connect(
            "here", stage.broker.ports["PLAINTEXT"]
        )
        self.connection.on_frame = lambda frame: self.frames.append(bytes(frame))

    @property
    def is_closed(self) -> bool:
        """Return whether the broker ended the connection."""
        return self.connection.is_closed

    def send(self, frame: bytes) -> None:
        """Send a frame of any bytes and let the broker work."""
        self.connection.send([frame])
        self._stage.timers.run_until_idle()

    def ask(self, name: str, version: int, /, **fields: Any) -> Any:
        """Send a request and return its decoded answer, None while there is none."""
        self.send(request_frame(name, version, message_class(f"{name}Request")(**fields)))
        return self.answer(name, version)

    def answer(self, name: str, version: int) -> Any:
        """Return the next answer, None while there is none."""
        if not self.frames:
            return None
        frame = self.frames.pop(0)
        assert struct.unpack_from(">i", frame) == (_CORRELATION_ID,)
        start = 4 + response_header_version(api(name).key, version)
        return message_codec(f"{name}Response", version).decode(frame[start:])


def request_frame(name: str, version: int, request: Any) -> bytes:
    """Return the bytes of a request with its header."""
    head = encode_request_header(api(name).key, version, _CORRELATION_ID, "tester")
    return head + message_codec(f"{name}Request", version).encode(request)
