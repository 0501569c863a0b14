"""Events of the controller: one at a time, in the order in which they came.

An event is a coroutine. It may wait for the metadata store, and no other begins until it is done.
Watches, responses and requests only put events here; nothing runs inside `put`.

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
    """An event of the controller; `on_drop` is run in its place when it is overtaken."""

    name: str
    work: Work
    on_drop: Callable[[], None] | None = None


class EventQueue:
    """Runs events; `on_failed` is awaited with each EngineError that an event raised."""

    def __init__(
        self,
        call_soon: Callable[[Callable[[], None]], None],
        on_failed: Callable[[str, EngineError], PromiseCoroutine[None]],
        times: EventTimes,
    ) -> None:
        """Begin empty; an event runs on a later turn than its `put`."""
        self.times = times
        self._call_soon = call_soon
        self._on_failed = on_failed
        #: Events that wait, each with the time when it was put.
        self._events: deque[tuple[Event, int]] = deque()
        #: Whether an event runs now.
        self._is_running = False
        #: Whether the next event is scheduled for a coming turn.
        self._is_due = False
        self._is_closed = False
        #: Called when the running event has ended after a close. None otherwise.
        self._on_idle: Callable[[], None] | None = None

    @property
    def is_idle(self) -> bool:
        """Return whether nothing runs and nothing waits."""
        return not (self._is_running or self._events)

    def put(self, event: Event) -> None:
        """Queue an event; after `close` it is dropped."""
        if self._is_closed:
            _drop(event)
            return
        self._events.append((event, self.times.now_ns()))
        self._wake()

    def clear_and_put(self, event: Event) -> None:
        """Drop all queued events and queue one event, which makes them pointless."""
        dropped, self._events = self._events, deque()
        for overtaken, _ in dropped:
            _drop(overtaken)
        self.put(event)

    def close(self, on_idle: Callable[[], None]) -> None:
        """Drop all queued events; run `on_idle` once the running event, if any, has ended."""
        self._is_closed = True
        dropped, self._events = self._events, deque()
        for event, _ in dropped:
            _drop(event)
        if self._is_running:
            self._on_idle = on_idle
        else:
            on_idle()

    def _wake(self) -> None:
        """Run the next event on a later turn, unless one is running or due."""
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
        drive(self._run(event, queued_ns))

    @property
    def waiting_count(self) -> int:
        """Return how many events wait."""
        return len(self._events)

    async def _run(self, event: Event, queued_ns: int) -> None:
        """Run one event, report its EngineError, and wake the queue for the next event."""
        began_ns = self.times.now_ns()
        try:
            try:
                await event.work()
            except EngineError as error:
                await self._on_failed(event.name, error)
        finally:
            # An error in this event does not hold up the next one.
            self._is_running = False
            self.times.note(event.name, queued_ns, began_ns)
            on_idle, self._on_idle = self._on_idle, None
            if on_idle is not None:
                on_idle()
            self._wake()


def _drop(event: Event) -> None:
    """Run `on_drop` of an event that is overtaken, or put after `close`."""
    if event.on_drop is not None:
        event.on_drop()
