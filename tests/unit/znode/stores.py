"""Stores in memory for the tests of this folder."""

from __future__ import annotations

from engine.host.memory import ManualClock
from engine.znode.memory_journal import MemoryJournal
from engine.znode.model import Watcher, WatchEvent
from engine.znode.sqlite_journal import SqliteJournal
from engine.znode.store import ZnodeStore

TIMEOUT_MS = 18_000


class Told:
    """Takes note of what watchers are told."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, str]] = []

    def watcher(self, name: str = "w") -> Watcher:
        """Return a watcher that notes its name with each event."""

        def note(event: WatchEvent) -> None:
            self.events.append((name, event.type.name, event.path))

        return note

    def take(self) -> list[tuple[str, str, str]]:
        """Return what was noted since the last call."""
        taken, self.events = self.events, []
        return taken


def store_with_session(path: str | None = None) -> tuple[ZnodeStore, int, ManualClock]:
    """Return a new store, in memory without a path, a session of it and its clock."""
    clock = ManualClock(wall_ms=1_000_000)
    store = ZnodeStore(SqliteJournal(path) if path else MemoryJournal(), clock)
    return store, store.open_session(TIMEOUT_MS), clock
