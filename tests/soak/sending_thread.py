"""A thread that sends records in bursts while it is not paused, and waits for their answers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from confluent_kafka import Producer

_POLL_S = 0.002


class Pace(NamedTuple):
    """How many records a burst has, how long it rests then, and how long answers may take."""

    burst: int
    pause_s: float
    flush_s: float


class SendingThread:
    """Calls a function that sends one record, burst by burst; it begins paused."""

    def __init__(self, name: str, producer: Producer, send: Callable[[], None], pace: Pace) -> None:
        self._name = name
        self._producer = producer
        self._send = send
        self._pace = pace
        self._runs = threading.Event()
        self._idle = threading.Event()
        self._is_ended = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def resume(self) -> None:
        """Send on."""
        self._idle.clear()
        self._runs.set()

    def pause(self) -> None:
        """Send nothing new; what was sent is still sent again until it is acknowledged."""
        self._runs.clear()

    def settle(self) -> None:
        """Wait until everything that was sent is answered."""
        self._runs.clear()
        assert self._idle.wait(self._pace.flush_s), f"{self._name} was not paused"
        left = self._producer.flush(self._pace.flush_s)
        assert left == 0, f"{self._name}: {left} records without an answer"

    def end(self) -> None:
        """Settle and end the thread."""
        self.settle()
        self._is_ended = True
        self._runs.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._is_ended:
            if not self._runs.is_set():
                self._idle.set()
                self._producer.poll(0)
                self._runs.wait(_POLL_S)
                continue
            for _ in range(self._pace.burst):
                self._send()
            self._producer.poll(0)
            time.sleep(self._pace.pause_s)
