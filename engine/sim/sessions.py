"""Rule Z2: an ephemeral node exists as long as its session, and both end in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from engine.znode.tree import Node


class SessionRules:
    """Checks the ephemeral nodes of sessions in the store."""

    def __init__(self, broke: Callable[[str, str], None]) -> None:
        """Create the rules; `broke` reports a violation by its rule and text."""
        self._broke = broke
        self._live: set[int] = set()
        self._owners: dict[str, int] = {}

    def on_transaction(
        self, nodes: Mapping[str, Node | None], sessions: Mapping[int, int | None]
    ) -> None:
        """Check rule Z2 for a transaction of the store: ephemeral nodes go with their session.

        In `sessions`, a time-out of None means that the session has ended.
        """
        ended = {session_id for session_id, timeout_ms in sessions.items() if timeout_ms is None}
        self._live |= set(sessions)
        self._live -= ended
        for path, node in nodes.items():
            if node is None or not node.ephemeral_owner:
                self._owners.pop(path, None)
                continue
            self._owners[path] = node.ephemeral_owner
            if node.ephemeral_owner not in self._live:
                self._broke("Z2", f"{path} belongs to {node.ephemeral_owner:#x}, which is over")
        if ended:
            left = sorted(path for path, owner in self._owners.items() if owner in ended)
            if left:
                self._broke("Z2", f"sessions {sorted(ended)} are over, and {left} are there")

    def roll_back(self, nodes: Mapping[str, Node], sessions: Iterable[int]) -> None:
        """Replace all nodes and sessions by those of an older backup, and check rule Z2."""
        self._live = set(sessions)
        self._owners = {
            path: node.ephemeral_owner for path, node in nodes.items() if node.ephemeral_owner
        }
        orphans = sorted(path for path, owner in self._owners.items() if owner not in self._live)
        if orphans:
            self._broke("Z2", f"{orphans} are put back without their sessions")
