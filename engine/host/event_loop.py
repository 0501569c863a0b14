"""The event loop of the one engine thread: socket readiness, timers, calls from other threads.

asyncio's selector loop, or uvloop's if installed; only its readers, writers and timers are used: a
coroutine, task or future per request would cost as much as the request.

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
    """Timers and socket readiness; `run` returns after `stop`."""

    def __init__(self) -> None:
        self._loop = _create_loop()
        self._signals: set[signal.Signals] = set()

    def run(self) -> None:
        """Run until `stop`. Callbacks that are queued after `stop` wait for the next `run`."""
        self._loop.run_forever()

    def close(self) -> None:
        """Close the loop, drop queued callbacks and restore the default signal handlers."""
        for number in self._signals:
            is_interrupt = number is signal.SIGINT
            signal.signal(number, signal.default_int_handler if is_interrupt else signal.SIG_DFL)
        self._loop.close()

    def stop(self) -> None:
        """Make `run` return after the callbacks that are due now."""
        self._loop.call_soon_threadsafe(self._loop.stop)

    def call_at(self, monotonic_ms: int, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` once, at or soon after a monotonic time.

        Return a function that cancels it.
        """
        delay_s = max(monotonic_ms - time.monotonic_ns() // 1_000_000, 0) / 1000
        cancel: Callable[[], None] = self._loop.call_later(delay_s, callback).cancel
        return cancel

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call `callback` on the next turn, after the callbacks that are due now."""
        self._loop.call_soon(callback)

    def call_from_thread(self, callback: Callable[[], None]) -> None:
        """Call `callback` soon on the loop's thread; may be called from any thread."""
        self._loop.call_soon_threadsafe(callback)

    def handle_signals(
        self,
        callback: Callable[[], None],
        numbers: Iterable[signal.Signals] = (signal.SIGTERM, signal.SIGINT),
    ) -> None:
        """Call `callback` on signals in place of their default action; for the main thread.

        A signal that arrives before `run` is handled once `run` starts. (uvloop's own handlers
        would lose it.)
        """

        def note(_number: int, _frame: FrameType | None) -> None:
            """Queue the callback for the loop, as a signal handler must do little."""
            self._loop.call_soon_threadsafe(callback)

        for number in numbers:
            signal.signal(number, note)
            self._signals.add(number)

    def handle_faults(self, callback: Callable[[BaseException], None]) -> None:
        """Call `callback` with every exception that another callback raises.

        The loop then continues.
        """

        def handle(_loop: object, context: dict[str, Any]) -> None:
            """Pass on the exception of a callback, or a RuntimeError with the loop's message."""
            error = context.get("exception")
            if error is None:
                error = RuntimeError(context.get("message", "the loop tells of a fault"))
            callback(error)

        self._loop.set_exception_handler(handle)

    def watch_readable(self, descriptor: int, callback: Callable[[], None]) -> None:
        """Call `callback` whenever a read of the descriptor would not block."""
        self._loop.add_reader(descriptor, callback)

    def unwatch_readable(self, descriptor: int) -> None:
        """Stop the calls that `watch_readable` has started."""
        self._loop.remove_reader(descriptor)

    def watch_writable(self, descriptor: int, callback: Callable[[], None]) -> None:
        """Call `callback` whenever a write to the descriptor would not block."""
        self._loop.add_writer(descriptor, callback)

    def unwatch_writable(self, descriptor: int) -> None:
        """Stop the calls that `watch_writable` has started."""
        self._loop.remove_writer(descriptor)


def _create_loop() -> asyncio.AbstractEventLoop:
    """Return a loop of uvloop if it is installed, else of asyncio."""
    try:
        import uvloop
    except ImportError:
        return asyncio.SelectorEventLoop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop
