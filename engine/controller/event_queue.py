"""The event queue of the controller: events run one at a time, in the order of `put`.

An event is a coroutine. It may wait for the metadata store; the next event begins when it is done.
Watches, responses and requests only put events; `put` runs none.

Source: C5, D11, CTL-11; Kafka's ControllerEventManager.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from engine.controller.event_times import EventTimes
from engine.errors import EngineError
from engine.host.coroutine import PromiseCoroutine, drive

Work: TypeAlias = Callable[[], PromiseCoroutine[None]]


class Event(NamedTuple):
    """An event of the controller; `on_drop` runs in place of `work` if the event is dropped."""

    name: str
    work: Work
    on_drop: Callable[[], None] | None = None


class EventQueue:
    """Runs events; `on_failed` handles each EngineError that an event raises."""

    def __init__(
        self,
        call_soon: Callable[[Callable[[], None]], None],
        on_failed: Callable[[str, EngineError], PromiseCoroutine[None]],
        times: EventTimes,
    ) -> None:
        """Create an empty queue of controller events, which run one after the other.

        An event runs in a later turn of the event loop than its `put`. `on_failed` gets its name
        and its EngineError.
        """
        self.times = times
        self._call_soon = call_soon
        self._on_failed = on_failed
        #: Queued events, each with the time of its `put` in ns.
        self._events: deque[tuple[Event, int]] = deque()
        #: Whether an event is running.
        self._is_running = False
        #: Whether the next event is scheduled for a coming turn.
        self._is_due = False
        self._is_closed = False
        #: Called when the running event has ended after `close`. None otherwise.
        self._on_idle: Callable[[], None] | None = None

    @property
    def is_idle(self) -> bool:
        """True if no event runs and none is queued."""
        return not (self._is_running or self._events)

    def put(self, event: Event) -> None:
        """Queue an event after the others; after `close` it is dropped."""
        if self._is_closed:
            _drop_event(event)
            return
        self._events.append((event, self.times.now_ns()))
        self._wake()

    def clear_and_put(self, event: Event) -> None:
        """Drop all queued events, then queue `event`."""
        dropped, self._events = self._events, deque()
        for overtaken, _ in dropped:
            _drop_event(overtaken)
        self.put(event)

    def close(self, on_idle: Callable[[], None]) -> None:
        """Drop all queued events, and call `on_idle` once no event is running."""
        self._is_closed = True
        dropped, self._events = self._events, deque()
        for event, _ in dropped:
            _drop_event(event)
        if self._is_running:
            self._on_idle = on_idle
        else:
            on_idle()

    def _wake(self) -> None:
        """Start the next event in a later turn of the event loop, unless one is running or
        scheduled.
        """
        if not (self._is_running or self._is_due) and self._events:
            self._is_due = True
            self._call_soon(self._run_next)

    def _run_next(self) -> None:
        """Start the oldest event; the next one waits until it has ended."""
        self._is_due = False
        if not self._events:
            return
        event, queued_ns = self._events.popleft()
        self._is_running = True
        drive(self._run_event(event, queued_ns))

    @property
    def waiting_count(self) -> int:
        """Return how many events are queued."""
        return len(self._events)

    async def _run_event(self, event: Event, queued_ns: int) -> None:
        """Run one event, pass its EngineError to `on_failed`, and schedule the next event."""
        began_ns = self.times.now_ns()
        try:
            try:
                await event.work()
            except EngineError as error:
                await self._on_failed(event.name, error)
        finally:
            # The next event runs even if this one raised.
            self._is_running = False
            self.times.record_event(event.name, queued_ns, began_ns)
            on_idle, self._on_idle = self._on_idle, None
            if on_idle is not None:
                on_idle()
            self._wake()


def _drop_event(event: Event) -> None:
    """Call `on_drop` of an event that will not run."""
    if event.on_drop is not None:
        event.on_drop()
