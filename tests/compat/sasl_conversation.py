"""One conversation with a listener that has SASL: steps that send bytes and note what comes back.

Nonces, salts and signatures that a broker chooses are masked; a line says whether it came late.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import socket
import struct
import time
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

from engine.wire.codec import message_codec
from engine.wire.headers import api, encode_request_header
from engine.wire.structs import message_class

NONCE = b"fyko+d2lbbFgONRv9qkxdawL"
_QUIET_S = 0.6
#: A broker that has nothing else to do looks at delays three times a second.
_LATE_S = 0.08


class Wire(Protocol):
    """A connection to a listener."""

    def send(self, raw: bytes) -> bool:
        """Send bytes; returns whether the connection is still there."""
        ...

    def receive(self) -> bytes | None:
        """Return the next frame, None at the end; raises TimeoutError if neither comes."""
        ...

    def now_s(self) -> float:
        """Return the time."""
        ...

    def wait(self, seconds: float) -> None:
        """Let time go by."""
        ...

    def close(self) -> None:
        """End it."""
        ...


class SocketWire:
    """A connection to a real address."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), 10)
        self._socket.settimeout(_QUIET_S)

    def send(self, raw: bytes) -> bool:
        """Send bytes; returns whether the connection is still there."""
        try:
            self._socket.sendall(raw)
        except OSError:
            return False
        return True

    def receive(self) -> bytes | None:
        """Return the next frame, None at the end; raises TimeoutError if neither comes."""
        size = self._exactly(4)
        return None if size is None else self._exactly(struct.unpack(">i", size)[0])

    def _exactly(self, count: int) -> bytes | None:
        found = bytearray()
        while len(found) < count:
            try:
                more = self._socket.recv(count - len(found))
            except ConnectionResetError:
                return None
            if not more:
                return None
            found += more
        return bytes(found)

    def now_s(self) -> float:
        """Return the time."""
        return time.monotonic()

    def wait(self, seconds: float) -> None:
        """Let time go by."""
        time.sleep(seconds)

    def close(self) -> None:
        """End it."""
        self._socket.close()


