"""Delayed restarts: after a power cut with losses, a broker waits until a controller saw it go.

```
power cut ──> away ──> out of its in-sync sets, or without a leader ──> starts
                ├──> the controller that knew it lives still ──────────┤
                └──> nobody has looked after a while ──────────────────┘
```

A broker that returns earlier leads on without the lost records, in Kafka too (`losses.py`): such
seeds are few, as their losses are excused.
"""

from __future__ import annotations

from typing import Protocol

#: For how long a broker waits for that at most: there may be nobody else to look.
_AWAY_MS_MAX = 20_000


class Losses(Protocol):
    """Answers whether a broker's loss was not seen by any controller yet."""

    def is_unseen(self, broker_id: int) -> bool:
        """Return whether a broker lost writes, and no controller that lives has seen that."""
        ...


class DelayedRestarts:
    """Selects the brokers that must stay away until a controller has seen their losses."""

    def __init__(self, losses: Losses) -> None:
        self._losses = losses
        #: Until when each broker stays away at most that lost writes.
        self._ends_ms: dict[int, int] = {}

    def lost_writes(self, broker_id: int, now_ms: int) -> None:
        """Take note of a power cut."""
        self._ends_ms[broker_id] = now_ms + _AWAY_MS_MAX

    def is_to_wait(self, broker_id: int, now_ms: int) -> bool:
        """Return whether a broker is not to start yet."""
        end_ms = self._ends_ms.get(broker_id, now_ms)
        return now_ms < end_ms and self._losses.is_unseen(broker_id)
