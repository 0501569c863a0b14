"""A thread that takes samples, so that a slow request does not block the keyboard."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread

from engine.client.blocking import KafkaClient
from engine.errors import EngineError
from engine.watching.sampler import Sampler, WatchStopped
from engine.watching.timed_sample import TimedSample

#: Time for which `stop` waits for a request in flight.
_JOIN_S = 0.3


class SamplingThread:
    """Passes each sample, or its error, to a callback until it is stopped.

    The callbacks run in the thread. After `start` only the thread may use the client.
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
        """Create a thread that samples the cluster every `every_ms`; it is not started.

        `on_sample` and `on_error` are called in this thread, with each sample or error.
        """
        self._client = client
        #: `_stopped` is set to end the thread; `_going` is cleared during a pause.
        self._stopped, self._going = Event(), Event()
        self._going.set()
        self._on_sample = on_sample
        self._on_error = on_error
        self._sampler = Sampler(
            client, every_ms, with_groups=with_groups, is_stopped=self._stopped.is_set
        )
        # A daemon thread: the process may exit while a request is in flight.
        self._thread = Thread(target=self._take_samples, name="samples", daemon=True)

    def start(self) -> None:
        """Start taking samples."""
        self._thread.start()

    def set_paused(self, *, is_paused: bool) -> None:
        """Pause or resume sampling; a sample that is taken during a pause is dropped."""
        if is_paused:
            self._going.clear()
        else:
            self._going.set()

    def stop(self) -> None:
        """Stop taking samples; close the client unless a request is still in flight."""
        self._stopped.set()
        self._going.set()
        if self._thread.is_alive():
            self._thread.join(_JOIN_S)
        if not self._thread.is_alive():
            self._client.close()

    def _take_samples(self) -> None:
        """Take samples until the thread is stopped; an unexpected error ends it, too."""
        while not self._stopped.is_set():
            self._going.wait()
            try:
                sample = self._sampler.take_next()
                if self._going.is_set():
                    self._on_sample(sample)
            except WatchStopped:
                return
            except EngineError as error:
                self._report(error)
            except Exception as error:
                self._report(error)
                return

    def _report(self, error: Exception) -> None:
        """Pass an error to `on_error`; after `stop`, errors are its consequence and ignored."""
        if not self._stopped.is_set():
            self._on_error(error)
