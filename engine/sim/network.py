"""Connections over links: the `Network` port of each machine.

```
connect ── resolution ──> SYN over the link ──> listener? ── accepted
              │ fails: closed       │ no listener or no process: refused over the link back
kill        the machine closes the connections of the process; without power, peers do not notice
reset       both ends of every connection between two machines are closed
```
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import partial

from engine.host.acceptor import Arrival
from engine.host.memory_network import (
    Carry,
    LookupFault,
    MemoryConnection,
    MemoryListener,
    PendingDelivery,
)
from engine.host.ports import Connection, ListenOptions, SendPart
from engine.host.send_parts import part_bytes
from engine.host.stream_layer import LayerOf
from engine.sim.machine import Machine, MachineTimers
from engine.sim.machine_links import Channel, MachineLinks

_API_KEY = struct.Struct(">h")
_API_VERSIONS = 18
#: API keys of a controller's requests: LeaderAndIsr, StopReplica, UpdateMetadata.
_ORDERS = (4, 5, 6)


class SimulatedNetwork:
    """All listeners and connections of a simulation."""

    def __init__(self, links: MachineLinks) -> None:
        """Create a network without machines."""
        self.links = links
        self.machines: dict[str, Machine] = {}
        #: Listeners by host and port, each with the life of the process that opened it and ends it.
        self.listeners: dict[tuple[str, int], tuple[int, MemoryListener]] = {}
        #: Faults of host name resolution, by the name of the machine that resolves.
        self.lookup_faults: dict[str, LookupFault] = {}

    def port_of(self, timers: MachineTimers) -> MachineNetwork:
        """Return the network port for one life of a machine's process."""
        return MachineNetwork(self, timers)

    def reset(self, one: str, other: str) -> None:
        """Reset every connection between two machines."""
        for name, peer in ((one, other), (other, one)):
            machine = self.machines[name]
            for connection in [c for c in machine.connections if c.peer.startswith(f"{peer}:")]:
                self._break(machine, connection)

    @staticmethod
    def _break(machine: Machine, connection: MemoryConnection) -> None:
        """Reset a machine's connection, unless its process ends before."""
        machine.connections.pop(connection, None)
        life = machine.life
        machine.loop.soon(
            lambda: machine.enter(life, lambda: connection.close("connection reset by peer"))
        )


class MachineNetwork:
    """The network port of one life of a process; see `engine.host.ports.Network`."""

    def __init__(self, network: SimulatedNetwork, timers: MachineTimers) -> None:
        self.timers = timers
        self._network = network

    def listen(
        self, host: str, port: int, on_connect: Callable[[Connection], None], options: ListenOptions
    ) -> MemoryListener:
        """Listen on a host and port of this machine."""
        listener = MemoryListener(self, (host, port), on_connect, options)
        self._network.listeners[host, port] = self.timers.life, listener
        return listener

    def forget(self, key: tuple[str, int]) -> None:
        """Remove a closed listener, unless a later life of the process listens there."""
        life, _ = self._network.listeners.get(key, (None, None))
        if life == self.timers.life:
            del self._network.listeners[key]

    def connect(
        self,
        host: str,
        port: int,
        *,
        receive_buffer_bytes: int = -1,
        layer: LayerOf | None = None,
    ) -> MemoryConnection:
        """Open a connection with unbounded buffers; a machine without power does not respond."""
        network, source = self._network, self.timers.machine
        target = network.machines[host]
        there = network.links.channel(source.name, target.name)
        back = network.links.channel(target.name, source.name)
        target_life, source_life = target.life, self.timers.life

        def refuse() -> None:
            """Reset the client's end, as the process that it connected to has ended."""
            back.send(
                lambda: source.enter(source_life, lambda: ours.close("connection reset by peer"))
            )

        def refuse_back() -> None:
            """Reset the server's end, as the client's process has ended."""
            there.send(
                lambda: target.enter(target_life, lambda: theirs.close("connection reset by peer"))
            )

        carry = PendingDelivery(_carry(there, target, target_life, refuse))
        ours = _ClientConnection(self.timers, f"{host}:{port}", there, carry)
        theirs = MemoryConnection(
            MachineTimers(target, target_life),
            f"{source.name}:1",
            is_open=False,
            carry=_carry(back, source, source_life, refuse_back),
        )
        ours.join(theirs)
        source.connections[ours] = None

        def arrive() -> None:
            """Pass the connection to its listener; refuse it if the process has ended."""
            life, listener = network.listeners.get((host, port), (None, None))
            if life != target_life or listener is None:
                refuse()
                return
            target.connections[theirs] = None
            listener.queue_connection(Arrival(source.name, theirs.peer, theirs))

        def found() -> None:
            """Let the connection arrive, once the host's name is resolved."""
            # Deliver this before everything that was sent meanwhile.
            _carry(there, target, target_life, refuse)(arrive)
            carry.open()

        fault = network.lookup_faults.get(source.name)
        if fault is None:
            found()
        else:
            self._resolve(fault, ours, found)
        return ours

    def _resolve(
        self, fault: LookupFault, ours: MemoryConnection, found: Callable[[], None]
    ) -> None:
        """Wait for the simulated name resolution, then call `found`; close `ours` if it fails."""

        def end() -> None:
            """Close the connection if the resolution fails, else connect."""
            if fault.fails:
                ours.close("unknown host")
            elif not ours.is_closed:
                found()

        timers = self.timers
        timers.call_at(timers.clock.monotonic_ms() + fault.delay_ms, end)

    def address_of(self, host: str) -> str | None:
        """Return the address of a host, which is its name."""
        return host


class _ClientConnection(MemoryConnection):
    """A client's end of a connection; its first request shows whether it is a controller's."""

    def __init__(
        self,
        timers: MachineTimers,
        peer: str,
        channel: Channel,
        carry: Carry,
    ) -> None:
        """Create the connection; `channel` is marked once a controller's request is sent."""
        super().__init__(timers, peer, carry=carry)
        self._channel = channel
        #: Whether only ApiVersions was sent yet, so that the kind of connection is unknown.
        self._is_undecided = True

    def send(self, parts: Sequence[SendPart], on_sent: Callable[[], None] | None = None) -> None:
        """Send one frame; the first request after ApiVersions determines the kind of connection."""
        if self._is_undecided:
            api_key = _API_KEY.unpack_from(b"".join(part_bytes(part) for part in parts))[0]
            if api_key != _API_VERSIONS:
                self._is_undecided = False
                if api_key in _ORDERS:
                    self._channel.carry_orders()
        super().send(parts, on_sent)


def _carry(channel: Channel, target: Machine, life: int, refuse: Callable[[], None]) -> Carry:
    """Return the function that delivers frames to one life of a machine's process.

    A later life refuses them; a machine without power does not respond.
    """

    def arrived(run: Callable[[], None]) -> None:
        """Run the arrival in the target's process; refuse it if the process has ended since.

        A machine without power responds with nothing, not even a refusal.
        """
        if target.is_alive(life):
            target.enter(life, run)
        elif target.has_power:
            refuse()

    return lambda run: channel.send(partial(arrived, run))
