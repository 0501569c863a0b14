"""Defer Ctrl-C while a command sends; it interrupts only the waits for input.

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
    """Raises KeyboardInterrupt for Ctrl-C where allowed, and defers it otherwise.

    For SIGTERM it raises Terminated by the same rule.
    """

    #: Whether a second Ctrl-C came: the current work must not be completed.
    is_urgent = False

    def __init__(self) -> None:
        self._is_reported = False
        self._is_allowed = False
        self._pending: type[KeyboardInterrupt] | None = None

    @contextmanager
    def allowed(self) -> Iterator[None]:
        """Let Ctrl-C and SIGTERM interrupt the block, such as a wait for input.

        A deferred one is raised at the start of the block.
        """
        try:
            self._is_allowed = True
            if self._pending is not None:
                pending, self._pending = self._pending, None
                raise pending
            yield
        finally:
            self._is_allowed = False

    def on_signal(self, number: int, _frame: FrameType | None) -> None:
        """Handle SIGINT or SIGTERM: defer the first one outside `allowed`, raise any other.

        It raises Terminated for SIGTERM, else KeyboardInterrupt.
        """
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
    """Defer Ctrl-C and SIGTERM, or the given signals, in the block, except where allowed.

    A deferred one is raised at the end of the block. Signals that the process ignores stay ignored.
    Only for the main thread.
    """
    held = HeldInterrupts()
    before = {number: signal.getsignal(number) for number in signals or _BOTH}
    handled = [number for number, handler in before.items() if handler is not signal.SIG_IGN]
    for number in handled:
        signal.signal(number, held.on_signal)
    try:
        yield held
        with held.allowed():
            pass
    finally:
        for number in handled:
            signal.signal(number, before[number])
