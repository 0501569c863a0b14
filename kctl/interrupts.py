"""Ctrl-C where it does no harm: while a command waits for its input, not while it sends.

```
waits for input       Ctrl-C ends the wait at once
at work               the first one is remembered until the work is done, the next one ends it
```

A command that must end in order on SIGTERM too takes it as an exception: `terminations`.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class HeldInterrupts:
    """Whether Ctrl-C may raise KeyboardInterrupt now, and whether one is held back."""

    def __init__(self) -> None:
        self._is_allowed = False
        self._is_pending = False

    @contextmanager
    def allowed(self) -> Iterator[None]:
        """Let Ctrl-C end what is inside; raises KeyboardInterrupt for one that was held back."""
        self._is_allowed = True
        try:
            if self._is_pending:
                self._is_pending = False
                raise KeyboardInterrupt
            yield
        finally:
            self._is_allowed = False

    def on_signal(self, _number: int, _frame: FrameType | None) -> None:
        """Take a Ctrl-C: hold it back, or raise KeyboardInterrupt."""
        if not (self._is_allowed or self._is_pending):
            self._is_pending = True
            return
        self._is_pending = False
        raise KeyboardInterrupt


class Terminated(KeyboardInterrupt):
    """SIGTERM asks the command to end."""


@contextmanager
def terminations() -> Iterator[None]:
    """Have SIGTERM raise Terminated inside; where it is ignored, it stays so.

    For the main thread.
    """

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        raise Terminated

    before = signal.getsignal(signal.SIGTERM)
    if before is signal.SIG_IGN:
        yield
        return
    signal.signal(signal.SIGTERM, on_signal)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def held_interrupts() -> Iterator[HeldInterrupts]:
    """Hold Ctrl-C back from here on, but where it is allowed.

    Raises KeyboardInterrupt at the end for one that is still held back. Where a shell has the
    process ignore them, it goes on ignoring them. For the main thread.
    """
    held = HeldInterrupts()
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        yield held
        return
    signal.signal(signal.SIGINT, held.on_signal)
    try:
        yield held
        with held.allowed():
            pass
    finally:
        signal.signal(signal.SIGINT, before)
