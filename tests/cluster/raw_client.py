"""A client of one socket that sends what it is told, right or wrong."""

from __future__ import annotations

import socket
import struct
from typing import Any

from engine.wire.codec import message_codec
from engine.wire.headers import api, encode_request_header, response_header_version
from engine.wire.structs import message_class

_CORRELATION_ID = 77


class RawClient:
    """One connection to a broker; every wait ends after `timeout_s` with TimeoutError."""

    def __init__(self, address: str, *, timeout_s: float = 10.0) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout_s)

    def __enter__(self) -> RawClient:
        return self

    def __exit__(self, *_error: object) -> None:
        self.socket.close()

    def ask(self, name: str, version: int, /, **fields: Any) -> Any:
        """Send a request and return its decoded answer; raises ConnectionError without one."""
        request = message_class(f"{name}Request")(**fields)
        self.send(name, version, message_codec(f"{name}Request", version).encode(request))
        frame = self.frame()
        if frame is None:
            raise ConnectionError("closed by the broker")
        assert struct.unpack_from(">i", frame) == (_CORRELATION_ID,)
        start = 4 + response_header_version(api(name).key, version)
        return message_codec(f"{name}Response", version).decode(frame[start:])

    def send(self, name: str, version: int, body: bytes) -> None:
        """Send a body of any bytes behind a right header."""
        self.send_frame(
            encode_request_header(api(name).key, version, _CORRELATION_ID, "raw") + body
        )

    def send_frame(self, frame: bytes) -> None:
        """Send any bytes behind their length."""
        self.socket.sendall(struct.pack(">i", len(frame)) + frame)

    def frame(self) -> bytes | None:
        """Return the next frame, None when the broker closed the connection."""
        head = self._exactly(4)
        return None if head is None else self._exactly(struct.unpack(">i", head)[0])

    def _exactly(self, count: int) -> bytes | None:
        found = bytearray()
        while len(found) < count:
            try:
                more = self.socket.recv(count - len(found))
            except ConnectionResetError:
                return None
            if not more:
                return None
            found += more
        return bytes(found)
