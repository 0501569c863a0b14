"""What may lie between a socket's bytes and the frames: encryption.

A socket that is used as it is has no layer, and no call more than before. A layer has a socket's
own calls for the bytes of one connection, and two of its own:

| call | gives | nothing yet |
|---|---|---|
| handshake | None once both sides agree | WantsRead, WantsWrite |
| recv_into | the bytes in the clear, 0 at their end | WantsRead, WantsWrite |
| send | how many bytes were taken; the same bytes come again after nothing was | the same |
| flush | sends what it has taken and still holds | WantsWrite |
| has_more | whether bytes wait that were taken from the socket already | |

Any other OSError ends the connection, with what it says. What fails in a handshake is an OSError.

Differs: Kafka's TransportLayer has the same place (PlaintextTransportLayer, SslTransportLayer).
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable
from typing import Protocol, TypeAlias


class WantsRead(BlockingIOError):
    """The layer goes on when its socket can be read."""

    def __init__(self) -> None:
        super().__init__(errno.EAGAIN, "waits to read")


class WantsWrite(BlockingIOError):
    """The layer goes on when its socket can be written."""

    def __init__(self) -> None:
        super().__init__(errno.EAGAIN, "waits to write")


class StreamLayer(Protocol):
    """The bytes of one connection, in the clear."""

    def handshake(self) -> None:
        """Go on with agreeing; to be called until it returns."""
        ...

    def recv_into(self, buffer: memoryview) -> int:
        """Fill a buffer's front; returns the bytes, 0 when the peer has said its last."""
        ...

    def send(self, data: bytes | memoryview) -> int:
        """Take the front of some bytes; returns how many."""
        ...

    def flush(self) -> None:
        """Send what was taken and is still held."""
        ...

    def has_more(self) -> bool:
        """Return whether `recv_into` would give bytes without the socket being read."""
        ...

    def close(self) -> None:
        """Say the last word if the socket takes it, and close the socket."""
        ...


#: Puts a layer above an accepted, non-blocking socket.
LayerOf: TypeAlias = Callable[[socket.socket], StreamLayer]
