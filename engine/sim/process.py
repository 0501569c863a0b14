"""A process with one or several brokers; `kctl cluster` runs several in one process.

```
separate   b1 | b2 | b3            requests over the network
shared     b1 + b2 + b3            direct calls between running brokers; the network for clients
```

Brokers that share a process have one life, one loop and one clock: they are killed, lose power, are
paused and delayed together. A controlled shutdown stops one broker, and the others continue. Each
broker has a separate disk, session with the store, and links to the store.

Source: D8, D12.
"""

from __future__ import annotations

from typing import Protocol

from engine.broker.peers import Serve
from engine.sim.disks import Disk
from engine.sim.machine import Machine
from engine.sim.store_client import SimulatedZnodeClient


class ProcessMember(Protocol):
    """One broker of a process; see `engine.sim.node`."""

    broker_id: int
    machine: Machine
    disk: Disk
    client: SimulatedZnodeClient | None

    def end(self, *, has_power: bool) -> None:
        """End the broker at once; without power, peers do not notice it."""
        ...

    def start_later(self) -> None:
        """Schedule the broker's next start."""
        ...

    def lose_writes(self, *, keeps_nothing: bool) -> None:
        """Lose some or all unsynced changes of the disk."""
        ...

    def stop(self) -> None:
        """Start a controlled shutdown."""
        ...

    def hold(self) -> None:
        """Prevent restarts until `allow`."""
        ...

    def allow(self) -> None:
        """Undo one `hold`."""
        ...


class BrokerProcess:
    """A process whose brokers are killed, paused and restarted together."""

    def __init__(self, *, encodes_local_messages: bool = False) -> None:
        """Create a process without brokers.

        With `encodes_local_messages`, calls between its brokers are encoded and decoded.
        """
        self.nodes: list[ProcessMember] = []
        self.encodes_local_messages = encodes_local_messages
        #: The running brokers' request handlers by broker id, for direct calls; replaced in each
        #: life.
        self.peers: dict[int, Serve] = {}

    @property
    def is_shared(self) -> bool:
        """Return True if the process has several brokers."""
        return len(self.nodes) > 1

    @property
    def broker_ids(self) -> frozenset[int]:
        """Return the ids of the process's brokers."""
        return frozenset(node.broker_id for node in self.nodes)

    def kill(self) -> None:
        """Kill the process; its brokers restart later, with all their writes."""
        for node in self._running():
            node.end(has_power=True)
            node.start_later()
        self.peers = {}

    def cut_power(self, *, keeps_nothing: bool) -> None:
        """Cut the machine's power: each broker loses some unsynced writes, and restarts later."""
        ended = self._running()
        for node in ended:
            node.end(has_power=False)
        for node in ended:
            node.lose_writes(keeps_nothing=keeps_nothing)
            node.start_later()
        self.peers = {}

    def _running(self) -> list[ProcessMember]:
        """Return the brokers of this process that are running."""
        return [node for node in self.nodes if node.machine.is_running]

    def stop(self) -> None:
        """Start a controlled shutdown of all brokers, as when one of them cannot continue."""
        for node in self.nodes:
            node.stop()

    def hold(self) -> None:
        """Prevent restarts of all brokers of the process until `allow`."""
        for node in self.nodes:
            node.hold()

    def allow(self) -> None:
        """Undo one `hold`."""
        for node in self.nodes:
            node.allow()

    def pause(self) -> list[tuple[ProcessMember, int]]:
        """Pause all running brokers; return each with the number of its present life.

        The result is empty if the process is paused already.
        """
        if any(node.machine.is_paused for node in self.nodes):
            return []
        paused = [(node, node.machine.life) for node in self._running()]
        for node, _ in paused:
            node.machine.pause()
        return paused
