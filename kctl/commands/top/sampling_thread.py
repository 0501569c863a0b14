"""Samples that a worker thread takes: a request that waits must not keep keys waiting."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread

from engine.client.blocking import KafkaClient
from engine.errors import EngineError
from engine.watching.sampler import Sampler, WatchStopped
from engine.watching.timed_sample import TimedSample

#: For so long the end waits for a request that is under way.
_JOIN_S = 0.3


class SamplingThread:
    """Passes each sample, or the error in its place, to callbacks until it is stopped.

    Its callbacks run in the thread. The client is the thread's alone from `start` on.
    """

    def __init__(
        self,
        client: KafkaClient,
        every_ms: int,
        *,
        with_groups: bool,
        on_sample: Callable[[TimedSample], None],
        on_error: Callable[[Exception], None],
    ) -> None:
        """`on_sample` gets each sample, `on_error` the error in place of one."""
        self._client = client
        #: Set to end the thread; the other is cleared during a pause.
        self._stopped, self._going = Event(), Event()
        self._going.set()
        self._on_sample = on_sample
        self._on_error = on_error
        self._sampler = Sampler(
            client, every_ms, with_groups=with_groups, is_stopped=self._stopped.is_set
        )
        # The process may end while a request waits.
        self._thread = Thread(target=self._run, name="samples", daemon=True)

    def start(self) -> None:
        """Start taking samples."""
        self._thread.start()

    def pause(self, *, is_paused: bool) -> None:
        """Pause sampling, or resume it."""
        if is_paused:
            self._going.clear()
        else:
            self._going.set()

    def stop(self) -> None:
        """Stop taking samples; the client is closed if no request is under way."""
        self._stopped.set()
        self._going.set()
        if self._thread.is_alive():
            self._thread.join(_JOIN_S)
        if not self._thread.is_alive():
            self._client.close()

    def _run(self) -> None:
        """Take samples until stopped; hand errors to the screen, end after an unexpected one."""
        while not self._stopped.is_set():
            self._going.wait()
            try:
                self._on_sample(self._sampler.next())
            except WatchStopped:
                return
            except EngineError as error:
                self._hand_on(error)
            except Exception as error:
                self._hand_on(error)
                return

    def _hand_on(self, error: Exception) -> None:
        """Report an error of sampling, unless the screen was left meanwhile."""
        if not self._stopped.is_set():
            self._on_error(error)
