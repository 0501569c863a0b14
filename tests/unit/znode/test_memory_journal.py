"""The journal in memory keeps what the one in a file keeps."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.host.memory import ManualClock, SeededEntropy
from engine.znode.journal import Journal
from engine.znode.memory_journal import MemoryJournal
from engine.znode.model import Create, Delete, SetData
from engine.znode.sqlite_journal import SqliteJournal
from engine.znode.store import ZnodeStore
from tests.unit.znode.stores import TIMEOUT_MS


def _lived(journal: Journal) -> None:
    store = ZnodeStore(journal, ManualClock(wall_ms=7))
    me, gone = store.open_session(TIMEOUT_MS), store.open_session(5)
    store.multi(me, [Create("/a", b"1"), Create("/a/e", None, True), Create("/b")])
    store.apply(me, SetData("/a", b"2"))
    store.apply(me, Delete("/b"))
    store.close_session(gone)
    store.session_secret(SeededEntropy())


def test_both_journals_hold_the_same_after_the_same_life(tmp_path: Path) -> None:
    kept, file = MemoryJournal(), SqliteJournal(str(tmp_path / "znodes.db"))
    _lived(kept)
    _lived(file)
    expected = file.load()
    file.close()
    stored = kept.load()
    assert (sorted(expected.nodes), expected.sessions) == (sorted(stored.nodes), stored.sessions)
    assert expected.zxid == stored.zxid > 0
    assert expected.secret == stored.secret != b""


@pytest.mark.parametrize("times", [1, 2])
def test_a_store_starts_again_on_a_journal_that_was_closed(times: int) -> None:
    journal = MemoryJournal()
    store = ZnodeStore(journal, ManualClock())
    me = store.open_session(TIMEOUT_MS)
    store.apply(me, Create("/a", b"1"))
    for _ in range(times):
        store.close()
        store = ZnodeStore(journal, ManualClock())
    assert b"1" == store.get(me, "/a")[0]
    assert [me] == store.session_ids()
