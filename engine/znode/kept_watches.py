"""The watches of a session, kept over lost connections: a server forgets them with a connection.

```
        watch ── request to the server ──> ARMED ── event ──> fired, its watcher called
                                             │ ^
                         connection lost     v │ set again: a missed change is an event
                                            LOST
```

After a lost connection nothing may be read before all watches are requested again; ZooKeeper's
client sends them first on a new connection, for the same reason:

1. `/controller` is absent and watched; the connection is lost.
2. Another broker creates the node. A read that was sent first on the new connection returns it.
3. The node is deleted, and only then the watch is set again: absent before, absent now, no event.

The reader would wait for a deletion that is never reported. So reads wait while the
connection is lost (`read`). A read may be sent after the client has reconnected, but before the
loss is noticed here: its result counts as lost, as does that of a watch's first request.

| set on | event when it is set again |
|---|---|
| a node that existed | DELETED if it is absent, DATA_CHANGED if its mzxid differs |
| an absent node | CREATED if it exists |
| children | DELETED if the node is absent, CHILDREN_CHANGED if its pzxid differs |

Source: Z3; ZooKeeper's ClientCnxn, which primes a connection with SetWatches.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol, TypeVar

from engine.errors import EngineError
from engine.host.coroutine import PromiseCoroutine, drive
from engine.host.each import do_each
from engine.host.promise import Promise
from engine.znode.errors import NoNode, ZnodeConnectionLost
from engine.znode.model import EventType, Watcher, WatchEvent, WatchKind

T = TypeVar("T")
_Key = tuple[WatchKind, str, Watcher]


class Arm(Protocol):
    """Sets a one-shot watch at the server."""

    def __call__(
        self, path: str, kind: WatchKind, on_event: Callable[[EventType], None]
    ) -> PromiseCoroutine[int | None]:
        """Set a watch; return the node's mzxid or, for children, its pzxid; None without a node.

        The request is in flight when this first waits. Raises NoNode for the children of a missing
        node, ConnectionLost, SessionExpired.
        """
        ...


class _Watch:
    """A watch that is set at the server, or will be set again."""

    __slots__ = ("first_request", "is_lost", "kind", "path", "seen_zxid", "watcher")

    def __init__(self, path: str, kind: WatchKind, watcher: Watcher) -> None:
        """Create for a watch that is not set at the server yet."""
        self.path = path
        self.kind = kind
        self.watcher = watcher
        #: The node's mzxid or pzxid when the watch was set; None for a node that did not exist. A
        #: newer one shows a change while the connection was lost.
        self.seen_zxid: int | None = None
        #: Whether the connection was lost after the watch was set: it must be set again.
        self.is_lost = False
        #: Kept once the server has the watch for the first time, None after that: only then is it
        #: set again.
        self.first_request: Promise[int | None] | None = None

    @property
    def key(self) -> _Key:
        """Return (kind, path, watcher), by which the watch is found."""
        return self.kind, self.path, self.watcher


class KeptWatches:
    """The watches of one client, whose `arm` sets one at the server."""

    def __init__(self, arm: Arm) -> None:
        self._arm = arm
        self._watches: dict[_Key, _Watch] = {}
        #: Kept once lost watches are requested again: reads wait for it after a lost connection.
        #: None while no connection is lost.
        self._until_set_again: Promise[None] | None = None
        #: Number of lost connections: it shows whether one was lost during a request.
        self._loss_count = 0

    def on_connection_loss(self) -> None:
        """Note that the server may have dropped all watches; reads wait until all are set."""
        self._loss_count += 1
        for watch in self._watches.values():
            watch.is_lost = True
        if self._until_set_again is None:
            self._until_set_again = Promise()

    async def set_all_again(self) -> bool:
        """Set all watches again after a reconnection, and report the events that they missed.

        Returns False if the connection was lost again. All requests are in flight when this first
        waits, and reads go after them. A watch whose first request has no response yet was never
        set: that request fails, and is sent again.
        """
        lost = [
            watch
            for watch in self._watches.values()
            if watch.is_lost and watch.first_request is None
        ]
        setting: list[tuple[_Watch, Promise[bool]]] = [(watch, Promise()) for watch in lost]
        try:
            do_each(setting, lambda pair: drive(self._set_again(*pair)))
        finally:
            self._resume_reads()
        are_set = [await is_set for _, is_set in setting]
        return all(are_set)

    def end(self) -> None:
        """Forget all watches at the end of the session; waiting reads resume and fail."""
        self._watches.clear()
        self._resume_reads()

    def _resume_reads(self) -> None:
        """Resume reads that waited until all watches were requested again after a reconnection.

        A read before that could return a state whose later change no watch reports.
        """
        waiting, self._until_set_again = self._until_set_again, None
        if waiting is not None:
            waiting.keep(None)

    async def read(self, request: Callable[[], Awaitable[T]]) -> T:
        """Return the result of a read, in order with the events.

        Raises ConnectionLost, and the errors of the request.
        """
        await self._wait_until_readable()
        loss_count = self._loss_count
        try:
            state = await request()
        except NoNode:
            self._check_connection(loss_count)
            raise
        self._check_connection(loss_count)
        return state

    async def _wait_until_readable(self) -> None:
        """Wait until all watches are requested again, also after further losses meanwhile."""
        while self._until_set_again is not None:
            await self._until_set_again

    def _check_connection(self, loss_count: int) -> None:
        """Raise ConnectionLost if the connection was lost after `loss_count` was read."""
        if loss_count != self._loss_count:
            raise ZnodeConnectionLost("the connection was lost before its response was noticed")

    async def watch(self, path: str, kind: WatchKind, watcher: Watcher) -> None:
        """Set a one-shot watch, unless it is set; raises NoNode (for children), ConnectionLost."""
        await self._wait_until_readable()
        watch = _Watch(path, kind, watcher)
        known = self._watches.get(watch.key)
        if known is not None:
            if known.first_request is not None:
                await known.first_request
            return
        # Its event may come before the response.
        self._watches[watch.key] = watch
        first_request = drive(self._send_first_request(watch))
        watch.first_request = None if first_request.is_kept else first_request
        try:
            await first_request
        except EngineError:
            self._forget(watch)
            raise

    async def _send_first_request(self, watch: _Watch) -> int | None:
        """Set a watch at the server; from its response on the watch is set again after each loss.

        Raises ConnectionLost also for a response after a loss: the server may have forgotten the
        watch.
        """
        loss_count = self._loss_count
        watch.seen_zxid = await self._set_at_server(watch)
        self._check_connection(loss_count)
        watch.first_request = None
        return watch.seen_zxid

    def _set_at_server(self, watch: _Watch) -> PromiseCoroutine[int | None]:
        """Set a watch at the server; return the zxid that `Arm` returns, None for no node."""
        return self._arm(watch.path, watch.kind, partial(self._fire, watch))

    async def _set_again(self, watch: _Watch, is_set: Promise[bool]) -> None:
        """Set a watch again after a reconnection, and report an event that it missed.

        Keeps `is_set` with True then, with False if the connection was lost again.
        """
        watch.is_lost = False
        try:
            missed = await self._request_missed_event(watch)
        except ZnodeConnectionLost:
            watch.is_lost = True
            is_set.keep(False)
            return
        except EngineError as error:
            is_set.fail(error)
            return
        try:
            if missed is not None:
                self._fire(watch, missed)
        finally:
            # A watcher that raises does not fail the connection: the other watches are set.
            is_set.keep(True)

    async def _request_missed_event(self, watch: _Watch) -> EventType | None:
        """Request a watch, and return the event that it missed, None if nothing happened."""
        try:
            now_zxid = await self._set_at_server(watch)
        except NoNode:
            return EventType.DELETED
        seen_zxid, watch.seen_zxid = watch.seen_zxid, now_zxid
        if now_zxid == seen_zxid:
            return None
        if now_zxid is None:
            return EventType.DELETED
        if watch.kind is WatchKind.CHILDREN:
            return EventType.CHILDREN_CHANGED
        return EventType.CREATED if seen_zxid is None else EventType.DATA_CHANGED

    def _fire(self, watch: _Watch, type_: EventType) -> None:
        """Call the watcher of a watch once and remove the watch; ignore a replaced watch."""
        if self._watches.get(watch.key) is not watch:
            return
        self._forget(watch)
        if type_ is EventType.DELETED:
            # One removal is one event, also for a watcher of the node and its children.
            for kind in WatchKind:
                self._watches.pop((kind, watch.path, watch.watcher), None)
        watch.watcher(WatchEvent(type_, watch.path))

    def _forget(self, watch: _Watch) -> None:
        """Remove a watch, but not a later watch of the same key."""
        if self._watches.get(watch.key) is watch:
            del self._watches[watch.key]
