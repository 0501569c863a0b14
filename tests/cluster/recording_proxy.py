"""Stands between clients and the brokers of a cluster, and notes every request.

Each broker has a listener here; Metadata and DescribeCluster name these in place of the brokers'.
"""

from __future__ import annotations

import socket
import struct
import threading
from types import TracebackType
from typing import Any, NamedTuple

from engine.wire.codec import message_codec
from engine.wire.headers import api, read_request_header, response_header_version

_NAMING = ("Metadata", "DescribeCluster")


class Recorded(NamedTuple):
    """A request that a client has sent."""

    api_name: str
    message: Any
    client_id: str | None


class RecordingProxy:
    """Listens on ports of its own until it is closed."""

    def __init__(self, addresses: list[str]) -> None:
        self.recorded: list[Recorded] = []
        self._listeners: list[socket.socket] = []
        self._ports: dict[int, int] = {}
        for address in addresses:
            host, _, port = address.rpartition(":")
            listener = socket.create_server((host, 0))
            self._listeners.append(listener)
            self._ports[int(port)] = listener.getsockname()[1]
            self._begin(self._accept, listener, (host, int(port)))

    def __enter__(self) -> RecordingProxy:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for listener in self._listeners:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()

    @property
    def bootstrap(self) -> str:
        """Return the address of the first broker, as it is here."""
        return f"127.0.0.1:{self._listeners[0].getsockname()[1]}"

    @staticmethod
    def _begin(call: Any, *args: Any) -> None:
        threading.Thread(target=call, args=args, daemon=True).start()

    def _accept(self, listener: socket.socket, address: tuple[str, int]) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            self._begin(self._serve, client, address)

    def _serve(self, client: socket.socket, address: tuple[str, int]) -> None:
        with client, socket.create_connection(address) as broker:
            while (frame := _frame(client)) is not None:
                header = read_request_header(memoryview(frame))
                key, version, _, client_id, position = header
                name = api(key).name
                message, _ = message_codec(f"{name}Request", version).decode_at(frame, position)
                self.recorded.append(Recorded(name, message, client_id))
                _send(broker, frame)
                answer = _frame(broker)
                if answer is None:
                    return
                if name in _NAMING:
                    answer = self._renamed(name, key, version, answer)
                _send(client, answer)

    def _renamed(self, name: str, key: int, version: int, frame: bytes) -> bytes:
        codec = message_codec(f"{name}Response", version)
        # The correlation id, and the tags of a flexible header.
        start = 4 + response_header_version(key, version)
        message = codec.decode(frame[start:])
        for broker in message.brokers:
            broker.port = self._ports[broker.port]
        return frame[:start] + codec.encode(message)


def _frame(peer: socket.socket) -> bytes | None:
    head = _exactly(peer, 4)
    return None if head is None else _exactly(peer, struct.unpack(">i", head)[0])


def _exactly(peer: socket.socket, count: int) -> bytes | None:
    content = bytearray()
    while len(content) < count:
        try:
            more = peer.recv(count - len(content))
        except OSError:
            return None
        if not more:
            return None
        content += more
    return bytes(content)


def _send(peer: socket.socket, frame: bytes) -> None:
    peer.sendall(struct.pack(">i", len(frame)) + frame)
