"""Periodic samples of a cluster, at a request rate that does not load the brokers."""

from __future__ import annotations

from collections.abc import Callable

from engine.client.blocking import KafkaClient
from engine.errors import EngineError
from engine.exporter.request_pace import RequestPace
from engine.limits import (
    WATCH_REQUESTS_PER_S,
    WATCH_RESPONSE_WAIT_MS,
    WATCH_SETTINGS_EVERY,
)
from engine.watching.timed_sample import TimedSample, take_sample

_WINDOW_MS = 1000
#: Polling interval of pauses.
_PAUSE_MS = 100


class WatchStopped(EngineError):
    """Raised in a pause between requests when the watch is stopped."""

    def __init__(self) -> None:
        super().__init__("stopped")


class Sampler:
    """Takes samples periodically.

    The next one begins `every_ms` after the start of the last one.
    """

    def __init__(
        self,
        client: KafkaClient,
        every_ms: int,
        *,
        with_groups: bool = True,
        is_stopped: Callable[[], bool] | None = None,
    ) -> None:
        """Create a sampler that takes a sample every `every_ms`.

        `is_stopped` is polled during pauses; None if nothing stops the watch.
        """
        self._client = client
        self._every_ms = every_ms
        self._with_groups = with_groups
        self._is_stopped = is_stopped
        self._pace = RequestPace(
            client.clock,
            self._pause,
            request_count=WATCH_REQUESTS_PER_S,
            window_ms=_WINDOW_MS,
            response_wait_ms=WATCH_RESPONSE_WAIT_MS,
        )
        #: Start of the last sample (monotonic); None before the first.
        self._began_ms: int | None = None
        #: Number of samples before topics' settings are read again.
        self._until_settings = 0

    def take_next(self) -> TimedSample:
        """Wait until a sample is due, request it and return it.

        Raises the errors of metadata requests, and WatchStopped.
        """
        if self._began_ms is not None:
            due_ms = self._began_ms + self._every_ms
            self._pause(max(due_ms - self._client.clock.monotonic_ms(), 0))
        self._began_ms = self._client.clock.monotonic_ms()
        with_policies = self._until_settings == 0
        timed = take_sample(
            self._client,
            WATCH_RESPONSE_WAIT_MS,
            with_groups=self._with_groups,
            with_policies=with_policies,
            pace=self._pace,
        )
        # Settings without a response are requested again.
        is_known = bool(timed.sample.min_isr) or not timed.sample.view.topics
        self._until_settings -= 1
        if with_policies:
            self._until_settings = WATCH_SETTINGS_EVERY - 1 if is_known else 0
        return timed

    def _pause(self, duration_ms: int) -> None:
        """Wait `duration_ms`; raises WatchStopped once the watch is stopped."""
        clock = self._client.clock
        until_ms = clock.monotonic_ms() + duration_ms
        while (left_ms := until_ms - clock.monotonic_ms()) > 0:
            if self._is_stopped is not None and self._is_stopped():
                raise WatchStopped
            self._client.connections.pause(min(left_ms, _PAUSE_MS))
