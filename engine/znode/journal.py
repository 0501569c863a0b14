"""The interface of a store to its durable side, and the state that it loads from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from engine.znode.tree import Node


class Stored(NamedTuple):
    """Everything a journal holds."""

    nodes: list[tuple[str, Node]]
    #: Timeouts in ms by session.
    sessions: dict[int, int]
    #: The last transaction, 0 before the first.
    zxid: int
    #: The secret that passwords of sessions are derived from; empty before `keep_secret`.
    secret: bytes = b""


class Journal(Protocol):
    """Stores the results of transactions. After it raises ZnodeStoreFailed it must not be used."""

    def load(self) -> Stored:
        """Return the state after the last durable transaction."""
        ...

    def commit(
        self, zxid: int, nodes: Mapping[str, Node | None], sessions: Mapping[int, int | None]
    ) -> None:
        """Make one transaction durable atomically.

        A value of None removes a node or session; a session's value is its timeout in ms.
        """
        ...

    def keep_secret(self, secret: bytes) -> None:
        """Make the secret of session passwords durable; it belongs to no transaction."""
        ...

    def close(self) -> None:
        """Release what the journal uses; closing twice is allowed."""
        ...
