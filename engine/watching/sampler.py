"""Samples of a cluster one after another, by a pace that brokers do not feel."""

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
#: So often a pause looks whether it is over.
_PAUSE_MS = 100


class WatchStopped(EngineError):
    """A pause between requests was ended: nobody wants the sample any more."""

    def __init__(self) -> None:
        super().__init__("stopped")


class Sampler:
    """Takes samples, each `every_ms` after the one before began, or when that has ended."""

    def __init__(
        self,
        client: KafkaClient,
        every_ms: int,
        *,
        with_groups: bool = True,
        is_stopped: Callable[[], bool] | None = None,
    ) -> None:
        """`is_stopped` is polled during pauses; without it only the caller ends them."""
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
        #: When the last sample began (monotonic); None before.
        self._began_ms: int | None = None
        #: How many samples come before topics' settings are read again.
        self._until_settings = 0

    def next(self) -> TimedSample:
        """Wait until a sample is due, and request it.

        Errors: those of requesting metadata; WatchStopped.
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
        # What was not answered is asked for again.
        is_known = bool(timed.sample.min_isr) or not timed.sample.view.topics
        self._until_settings -= 1
        if with_policies:
            self._until_settings = WATCH_SETTINGS_EVERY - 1 if is_known else 0
        return timed

    def _pause(self, duration_ms: int) -> None:
        """Wait `duration_ms`; raises WatchStopped once the watch is to stop."""
        clock = self._client.clock
        until_ms = clock.monotonic_ms() + duration_ms
        while (left_ms := until_ms - clock.monotonic_ms()) > 0:
            if self._is_stopped is not None and self._is_stopped():
                raise WatchStopped
            self._client.connections.pause(min(left_ms, _PAUSE_MS))
