"""The network links between machines: delay, order, network partitions.

```
channel (one direction of one connection)     FIFO, each frame with its own delay
link (from one machine to another)            blocked: frames wait until it is healed
orders (of a controller, within a link)       can be blocked alone: other frames pass
```

A blocked link loses no frames of a connection that stays open, because TCP retransmits: frames in
flight arrive when the link is healed, unless one end has closed the connection by then. Frames are
lost only if the connection is reset (`SimulatedNetwork.reset`). Frames of different connections may
overtake each other.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from engine.sim.loop import VirtualLoop


def orders_to(machine: str) -> str:
    """Return the name of the link target for a controller's requests to a machine."""
    return f"{machine}/orders"


class MachineLinks:
    """All links of a simulation, by the names of their machines."""

    def __init__(self, loop: VirtualLoop, random: Random, *, delay_ms_max: int) -> None:
        """Create links without faults; each frame is delayed by a random 0 to `delay_ms_max`."""
        self.loop = loop
        self._random = random
        self._delay_ms_max = delay_ms_max
        #: How many faults block each direction; frames are held while there is any.
        self._blocked: dict[tuple[str, str], int] = {}
        self._held: dict[tuple[str, str], list[Callable[[], None]]] = {}
        #: Additional delay (exclusive maximum) of directions that a fault slows down.
        self._slow_ms: dict[tuple[str, str], int] = {}

    def channel(self, source: str, target: str) -> Channel:
        """Create a channel for one direction of a connection."""
        return Channel(self, source, target)

    def delay_ms(self, key: tuple[str, str]) -> int:
        """Draw the delay of the next frame on a link."""
        # Not `randrange`, which takes longer than all other work for a frame.
        delay_ms = int(self._random.random() * (self._delay_ms_max + 1))
        slow_ms = self._slow_ms.get(key)
        return delay_ms if slow_ms is None else delay_ms + self._random.randrange(slow_ms)

    def is_blocked(self, key: tuple[str, str]) -> bool:
        """Return True if frames from the first machine of `key` to the second are held."""
        return key in self._blocked

    def hold(self, key: tuple[str, str], send: Callable[[], None]) -> None:
        """Keep a frame of a blocked link; `heal` calls `send` for it."""
        self._held.setdefault(key, []).append(send)

    def block(self, source: str, target: str) -> None:
        """Block frames from `source` to `target`.

        Blocks are counted, so that faults may overlap.
        """
        key = source, target
        self._blocked[key] = self._blocked.get(key, 0) + 1

    def heal(self, source: str, target: str) -> None:
        """Undo one `block`; after the last one, send the frames that were held."""
        key = source, target
        left = self._blocked.get(key, 0) - 1
        if left > 0:
            self._blocked[key] = left
            return
        self._blocked.pop(key, None)
        for send in self._held.pop(key, ()):
            send()

    def slow_down(self, source: str, target: str, delay_ms_max: int) -> None:
        """Increase each delay in this direction by less than `delay_ms_max`; 0 ends it."""
        if delay_ms_max:
            self._slow_ms[source, target] = delay_ms_max
        else:
            self._slow_ms.pop((source, target), None)


class Channel:
    """One direction of one connection: frames arrive in the order of sending."""

    def __init__(self, links: MachineLinks, source: str, target: str) -> None:
        """Create a channel without frames."""
        self._links = links
        self._key = source, target
        #: The link of a controller's requests, which faults may block alone. None for other
        #: connections.
        self._orders: tuple[str, str] | None = None
        #: Arrival time of the last frame; a later one must not overtake it.
        self._last_ms = 0

    def carry_orders(self) -> None:
        """Mark this as a channel of a controller's requests: blocking these blocks it too."""
        source, target = self._key
        self._orders = source, orders_to(target)

    def send(self, arrive: Callable[[], None]) -> None:
        """Call `arrive` at the other end after a delay, in order; hold it while blocked."""
        links, key = self._links, self._key
        if links.is_blocked(key):
            links.hold(key, lambda: self.send(arrive))
            return
        orders = self._orders
        if orders is not None and links.is_blocked(orders):
            links.hold(orders, lambda: self.send(arrive))
            return
        loop = links.loop
        due_ms = loop.now_ms + links.delay_ms(key)
        due_ms = max(due_ms, self._last_ms)
        self._last_ms = due_ms
        loop.at(due_ms, arrive)
