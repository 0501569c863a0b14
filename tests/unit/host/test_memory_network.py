"""The network in memory keeps its gates as the real one does."""

from __future__ import annotations

from engine.host.memory import ManualClock
from engine.host.memory_network import MemoryNetwork, MemoryTimers
from engine.host.ports import Connection, PauseReason
from engine.host.unlimited_connections import UnlimitedConnections
from engine.limits import TURN_MS_MAX
from tests.unit.host.listening import Told

_DELAY_MS = 10


class _Gate(UnlimitedConnections):
    """Holds every arrival for a while, and counts who is in."""

    def __init__(self) -> None:
        super().__init__()
        self.entered: list[str] = []

    def arrive(self, _address: str, _now_ms: int) -> int:
        """Return the delay."""
        return _DELAY_MS

    def enter(self, address: str) -> str | None:
        """Count."""
        self.entered.append(address)
        return None

    def leave(self, address: str) -> None:
        """Count."""
        self.entered.remove(address)


def test_who_leaves_while_it_is_held_leaves_the_gate() -> None:
    clock, gate = ManualClock(), _Gate()
    timers = MemoryTimers(clock)
    network = MemoryNetwork(timers)
    listener = network.listen("h", 0, lambda _connection: None, Told().options(gate))
    left, stays = (network.connect("h", listener.port, name) for name in ("left", "stays"))
    timers.run_until_idle()
    left.close("done")
    timers.run_until_idle()
    for _ in range(2):
        clock.advance(_DELAY_MS)
        timers.run_until_idle()
    assert ["stays"] == gate.entered
    stays.close("done")
    timers.run_until_idle()
    assert [] == gate.entered


def test_frames_that_wait_have_a_share_of_a_turn() -> None:
    clock, taken = ManualClock(), list[bytes]()
    timers = MemoryTimers(clock)
    network = MemoryNetwork(timers)
    accepted: list[Connection] = []
    listener = network.listen("h", 0, accepted.append, Told().options())
    client = network.connect("h", listener.port)
    timers.run_until_idle()
    (connection,) = accepted

    def take(frame: memoryview) -> None:
        taken.append(bytes(frame))
        clock.advance(TURN_MS_MAX)

    connection.on_frame = take
    connection.pause(PauseReason.QUOTA)
    for frame in (b"a", b"b", b"c"):
        client.send([frame])
    timers.run_until_idle()
    seen: list[int] = []

    def note() -> None:
        seen.append(len(taken))
        if len(seen) < 10:
            timers.call_soon(note)

    connection.resume(PauseReason.QUOTA)
    note()
    timers.run_until_idle()
    # One in each turn.
    assert {1, 2, 3} <= set(seen)
    assert [b"a", b"b", b"c"] == taken
