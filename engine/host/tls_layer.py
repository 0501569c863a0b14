"""TLS above a socket, by OpenSSL with buffers in memory; see `engine.host.stream_layer`.

Bytes that OpenSSL has written are held until the socket accepts them: at most those of one `send`,
as the next one first flushes them.

OpenSSL's buffers keep the size of the largest read: until the handshake is over, and while
`read_little` is set, reads are small. Later ones grow for a peer that sends as much as is read.

A peer may update its keys at any time, and request an update of ours: that costs time and a
response, and carries no data. So one call reads the socket once, and two sizes are bounded: bytes
that come without data, and responses that the peer does not read.
"""

from __future__ import annotations

import socket
import ssl
from contextlib import suppress

from engine.host.stream_layer import WantsRead, WantsWrite
from engine.limits import (
    TLS_BULK_READ_BYTES,
    TLS_READ_BYTES,
    TLS_RECORDS_MAX,
    TLS_SILENT_BYTES_MAX,
    TLS_SMALL_READ_BYTES,
    TLS_UNREAD_BYTES_MAX,
)

#: OpenSSL's reasons for bytes that are not TLS, for which it sends no alert.
_NO_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "HTTPS_PROXY_REQUEST")
#: The alert internal_error that Java's engine sends: plain-text clients recognise TLS by it.
_ALERT = b"\x15\x03\x03\0\x02\x02\x50"


class TlsLayer:
    """TLS of one connection; with `server_hostname`, the expected name, the client's side."""

    def __init__(
        self, context: ssl.SSLContext, sock: socket.socket, server_hostname: str | None = None
    ) -> None:
        """Begin a handshake over a connected socket. Raises OSError for an invalid host name."""
        self._sock = sock
        #: Encrypted bytes from the socket for OpenSSL, and from OpenSSL for the socket.
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        try:
            self._tls = context.wrap_bio(
                self._incoming,
                self._outgoing,
                server_side=server_hostname is None,
                server_hostname=server_hostname,
            )
        except ValueError as error:
            # The host name is invalid for TLS.
            raise OSError(str(error)) from error
        #: Encrypted bytes that the socket has not accepted yet.
        self._unsent = b""
        #: Whether the handshake is over; whether the owner wants only small reads.
        self._is_open = self._reads_little = False
        #: Size of the next read; raised for bulk once a read has filled it.
        self._read_bytes = TLS_READ_BYTES
        #: Bytes from the socket since the last byte of data: bounds what a peer may send without
        #: data.
        self._silent_bytes = 0
        #: The error that ended the peer's bytes. Kept because OpenSSL reports it once, and data
        #: before it is returned first.
        self._end: ssl.SSLError | None = None

    def handshake(self) -> None:
        """Continue the handshake; call it until it returns."""
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                self.flush()
                self._receive()
            except ssl.SSLError as error:
                # Send the peer the alert that explains the failure.
                if self._tls.server_side and error.reason in _NO_TLS:
                    self._unsent = _ALERT
                with suppress(OSError):
                    self.flush()
                raise
            else:
                self._is_open = True
                self.flush()
                return

    def recv_into(self, buffer: memoryview) -> int:
        """Read into a buffer; returns the number of bytes, 0 after the peer's last.

        OpenSSL returns one TLS record at a time, 16 KB at most: all complete records are read, up
        to TLS_RECORDS_MAX, so that one connection does not hold up a turn.
        """
        read_bytes, records = self._read_record(buffer), 1
        while 0 < read_bytes < len(buffer) and self._incoming.pending and records < TLS_RECORDS_MAX:
            try:
                more_bytes = int(self._tls.read(len(buffer) - read_bytes, buffer[read_bytes:]))
            except ssl.SSLWantReadError:
                # The rest of a record is to come.
                break
            except ssl.SSLError as error:
                self._end = error.with_traceback(None)
                break
            if not more_bytes:
                self._end = ssl.SSLZeroReturnError()
                break
            read_bytes += more_bytes
            records += 1
        return read_bytes

    def _read_record(self, buffer: memoryview) -> int:
        """Read one TLS record, or a part of it, into a buffer."""
        has_filled = False
        while True:
            try:
                if self._end is not None:
                    raise self._end
                # With a buffer, `read` returns the number of bytes.
                size = int(self._tls.read(len(buffer), buffer))
            except ssl.SSLWantReadError:
                self._send_pending()
                if has_filled:
                    raise WantsRead from None
                self._receive()
                has_filled = True
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                return 0
            else:
                self._silent_bytes = 0
                return size

    def _send_pending(self) -> None:
        """Send the bytes that TLS itself has to send, for instance a key update.

        Raises SSLError for a peer that does not read them, or that sends only messages without
        data.
        """
        with suppress(WantsWrite):
            self.flush()
        unread_bytes = self._outgoing.pending + len(self._unsent)
        if unread_bytes > TLS_UNREAD_BYTES_MAX:
            raise ssl.SSLError(f"{unread_bytes} bytes of TLS that the peer does not read")
        if self._silent_bytes > TLS_SILENT_BYTES_MAX:
            raise ssl.SSLError(f"{self._silent_bytes} bytes of TLS without data")

    def send(self, data: bytes | memoryview) -> int:
        """Encrypt the first bytes of `data`; return how many were accepted.

        Sends what the socket takes now; `flush` sends the remaining encrypted bytes.
        """
        self.flush()
        size = self._tls.write(data)
        with suppress(WantsWrite):
            self.flush()
        return size

    def flush(self) -> None:
        """Send encrypted bytes that are still held; raises WantsWrite if the socket is full."""
        while self._unsent or self._outgoing.pending:
            self._unsent = self._unsent or self._outgoing.read()
            try:
                sent = self._sock.send(self._unsent)
            except BlockingIOError:
                raise WantsWrite from None
            self._unsent = self._unsent[sent:]

    def has_more(self) -> bool:
        """Return True if `recv_into` can return bytes, or their end, without reading the socket."""
        return bool(self._tls.pending() or self._incoming.pending or self._end)

    def read_little(self, *, is_little: bool) -> None:
        """Read small pieces of the socket at once, or large ones if not `is_little`."""
        self._reads_little = is_little

    def peer_certificate(self) -> bytes | None:
        """Return the certificate of the other side, DER, None without one."""
        return self._tls.getpeercert(binary_form=True)

    def close(self) -> None:
        """Send the closing message if the socket accepts it, and close the socket."""
        # Its traceback refers to this layer: break the cycle.
        self._end = None
        with suppress(OSError, ValueError):
            self._tls.unwrap()
        with suppress(OSError):
            self.flush()
        self._sock.close()

    def _receive(self) -> None:
        """Read the socket once into OpenSSL's buffer; raises WantsRead if it has nothing."""
        try:
            is_fast = self._is_open and not self._reads_little
            data = self._sock.recv(self._read_bytes if is_fast else TLS_SMALL_READ_BYTES)
        except BlockingIOError:
            raise WantsRead from None
        if len(data) == self._read_bytes:
            self._read_bytes = TLS_BULK_READ_BYTES
        if self._is_open:
            self._silent_bytes += len(data)
        if data:
            self._incoming.write(data)
        else:
            self._incoming.write_eof()
