"""A gate that lets everyone in, for listeners without settings of their own."""

from __future__ import annotations

from collections.abc import Callable


class OpenGate:
    """Lets everyone in at once; see `engine.host.ports.ConnectionGate`."""

    __slots__ = ("on_room",)

    def __init__(self) -> None:
        self.on_room: Callable[[], None] = lambda: None

    def arrive(self, _address: str, _now_ms: int) -> int:
        """Hold nobody back."""
        return 0

    def obstacle(self) -> str | None:
        """Return None: one more can always come in."""
        return None

    def enter(self, _address: str) -> str | None:
        """Return None: nobody is turned away."""
        return None

    def leave(self, _address: str) -> None:
        """Count nobody."""
