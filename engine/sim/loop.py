"""Virtual time: callbacks run in order of their times, and in order of arrival at the same time.

```
at(time) ──> heap by (time, number) ──┐
soon ──────> queue of now ────────────┴──> run one by one; then time jumps to the next callback
```

Nothing is random here: the same calls result in the same order.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable


class VirtualLoop:
    """The clock and the queue of callbacks of a simulation."""

    def __init__(self) -> None:
        """Create a loop at time 0 without callbacks."""
        self.now_ms = 0
        self.callback_count = 0
        #: Whether the run ends after the running callback.
        self.is_stopped = False
        #: Callbacks to run at the present time, in order.
        self._soon: deque[Callable[[], None]] = deque()
        #: Heap of (due time, number, list of one callback); a cancellation empties the list.
        self._due: list[tuple[int, int, list[Callable[[], None]]]] = []
        self._number = 0

    def at(self, when_ms: int, callback: Callable[[], None]) -> Callable[[], None]:
        """Schedule a callback at a time, now if it is past; return the function that cancels it."""
        self._number += 1
        cell = [callback]
        heapq.heappush(self._due, (when_ms, self._number, cell))
        return cell.clear

    def soon(self, callback: Callable[[], None]) -> None:
        """Run a callback at the present time, after all callbacks that are queued."""
        self._soon.append(callback)

    def stop(self) -> None:
        """End the run after the running callback."""
        self.is_stopped = True

    def run_until(self, end_ms: int) -> None:
        """Run all callbacks up to `end_ms` (inclusive), or until `stop`; then time is `end_ms`."""
        soon = self._soon
        while not self.is_stopped:
            if not soon and not self._queue_next(end_ms):
                self.now_ms = end_ms
                return
            self.callback_count += 1
            soon.popleft()()

    def _queue_next(self, end_ms: int) -> bool:
        """Advance to the next due time and queue its callbacks; return False if none is due.

        A time after `end_ms` is not due.
        """
        due, soon = self._due, self._soon
        while due and not due[0][2]:
            heapq.heappop(due)
        if not due or due[0][0] > end_ms:
            return False
        self.now_ms = now_ms = max(self.now_ms, due[0][0])
        while due and due[0][0] <= now_ms:
            soon.extend(heapq.heappop(due)[2])
        return True
