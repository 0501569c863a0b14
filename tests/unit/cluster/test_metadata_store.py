"""The store of a cluster's process: who loses a session by silence, and who does not."""

from __future__ import annotations

import sqlite3
import struct
from pathlib import Path

import pytest

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
        self.path = str(folder / "znodes.sqlite")
        self.entropy = SeededEntropy()
        self.start()

    def start(self) -> None:
        self.store = MetadataStore(self.path, self.clock, self.timers)
        self.port = self.store.listen(self.network, "h", 0, self.entropy)

    def remote(self, session: bytes = bytes(12)) -> tuple[MemoryConnection, list[str]]:
        """Return a connection with a session, and the reasons why it was closed.

        `session` is the id and the password of one that goes on, as `identity` returns it.
        """
        closed: list[str] = []
        connection = self.network.connect("h", self.port)
        connection.on_close = closed.append
        connection.on_frame = lambda frame: self.answers.append(bytes(frame))
        self.answers: list[bytes] = []
        connection.send([struct.pack(">iqi", 0, 0, TIMEOUT_MS) + session])
        self.timers.run_until_idle()
        return connection, closed

    def identity(self) -> bytes:
        """Return id and password of the session of the last connection."""
        return self.answers[0][8:36]

    def stored_sessions(self) -> int:
        database = sqlite3.connect(self.path)
        try:
            (count,) = database.execute("SELECT count(*) FROM sessions").fetchone()
        finally:
            database.close()
        return int(count)

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


def test_sessions_of_other_processes_outlive_a_restart_and_those_of_this_one_do_not(
    tmp_path: Path,
) -> None:
    stage = Stage(tmp_path)
    local = stage.store.client(TIMEOUT_MS)
    drive(local.connect()).result()
    drive(local.create("/local", ephemeral=True)).result()
    stage.remote()
    identity = stage.identity()
    stage.store.close()
    stage.timers.run_until_idle()
    stage.start()
    _, closed = stage.remote(identity)
    assert ([], identity) == (closed, stage.identity())
    again = stage.store.client(TIMEOUT_MS)
    drive(again.connect()).result()
    assert drive(again.exists("/local")).result() is None
    stage.store.close()


def test_a_file_without_a_secret_keeps_no_session(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.remote()
    stage.store.close()
    database = sqlite3.connect(stage.path)
    database.execute("DROP TABLE secret")
    database.commit()
    database.close()
    assert 1 == stage.stored_sessions()
    stage.start()
    stage.store.close()
    assert 0 == stage.stored_sessions()


@pytest.mark.parametrize(("away_ms", "is_over"), [(TIMEOUT_MS - 500, False), (TIMEOUT_MS, True)])
def test_a_session_has_its_whole_timeout_to_come_back_after_a_restart(
    tmp_path: Path, away_ms: int, is_over: bool
) -> None:
    stage = Stage(tmp_path)
    stage.remote()
    identity = stage.identity()
    stage.pass_time(TIMEOUT_MS - 500)
    stage.store.close()
    stage.start()
    stage.pass_time(away_ms)
    _, closed = stage.remote(identity)
    assert is_over == bool(closed)
    stage.store.close()
