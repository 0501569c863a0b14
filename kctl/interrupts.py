"""Ctrl-C where it does no harm: while a command waits for its input, not while it sends.

```
waits for input       Ctrl-C ends the wait at once
at work               the first one is remembered until the work is done
after the first       the second one ends everything at once, in the middle of work too
```

SIGTERM is deferred by the same rule.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from kctl.exits import Terminated

_BOTH = (signal.SIGINT, signal.SIGTERM)


class HeldInterrupts:
    """Controls whether Ctrl-C may raise KeyboardInterrupt now, and defers it otherwise.

    SIGTERM raises Terminated by the same rule.
    """

    #: Whether there was a second Ctrl-C: the work under way is not to be completed.
    is_urgent = False

    def __init__(self) -> None:
        self._is_reported = False
        self._is_allowed = False
        self._pending: type[KeyboardInterrupt] | None = None

    @contextmanager
    def allowed(self) -> Iterator[None]:
        """Let Ctrl-C end the body; raises KeyboardInterrupt for one that was deferred."""
        try:
            self._is_allowed = True
            if self._pending is not None:
                pending, self._pending = self._pending, None
                raise pending
            yield
        finally:
            self._is_allowed = False

    def on_signal(self, number: int, _frame: FrameType | None) -> None:
        """Handle a Ctrl-C or SIGTERM: defer it, or raise KeyboardInterrupt."""
        kind = Terminated if number == signal.SIGTERM else KeyboardInterrupt
        is_first, self._is_reported = not self._is_reported, True
        if is_first and not self._is_allowed:
            self._pending = kind
            return
        self._pending = None
        self.is_urgent = not is_first
        raise kind


@contextmanager
def deferred_interrupts(*signals: signal.Signals) -> Iterator[HeldInterrupts]:
    """Defer Ctrl-C and SIGTERM, or these signals, from here on, except where allowed.

    Raises KeyboardInterrupt at the end for one that is still deferred. Where a shell has the
    process ignore them, it continues to ignore them. For the main thread.
    """
    held = HeldInterrupts()
    before = {number: signal.getsignal(number) for number in signals or _BOTH}
    heeded = [number for number, handler in before.items() if handler is not signal.SIG_IGN]
    for number in heeded:
        signal.signal(number, held.on_signal)
    try:
        yield held
        with held.allowed():
            pass
    finally:
        for number in heeded:
            signal.signal(number, before[number])
