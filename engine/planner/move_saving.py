"""Removal of unnecessary moves from a plan.

Replicas return to their old broker if bytes stay level.

```
for counts     r moves from x to b
for bytes      p moves from y to b, and q from b to y, so that b has as many as before
then           q stays on b, and r moves from x to y: one move less
```

So a replica that left a broker returns, and one that came to it goes to the first one's new broker.
If counts are as level without the second step, only the first replica returns.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

from engine.planner.placement_state import PlacementState

#: How many of the replicas that came to a broker are tried for moving on.
_CANDIDATES_MAX: Final = 64


class MoveSaving:
    """The search for moved replicas that can return to their old broker."""

    def __init__(self, state: PlacementState, expected: Sequence[float], tolerance: float) -> None:
        """Create the search for unnecessary moves.

        A broker may get `tolerance` times its expected bytes, or its present bytes if they are
        more.
        """
        self._state = state
        self._most = [
            max(bytes_expected * tolerance, held)
            for bytes_expected, held in zip(expected, state.held_bytes, strict=True)
        ]

    def save(self) -> int:
        """Cancel moves by which a replica left its old broker, until none can be cancelled.

        Returns how many moves were saved.
        """
        state, saved = self._state, 0
        while True:
            before = saved
            for home, is_playing in enumerate(state.in_play):
                if is_playing:
                    departed = reversed(tuple(state.departed[home]))
                    saved += sum(self._return_replica(partition, home) for partition in departed)
            if saved == before:
                return saved

    def _return_replica(self, partition: int, home: int) -> bool:
        """Move a replica back to `home`, its old broker, if the result stays level.

        Counts stay level if the broker needs it anyway, or if another replica can take its place.
        Returns False if that is not possible.
        """
        state = self._state
        if home in state.replicas[partition]:
            return False  # returned already, as the second replica of a pair
        for away in tuple(state.replicas[partition]):
            if away in state.original[partition] or not state.may_move(partition, away, home):
                continue
            if self._needs_no_other(partition, home, away):
                state.move(partition, away, home)
                return True
            other = self._replacement(partition, home, away)
            if other is not None:
                state.move(other, home, away)
                state.move(partition, away, home)
                return True
        return False

    def _needs_no_other(self, partition: int, home: int, away: int) -> bool:
        """Return True if counts and bytes stay level with only this replica moved back."""
        state = self._state
        return (
            state.group_of[home] == state.group_of[away]
            and state.counts[home] < state.counts[away]
            and state.held_bytes[home] + state.size_at(partition, home) <= self._most[home]
        )

    def _replacement(self, partition: int, home: int, away: int) -> int | None:
        """Return a partition with a replica that came to `home` and may move on to `away`.

        It is None if none fits.

        After the exchange both brokers are within their limits of bytes.
        """
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
