"""The watches that the controller has set, at most one for each path and kind.

A watch fires once. It is set again before the node is read, so that no change between the two is
missed; setting a watch that is still set does nothing. The store cannot remove a watch: an event of
a disarmed watch is ignored.

Source: ZN:watches.
"""

from __future__ import annotations

from collections.abc import Callable

from engine.znode.client import ZnodeClient
from engine.znode.model import EventType, WatchEvent, WatchKind


class ArmedWatches:
    """The one-shot watches of the controller, by path and kind."""

    def __init__(self, client: ZnodeClient) -> None:
        self._client = client
        self._armed: dict[tuple[str, WatchKind], object] = {}

    async def arm_children(self, path: str, on_change: Callable[[], None]) -> None:
        """Call `on_change` once, when a child of a node is created or deleted.

        The node must exist.
        """
        await self._set_watch(path, WatchKind.CHILDREN, lambda _: on_change())

    async def arm_node(self, path: str, on_event: Callable[[EventType], None]) -> None:
        """Call `on_event` once, when a node is created, changed or deleted."""
        await self._set_watch(path, WatchKind.DATA, on_event)

    def disarm(self, path: str) -> None:
        """Ignore the watches that are set on a path when they fire."""
        for kind in WatchKind:
            self._armed.pop((path, kind), None)

    def clear(self) -> None:
        """Ignore all watches that are set when they fire: this broker resigned as controller."""
        self._armed.clear()

    async def _set_watch(
        self, path: str, kind: WatchKind, on_event: Callable[[EventType], None]
    ) -> None:
        """Set a one-shot watch of a node unless it is set.

        `on_event` is called if it is not disarmed.
        """
        key = (path, kind)
        if key in self._armed:
            return
        token = object()

        def fire(event: WatchEvent) -> None:
            """Pass the event on, unless the watch was disarmed or set again meanwhile."""
            if self._armed.get(key) is token:
                del self._armed[key]
                on_event(event.type)

        self._armed[key] = token
        try:
            await self._client.watch(path, kind, fire)
        except BaseException:
            self._armed.pop(key, None)
            raise
