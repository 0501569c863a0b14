"""One process of brokers: most have their own, some share one, as those of `kctl cluster` do.

```
own        b1 | b2 | b3            requests over the network
shared     b1 + b2 + b3            direct calls, between all that run; the network for clients
```

Brokers that share a process have one life, one loop and one clock: they are killed, lose the power,
stand still and are late together. A stop in order is of one broker, and the others go on. Each has
its own disk, its own session with the store and its own links to it.

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
        """End at once."""
        ...

    def start_later(self) -> None:
        """Start again after a while."""
        ...

    def lose_writes(self, *, keeps_nothing: bool) -> None:
        """Lose some of what is not synced, or all of it."""
        ...

    def stop(self) -> None:
        """Stop in order."""
        ...

    def hold(self) -> None:
        """Stay down after the end, until `allow`."""
        ...

    def allow(self) -> None:
        """Take back one `hold`."""
        ...


class BrokerProcess:
    """A process: its brokers begin and end together."""

    def __init__(self, *, encodes_local_messages: bool = False) -> None:
        """With `encodes_local_messages` calls between the brokers go through their bytes."""
        self.nodes: list[ProcessMember] = []
        self.encodes_local_messages = encodes_local_messages
        #: The brokers that run, as they reach each other; each life of the process has its own.
        self.peers: dict[int, Serve] = {}

    @property
    def is_shared(self) -> bool:
        """Return whether several brokers are in it."""
        return len(self.nodes) > 1

    @property
    def broker_ids(self) -> frozenset[int]:
        """Return the ids of its brokers."""
        return frozenset(node.broker_id for node in self.nodes)

    def kill(self) -> None:
        """Kill the process; its brokers start again later, with all that they wrote."""
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
        """Return the brokers of this process that run now."""
        return [node for node in self.nodes if node.machine.is_running]

    def stop(self) -> None:
        """Stop all brokers in order, as when one of them cannot go on."""
        for node in self.nodes:
            node.stop()

    def hold(self) -> None:
        """Keep it down once it ends, until `allow`."""
        for node in self.nodes:
            node.hold()

    def allow(self) -> None:
        """Take back one `hold`."""
        for node in self.nodes:
            node.allow()

    def pause(self) -> list[tuple[ProcessMember, int]]:
        """Pause all brokers of the process; return them with their present lives.

        Empty if the process is paused already.
        """
        if any(node.machine.is_paused for node in self.nodes):
            return []
        paused = [(node, node.machine.life) for node in self._running()]
        for node, _ in paused:
            node.machine.pause()
        return paused
