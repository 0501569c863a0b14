"""Limits the rate of requests to each broker: those of a sample are spread over time.

```
pace of 2 in 1000 ms    broker 1   |ab      |cd      |e
                        broker 2   |fg      |h       |
```

No window of that length, from any start, has more requests to an address. Requests that open a
connection (versions, logins) do not count.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import TypeVar

from engine.client.connection import Call
from engine.client.settings import Address
from engine.host.ports import Clock

K = TypeVar("K")


class RequestPace:
    """Delays requests to an address so that no window has too many."""

    def __init__(
        self,
        clock: Clock,
        pause: Callable[[int], None],
        *,
        request_count: int,
        window_ms: int,
        response_wait_ms: int,
    ) -> None:
        """`pause` waits for some ms; `response_wait_ms` is the timeout of a response."""
        self._clock = clock
        self._pause = pause
        self._request_count = request_count
        self._window_ms = window_ms
        self._response_wait_ms = response_wait_ms
        #: Monotonic times of the last requests to each address.
        self._sent: dict[Address, deque[int]] = {}

    def deadline_ms(self) -> int:
        """Return the monotonic deadline for responses to requests sent now."""
        return self._clock.monotonic_ms() + self._response_wait_ms

    def note(self, addresses: Iterable[Address], at_ms: int) -> None:
        """Count a request to each address as sent at a monotonic time, against its limit."""
        for address in addresses:
            sent = self._sent.setdefault(address, deque(maxlen=self._request_count))
            sent.append(at_ms)

    def await_room(self) -> None:
        """Wait until a request may be sent to every address to which one was sent before."""
        self._pause_until(max(map(self._free_ms, self._sent), default=0))

    def take(self, calls: dict[K, tuple[Address, Call]]) -> dict[K, tuple[Address, Call]]:
        """Wait until a request may be sent; remove all that may from `calls` and return them.

        `calls` must not be empty.
        """
        self._pause_until(min(self._free_ms(address) for address, _ in calls.values()))
        now_ms = self._clock.monotonic_ms()
        taken: dict[K, tuple[Address, Call]] = {}
        for key, (address, _) in list(calls.items()):
            if self._free_ms(address) <= now_ms:
                self.note([address], now_ms)
                taken[key] = calls.pop(key)
        return taken

    def _free_ms(self, address: Address) -> int:
        """Return the monotonic time from which the next request to an address is within the limit.

        It is 0 if the limit of the window is not reached.
        """
        sent = self._sent.get(address)
        if sent is None or len(sent) < self._request_count:
            return 0
        return sent[0] + self._window_ms

    def _pause_until(self, at_ms: int) -> None:
        """Wait until a monotonic time; return at once if it is past."""
        left_ms = at_ms - self._clock.monotonic_ms()
        if left_ms > 0:
            self._pause(left_ms)
