"""How tests listen: everyone is let in, and what is refused is kept."""

from __future__ import annotations

from engine.host.ports import ConnectionGate, ConnectionLimits, ListenOptions
from engine.host.stream_layer import LayerOf
from engine.host.unlimited_connections import UnlimitedConnections


class Told:
    """The reasons that a listener gave."""

    def __init__(self) -> None:
        self.refused: list[str] = []
        self.kept_out: list[str] = []

    def options(
        self,
        gate: ConnectionGate | None = None,
        limits: ConnectionLimits | None = None,
        *,
        backlog: int = 50,
        layer: LayerOf | None = None,
    ) -> ListenOptions:
        """Return options whose reasons go here."""
        return ListenOptions(
            gate or UnlimitedConnections(),
            lambda _peer, reason: self.refused.append(reason),
            lambda _peer, reason: self.kept_out.append(reason),
            limits or ConnectionLimits(),
            backlog,
            layer=layer,
        )
