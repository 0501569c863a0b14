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
        self.now_ms = 0
        self.callback_count = 0
        self._soon: deque[Callable[[], None]] = deque()
        self._due: list[tuple[int, int]] = []
        self._callbacks: dict[int, Callable[[], None]] = {}
        self._number = 0

    def at(self, when_ms: int, callback: Callable[[], None]) -> Callable[[], None]:
        """Run at a time, or now if it is past; returns what cancels it."""
        self._number += 1
        number = self._number
        heapq.heappush(self._due, (when_ms, number))
        self._callbacks[number] = callback

        def cancel() -> None:
            self._callbacks.pop(number, None)

        return cancel

    def soon(self, callback: Callable[[], None]) -> None:
        """Run behind everything that is due now."""
        self._soon.append(callback)

    def run_until(self, end_ms: int, is_done: Callable[[], bool]) -> None:
        """Run everything due up to a time (inclusive), or until it is done; time ends there."""
        while not is_done():
            if not self._soon and not self._next_into_queue(end_ms):
                self.now_ms = end_ms
                return
            self.callback_count += 1
            self._soon.popleft()()

    def _next_into_queue(self, end_ms: int) -> bool:
        """Put everything of the next time that has something into the queue; False if none has."""
        due, callbacks = self._due, self._callbacks
        while due and due[0][1] not in callbacks:
            heapq.heappop(due)
        if not due or due[0][0] > end_ms:
            return False
        self.now_ms = max(self.now_ms, due[0][0])
        while due and due[0][0] <= self.now_ms:
            _, number = heapq.heappop(due)
            callback = callbacks.pop(number, None)
            if callback is not None:
                self._soon.append(callback)
        return bool(self._soon) or self._next_into_queue(end_ms)
