"""SIGINT and SIGTERM, deferred during a section that must not be interrupted.

```
blocked in this thread    the kernel keeps them, but gives them to another thread if there is one
held by a handler         what another thread took: Python runs handlers in the main thread
```
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def signals_blocked() -> Iterator[None]:
    """Hold SIGINT and SIGTERM back until the end of the block, also where there are more threads.

    Processes started inside the block inherit the mask and must unblock the signals themselves.
    """
    # Setting a mask may raise for a signal that has just come: what was before is known by then.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        with _handlers_held():
            yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _handlers_held() -> Iterator[None]:
    """Record signals in place of handling them; at the end, raise them again for this thread.

    Only the main thread runs handlers: other threads hold none. Signals that are ignored, or have a
    handler outside Python, are left as they are.
    """
    came: dict[int, None] = {}

    def hold(number: int, _frame: FrameType | None) -> None:
        came[number] = None

    def raise_again() -> None:
        for number in came:
            signal.raise_signal(number)

    with ExitStack() as stack:
        stack.callback(raise_again)
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                handler = signal.getsignal(number)
                if handler is not None and handler is not signal.SIG_IGN:
                    # Restored also where a signal interrupts the restoring of another one.
                    stack.callback(signal.signal, number, handler)
                    signal.signal(number, hold)
        yield
