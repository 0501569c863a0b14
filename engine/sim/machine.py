"""A machine and the lives of the process on it: clock, timers, crash, pause.

```
start ──> running ──pause──> standing still: what is due waits ──resume──> running
             │ kill: nothing of this life runs any more
             └──────> down ── start ──> the next life
```

A callback belongs to the life that asked for it. Callbacks that become due while a process is
paused run when it goes on, in their order: to the process it all happens at once, as after a
SIGCONT.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Protocol

from engine.host.memory import MachineStopped
from engine.host.ports import Clock
from engine.sim.loop import VirtualLoop

if TYPE_CHECKING:
    from engine.host.memory_network import MemoryConnection

#: What the wall clocks show at the start of a simulation.
WALL_START_MS = 1_700_000_000_000


class MachineEvents(Protocol):
    """Receives events of machines."""

    def ran(self, machine: Machine) -> None:
        """Take note that a callback of a process ran, to its end or to that of its disk."""
        ...

    def broke(self, machine: Machine, error: Exception) -> None:
        """Take note of an exception that no code of a process caught."""
        ...


class Machine:
    """One machine, by name; its process runs or not."""

    def __init__(self, name: str, loop: VirtualLoop, events: MachineEvents) -> None:
        """Begin without a process; `events` are told of its starts and ends."""
        self.name = name
        self.loop = loop
        #: Number of the present process: timers of earlier ones are void.
        self.life = 0
        self.is_running = False
        self.is_paused = False
        #: Whether the machine is up: only then its kernel refuses connections to a dead process.
        self.has_power = True
        #: Error of the machine's wall clock.
        self.wall_offset_ms = 0
        #: By how much the loop learns later of work that has ended on a worker thread.
        self.thread_delay_ms = 0
        self.connections: dict[MemoryConnection, None] = {}
        self.clock = MachineClock(self)
        self._events = events
        #: Callbacks that came during a pause, run at its end.
        self._held: list[Callable[[], None]] = []

    def start(self) -> MachineTimers:
        """Begin a life; returns its timers."""
        assert not self.is_running
        self.life += 1
        self.is_running = self.has_power = True
        return MachineTimers(self, self.life)

    def kill(self, *, has_power: bool = True) -> None:
        """End the process now; without power its peers get no close of their connections."""
        self.is_running = self.is_paused = False
        self.has_power = has_power
        self._held.clear()
        connections, self.connections = self.connections, {}
        for connection in connections:
            connection.drop(notifies_peer=has_power)

    def pause(self) -> None:
        """Let the process stand still."""
        self.is_paused = self.is_running

    def resume(self) -> None:
        """Continue a paused machine with all callbacks that came meanwhile."""
        self.is_paused = False
        held, self._held = self._held, []
        for callback in held:
            self.loop.soon(callback)

    def is_alive(self, life: int) -> bool:
        """Return whether a life has not ended."""
        return self.is_running and self.life == life

    def enter(self, life: int, callback: Callable[[], None]) -> None:
        """Run a callback of a life, later if the process stands still, never if it has ended."""
        if self.life != life or not self.is_running:
            return
        if self.is_paused:
            self._held.append(partial(self.enter, life, callback))
            return
        try:
            callback()
        except MachineStopped:
            # The callback sees to it.
            pass
        except Exception as error:
            self._events.broke(self, error)
            return
        self._events.ran(self)


class MachineClock:
    """The clock of a machine; see `engine.host.ports.Clock`."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def wall_ms(self) -> int:
        """Return milliseconds since the Unix epoch, as this machine believes."""
        machine = self._machine
        return WALL_START_MS + machine.loop.now_ms + machine.wall_offset_ms

    def monotonic_ms(self) -> int:
        """Return milliseconds since the start of the simulation."""
        return self._machine.loop.now_ms


class MachineTimers:
    """Work for later of one life; see `engine.host.ports.Timers`."""

    def __init__(self, machine: Machine, life: int) -> None:
        self.clock: Clock = machine.clock
        self.machine = machine
        self.life = life

    def call_at(self, monotonic_ms: int, callback: Callable[[], None]) -> Callable[[], None]:
        """Run a callback once at a time or soon after; return a function that cancels it."""
        is_cancelled = False

        def run() -> None:
            # A process that stood still may cancel what was due meanwhile.
            if not is_cancelled:
                callback()

        def cancel() -> None:
            nonlocal is_cancelled
            is_cancelled = True
            cancel_timer()

        machine, life = self.machine, self.life
        cancel_timer = machine.loop.at(monotonic_ms, partial(machine.enter, life, run))
        return cancel

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Run after everything that is due now."""
        machine = self.machine
        machine.loop.soon(partial(machine.enter, self.life, callback))

    def call_from_thread(self, callback: Callable[[], None]) -> None:
        """The same, later where the machine is slow: there is one thread."""
        delay_ms = self.machine.thread_delay_ms
        if delay_ms:
            self.call_at(self.clock.monotonic_ms() + delay_ms, callback)
        else:
            self.call_soon(callback)
