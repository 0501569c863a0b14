"""Frames as a ZooKeeper client sends them, and answers without what differs from run to run."""

from __future__ import annotations

import struct
from typing import Any

from engine.host.memory import ManualClock, SeededEntropy
from engine.host.memory_network import MemoryConnection, MemoryNetwork, MemoryTimers
from engine.znode.memory_journal import MemoryJournal
from engine.znode.store import ZnodeStore
from engine.znode.zookeeper_server import ZookeeperServer

OPEN_ACL = struct.pack(">ii", 1, 31) + b"\0\0\0\x05world\0\0\0\x06anyone"


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack(">i", len(data)) + data


def texts(*values: str) -> bytes:
    return struct.pack(">i", len(values)) + b"".join(text(value) for value in values)


def buffer(data: bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def create_body(path: str, data: bytes | None = b"", flags: int = 0) -> bytes:
    return text(path) + buffer(data) + OPEN_ACL + struct.pack(">i", flags)


class Client:
    """One connection to the server of a `Served`."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self.connection = served.network.connect("h", served.port)
        self.received: list[bytes] = []
        self.closed: list[str] = []
        self.connection.on_frame = lambda frame: self.received.append(bytes(frame))
        self.connection.on_close = self.closed.append
        self.session_id = 0
        self.password = bytes(16)
        self._xid = 0

    def send(self, frame: bytes) -> list[bytes]:
        """Send a frame and return what has come since the last call."""
        self.connection.send([frame])
        return self.take()

    def take(self) -> list[bytes]:
        self._served.timers.run_until_idle()
        received, self.received = self.received, []
        return received

    def connect(
        self,
        session_id: int = 0,
        password: bytes = bytes(16),
        timeout_ms: int = 6000,
        seen: int = 0,
    ) -> int:
        """Begin a session; returns the timeout that was agreed on, 0 for a session that is over."""
        frame = struct.pack(">iqiq", 0, seen, timeout_ms, session_id) + buffer(password) + b"\0"
        (answer,) = self.send(frame)
        _, agreed, self.session_id = struct.unpack_from(">iiq", answer)
        self.password = answer[20:36]
        return int(agreed)

    def ask(self, type_: int, body: bytes = b"") -> tuple[int, bytes]:
        """Send a request; returns the error's code and the body of its answer."""
        self._xid += 1
        *_, answer = self.send(struct.pack(">ii", self._xid, type_) + body)
        xid, _, code = struct.unpack_from(">iqi", answer)
        assert xid == self._xid
        return code, answer[16:]


class Served:
    """A store in memory, listening."""

    def __init__(self) -> None:
        self.clock = ManualClock(wall_ms=1_000_000)
        self.timers = MemoryTimers(self.clock)
        self.network = MemoryNetwork(self.timers)
        self.journal = MemoryJournal()
        self.entropy = SeededEntropy()
        self._start()

    def _start(self) -> None:
        self.store = ZnodeStore(self.journal, self.clock)
        self.server = ZookeeperServer(self.store, self.entropy)
        self.port = self.server.listen(self.network, "h", 0).port

    def restart(self) -> None:
        """End the process of the store, and start another on its journal."""
        self.server.close()
        self.timers.run_until_idle()
        self._start()

    def client(self) -> Client:
        return Client(self)

    def session(self, timeout_ms: int = 6000) -> Client:
        client = Client(self)
        assert client.connect(timeout_ms=timeout_ms) > 0
        return client


def told(frame: bytes) -> tuple[int, int, int, str]:
    """Return xid, type, state and path of a notification."""
    xid, _, _, type_, state, length = struct.unpack_from(">iqiiii", frame)
    return xid, type_, state, frame[28 : 28 + length].decode()


class Masked:
    """Reads a body as its type has it, without transactions, times and owners."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, layout: str) -> tuple[Any, ...]:
        found = struct.unpack_from(layout, self._data, self._at)
        self._at += struct.calcsize(layout)
        return found

    def buffer(self) -> bytes | None:
        (length,) = self.take(">i")
        if length == -1:
            return None
        found = self._data[self._at : self._at + length]
        self._at += length
        return found

    def texts(self) -> list[bytes | None]:
        return sorted(self.buffer() or b"" for _ in range(self.take(">i")[0]))

    def stat(self) -> tuple[Any, ...]:
        found = self.take(">qqqqiiiqiiq")
        return (*found[4:7], found[7] != 0, *found[8:10])

    def acls(self) -> list[Any]:
        count = self.take(">i")[0]
        return [(self.take(">i"), self.buffer(), self.buffer()) for _ in range(count)]

    def multi(self) -> list[Any]:
        found: list[Any] = []
        while True:
            head = self.take(">i?i")
            found.append((head, self.body(head[0])))
            if head[1]:
                return found

    def body(self, type_: int) -> Any:
        parts = {
            -1: () if self._at == len(self._data) else (lambda: self.take(">i"),),
            1: (self.buffer,),
            3: (self.stat,),
            4: (self.buffer, self.stat),
            5: (self.stat,),
            6: (self.acls, self.stat),
            8: (self.texts,),
            9: (self.buffer,),
            12: (self.texts, self.stat),
            14: (self.multi,),
            15: (self.buffer, self.stat),
            22: (self.multi,),
            103: (self.texts,),
        }.get(type_, ())
        return [part() for part in parts]

    def rest(self) -> bytes:
        return self._data[self._at :]


def masked(frame: bytes, type_: int) -> Any:
    """Return what an answer to a request of a type says."""
    xid, _, code = struct.unpack_from(">iqi", frame)
    if xid == -1:
        return told(frame)
    body = Masked(frame[16:])
    found = [] if code else body.body(type_)
    assert body.rest() == b""
    return xid, code, found


def close_quietly(connection: MemoryConnection) -> None:
    connection.close("test")
