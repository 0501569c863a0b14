"""SIGINT and SIGTERM, deferred during a section that must not be interrupted."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def signals_blocked() -> Iterator[None]:
    """Block SIGINT and SIGTERM until the end of the block.

    Processes started inside the block inherit the mask and must unblock the signals themselves.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
