"""The registry of journals on this machine: shows which running moves belong to which journal.

A folder has a file for each journal that an execution of this user created; its name is the hash of
the journal's path, its content the path. Files of deleted or finished journals are removed when the
next journal is registered.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from typing import NamedTuple

from engine.errors import EngineError
from engine.host.held_file import HeldFiles
from engine.host.ports import Files
from engine.host.process_identity import ProcessIdentity
from engine.model import TopicPartition
from engine.reassign.journal import is_held
from engine.reassign.journal_state import JournalState, read_journal

_SUFFIX = ".path.json"


class KnownMove(NamedTuple):
    """The journal of a move, and the process that executes it, None if no process does."""

    journal: str
    process: ProcessIdentity | None


class KnownJournals:
    """The journals that are registered in a folder."""

    def __init__(self, files: Files, held_files: HeldFiles, folder: str) -> None:
        self._files = files
        self._held_files = held_files
        self._folder = folder

    def register(self, path: str) -> None:
        """Note a journal in the folder, so that `kctl check` can name the journal of a move.

        Removes the notes of journals that are deleted or finished.
        """
        absolute = self._files.absolute_path(path)
        for name, journal in list(self._iter_journals()):
            state = self._read_state(journal)
            if journal != absolute and (state is None or state.is_over):
                self._files.remove(f"{self._folder}/{name}")
        self._files.make_dir(self._folder)
        name = sha256(absolute.encode("utf-8", "surrogateescape")).hexdigest()[:16] + _SUFFIX
        self._files.replace_file(f"{self._folder}/{name}", json.dumps(absolute).encode())

    def read_moves(self, cluster_id: str | None) -> dict[TopicPartition, KnownMove]:
        """Return the moves that journals of a cluster have submitted and that have not ended."""
        found: dict[TopicPartition, KnownMove] = {}
        for _, journal in self._iter_journals():
            state = self._read_state(journal)
            if state is None or state.is_over or state.begun.cluster_id not in (None, cluster_id):
                continue
            in_progress = state.submitted - state.ended.keys()
            move = KnownMove(journal, state.writer if self._is_held(journal) else None)
            found |= dict.fromkeys(in_progress, move)
        return found

    def _iter_journals(self) -> Iterator[tuple[str, str]]:
        """Yield the name of each file in the folder and the path of the journal that it names."""
        if not self._files.is_dir(self._folder):
            return
        for name in sorted(self._files.list_dir(self._folder)):
            if not name.endswith(_SUFFIX):
                continue
            try:
                path = json.loads(self._files.read_bytes(f"{self._folder}/{name}"))
            except (EngineError, ValueError):
                continue
            if isinstance(path, str):
                yield name, path

    def _read_state(self, journal: str) -> JournalState | None:
        """Return the state of a journal, None if it cannot be read."""
        try:
            return read_journal(self._held_files, journal)
        except EngineError:
            return None

    def _is_held(self, journal: str) -> bool:
        """Return True if a process has the journal locked; False if it cannot be read."""
        try:
            return is_held(self._held_files, journal)
        except EngineError:
            return False
