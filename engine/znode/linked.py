"""A client of the store in the same process, over a link that may be interrupted or slow.

```
call ── channel to the store ──> store ── channel back ──> result, watches, the session's end
```

Without a fault every call has its result at once. Over a cut link calls wait until it is healed, as
those of Kafka's ZooKeeperClient do. No heartbeat arrives meanwhile, so that the session expires
after its timeout; the client is notified when the link is healed.

Differs: the client is not notified that it is disconnected; nothing in brokers depends on it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

from engine.host.network_links import LinkChannel, PlaceLinks
from engine.host.promise import Promise
from engine.znode.embedded import EmbeddedZnodeClient
from engine.znode.model import (
    ANY_VERSION,
    Operation,
    OperationResult,
    SessionEvent,
    Stat,
    Watcher,
    WatchEvent,
    WatchKind,
)

T = TypeVar("T")


class LinkedZnodeClient:
    """A session with the store over a link; see `client.py` for the rules."""

    def __init__(
        self, client: EmbeddedZnodeClient, links: PlaceLinks, place: str, store_place: str
    ) -> None:
        """`client` is used only by this object; the places are the two ends of the link."""
        self._client = client
        #: The directions of the link, to the store and from it.
        self._out = links.open_channel(place, store_place)
        self._in = links.open_channel(store_place, place)
        #: Called at each change of the session.
        self.on_session: Callable[[SessionEvent], None] = _ignore
        client.on_session = self._on_session_event
        client.is_silent = lambda: self._out.is_cut

    @property
    def session_id(self) -> int:
        """Return the id of the session, 0 before the first."""
        return self._client.session_id

    async def connect(self) -> None:
        """Begin a session, unless one is open."""
        await self._call_over_link(self._client.connect)

    async def close(self) -> None:
        """End the session, its ephemeral nodes and watches; closing twice is allowed.

        Over a cut link the store is not notified: the session ends by its timeout.
        """
        if self._out.is_cut:
            self._client.leave()
        else:
            await self._client.close()
        # Calls that wait for the store fail now: this client's session is over.
        self._out.deliver_all()
        self._in.deliver_all()

    async def create(
        self,
        path: str,
        data: bytes | None = None,
        *,
        ephemeral: bool = False,
        sequential: bool = False,
    ) -> str:
        """Create a node and return its path; a sequential node's path has ten digits at its end."""
        create = self._client.create
        return await self._call_over_link(
            partial(create, path, data, ephemeral=ephemeral, sequential=sequential)
        )

    async def get(self, path: str) -> tuple[bytes | None, Stat]:
        """Return a node's data and stat; raises NoNode."""
        return await self._call_over_link(partial(self._client.get, path))

    async def set(self, path: str, data: bytes | None, version: int = ANY_VERSION) -> Stat:
        """Replace a node's data if it has the version; raises NoNode, BadVersion."""
        return await self._call_over_link(partial(self._client.set, path, data, version))

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """Remove a node without children if it has the version.

        Raises NoNode, NotEmpty, BadVersion.
        """
        await self._call_over_link(partial(self._client.delete, path, version))

    async def exists(self, path: str) -> Stat | None:
        """Return a node's stat, or None if it does not exist."""
        return await self._call_over_link(partial(self._client.exists, path))

    async def children(self, path: str) -> list[str]:
        """Return the names of a node's children, sorted; raises NoNode."""
        return await self._call_over_link(partial(self._client.children, path))

    async def multi(self, operations: Sequence[Operation]) -> list[OperationResult]:
        """Do all operations or none, and return their results in order.

        The error of a failed operation has its `operation_index`.
        """
        return await self._call_over_link(partial(self._client.multi, operations))

    async def watch(self, path: str, kind: WatchKind, watcher: Watcher) -> None:
        """Set a one-shot watch; for children the node must exist (NoNode)."""

        def fired(event: WatchEvent) -> None:
            """Send the event to the watcher over the link."""
            self._in.send(partial(watcher, event))

        await self._call_over_link(partial(self._client.watch, path, kind, fired))

    async def _call_over_link(self, call: Callable[[], Awaitable[T]]) -> T:
        """Run a call of the store over the simulated link, which delays call and result."""
        if self._out.is_clear and self._in.is_clear:
            return await call()
        await _await_passage(self._out)
        try:
            return await call()
        finally:
            await _await_passage(self._in)

    def _on_session_event(self, event: SessionEvent) -> None:
        """Report a change of the session over the link, subject to its faults."""
        self._in.send(lambda: self.on_session(event))


async def _await_passage(channel: LinkChannel) -> None:
    """Wait until a message that is sent now would have arrived."""
    arrived: Promise[None] = Promise()
    channel.send(partial(arrived.keep, None))
    await arrived


def _ignore(event: SessionEvent) -> None:
    """Ignore a session event: no listener is set."""
