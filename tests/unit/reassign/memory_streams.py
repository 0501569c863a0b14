"""A client that waits, on a cluster in memory: its waiting is what lets time go by."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Sequence

from engine.client.blocking import KafkaClient
from engine.client.settings import Address
from engine.host.ports import Buffer, Connection
from engine.host.streams import Stream, StreamEvent, TlsSettings
from tests.client_session import FixedEntropy, split_frames
from tests.unit.broker.memory_cluster import MemoryCluster


class _MemoryStream:
    def __init__(self, owner: MemoryStreams, connection: Connection) -> None:
        self._owner = owner
        self._connection = connection
        self._unread = bytearray()
        self.is_closed = False
        connection.on_frame = self._received
        connection.on_close = self._ended

    def send(self, buffers: Sequence[Buffer]) -> None:
        for part in buffers:
            self._unread += part
        for frame in split_frames(self._unread):
            self._connection.send([frame])

    def close(self) -> None:
        self.is_closed = True
        self._connection.close("the client closes")

    def _received(self, frame: Buffer) -> None:
        framed = struct.pack(">i", len(frame)) + bytes(frame)
        self._owner.events.append(StreamEvent(self, "received", framed))

    def _ended(self, reason: str) -> None:
        self._owner.events.append(StreamEvent(self, "closed", reason=reason))


class MemoryStreams:
    """Streams over the network of a cluster in memory; `on_wait` runs whenever time goes by."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self._cluster = cluster
        self.events: deque[StreamEvent] = deque()
        self.on_wait: Callable[[], None] = lambda: None

    def connect(self, host: str, port: int, tls: TlsSettings | None = None) -> Stream:
        connection = self._cluster.network.connect(host, port)
        stream = _MemoryStream(self, connection)
        self.events.append(StreamEvent(stream, "opened"))
        return stream

    def wait(self, timeout_ms: int) -> list[StreamEvent]:
        self._cluster.timers.run_until_idle()
        if not self.events:
            left_ms = timeout_ms
            while not self.events and left_ms > 0:
                self._cluster.pass_time(100)
                self.on_wait()
                left_ms -= 100
        found = [event for event in self.events if not event.stream.is_closed]  # type: ignore[attr-defined]
        self.events.clear()
        return found


def client_of(cluster: MemoryCluster, streams: MemoryStreams | None = None) -> KafkaClient:
    """Return a client of a cluster in memory."""
    addresses = [Address("here", broker.ports["PLAINTEXT"]) for broker in cluster.brokers.values()]
    return KafkaClient(
        addresses,
        streams=streams or MemoryStreams(cluster),
        clock=cluster.clock,
        entropy=FixedEntropy(),
    )
