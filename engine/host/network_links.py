"""The links of this process: delivery of packets between places at once, late, or after a heal.

```
channel (one direction of one connection)     in order
  no fault   passes at once: nothing is queued, no timer is set
  slow       each packet takes the delay, and one TCP timeout for each loss in a row
  cut        waits; sent when the link is healed, as TCP retransmits
```

A cut link loses no data of a connection that stays open; data is lost only if one end closes the
connection meanwhile. After `heal` all queued packets arrive at once, even those that wait
for a retransmission, where TCP's back-off could take up to two minutes.

Differs from a real lossy network: every lost packet costs a timeout, even where TCP would resend
it sooner because later packets arrived (fast retransmit). Large frames are therefore slower.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from engine.host.each import do_each
from engine.host.link_faults import (
    LOSS_PARTS,
    LinkFaults,
    LinkQuality,
    packet_count,
    retransmission_ms,
)
from engine.host.ports import Clock, Entropy, Timers
from engine.limits import LINK_RETRANSMISSIONS_MAX


class PlaceLinks:
    """All links with an end in this process."""

    def __init__(self, timers: Timers, clock: Clock, entropy: Entropy) -> None:
        """Create links without faults."""
        self.timers = timers
        self.clock = clock
        self.entropy = entropy
        #: Faults now in force; replaced as a whole by `set_faults`.
        self.faults = LinkFaults()
        #: Open channels, refreshed at each change of the faults; and functions that are called
        #: after that.
        self._channels: dict[LinkChannel, None] = {}
        self._listeners: dict[Callable[[], None], None] = {}

    def open_channel(self, source: str, target: str) -> LinkChannel:
        """Return a new channel for packets from `source` to `target`.

        Each is a broker id as text, or STORE. The channel applies all later changes of the faults;
        its owner closes it.
        """
        channel = LinkChannel(self, source, target)
        self._channels[channel] = None
        return channel

    def forget(self, channel: LinkChannel) -> None:
        """Remove a closed channel."""
        self._channels.pop(channel, None)

    @property
    def channel_count(self) -> int:
        """Return the number of open channels."""
        return len(self._channels)

    def add_listener(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call a listener after every change of faults; return the function that removes it."""
        self._listeners[listener] = None

        def end() -> None:
            """Remove the listener."""
            self._listeners.pop(listener, None)

        return end

    def set_faults(self, faults: LinkFaults) -> None:
        """Replace the faults in force."""
        if faults == self.faults:
            return
        self.faults = faults
        do_each(list(self._channels), LinkChannel.refresh)
        do_each(list(self._listeners), _call)


class _Sent(NamedTuple):
    """A packet in flight: it arrives at `due_ms`; None while the link is cut."""

    due_ms: int | None
    size_bytes: int
    arrive: Callable[[], None]


