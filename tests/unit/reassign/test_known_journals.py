"""Whose moves are: journals that this machine knows."""

from __future__ import annotations

from engine.host.memory_held_file import MemoryHeldFiles
from engine.reassign.journal import MoveJournal
from engine.reassign.journal_state import Begun, ExecutionSettings
from engine.reassign.known_journals import KnownJournals, KnownMove
from tests.unit.reassign.moved_cluster import T0, WRITER, change

MOVE = change(0, (1, 2), (2, 3))
FOLDER = "/state/reassign"


def begun(files: MemoryHeldFiles, path: str, cluster_id: str | None = "c") -> MoveJournal:
    journal = MoveJournal.create(
        files, path, Begun(cluster_id, (MOVE,), ExecutionSettings()), WRITER
    )
    KnownJournals(files, files, FOLDER).register(path)
    return journal


def test_a_move_is_ours_from_when_it_is_requested_until_its_end() -> None:
    files = MemoryHeldFiles()
    known = KnownJournals(files, files, FOLDER)
    assert {} == known.read_moves("c")
    journal = begun(files, "/plan.journal")
    assert {} == known.read_moves("c")
    journal.submit([T0])
    assert {T0: KnownMove("/plan.journal", WRITER)} == known.read_moves("c")
    assert {} == known.read_moves("other")
    files.kill_holders()
    assert {T0: KnownMove("/plan.journal", None)} == known.read_moves("c")
    journal, _ = MoveJournal.reopen(files, "/plan.journal", WRITER)
    journal.ended(T0, "done")
    assert {} == known.read_moves("c")


def test_a_journal_that_is_over_gone_or_damaged_is_nobodys_and_forgotten() -> None:
    files = MemoryHeldFiles()
    for number in range(3):
        journal = begun(files, f"/{number}.journal")
        journal.submit([T0])
        if number == 0:
            journal.over("cancelled")
        journal.close()
    files.remove("/1.journal")
    files.replace_file("/2.journal", b"no journal")
    files.replace_file(f"{FOLDER}/bad.path.json", b"{")
    known = KnownJournals(files, files, FOLDER)
    assert {} == known.read_moves("c")
    begun(files, "/3.journal").close()
    paths = [name for name in files.list_dir(FOLDER) if name != "bad.path.json"]
    assert 1 == len(paths)
