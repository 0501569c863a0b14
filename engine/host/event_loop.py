"""The one thread that runs the engine: readiness of sockets, timers, work from other threads.

asyncio's selector loop, or uvloop's where that is installed, used for its readers, writers and
timers only: no coroutine, task or future is made for a request (they cost as much as it does).

Source: D7.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any


class EventLoop:
    """Timers and readiness; `run` returns after `stop`."""

    def __init__(self) -> None:
        self._loop = _new_loop()
        self._signals: set[signal.Signals] = set()

    def run(self) -> None:
        """Run until `stop`; it may be run again, what is queued waits until then."""
        self._loop.run_forever()

    def close(self) -> None:
        """Let go of the loop; what is still queued is dropped, and signals do what they did."""
        for number in self._signals:
            is_interrupt = number is signal.SIGINT
            signal.signal(number, signal.default_int_handler if is_interrupt else signal.SIG_DFL)
        self._loop.close()

    def stop(self) -> None:
        """Let `run` return after what is due now."""
        self._loop.call_soon_threadsafe(self._loop.stop)

    def call_at(self, monotonic_ms: int, callback: Callable[[], None]) -> Callable[[], None]:
        """Run once at that time or soon after it; returns what cancels it."""
        delay_s = max(monotonic_ms - time.monotonic_ns() // 1_000_000, 0) / 1000
        cancel: Callable[[], None] = self._loop.call_later(delay_s, callback).cancel
        return cancel

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Run after everything that is due now."""
        self._loop.call_soon(callback)

    def call_from_thread(self, callback: Callable[[], None]) -> None:
        """Run soon on the loop's thread; from any thread."""
        self._loop.call_soon_threadsafe(callback)

    def on_signals(
        self,
        callback: Callable[[], None],
        numbers: Iterable[signal.Signals] = (signal.SIGTERM, signal.SIGINT),
    ) -> None:
        """Run on signals instead of what they do by themselves; for the main thread.

        One that comes before `run` is run then. (The handlers of uvloop's own lose it.)
        """

        def note(_number: int, _frame: FrameType | None) -> None:
            self._loop.call_soon_threadsafe(callback)

        for number in numbers:
            signal.signal(number, note)
            self._signals.add(number)

    def on_faults(self, callback: Callable[[BaseException], None]) -> None:
        """Run with what any other callback raised; then the loop goes on."""

        def handle(_loop: object, context: dict[str, Any]) -> None:
            error = context.get("exception")
            if error is None:
                error = RuntimeError(context.get("message", "the loop tells of a fault"))
            callback(error)

        self._loop.set_exception_handler(handle)

    def watch_readable(self, descriptor: int, callback: Callable[[], None]) -> None:
        """Run whenever a read would not block."""
        self._loop.add_reader(descriptor, callback)

    def unwatch_readable(self, descriptor: int) -> None:
        """Stop running on readable."""
        self._loop.remove_reader(descriptor)

    def watch_writable(self, descriptor: int, callback: Callable[[], None]) -> None:
        """Run whenever a write would not block."""
        self._loop.add_writer(descriptor, callback)

    def unwatch_writable(self, descriptor: int) -> None:
        """Stop running on writable."""
        self._loop.remove_writer(descriptor)


def _new_loop() -> Any:
    try:
        import uvloop
    except ImportError:
        return asyncio.SelectorEventLoop()
    return uvloop.new_event_loop()
