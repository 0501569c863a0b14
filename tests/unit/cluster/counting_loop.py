"""An event loop that knows what it still has to do."""

from __future__ import annotations

from collections.abc import Callable

from engine.host.event_loop import EventLoop


class CountingLoop(EventLoop):
    """Counts timers that are set and sockets that are watched."""

    def __init__(self) -> None:
        super().__init__()
        self._timers: set[int] = set()
        self._watched: set[tuple[str, int]] = set()
        self._number = 0

    def counts(self) -> tuple[int, int]:
        """Return how many timers are set, and how many sockets are watched."""
        return len(self._timers), len(self._watched)

    def call_at(self, monotonic_ms: int, callback: Callable[[], None]) -> Callable[[], None]:
        """Run once at that time, and count it until then."""
        self._number += 1
        number = self._number
        self._timers.add(number)

        def run() -> None:
            self._timers.discard(number)
            callback()

        cancel = super().call_at(monotonic_ms, run)

        def end() -> None:
            self._timers.discard(number)
            cancel()

        return end

    def watch_readable(self, descriptor: int, callback: Callable[[], None]) -> None:
        """Run whenever a read would not block."""
        self._watched.add(("read", descriptor))
        super().watch_readable(descriptor, callback)

    def unwatch_readable(self, descriptor: int) -> None:
        """Stop running on readable."""
        self._watched.discard(("read", descriptor))
        super().unwatch_readable(descriptor)

    def watch_writable(self, descriptor: int, callback: Callable[[], None]) -> None:
        """Run whenever a write would not block."""
        self._watched.add(("write", descriptor))
        super().watch_writable(descriptor, callback)

    def unwatch_writable(self, descriptor: int) -> None:
        """Stop running on writable."""
        self._watched.discard(("write", descriptor))
        super().unwatch_writable(descriptor)
