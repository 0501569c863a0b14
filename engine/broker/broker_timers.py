"""The timers of one broker on a shared loop; its stop cancels all of them."""

from __future__ import annotations

from collections.abc import Callable

from engine.host.ports import Timers


class BrokerTimers:
    """Timers that `stop` cancels; implements `engine.host.ports.Timers`."""

    def __init__(self, timers: Timers) -> None:
        """Create timers of one broker over those of the process; `stop` cancels only the former."""
        self._timers = timers
        #: Cancels each timer that is not due yet, by its number.
        self._cancels: dict[int, Callable[[], None]] = {}
        self._number = 0
        self._is_stopped = False

    def call_at(self, monotonic_ms: int, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` at or soon after a monotonic time; return a function that cancels it."""
        if self._is_stopped:
            return lambda: None
        self._number += 1
        number = self._number

        def run() -> None:
            """Call the callback, unless the timer was cancelled."""
            if self._cancels.pop(number, None) is not None:
                callback()

        def cancel() -> None:
            """Cancel the timer; no effect once it has run."""
            cancel_timer = self._cancels.pop(number, None)
            if cancel_timer is not None:
                cancel_timer()

        self._cancels[number] = self._timers.call_at(monotonic_ms, run)
        return cancel

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call `callback` in a later turn of the event loop, after everything that is due."""
        # The loop of a broker that has stopped may be closed.
        if not self._is_stopped:
            self._timers.call_soon(lambda: self._run(callback))

    def call_from_thread(self, callback: Callable[[], None]) -> None:
        """Call `callback` in a later turn of the event loop; any thread may call this."""
        if not self._is_stopped:
            self._timers.call_from_thread(lambda: self._run(callback))

    def _run(self, callback: Callable[[], None]) -> None:
        """Call `callback` unless `stop` was called meanwhile."""
        if not self._is_stopped:
            callback()

    def stop(self) -> None:
        """Cancel all timers of this broker, and ignore new ones."""
        self._is_stopped = True
        cancels, self._cancels = self._cancels, {}
        for cancel in cancels.values():
            cancel()