class Conversation:
    """One connection, and a line for all that it has brought so far."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.lines: list[str] = []
        self.last = b""
        self.is_closed = False
        self._correlation_id = 0

    def send(self, raw: bytes) -> None:
        """Send any bytes."""
        if not self.wire.send(raw):
            self._end(is_late=False)

    def frame(self, content: bytes) -> None:
        """Send bytes behind their length."""
        self.send(struct.pack(">i", len(content)) + content)

    def request(self, name: str, version: int, /, **fields: Any) -> None:
        """Send a request."""
        message = message_class(f"{name}Request")(**fields)
        self.raw_request(name, version, message_codec(f"{name}Request", version).encode(message))

    def raw_request(self, key: str | int, version: int, body: bytes) -> None:
        """Send any body behind a right header."""
        self._correlation_id += 1
        number = key if isinstance(key, int) else api(key).key
        if isinstance(key, int):
            head = struct.pack(">hhih", number, version, self._correlation_id, 3) + b"raw"
        else:
            head = encode_request_header(number, version, self._correlation_id, "raw")
        self.frame(head + body)

    def receive(self, kind: str) -> None:
        """Note the next response, or the end, or that neither comes; `kind` says what it is."""
        began_s = self.wire.now_s()
        try:
            content = self.wire.receive()
        except TimeoutError:
            self.lines.append("nothing")
            return
        is_late = self.wire.now_s() - began_s > _LATE_S
        if content is None:
            self._end(is_late=is_late)
            return
        self.last = content
        self.lines.append(f"{_when(is_late=is_late)} {_shown(kind, content)}")

    def _end(self, *, is_late: bool) -> None:
        if not self.is_closed:
            self.is_closed = True
            self.lines.append(f"{_when(is_late=is_late)} closed")


#: A step of a conversation.
Step: TypeAlias = Callable[[Conversation], None]


def _when(*, is_late: bool) -> str:
    return "late" if is_late else "soon"


def _shown(kind: str, content: bytes) -> str:
    if kind == "raw":
        return _masked(content)
    name, _, version = kind.partition(" ")
    if name in ("ApiVersions", "ListGroups"):
        # Only the error matters here: other comparisons look at what they list.
        return f"{name} {content[4:6].hex()}"
    if name == "SaslAuthenticate":
        head = 5 if int(version) >= 2 else 4
        try:
            message: Any = message_codec("SaslAuthenticateResponse", int(version)).decode(
                content[head:]
            )
        except Exception:
            return content.hex()
        return (
            f"SaslAuthenticate {message.error_code} {message.error_message!r} "
            f"{_masked(bytes(message.auth_bytes))} {message.session_lifetime_ms}"
        )
    return f"{name} {content[4:].hex()}"


def _masked(content: bytes) -> str:
    text = re.sub(rb"(r=" + re.escape(NONCE) + rb")[^,]*,s=[^,]*", rb"\1*,s=*", content)
    return repr(re.sub(rb"^v=.*", b"v=*", text))


def versions(version: int = 3) -> Step:
    def step(one: Conversation) -> None:
        one.request(
            "ApiVersions",
            version,
            client_software_name="raw",
            client_software_version="1.0",
        )
        one.receive(f"ApiVersions {version}")

    return step


def raw(key: str | int, version: int, body: bytes, kind: str = "raw") -> Step:
    def step(one: Conversation) -> None:
        one.raw_request(key, version, body)
        one.receive(kind)

    return step


def frame(content: bytes, kind: str = "raw") -> Step:
    def step(one: Conversation) -> None:
        one.frame(content)
        one.receive(kind)

    return step


def raw_bytes(content: bytes) -> Step:
    def step(one: Conversation) -> None:
        one.send(content)
        one.receive("raw")

    return step


def handshake(mechanism: str, version: int = 1) -> Step:
    def step(one: Conversation) -> None:
        one.request("SaslHandshake", version, mechanism=mechanism)
        one.receive("SaslHandshake")

    return step


def token(token: bytes, version: int = 2) -> Step:
    def step(one: Conversation) -> None:
        one.request("SaslAuthenticate", version, auth_bytes=token)
        one.receive(f"SaslAuthenticate {version}")

    return step


def request(name: str, version: int, /, **fields: Any) -> Step:
    def step(one: Conversation) -> None:
        one.request(name, version, **fields)
        one.receive(name)

    return step


def list_groups(one: Conversation) -> None:
    """Ask something that needs no more than a connection; only the error matters."""
    one.request("ListGroups", 0)
    one.receive("ListGroups")


def wait(seconds: float) -> Step:
    return lambda one: one.wire.wait(seconds)


def proof(
    password: str,
    hash_name: str = "sha256",
    *,
    first: bytes,
    raw: bool = False,
    nonce: bytes | None = None,
    channel: bytes = b"biws",
    version: int = 2,
    more: bytes = b"",
    wrong: bool = False,
) -> Step:
    """Send the second message of SCRAM, made of the broker's first one."""

    def step(one: Conversation) -> None:
        if raw:
            challenge = one.last
        else:
            head = 5 if version >= 2 else 4
            message: Any = message_codec("SaslAuthenticateResponse", version).decode(
                one.last[head:]
            )
            challenge = bytes(message.auth_bytes)
        parts = dict(part.split(b"=", 1) for part in challenge.split(b","))
        salt, count = base64.b64decode(parts[b"s"]), int(parts[b"i"])
        without = b"c=" + channel + b",r=" + (nonce or parts[b"r"])
        said = b",".join((first, challenge, without))
        salted = hashlib.pbkdf2_hmac(hash_name, password.encode(), salt, count)
        client_key = hmac.digest(salted, b"Client Key", hash_name)
        stored = hashlib.new(hash_name, client_key).digest()
        signature = hmac.digest(stored, said, hash_name)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        if wrong:
            proof = proof[:-1]
        sent = without + more + b",p=" + base64.b64encode(proof)
        if raw:
            one.frame(sent)
            one.receive("raw")
        else:
            token(sent, version)(one)

    return step


def client_first(user: bytes, extensions: bytes = b"", gs2: bytes = b"n,,") -> bytes:
    return gs2 + b"n=" + user + b",r=" + NONCE + extensions


def first_bare(user: bytes, extensions: bytes = b"") -> bytes:
    return b"n=" + user + b",r=" + NONCE + extensions