class LinkChannel:
    """One direction of a connection, in order."""

    def __init__(self, links: PlaceLinks, source: str, target: str) -> None:
        """Create the direction from `source` to `target`; `PlaceLinks` calls this and `refresh`."""
        self._links = links
        self._source = source
        self._target = target
        #: Packets in flight, in order; those without a due time wait until the cut is healed.
        self._queue: deque[_Sent] = deque()
        #: When the last packet arrives: a later one must not overtake it.
        self._last_due_ms = 0
        #: Cancels the timer of the next delivery; None while none is scheduled.
        self._cancel: Callable[[], None] | None = None
        #: State of the link: cut, or delays and loss (None: neither), as of the last change.
        self._is_cut = False
        self._quality: LinkQuality | None = None
        #: Whether packets arrive without delay: no fault, and no earlier packet in flight.
        self.is_clear = True
        #: Called when `is_clear` may have changed.
        self.on_change: Callable[[], None] = _do_nothing
        self._update_state()

    @property
    def is_cut(self) -> bool:
        """Return True if the link is cut: packets wait until it is healed."""
        return self._is_cut

    def send(self, arrive: Callable[[], None], size_bytes: int = 0) -> None:
        """Run `arrive` at the other end, immediately if the link has no fault."""
        if self.is_clear:
            arrive()
            return
        due_ms = None if self._is_cut else self._draw_due_ms(size_bytes)
        self._queue.append(_Sent(due_ms, size_bytes, arrive))
        self._schedule_delivery()

    def refresh(self) -> None:
        """Apply the faults now in force; packets queued by a cut are sent once it is healed."""
        self._update_state()
        if self._is_cut or self._quality is None:
            # Packets in flight are lost by a cut and sent again later; after a heal nothing delays
            # them any more.
            self._queue = deque(sent._replace(due_ms=None) for sent in self._queue)
            self._last_due_ms = 0
        if not self._is_cut:
            self._queue = deque(
                sent
                if sent.due_ms is not None
                else sent._replace(due_ms=self._draw_due_ms(sent[1]))
                for sent in self._queue
            )
        self._schedule_delivery()
        self.on_change()

    def close(self) -> None:
        """Close the channel: packets in flight never arrive."""
        self._queue.clear()
        self._cancel_delivery()
        self._links.forget(self)

    def deliver_all(self) -> None:
        """Close the channel and deliver all packets now, because no other user is left."""
        queue, self._queue = self._queue, deque()
        self._cancel_delivery()
        self._links.forget(self)
        self._is_cut, self._quality, self.is_clear = False, None, True
        do_each([sent.arrive for sent in queue], _call)

    def _update_state(self) -> None:
        """Update the state of the link from the faults now in force."""
        faults = self._links.faults
        self._is_cut = faults.is_cut(self._source, self._target)
        self._quality = faults.quality(self._source, self._target)
        self.is_clear = not self._queue and not self._is_cut and self._quality is None

    def _draw_due_ms(self, size_bytes: int) -> int:
        """Return when a packet sent now arrives (monotonic ms), never before an earlier one."""
        due_ms = self._links.clock.monotonic_ms()
        quality = self._quality
        if quality is not None:
            losses = self._draw_losses(quality, packet_count(size_bytes))
            due_ms += quality.delay_ms + retransmission_ms(quality.delay_ms, losses)
        self._last_due_ms = max(self._last_due_ms, due_ms)
        return self._last_due_ms

    def _draw_losses(self, quality: LinkQuality, packets: int) -> int:
        """Draw how often in a row the unluckiest of some packets is lost.

        Each loss delays the frame by one retransmission, as TCP would.
        """
        if quality.loss <= 0.0:
            return 0
        bound, draw = round(quality.loss * LOSS_PARTS), self._links.entropy.random_below
        losses = 0
        lost = packets
        while lost and losses < LINK_RETRANSMISSIONS_MAX:
            lost = sum(draw(LOSS_PARTS) < bound for _ in range(lost))
            losses += lost > 0
        return losses

    def _schedule_delivery(self) -> None:
        """Schedule delivery of the first packet; none is scheduled while the link is cut."""
        self._cancel_delivery()
        if self._queue and self._queue[0].due_ms is not None:
            self._cancel = self._links.timers.call_at(self._queue[0].due_ms, self._deliver)

    def _cancel_delivery(self) -> None:
        """Cancel the scheduled delivery of the first packet, if one is scheduled."""
        cancel, self._cancel = self._cancel, None
        if cancel is not None:
            cancel()

    def _deliver(self) -> None:
        """Deliver all packets that are due, in order, and set the timer for the next."""
        self._cancel = None
        now_ms = self._links.clock.monotonic_ms()
        arrived = []
        while self._queue and (due_ms := self._queue[0].due_ms) is not None and due_ms <= now_ms:
            arrived.append(self._queue.popleft().arrive)
        try:
            do_each(arrived, _call)
        finally:
            self._schedule_delivery()
            self._update_state()
            if self.is_clear:
                self.on_change()


def _call(run: Callable[[], None]) -> None:
    """Call `run`; a function in the form that `do_each` expects."""
    run()


def _do_nothing() -> None:
    """Ignore a change: no listener is set."""
