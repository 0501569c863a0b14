"""The optional layer between a socket's bytes and the frames: encryption.

A plain socket has no layer, and no extra call. A layer has the socket's own calls for the bytes of
one connection, and these:

| call | gives | nothing yet |
|---|---|---|
| handshake | None once the handshake is over | WantsRead, WantsWrite |
| recv_into | plaintext bytes, 0 at their end | WantsRead, WantsWrite |
| send | how many bytes were taken; after an exception, send the same bytes again | the same |
| flush | sends bytes that it has taken and still holds | WantsWrite |
| has_more | whether bytes already read from the socket are buffered, or their end | |
| read_little | holds little of what the peer has sent ahead, until it is told otherwise | |
| peer_certificate | what the other side has shown in the handshake | |

Every other OSError closes the connection with its text. A failed handshake raises an OSError.

Differs: Kafka's TransportLayer has the same place (PlaintextTransportLayer, SslTransportLayer).
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable
from typing import Protocol, TypeAlias


class WantsRead(BlockingIOError):
    """The layer needs a readable socket to continue."""

    def __init__(self) -> None:
        super().__init__(errno.EAGAIN, "waits to read")


class WantsWrite(BlockingIOError):
    """The layer needs a writable socket to continue."""

    def __init__(self) -> None:
        super().__init__(errno.EAGAIN, "waits to write")


class StreamLayer(Protocol):
    """A layer between a socket and the plaintext bytes of one connection."""

    def handshake(self) -> None:
        """Continue the handshake; call it again until it returns.

        Raises WantsRead or WantsWrite if the socket must become ready first, OSError on a failure.
        """
        ...

    def recv_into(self, buffer: memoryview) -> int:
        """Read plaintext bytes into a buffer; return their number, 0 after the peer's last.

        Raises WantsRead or WantsWrite if the socket must become ready first.
        """
        ...

    def send(self, data: bytes | memoryview) -> int:
        """Accept the first bytes of `data`; return how many were accepted."""
        ...

    def flush(self) -> None:
        """Send the accepted bytes that the layer still holds."""
        ...

    def has_more(self) -> bool:
        """Return True if `recv_into` can return bytes, or their end, without reading the socket."""
        ...

    def read_little(self, *, is_little: bool) -> None:
        """Set whether the socket is read in small pieces, as before authentication, or in large."""
        ...

    def peer_certificate(self) -> bytes | None:
        """Return the certificate of the other side, DER, None without one."""
        ...

    def close(self) -> None:
        """Send the closing message if the socket accepts it, and close the socket."""
        ...


#: Creates the layer of a connected, non-blocking socket.
LayerOf: TypeAlias = Callable[[socket.socket], StreamLayer]
#: Returns, for a host name, the function that creates layers of sockets to that host.
LayerTo: TypeAlias = Callable[[str], LayerOf]
