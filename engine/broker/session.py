"""Renew a broker's session with the metadata store after it expires.

```
EXPIRED   1 the controller resigns: the session's ephemeral nodes and watches were removed
          2 a new session      3 registered again: a new epoch
          4 settings read and watched again      5 the controller module takes part in the election
```

After a failure, 2 ... 4 are repeated after a pause. Meanwhile the broker serves clients from its
metadata cache; it gets no new roles until it is registered.

Source: kafka.zookeeper.ZooKeeperClient.reinitialize, KafkaController's Expire and
RegisterBrokerAndReelect.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from engine.errors import EngineError
from engine.host.coroutine import drive
from engine.host.ports import Clock, Timers
from engine.host.promise import Promise
from engine.limits import BROKER_SESSION_RETRY_MS
from engine.znode.client import ZnodeClient
from engine.znode.model import SessionEvent

_log = logging.getLogger("kafka.server.KafkaServer")


class BrokerSession:
    """Begins a new session after one has expired."""

    def __init__(
        self,
        znodes: ZnodeClient,
        timers: Timers,
        clock: Clock,
        *,
        on_expired: Callable[[], None],
        begin: Callable[[], Awaitable[None]],
    ) -> None:
        """Create the guard of the broker's session with the metadata store.

        `begin` runs at the start of each new session, and may be repeated. `on_expired` is called
        when a session has expired.
        """
        self._znodes = znodes
        self._timers = timers
        self._clock = clock
        self._on_expired = on_expired
        self._begin = begin
        #: Number of expired sessions.
        self.expired_count = 0
        self._is_stopped = False
        #: The attempt in progress, None without one.
        self._work: Promise[None] | None = None
        #: Cancels the timer of the next try.
        self._cancel: Callable[[], None] = lambda: None

    def start(self) -> None:
        """Follow the events of the present session from now on."""
        self._znodes.on_session = self._on_event

    def stop(self) -> None:
        """Ignore later events: no new session begins."""
        self._is_stopped = True
        self._cancel()

    def _on_event(self, event: SessionEvent) -> None:
        """Log an event of the session; after EXPIRED call `on_expired`, and open a new session.

        The store's client calls it.
        """
        if self._is_stopped:
            return
        _log.info("session with the metadata store: %s", event.value)
        if event is SessionEvent.EXPIRED:
            self.expired_count += 1
            self._on_expired()
            self._schedule_attempt(0)

    def _schedule_attempt(self, delay_ms: int) -> None:
        """Try to open a new session after `delay_ms`; an earlier scheduled attempt is cancelled."""
        self._cancel()
        self._cancel = self._timers.call_at(self._clock.monotonic_ms() + delay_ms, self._try)

    def _try(self) -> None:
        """Begin to open a new session and register, unless stopped or an attempt is in progress."""
        if self._is_stopped or self._work is not None:
            return
        work = self._work = drive(self._begin_again())
        work.watch(lambda: self._on_tried(work))

    async def _begin_again(self) -> None:
        """Connect to the store with a new session, and call `begin`."""
        await self._znodes.connect()
        await self._begin()

    def _on_tried(self, work: Promise[None]) -> None:
        """Process the end of an attempt: after an EngineError try again after a pause.

        Any other exception is raised.
        """
        self._work = None
        try:
            work.result()
        except EngineError as error:
            if self._is_stopped:
                return
            _log.error("no new session yet, trying again: %s", error)
            self._schedule_attempt(BROKER_SESSION_RETRY_MS)
