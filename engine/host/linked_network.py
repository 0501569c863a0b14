"""A network seen over one link: connections between two places, with the faults of that link.

```
owner ── send ──> channel out ──> connection        no fault: the connection's own `send`
owner <── frame, end ── channel in <── connection   no fault: the connection calls the owner itself
```

Without a fault a connection's calls bypass this module: `send` is that of the underlying
connection, which calls the owner directly. A fault affects connections opened before it too. A
connection opened over a cut link looks like one whose first packet is in flight: no event arrives
until the link is healed or the owner closes it.

A close by the other end's process is reported when the link delivers it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from engine.host.network_links import PlaceLinks
from engine.host.ports import (
    Connection,
    FrameBound,
    Listener,
    ListenOptions,
    Network,
    PauseReason,
    SendPart,
)
from engine.host.send_parts import part_bytes
from engine.host.stream_layer import LayerOf


class _Send(Protocol):
    """A function that queues a frame."""

    def __call__(
        self, parts: Sequence[SendPart], on_sent: Callable[[], None] | None = None
    ) -> None:
        """Queue one frame."""
        ...


class LinkedNetwork:
    """The network between two places; see `engine.host.ports.Network`."""

    def __init__(self, network: Network, links: PlaceLinks, own: str, other: str) -> None:
        """Create a network whose connections go from the place `own` to `other`."""
        self._network = network
        self._links = links
        self._own = own
        self._other = other

    def listen(
        self, host: str, port: int, on_connect: Callable[[Connection], None], options: ListenOptions
    ) -> Listener:
        """Accept connections over the link; errors are those of the network."""

        def accept(connection: Connection) -> None:
            """Pass an accepted connection on as one over the link."""
            on_connect(self._wrap_connection(connection))

        return self._network.listen(host, port, accept, options)

    def connect(
        self,
        host: str,
        port: int,
        *,
        receive_buffer_bytes: int = -1,
        layer: LayerOf | None = None,
    ) -> Connection:
        """Open a connection over the link to the other place."""
        return self._wrap_connection(
            self._network.connect(
                host, port, receive_buffer_bytes=receive_buffer_bytes, layer=layer
            )
        )

    def address_of(self, host: str) -> str | None:
        """Return the numeric address of a host, or None if it is not found. May block."""
        return self._network.address_of(host)

    def _wrap_connection(self, connection: Connection) -> LinkedConnection:
        """Return the connection with the delays, losses and cuts of the link to the other place."""
        return LinkedConnection(connection, self._links, self._own, self._other)


class LinkedConnection:
    """A connection over a link; see `engine.host.ports.Connection`."""

    #: Queues one frame; the method of the connection itself if the link has no fault.
    send: _Send

    def __init__(self, connection: Connection, links: PlaceLinks, own: str, other: str) -> None:
        """Wrap a connection between the places `own` and `other`, whose faults `links` has."""
        self.peer = connection.peer
        self._connection = connection
        #: The owner's callbacks. They are set on the wrapped connection itself while both
        #: directions have no fault, so that frames then take no detour.
        self._on_frame: Callable[[memoryview], None] = _ignore_frame
        self._on_close: Callable[[str], None] = _ignore_reason
        self._is_closed = False
        #: The two directions of the link; each delays or holds frames while it has a fault.
        self._out = links.open_channel(own, other)
        self._in = links.open_channel(other, own)
        #: Whether the link was ever open. A connection that was opened over a cut link and ends
        #: before the heal is dropped silently: the other end has not seen it.
        self._has_begun = not self._out.is_cut
        self._out.on_change = self._in.on_change = self._choose_path
        self._choose_path()

    # Choice between the direct calls and the channels

    def _choose_path(self) -> None:
        """Connect the owner directly while the link has no fault, else through the channels.

        Called at each change of the link, and when the owner sets its callback.
        """
        if self._is_closed:
            return
        self._has_begun = self._has_begun or not self._out.is_cut
        is_clear = self._out.is_clear
        self.send = self._connection.send if is_clear else self._send_over_link
        is_clear = self._in.is_clear
        self._connection.on_frame = self._on_frame if is_clear else self._on_arrived
        self._connection.on_close = self._on_ended

    @property
    def on_frame(self) -> Callable[[memoryview], None]:
        """The owner's callback for frames."""
        return self._on_frame

    @on_frame.setter
    def on_frame(self, on_frame: Callable[[memoryview], None]) -> None:
        """Set the owner's callback for frames."""
        self._on_frame = on_frame
        self._choose_path()

    @property
    def on_close(self) -> Callable[[str], None]:
        """The owner's callback for the end of the connection."""
        return self._on_close

    @on_close.setter
    def on_close(self, on_close: Callable[[str], None]) -> None:
        """Set the owner's callback for the end of the connection."""
        self._on_close = on_close

    # Calls of the owner

    def _send_over_link(
        self, parts: Sequence[SendPart], on_sent: Callable[[], None] | None = None
    ) -> None:
        """Send a frame with the delay of the link; a cut link keeps it until the heal."""
        # File regions are read now: the sender may close the file at `on_sent`.
        frame = b"".join(part_bytes(part) for part in parts)
        self._out.send(partial(self._connection.send, (frame,), on_sent), len(frame))

    def pause(self, reason: PauseReason) -> None:
        """Stop taking frames until every reason is removed; frames in flight may still arrive."""
        self._connection.pause(reason)

    def resume(self, reason: PauseReason) -> None:
        """Remove one reason for the pause."""
        self._connection.resume(reason)

    def bound_frames(self, bound: FrameBound | None) -> None:
        """Set a size limit for frames below that of the limits; see `Connection.bound_frames`."""
        self._connection.bound_frames(bound)

    def peer_certificate(self) -> bytes | None:
        """Return the certificate that the peer has presented, DER, None without one."""
        return self._connection.peer_certificate()

    def close(self, reason: str) -> None:
        """Close this end now; the other end is notified when the link delivers the close."""
        if self._is_closed:
            return
        self._is_closed = True
        self._in.close()
        if self._out.is_clear:
            self._out.close()
            self._connection.close(reason)
            # `_on_ended` was called and did nothing, as this end is closed already.
            self._on_close(reason)
            return
        self._connection.on_frame = _ignore_frame
        self._on_close(reason)
        self._out.on_change = _do_nothing
        self._out.send(partial(self._close_both, reason))

    def _close_both(self, reason: str) -> None:
        """Close the outgoing channel and the connection; runs after the frames sent before."""
        self._out.close()
        self._connection.close(reason)

    # Events of the connection

    def _on_arrived(self, frame: memoryview) -> None:
        """Pass a frame through the channel, as a copy: the connection reuses its read buffer."""
        kept = memoryview(bytearray(frame))
        self._in.send(partial(self._deliver, kept), len(kept))

    def _deliver(self, frame: memoryview) -> None:
        """Hand a delayed frame to the owner, unless the connection was closed meanwhile."""
        if not self._is_closed:
            self._on_frame(frame)

    def _on_ended(self, reason: str) -> None:
        """Handle a close of the connection by the other end or the network.

        The owner is notified after the frames in flight, or now if the link was cut from the start.
        """
        self._out.close()
        if self._is_closed:
            return
        if not self._has_begun:
            self._in.close()
            self._notify_end(reason)
        else:
            self._in.send(partial(self._notify_end, reason))

    def _notify_end(self, reason: str) -> None:
        """Report the end of the connection to its owner, once."""
        if not self._is_closed:
            self._is_closed = True
            self._in.close()
            self._on_close(reason)


def _ignore_frame(frame: memoryview) -> None:
    """Drop a frame: no owner is set, or none is left."""


def _ignore_reason(reason: str) -> None:
    """Drop the reason of a close: no owner is set, or none is left."""


def _do_nothing() -> None:
    """Ignore a change of the link."""
