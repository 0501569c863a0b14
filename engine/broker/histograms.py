"""A broker's histograms and timers, by Kafka's JMX object names.

| domain and type | histograms |
|---|---|
| `kafka.network` RequestMetrics | times and sizes of requests, by API |
| `kafka.controller` ControllerEventManager | times of events in the queue |

Source: RequestMetrics, ControllerEventManager of 3.9.1. Differs: an API without a request has no
histogram, in Kafka an empty one; `compatibility.md` lists the histograms that are missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from engine.api.request_metrics import RequestMetrics
from engine.broker.metric_text import BrokerMetric
from engine.broker.tasks import LoopTasks
from engine.controller.controller import Controller
from engine.host.ports import Clock

#: The histograms count time in seconds.
_FOLD_MS: Final = 1_000
_MS_PER_S: Final = 1_000
_CONTROLLER: Final = "kafka.controller:type=ControllerEventManager,name="
_REQUESTS: Final = "kafka.network:type=RequestMetrics,name="


def fold_requests(requests: RequestMetrics, clock: Clock, tasks: LoopTasks) -> None:
    """Start a task that adds the requests to their histograms every second.

    To add each request by itself would be slow.
    """
    tasks.every_in_steps(
        "request-metrics", _FOLD_MS, lambda: folded(requests, clock), first_after_ms=_FOLD_MS
    )


def folded(requests: RequestMetrics, clock: Clock) -> Iterator[None]:
    """Add the requests up to now to their histograms, in steps; work is done as it is iterated."""
    return requests.fold(clock.monotonic_ms() // _MS_PER_S)


def request_histograms(requests: RequestMetrics) -> Iterator[BrokerMetric]:
    """Yield the histograms of the requests up to the last `folded`."""
    for figure, request, reading in requests.figures():
        yield BrokerMetric(f"{_REQUESTS}{figure},request={request}", reading)


def controller_histograms(controller: Controller) -> Iterator[BrokerMetric]:
    """Yield the number of queued controller events, and the histogram of their queue times."""
    yield BrokerMetric(f"{_CONTROLLER}EventQueueSize", controller.waiting_event_count)
    waits = controller.event_times.waits.reading()
    yield BrokerMetric(f"{_CONTROLLER}EventQueueTimeMs", waits)
