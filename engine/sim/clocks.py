"""The largest difference between the wall clocks of the simulated machines, over time.

```
clock    b1 ────────┐+60 s        ┌────── back
since 0  spread 0   │ 60 s        │ 60 s      a tombstone of now: 0 again
```
"""

from __future__ import annotations


class ClockSpread:
    """The offsets of all machines' clocks from simulated time, over time."""

    def __init__(self) -> None:
        """Create it with no clock ever changed."""
        #: For each machine, in order of time: (simulated time of a change, offset of its clock from
        #: then on), in ms.
        self._offsets: dict[str, list[tuple[int, int]]] = {}

    def record_jump(self, machine: str, now_ms: int, offset_ms: int) -> None:
        """Record a clock that jumped; `offset_ms` is its offset from simulated time since then."""
        self._offsets.setdefault(machine, [(0, 0)]).append((now_ms, offset_ms))

    def since(self, start_ms: int) -> int:
        """Return the largest difference in ms between two machines' clocks since `start_ms`.

        It limits how much earlier than expected time-based retention may delete a record.
        """
        if not self._offsets:
            return 0
        # Clocks that never jump count too.
        found = {0}
        for changes in self._offsets.values():
            for index, (_, offset_ms) in enumerate(changes):
                end_ms = changes[index + 1][0] if index + 1 < len(changes) else None
                if end_ms is None or end_ms >= start_ms:
                    found.add(offset_ms)
        return max(found) - min(found)
