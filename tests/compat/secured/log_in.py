"""The beginning of a connection by PLAIN."""

from __future__ import annotations

import socket
import struct

from engine.wire.codec import message_codec
from engine.wire.headers import api, encode_request_header
from engine.wire.structs import message_class
from tests.compat.secured.brokers import password_of
from tests.compat.wire.pair import framed


def log_in(connection: socket.socket, user: str) -> None:
    """Authenticate a user on a connection that has just begun."""
    for name, version, fields in (
        ("SaslHandshake", 1, {"mechanism": "PLAIN"}),
        ("SaslAuthenticate", 0, {"auth_bytes": f"\0{user}\0{password_of(user)}".encode()}),
    ):
        body = message_codec(f"{name}Request", version).encode(
            message_class(f"{name}Request")(**fields)
        )
        connection.sendall(
            framed(encode_request_header(api(name).key, version, 0, "log-in") + body)
        )
        size = struct.unpack(">i", connection.recv(4, socket.MSG_WAITALL))[0]
        frame = connection.recv(size, socket.MSG_WAITALL)
        assert frame[4:6] == b"\0\0", (user, frame)
