"""A journal in memory, in place of `sqlite_journal.py` in tests and simulations.

It outlives the store above it, so that a test can stop a store and start another on it. Committed
transactions are there at once, whole.
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.znode.journal import Stored
from engine.znode.tree import Node

_NOTHING = Stored([], {}, 0)


class MemoryJournal:
    """Keeps the results of transactions in this process."""

    def __init__(self, stored: Stored = _NOTHING) -> None:
        """Start with a stored state, by default an empty one."""
        self._nodes: dict[str, Node] = dict(stored.nodes)
        self._sessions: dict[int, int] = dict(stored.sessions)
        self._zxid = stored.zxid
        self._secret = stored.secret

    def load(self) -> Stored:
        """Return the state after all transactions."""
        return Stored(list(self._nodes.items()), dict(self._sessions), self._zxid, self._secret)

    def commit(
        self, zxid: int, nodes: Mapping[str, Node | None], sessions: Mapping[int, int | None]
    ) -> None:
        """Store one transaction in memory.

        A value of None removes a node or session; a session's value is its timeout in ms.
        """
        for path, node in nodes.items():
            if node is None:
                self._nodes.pop(path, None)
            else:
                self._nodes[path] = node
        for session_id, timeout_ms in sessions.items():
            if timeout_ms is None:
                self._sessions.pop(session_id, None)
            else:
                self._sessions[session_id] = timeout_ms
        self._zxid = zxid

    def keep_secret(self, secret: bytes) -> None:
        """Keep the secret of session passwords."""
        self._secret = secret

    def close(self) -> None:
        """Keep everything: there is nothing to release."""
