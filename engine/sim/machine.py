"""A machine and the successive processes on it, called lives: clock, timers, kill, pause.

```
start ──> running ──pause──> paused: due callbacks are held ──resume──> running
             │ kill: no callback of this life runs any more
             └──────> down ── start ──> the next life
```

A callback belongs to the life that scheduled it. Callbacks that become due while a process is
paused run when it is resumed, in their order: for the process they happen all at once, as after
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

#: The wall clocks' time in ms at the start of a simulation.
WALL_START_MS = 1_700_000_000_000


class MachineEvents(Protocol):
    """Receives events of machines."""

    def on_callback_end(self, machine: Machine) -> None:
        """Called after each callback of the machine's process, to check the invariants.

        The process may have ended in the callback, or its disk stopped.
        """
        ...

    def broke(self, machine: Machine, error: Exception) -> None:
        """Record an exception that no code of a process caught."""
        ...


class Machine:
    """One machine, identified by its name; its process may be running, paused or ended."""

    def __init__(self, name: str, loop: VirtualLoop, events: MachineEvents) -> None:
        """Create a machine without a process; `events` receives its events."""
        self.name = name
        self.loop = loop
        #: Number of the present process; timers of earlier ones do not run.
        self.life = 0
        self.is_running = False
        self.is_paused = False
        #: Whether the machine is up: only then its kernel refuses connections to a dead process.
        self.has_power = True
        #: Offset of the machine's wall clock in ms.
        self.wall_offset_ms = 0
        #: Delay in ms of results of worker threads.
        self.thread_delay_ms = 0
        self.connections: dict[MemoryConnection, None] = {}
        self.clock = MachineClock(self)
        self._events = events
        #: Callbacks that were due during a pause; they run at its end.
        self._held: list[Callable[[], None]] = []

    def start(self) -> MachineTimers:
        """Start a process; return its timers."""
        assert not self.is_running
        self.life += 1
        self.is_running = self.has_power = True
        return MachineTimers(self, self.life)

    def kill(self, *, has_power: bool = True) -> None:
        """End the process now; without power, peers do not notice that its connections ended."""
        self.is_running = self.is_paused = False
        self.has_power = has_power
        self._held.clear()
        connections, self.connections = self.connections, {}
        for connection in connections:
            connection.drop_silently(notifies_peer=has_power)

    def pause(self) -> None:
        """Pause the process until `resume`."""
        self.is_paused = self.is_running

    def resume(self) -> None:
        """Continue a paused process and run all callbacks that were due meanwhile."""
        self.is_paused = False
        held, self._held = self._held, []
        for callback in held:
            self.loop.soon(callback)

    def is_alive(self, life: int) -> bool:
        """Return True if the life with this number is the present one, running or paused."""
        return self.is_running and self.life == life

    def enter(self, life: int, callback: Callable[[], None]) -> None:
        """Run a callback of a life: after a pause if it is paused, never if it has ended."""
        if self.life != life or not self.is_running:
            return
        if self.is_paused:
            self._held.append(partial(self.enter, life, callback))
            return
        try:
            callback()
        except MachineStopped:
            # `on_callback_end` finds the stopped disk.
            pass
        except Exception as error:
            self._events.broke(self, error)
            return
        self._events.on_callback_end(self)


class MachineClock:
    """The clock of a machine; see `engine.host.ports.Clock`."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def wall_ms(self) -> int:
        """Return the machine's wall clock in ms since the Unix epoch, including its offset."""
        machine = self._machine
        return WALL_START_MS + machine.loop.now_ms + machine.wall_offset_ms

    def monotonic_ms(self) -> int:
        """Return milliseconds since the start of the simulation."""
        return self._machine.loop.now_ms


class MachineTimers:
    """Scheduled callbacks of one life; see `engine.host.ports.Timers`."""

    def __init__(self, machine: Machine, life: int) -> None:
        self.clock: Clock = machine.clock
        self.machine = machine
        self.life = life

    def call_at(self, monotonic_ms: int, callback: Callable[[], None]) -> Callable[[], None]:
        """Run a callback once at a time or soon after; return a function that cancels it."""
        is_cancelled = False

        def run() -> None:
            """Run the callback unless it is cancelled."""
            # A process may cancel a callback after a pause in which it was due.
            if not is_cancelled:
                callback()

        def cancel() -> None:
            """Cancel the callback, also one that is due in a paused process."""
            nonlocal is_cancelled
            is_cancelled = True
            cancel_timer()

        machine, life = self.machine, self.life
        cancel_timer = machine.loop.at(monotonic_ms, partial(machine.enter, life, run))
        return cancel

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Run a callback after all that are due now."""
        machine = self.machine
        machine.loop.soon(partial(machine.enter, self.life, callback))

    def call_from_thread(self, callback: Callable[[], None]) -> None:
        """Queue a callback on the loop, after the machine's thread delay.

        A real host calls it from worker threads; here there is one thread.
        """
        delay_ms = self.machine.thread_delay_ms
        if delay_ms:
            self.call_at(self.clock.monotonic_ms() + delay_ms, callback)
        else:
            self.call_soon(callback)
