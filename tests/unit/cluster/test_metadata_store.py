"""The store of a cluster's process: who loses a session by silence, and who does not."""

from __future__ import annotations

import struct
from pathlib import Path

from engine.cluster.cluster import MetadataStore
from engine.host.coroutine import drive
from engine.host.memory import ManualClock, SeededEntropy
from engine.host.memory_network import MemoryConnection, MemoryNetwork, MemoryTimers

TIMEOUT_MS = 6000
PING = struct.pack(">ii", -2, 11)


class Stage:
    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock()
        self.timers = MemoryTimers(self.clock)
        self.network = MemoryNetwork(self.timers)
        self.store = MetadataStore(str(folder / "znodes.sqlite"), self.clock, self.timers)
        self.port = self.store.listen(self.network, "h", 0, SeededEntropy())

    def remote(self) -> tuple[MemoryConnection, list[str]]:
        """Return a connection with a session, and the reasons why it was closed."""
        closed: list[str] = []
        connection = self.network.connect("h", self.port)
        connection.on_close = closed.append
        connection.send([struct.pack(">iqiqi", 0, 0, TIMEOUT_MS, 0, 0)])
        self.timers.run_until_idle()
        return connection, closed

    def pass_time(self, duration_ms: int, step_ms: int = 500) -> None:
        for _ in range(0, duration_ms, step_ms):
            self.clock.advance(step_ms)
            self.timers.run_until_idle()


def test_a_silent_client_from_outside_expires_and_one_that_pings_does_not(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    _, silent = stage.remote()
    connection, living = stage.remote()
    for _ in range(4):
        stage.pass_time(2000)
        connection.send([PING])
        stage.timers.run_until_idle()
    assert (len(silent), living) == (1, [])
    stage.store.close()


def test_a_client_of_this_process_lives_as_long_as_its_loop_turns(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    client = stage.store.client(TIMEOUT_MS)
    drive(client.connect()).result()
    stage.pass_time(5 * TIMEOUT_MS)
    assert client.is_open
    # A process that was stopped for long.
    stage.clock.advance(10 * TIMEOUT_MS)
    stage.timers.run_until_idle()
    assert client.is_open
    stage.store.close()


def test_what_came_while_the_process_stood_still_is_read_before_anyone_expires(
    tmp_path: Path,
) -> None:
    stage = Stage(tmp_path)
    connection, living = stage.remote()
    _, silent = stage.remote()
    stage.clock.advance(10 * TIMEOUT_MS)
    # The timer that is overdue comes first, as in a loop that looks at its sockets last.
    stage.timers.call_soon(lambda: connection.send([PING]))
    stage.timers.run_until_idle()
    assert (living, len(silent)) == ([], 1)
    stage.store.close()


def test_a_client_that_is_closed_leaves_no_timer(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    before = stage.timers.waiting_count
    clients = [stage.store.client(TIMEOUT_MS) for _ in range(3)]
    drive(clients[0].connect()).result()
    for client in clients:
        drive(client.close()).result()
    assert before == stage.timers.waiting_count
    stage.store.close()


def test_a_closed_store_listens_no_more_and_closes_its_connections(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    _, closed = stage.remote()
    stage.store.close()
    stage.timers.run_until_idle()
    assert ["closed by the peer"] == closed
    assert [] == stage.network.listeners
    assert 0 == stage.timers.waiting_count
