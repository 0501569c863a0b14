"""SIGINT and SIGTERM, deferred during a section that must not be interrupted.

```
blocked in this thread    the kernel keeps them, but gives them to another thread if there is one
held by a handler         what another thread took: Python runs handlers in the main thread
```
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from types import FrameType
from typing import Final

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def block_signals() -> Iterator[None]:
    """Defer SIGINT and SIGTERM to the end of the block, also if another thread receives them.

    Processes started inside the block inherit the mask and must unblock the signals themselves.
    """
    # Built-in, as the functions below: a handler may raise in the first step of one in Python.
    set_mask: Callable[[int, Iterable[int]], set[int]] = import_module("_signal").pthread_sigmask
    # Read the mask first: setting it may raise for a signal that has just arrived.
    restore = partial(set_mask, signal.SIG_SETMASK, set_mask(signal.SIG_BLOCK, ()))
    try:
        set_mask(signal.SIG_BLOCK, _SIGNALS)
        with _hold_handlers():
            yield
    finally:
        restore()


@contextmanager
def _hold_handlers() -> Iterator[None]:
    """Record signals in place of handling them; at the end, raise them again for this thread.

    Only the main thread runs handlers: other threads hold none. Signals that are ignored, or have a
    handler outside Python, are left as they are.

    A signal that another thread took may be handled between any two calls once its own handler is
    restored. So SIGINT, which comes repeatedly, is restored last, and nothing but calls of built-in
    functions in nested `finally` blocks restores them: no signal keeps a handler from its signal.
    """
    came: dict[int, None] = {}

    def hold(number: int, _frame: FrameType | None) -> None:
        """Record a signal that arrives during the block."""
        came[number] = None

    def raise_again() -> None:
        """Raise the recorded signals for this thread, each once."""
        for number in came:
            signal.raise_signal(number)

    hold_terminate, restore_terminate = _handler_setters(signal.SIGTERM, hold)
    hold_interrupt, restore_interrupt = _handler_setters(signal.SIGINT, hold)
    try:
        hold_interrupt()
        hold_terminate()
        yield
    finally:
        try:
            restore_terminate()
        finally:
            try:
                restore_interrupt()
            finally:
                try:
                    # Setting a handler first handles signals, and does not set it if one raises.
                    restore_interrupt()
                finally:
                    raise_again()


def _handler_setters(
    number: signal.Signals, hold: Callable[[int, FrameType | None], None]
) -> tuple[Callable[[], object], Callable[[], object]]:
    """Return the functions that set `hold` for a signal and restore its handler.

    They are built-in, without a step in Python. Both do nothing if the handler must stay.
    """
    signals = import_module("_signal")
    # Not `signal.getsignal`: of its enumerations the built-in setter takes none.
    handler = signals.getsignal(number)
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or handler is None or handler == signals.SIG_IGN:
        return dict, dict
    return partial(signals.signal, number, hold), partial(signals.signal, number, handler)
