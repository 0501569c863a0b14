"""Peers of TLS 1.3 that send new keys and little else: each costs time, and an answer."""

from __future__ import annotations

import hashlib
import hmac
import socket
import ssl
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from engine.host.stream_layer import WantsRead
from engine.host.tls_layer import TlsLayer
from engine.limits import TLS_SILENT_BYTES_MAX, TLS_UNREAD_BYTES_MAX

pytest.importorskip("cryptography")

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_CERTIFICATE = Path(__file__).with_name("certificate.pem")
_DATA, _HANDSHAKE = 23, 22
_KEY_UPDATE_REQUESTED = bytes.fromhex("1800000101")
_BUFFER = memoryview(bytearray(1 << 18))


class _Peer:
    """The client's side of an open connection, whose records are sealed here (RFC 8446 §7.2)."""

    def __init__(self, sock: socket.socket, secret: bytes) -> None:
        self._sock = sock
        self._use(secret)

    def _use(self, secret: bytes) -> None:
        self._secret, self._sequence = secret, 0
        self._cipher = AESGCM(self._expand("key", 32))
        self._nonce = self._expand("iv", 12)

    def _expand(self, label: str, size: int) -> bytes:
        named = b"tls13 " + label.encode()
        info = size.to_bytes(2, "big") + bytes([len(named)]) + named + b"\0\1"
        return hmac.digest(self._secret, info, hashlib.sha384)[:size]

    def _sealed(self, content: bytes, kind: int) -> bytes:
        head = b"\x17\3\3" + (len(content) + 17).to_bytes(2, "big")
        nonce = int.from_bytes(self._nonce, "big") ^ self._sequence
        self._sequence += 1
        plain = content + bytes([kind])
        return head + self._cipher.encrypt(nonce.to_bytes(12, "big"), plain, head)

    def send(self, content: bytes) -> None:
        """Send a record of data."""
        self._sock.sendall(self._sealed(content, _DATA))

    def send_keys(self, count: int) -> int:
        """Send new keys, each with the request for the server's; returns the bytes."""
        records = bytearray()
        for _ in range(count):
            records += self._sealed(_KEY_UPDATE_REQUESTED, _HANDSHAKE)
            self._use(self._expand("traffic upd", 48))
        self._sock.sendall(records)
        return len(records)


class _Reads:
    """A socket whose reads are counted, and that takes no bytes once it is full."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self.count = 0
        self.is_full = False

    def recv(self, size: int) -> bytes:
        """Read and count."""
        self.count += 1
        return self._sock.recv(size)

    def send(self, data: bytes) -> int:
        """Send, unless it is full."""
        if self.is_full:
            raise BlockingIOError
        return self._sock.send(data)

    def close(self) -> None:
        """Close."""
        self._sock.close()


@pytest.fixture
def ends(tmp_path: Path) -> Iterator[tuple[TlsLayer, _Reads, _Peer]]:
    """Yield a server behind its handshake, its socket, and its peer."""
    ours, theirs = socket.socketpair()
    server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_context.load_cert_chain(_CERTIFICATE)
    client_context = ssl.create_default_context(cafile=str(_CERTIFICATE))
    client_context.keylog_filename = str(tmp_path / "keys")
    reads = _Reads(ours)
    server = TlsLayer(server_context, reads)  # type: ignore[arg-type]
    client = TlsLayer(client_context, theirs, "localhost")
    for sock in (ours, theirs):
        sock.setblocking(False)
    left = [server, client]
    while left:
        for end in tuple(left):
            with suppress(BlockingIOError):
                end.handshake()
                left.remove(end)
    (secret,) = (
        line.split()[2]
        for line in (tmp_path / "keys").read_text().splitlines()
        if line.startswith("CLIENT_TRAFFIC_SECRET_0")
    )
    client_context.keylog_filename = None  # type: ignore[assignment]
    with theirs:
        yield server, reads, _Peer(theirs, bytes.fromhex(secret))
    server.close()


def test_data_under_new_keys_is_read(ends: tuple[TlsLayer, _Reads, _Peer]) -> None:
    server, _, peer = ends
    peer.send_keys(3)
    peer.send(b"hello")
    assert 5 == server.recv_into(_BUFFER)
    assert b"hello" == bytes(_BUFFER[:5])


def test_new_keys_have_one_read_of_a_turn(ends: tuple[TlsLayer, _Reads, _Peer]) -> None:
    server, reads, peer = ends
    server.read_little(is_little=True)
    before = reads.count
    peer.send_keys(1000)
    for number in (1, 2, 3):
        with pytest.raises(WantsRead):
            server.recv_into(_BUFFER)
        assert before + number == reads.count


def test_a_peer_that_sends_new_keys_alone_is_ended(ends: tuple[TlsLayer, _Reads, _Peer]) -> None:
    server, _, peer = ends
    sent = 0
    with pytest.raises(ssl.SSLError, match="bytes of TLS without data"):
        while sent < 4 * TLS_SILENT_BYTES_MAX:
            sent += peer.send_keys(100)
            with suppress(BlockingIOError):
                server.recv_into(_BUFFER)
    assert TLS_SILENT_BYTES_MAX < sent < TLS_SILENT_BYTES_MAX + 3000


def test_answers_to_new_keys_that_are_not_read_are_bounded(
    ends: tuple[TlsLayer, _Reads, _Peer],
) -> None:
    server, reads, peer = ends
    reads.is_full = True
    sent = 0
    with pytest.raises(ssl.SSLError, match="bytes of TLS that the peer does not read"):
        while sent < 4 * TLS_UNREAD_BYTES_MAX:
            sent += peer.send_keys(500)
            with suppress(BlockingIOError):
                server.recv_into(_BUFFER)
            peer.send(b"x")
            assert 1 == server.recv_into(_BUFFER)
    assert sent < TLS_UNREAD_BYTES_MAX + 30_000
