"""Moves that a plan can do without: replicas that go back home while bytes stay level.

```
for counts     r goes from x to b
for bytes      p goes from y to b, and q from b to y, so that b holds as many as before
then           q stays on b, and r goes from x to y: one move less
```

So a replica that left a broker comes back, and one that came goes where the first had gone. Where
counts are as level without the second, the first alone comes back.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

from engine.planner.placement_state import PlacementState

#: How many replicas that moved to a broker are considered for moving on.
_CANDIDATES_MAX: Final = 64


class MoveSaving:
    """The search for replicas that need not have moved."""

    def __init__(self, state: PlacementState, expected: Sequence[float], tolerance: float) -> None:
        """Limit each broker's bytes to `tolerance` times its expected bytes, or what it holds."""
        self._state = state
        self._most = [
            max(bytes_expected * tolerance, held)
            for bytes_expected, held in zip(expected, state.held_bytes, strict=True)
        ]

    def save(self) -> int:
        """Send replicas home until none can go; returns how many went."""
        state, saved = self._state, 0
        while True:
            before = saved
            for home, is_playing in enumerate(state.in_play):
                if is_playing:
                    departed = reversed(tuple(state.departed[home]))
                    saved += sum(self._bring_back(partition, home) for partition in departed)
            if saved == before:
                return saved

    def _bring_back(self, partition: int, home: int) -> bool:
        """Have a replica stand where it was, if another may take its place or counts allow it."""
        state = self._state
        if home in state.replicas[partition]:
            return False  # it went home as the other one of a pair
        for away in tuple(state.replicas[partition]):
            if away in state.original[partition] or not state.may_move(partition, away, home):
                continue
            if self._needs_no_other(partition, home, away):
                state.move(partition, away, home)
                return True
            other = self._other(partition, home, away)
            if other is not None:
                state.move(other, home, away)
                state.move(partition, away, home)
                return True
        return False

    def _needs_no_other(self, partition: int, home: int, away: int) -> bool:
        """Return whether counts stay as level, and bytes too, when only this one moves."""
        state = self._state
        return (
            state.group_of[home] == state.group_of[away]
            and state.counts[home] < state.counts[away]
            and state.held_bytes[home] + state.size_at(partition, home) <= self._most[home]
        )

    def _other(self, partition: int, home: int, away: int) -> int | None:
        """Return a replica that came to `home` and may be on `away` in the place of this one."""
        state, sizes = self._state, self._state.sizes
        least = state.held_bytes[home] + state.size_at(partition, home) - self._most[home]
        most = self._most[away] - state.held_bytes[away] + state.size_at(partition, away)
        arrived = state.arrived[home]
        low = bisect_left(arrived, bisect_left(sizes, least))
        high = bisect_left(arrived, bisect_left(sizes, most))
        stride = 1 + (high - low) // _CANDIDATES_MAX
        for other in arrived[low:high:stride]:
            if state.may_move(other, home, away):
                return other
        return None
