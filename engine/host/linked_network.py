"""A network as seen over one link: connections to a place, or from it, with that link's faults.

```
owner ── send ──> channel out ──> connection        no fault: the connection's own `send`
owner <── frame, end ── channel in <── connection   no fault: the connection calls the owner itself
```

Where no fault is set, a connection's calls go past this module: `send` is that of the connection
below, and so is whom it calls. A connection is cut, or slow, whenever it was made. One that is made
over a cut link looks like one whose first packet is under way: it says nothing until the link is
healed, or its owner gives it up.

What the other end's process closes is noticed when the link lets it through.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from engine.host.links import PlaceLinks
from engine.host.ports import (
    Connection,
    Listener,
    ListenOptions,
    Network,
    PauseReason,
    SendPart,
)
from engine.host.send_parts import part_bytes


class _Send(Protocol):
    """What queues a frame."""

    def __call__(
        self, parts: Sequence[SendPart], on_sent: Callable[[], None] | None = None
    ) -> None:
        """Queue one frame."""
        ...


class LinkedNetwork:
    """The network of one place as far as it leads to another; see `engine.host.ports.Network`."""

    def __init__(self, network: Network, links: PlaceLinks, own: str, other: str) -> None:
        self._network = network
        self._links = links
        self._own = own
        self._other = other

    def listen(
        self, host: str, port: int, on_connect: Callable[[Connection], None], options: ListenOptions
    ) -> Listener:
        """Accept connections of the other place; the errors are the network's."""

        def accept(connection: Connection) -> None:
            on_connect(self._linked(connection))

        return self._network.listen(host, port, accept, options)

    def connect(self, host: str, port: int, *, receive_buffer_bytes: int = -1) -> Connection:
        """Open a connection to the other place."""
        return self._linked(
            self._network.connect(host, port, receive_buffer_bytes=receive_buffer_bytes)
        )

    def address_of(self, host: str) -> str | None:
        """Return the numeric address of a host, None for one that is not found. May wait."""
        return self._network.address_of(host)

    def _linked(self, connection: Connection) -> LinkedConnection:
        return LinkedConnection(connection, self._links, self._own, self._other)


class LinkedConnection:
    """One connection over a link; see `engine.host.ports.Connection`."""

    #: Queues one frame; that of the connection itself where nothing is wrong.
    send: _Send

    def __init__(self, connection: Connection, links: PlaceLinks, own: str, other: str) -> None:
        self.peer = connection.peer
        self._connection = connection
        self._on_frame: Callable[[memoryview], None] = _ignore_frame
        self._on_close: Callable[[str], None] = _ignore_reason
        self._is_closed = False
        self._out = links.channel(own, other)
        self._in = links.channel(other, own)
        # What began over a cut link never was, if it ends before that is healed.
        self._has_begun = not self._out.is_cut
        self._out.on_change = self._in.on_change = self._choose
        self._choose()

    # The way that calls take

    def _choose(self) -> None:
        """Call past the channels where nothing is wrong, else by them."""
        if self._is_closed:
            return
        self._has_begun = self._has_begun or not self._out.is_cut
        is_clear = self._out.is_clear
        self.send = self._connection.send if is_clear else self._send_over_link
        is_clear = self._in.is_clear
        self._connection.on_frame = self._on_frame if is_clear else self._arrived
        self._connection.on_close = self._ended

    @property
    def on_frame(self) -> Callable[[memoryview], None]:
        """Whom frames are handed to."""
        return self._on_frame

    @on_frame.setter
    def on_frame(self, on_frame: Callable[[memoryview], None]) -> None:
        """Hand frames to somebody from now on."""
        self._on_frame = on_frame
        self._choose()

    @property
    def on_close(self) -> Callable[[str], None]:
        """Who is told of the end."""
        return self._on_close

    @on_close.setter
    def on_close(self, on_close: Callable[[str], None]) -> None:
        """Tell somebody of the end from now on."""
        self._on_close = on_close

    # Calls of the owner

    def _send_over_link(
        self, parts: Sequence[SendPart], on_sent: Callable[[], None] | None = None
    ) -> None:
        # Regions of files are read now: who sends them may close the file at `on_sent`.
        frame = b"".join(part_bytes(part) for part in parts)
        self._out.send(partial(self._connection.send, (frame,), on_sent), len(frame))

    def pause(self, reason: PauseReason) -> None:
        """Take no more frames until every reason is gone; what is in flight may still arrive."""
        self._connection.pause(reason)

    def resume(self, reason: PauseReason) -> None:
        """Give up one reason."""
        self._connection.resume(reason)

    def close(self, reason: str) -> None:
        """Close now; the other end learns of it when the link lets that through."""
        if self._is_closed:
            return
        self._is_closed = True
        self._in.close()
        if self._out.is_clear:
            self._out.close()
            self._connection.close(reason)
            # Its end was told to `_ended`, which finds it closed.
            self._on_close(reason)
            return
        self._connection.on_frame = _ignore_frame
        self._on_close(reason)
        self._out.on_change = _do_nothing
        self._out.send(partial(self._let_go, reason))

    def _let_go(self, reason: str) -> None:
        self._out.close()
        self._connection.close(reason)

    # What the connection says

    def _arrived(self, frame: memoryview) -> None:
        kept = memoryview(bytearray(frame))
        self._in.send(partial(self._take, kept), len(kept))

    def _take(self, frame: memoryview) -> None:
        if not self._is_closed:
            self._on_frame(frame)

    def _ended(self, reason: str) -> None:
        """The other end, or the network, has ended the connection."""
        self._out.close()
        if self._is_closed:
            return
        if not self._has_begun:
            self._in.close()
            self._tell_end(reason)
        else:
            self._in.send(partial(self._tell_end, reason))

    def _tell_end(self, reason: str) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._in.close()
            self._on_close(reason)


def _ignore_frame(frame: memoryview) -> None:
    """Stand for an owner where none is yet, or none is left."""


def _ignore_reason(reason: str) -> None:
    """The same, for the end."""


def _do_nothing() -> None:
    """The same, for a change of the link."""
