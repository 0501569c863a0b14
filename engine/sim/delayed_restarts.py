"""Delayed restarts.

After a power cut with losses, a broker stays down until a controller noticed it.

```
power cut ──> down ──> removed from its ISRs, or without a leader ──> starts
                ├──> the controller that believed it alive is gone ────┤
                └──> no controller noticed it within a time limit ─────┘
```

A broker that restarts earlier keeps leading without the lost records, in Kafka too (`losses.py`):
such seeds should be few, because their losses are excused.
"""

from __future__ import annotations

from typing import Protocol

#: The time limit: there may be no controller to notice it.
_AWAY_MS_MAX = 20_000


class Losses(Protocol):
    """Knows whether a broker's loss has been noticed by a controller."""

    def is_unseen(self, broker_id: int) -> bool:
        """Return True if a broker lost writes and no live controller noticed that it was down."""
        ...


class DelayedRestarts:
    """Selects the brokers that must stay down until a controller has noticed it."""

    def __init__(self, losses: Losses) -> None:
        """Create it without delayed brokers."""
        self._losses = losses
        #: The time limit of each broker that lost writes.
        self._ends_ms: dict[int, int] = {}

    def record_lost_writes(self, broker_id: int, now_ms: int) -> None:
        """Record that a broker lost writes in a power cut."""
        self._ends_ms[broker_id] = now_ms + _AWAY_MS_MAX

    def must_wait(self, broker_id: int, now_ms: int) -> bool:
        """Return True if a broker may not start yet: no controller has noticed its lost writes.

        False after the time limit, whether they were noticed or not.
        """
        end_ms = self._ends_ms.get(broker_id, now_ms)
        return now_ms < end_ms and self._losses.is_unseen(broker_id)
