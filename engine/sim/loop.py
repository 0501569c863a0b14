"""Virtual time: callbacks in the order of their times, and of their arrival within one.

```
at(time) ──> heap by (time, number) ──┐
soon ──────> queue of now ────────────┴──> run, one after the other; then time jumps to the next
```

Nothing here is random: the same calls give the same order.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable


class VirtualLoop:
    """The one clock and the one queue of a simulation."""

    def __init__(self) -> None:
        """Begin at time 0 without callbacks."""
        self.now_ms = 0
        self.callback_count = 0
        #: Whether the run ends after the present callback.
        self.is_stopped = False
        #: Callbacks of this instant, in order.
        self._soon: deque[Callable[[], None]] = deque()
        #: Heap of due time, number, and a list with the callback: a cancellation empties the list.
        self._due: list[tuple[int, int, list[Callable[[], None]]]] = []
        self._number = 0

    def at(self, when_ms: int, callback: Callable[[], None]) -> Callable[[], None]:
        """Schedule a callback at a time, now if it is past; return the function that cancels it."""
        self._number += 1
        cell = [callback]
        heapq.heappush(self._due, (when_ms, self._number, cell))
        return cell.clear

    def soon(self, callback: Callable[[], None]) -> None:
        """Run behind everything that is due now."""
        self._soon.append(callback)

    def stop(self) -> None:
        """Run nothing more behind the callback that runs."""
        self.is_stopped = True

    def run_until(self, end_ms: int) -> None:
        """Run everything due up to a time (inclusive), or until it is stopped; time ends there."""
        soon = self._soon
        while not self.is_stopped:
            if not soon and not self._next_into_queue(end_ms):
                self.now_ms = end_ms
                return
            self.callback_count += 1
            soon.popleft()()

    def _next_into_queue(self, end_ms: int) -> bool:
        """Put everything of the next time that has something into the queue; False if none has."""
        due, soon = self._due, self._soon
        while due and not due[0][2]:
            heapq.heappop(due)
        if not due or due[0][0] > end_ms:
            return False
        self.now_ms = now_ms = max(self.now_ms, due[0][0])
        while due and due[0][0] <= now_ms:
            soon.extend(heapq.heappop(due)[2])
        return True
