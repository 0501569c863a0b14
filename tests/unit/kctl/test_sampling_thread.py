"""The thread that takes samples for `kctl top`."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

from engine.client.blocking import KafkaClient
from engine.host.memory import ManualClock
from engine.watching.sampler import WatchStopped
from kctl.commands.top.sampling_thread import SamplingThread


class _Sampler:
    """Returns numbers as samples; calls `during` while it takes the second one."""

    def __init__(self, during: Callable[[], None]) -> None:
        self.taken = 0
        self._during = during

    def take_next(self) -> int:
        self.taken += 1
        if self.taken == 2:
            self._during()
        if self.taken > 3:
            raise WatchStopped
        return self.taken


def test_a_sample_that_is_taken_during_a_pause_is_dropped() -> None:
    samples: list[Any] = []
    client = cast(KafkaClient, SimpleNamespace(clock=ManualClock()))
    thread = SamplingThread(
        client, 1, with_groups=False, on_sample=samples.append, on_error=samples.append
    )

    def pause() -> None:
        thread.set_paused(is_paused=True)
        resumed.append(True)

    resumed: list[bool] = []
    sampler = _Sampler(pause)
    cast(Any, thread)._sampler = sampler
    going = cast(Any, thread)._going
    waits = going.wait

    def wait() -> bool:
        # The operator resumes while the thread waits.
        thread.set_paused(is_paused=False)
        return bool(waits())

    going.wait = wait
    thread._take_samples()
    assert ([1, 3], [True]) == (samples, resumed)
