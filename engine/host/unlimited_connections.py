"""A gate without limits, for listeners that have no settings of their own."""

from __future__ import annotations

from collections.abc import Callable


class UnlimitedConnections:
    """Admits every connection at once; see `engine.host.ports.ConnectionGate`."""

    __slots__ = ("on_room",)

    def __init__(self) -> None:
        self.on_room: Callable[[], None] = lambda: None

    def arrive(self, _address: str, _now_ms: int) -> int:
        """Return 0: no arrival is throttled."""
        return 0

    def waiting_reason(self) -> str | None:
        """Return None: one more connection is always allowed."""
        return None

    def enter(self, _address: str) -> str | None:
        """Return None: no connection is turned away."""
        return None

    def leave(self, _address: str) -> None:
        """Do nothing: connections are not counted."""
