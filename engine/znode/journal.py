"""What a store asks of its durable side, and what of it came back after a stop."""

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
    #: What the passwords of sessions are made of; empty before `keep_secret`.
    secret: bytes = b""


class Journal(Protocol):
    """Keeps the results of transactions. Raises ZnodeStoreFailed, and is not used after that."""

    def load(self) -> Stored:
        """Return what the transactions up to the last durable one left."""
        ...

    def commit(
        self, zxid: int, nodes: Mapping[str, Node | None], sessions: Mapping[int, int | None]
    ) -> None:
        """Make one transaction durable, whole or not at all; None removes."""
        ...

    def keep_secret(self, secret: bytes) -> None:
        """Make the secret of session passwords durable; it belongs to no transaction."""
        ...

    def close(self) -> None:
        """Release it; closing twice is allowed."""
        ...
