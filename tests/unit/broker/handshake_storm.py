"""Bytes that no client should send before it is known, for a listener with SASL in memory.

Requests of every API, whole or changed, tokens right in form and wrong in content, and frames of any bytes
and lengths come in any order. No exception leaves the server, no request is served, no body but those of
the three APIs of an authentication is read, and another client is served.
"""  # noqa: E501 - prose

from __future__ import annotations

import struct
from random import Random
from typing import Any, Final

from engine.server import ClientConnection
from engine.wire.codec import MessageCodec, message_codec
from engine.wire.headers import api, apis, encode_request_header
from engine.wire.structs import message_class
from tests.unit.broker.frame_storm import changed
from tests.unit.broker.memory_broker import MemoryBroker
from tests.unit.broker.sasl_listeners import MemoryWire

#: What an authentication is made of.
BEFORE: Final = frozenset(("ApiVersions", "SaslHandshake", "SaslAuthenticate"))
_MECHANISMS: Final = (
    "PLAIN",
    "SCRAM-SHA-256",
    "SCRAM-SHA-512",
    "OAUTHBEARER",
    "GSSAPI",
    "plain",
    "",
)
_TOKENS: Final = (
    b"\0alice\0wrong",
    b"\0\0",
    b"n,,n=carol,r=abc",
    b"n,,n=nobody,r=abc",
    b"c=biws,r=abc,p=AAAA",
    b"n,,\x01auth=Bearer x.y.z\x01\x01",
    b"\x00" * 70_000,
    b"",
)
_FRAMES_MAX: Final = 6
#: How many connections begin with a handshake that is right.
_BEGUN_SHARE: Final = 0.4
_RIGHT: Final = b"\0alice\0alice-pw"


class HandshakeStorm:
    """A broker, and what was read of the requests that clients sent before they were known."""

    def __init__(self, stage: MemoryBroker, monkeypatch: Any) -> None:
        self._stage = stage
        self.decoded: set[str] = set()
        self.served = 0
        decode, take = MessageCodec.decode_at, ClientConnection.serve_frame

        def seen_decode(codec: MessageCodec, *given: Any, **named: Any) -> Any:
            self.decoded.add(codec.name)
            return decode(codec, *given, **named)

        def seen_take(client: ClientConnection, frame: memoryview) -> None:
            self.served += 1
            take(client, frame)

        monkeypatch.setattr(MessageCodec, "decode_at", seen_decode)
        monkeypatch.setattr(ClientConnection, "serve_frame", seen_take)

    def throw(self, rng: Random) -> MemoryWire:
        """Send some frames on a connection of their own, and return it."""
        wire = MemoryWire(self._stage, "SASL")
        if rng.random() < _BEGUN_SHARE:
            mechanism = rng.choice(_MECHANISMS[:3])
            wire.send(_framed(_request("SaslHandshake", 1, mechanism=mechanism)))
        for _ in range(rng.randint(1, _FRAMES_MAX)):
            content = hostile_frame(rng)
            size = len(content) if rng.random() < 0.95 else rng.choice((-1, 1 << 30, -(1 << 31)))
            if not wire.send(struct.pack(">i", size) + content):
                break
            self._stage.timers.run_until_idle()
        return wire

    def log_in(self) -> bool:
        """Return whether a client with the right password is let in."""
        wire = MemoryWire(self._stage, "SASL")
        wire.send(_framed(_request("SaslHandshake", 1, mechanism="PLAIN")))
        wire.receive()
        wire.send(_framed(_request("SaslAuthenticate", 0, auth_bytes=_RIGHT)))
        answer = wire.receive()
        wire.close()
        return answer is not None and answer[4:6] == b"\0\0"


def hostile_frame(rng: Random) -> bytes:
    """Return a frame that does not authenticate."""
    kind = rng.random()
    if kind < 0.15:
        return rng.randbytes(rng.choice((0, 1, 7, 8, 12, 40, 3000)))
    if kind < 0.4:
        row = rng.choice(apis())
        version = rng.randint(-1, 20)
        head = struct.pack(">hhih", row.key, version, rng.randint(0, 99), 1) + b"c"
        return head + rng.randbytes(rng.randint(0, 60))
    if kind < 0.5:
        return rng.choice(_TOKENS)
    name, fields = rng.choice(
        (
            ("ApiVersions", {"client_software_name": "c", "client_software_version": "1"}),
            ("SaslHandshake", {"mechanism": rng.choice(_MECHANISMS)}),
            ("SaslHandshake", {"mechanism": rng.choice(_MECHANISMS)}),
            ("SaslAuthenticate", {"auth_bytes": rng.choice(_TOKENS)}),
            ("SaslAuthenticate", {"auth_bytes": rng.choice(_TOKENS)}),
        )
    )
    served = api(name).stable
    version = rng.randint(served.lowest, served.highest)
    if name == "ApiVersions" and version < 3:
        fields = {}
    raw = _request(name, version, **fields)
    return raw if rng.random() < 0.7 else changed(rng, raw)


def _framed(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content


def _request(name: str, version: int, **fields: Any) -> bytes:
    body = message_codec(f"{name}Request", version).encode(
        message_class(f"{name}Request")(**fields)
    )
    return encode_request_header(api(name).key, version, 1, "c") + body
