"""Watch a directory of change nodes: sequential znodes, each with the name of a changed entity.

```
<directory> ── new child ──> ChangeWatch ── `apply` of the node, or `load_everything`
```

Everything is read at the start, afterwards the entity of each change node. A node older than 15
minutes is deleted by any broker that sees it, so a broker whose clock is ahead can delete one that
another broker has not read. The sequence numbers show this, and everything is read again.

Source: ZkNodeChangeNotificationListener of 3.9.1; `znodes.md` §5.
Differs: a new session, or a node that was deleted unread, reads everything again; Kafka reads the
existing nodes and keeps its old state of an entity whose node was deleted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

from engine.errors import EngineError
from engine.host.coroutine import PromiseCoroutine, drive
from engine.host.ports import Clock, Timers
from engine.host.promise import Promise
from engine.limits import CONFIG_CHANGE_KEPT_MS, CONFIG_CHANGES_RETRY_MS
from engine.znode.client import ZnodeClient
from engine.znode.errors import NoNode, SessionExpired
from engine.znode.json_text import InvalidZnodeValue
from engine.znode.model import WatchEvent, WatchKind
from engine.znode.paths import NotSequential, sequence_of

_log = logging.getLogger("kafka.common.ZkNodeChangeNotificationListener")


class ApplyNotification(Protocol):
    """Reloads the entity of a change node; raises InvalidZnodeValue for an invalid node."""

    def __call__(self, data: bytes | None, path: str) -> PromiseCoroutine[None]:
        """Apply one change to the broker's settings.

        Loads the entity that a change node names (its `data` and `path`).
        """
        ...


class ChangeReader(NamedTuple):
    """The functions that process the change nodes of a directory."""

    directory: str
    #: The kind of the entities in log messages, such as `settings`.
    subject: str
    load_everything: Callable[[], PromiseCoroutine[None]]
    apply: ApplyNotification


class ChangeWatch:
    """Processes the change nodes of a directory, one reading at a time.

    Nodes are numbered without gaps, and the stat of their parent counts all that were ever created.
    A number at or above `_next_change` without a node is a node that another broker deleted.
    """

    def __init__(
        self, znodes: ZnodeClient, reader: ChangeReader, *, clock: Clock, timers: Timers
    ) -> None:
        """Create the watch of a directory of change nodes; nothing is read before `start`.

        `reader` loads everything at the start, and applies each change later.
        """
        self._znodes = znodes
        self._reader = reader
        self._clock = clock
        self._timers = timers
        #: Sequence number of the first change that is not applied yet.
        self._next_change = 0
        #: Wall time of the creation of each present node, by path: old ones are deleted.
        self._made_ms: dict[str, int] = {}
        #: Whether a reading is scheduled, and whether one is running.
        self._is_due = False
        self._is_reading = False
        #: Whether the watch fired during a reading.
        self._has_unread_change = False
        #: True before `start` and after `stop`: no watch is armed.
        self._is_stopped = True
        #: Cancels the timer of the next delayed reading.
        self._cancel: Callable[[], None] = lambda: None

    @property
    def is_stopped(self) -> bool:
        """True before `start` and after `stop`: changes are ignored."""
        return self._is_stopped

    async def start(self) -> None:
        """Load all entities and watch for changes; must be called again in each new session.

        Raises the errors of the store; the broker cannot start then.
        """
        self._is_stopped = False
        self._is_reading = True
        try:
            changes, self._next_change = await self._watch_changes()
            # The next reading contains these changes.
            await self._reader.load_everything()
            await self._purge(changes)
        finally:
            self._end_reading()

    def stop(self) -> None:
        """Stop the watch: changes that come later are not applied."""
        self._is_stopped = True
        self._cancel()

    async def _watch_changes(self) -> tuple[list[tuple[int, str]], int]:
        """Watch the directory; return its change nodes, and how many were created up to now.

        Each change has its number and name; they are in order of creation. They are listed after
        they are counted: one that is created in between would count as deleted unread. Its number
        is at or above the count, and another reading is due: the watch is armed before.
        """
        directory = self._reader.directory
        await self._znodes.watch(directory, WatchKind.CHILDREN, self._note)
        change_count = await self._change_count()
        changes = []
        for name in await self._znodes.children(directory):
            try:
                changes.append((sequence_of(name), name))
            except NotSequential as error:
                _log.warning("A node among the changes is left alone: %s", error)
        changes.sort()
        return changes, change_count

    async def _change_count(self) -> int:
        """Return how many change nodes were ever created, the number that the next one gets.

        The directory's cversion counts creations and deletions: it is `2 x made - present`.
        """
        stat = await self._znodes.exists(self._reader.directory)
        return 0 if stat is None else (stat.cversion + stat.child_count) // 2

    def _note(self, _event: WatchEvent) -> None:
        """Schedule a reading: the watch of the directory has fired."""
        self._schedule_reading()

    def _schedule_reading(self) -> None:
        """Read the changes in a later turn of the event loop, unless that is already scheduled."""
        if not self._is_due:
            self._is_due = True
            self._timers.call_soon(self._catch_up)

    def _catch_up(self) -> None:
        """Start to read the new changes; if a read is in progress, another one follows it."""
        self._is_due = False
        if self._is_stopped:
            return
        if self._is_reading:
            # Two concurrent readings could end with the older state.
            self._has_unread_change = True
            return
        work = drive(self._apply_changes())
        work.watch(lambda: self._on_applied(work))

    def _end_reading(self) -> None:
        """Note the end of a read; schedule another one if changes arrived meanwhile."""
        self._is_reading = False
        has_unread_change, self._has_unread_change = self._has_unread_change, False
        if has_unread_change:
            self._schedule_reading()

    def _schedule_reading_in(self, delay_ms: int) -> None:
        """Read the changes after `delay_ms`; an earlier delayed read is cancelled."""
        self._cancel()
        self._cancel = self._timers.call_at(
            self._clock.monotonic_ms() + delay_ms, self._schedule_reading
        )

    def _on_applied(self, work: Promise[None]) -> None:
        """Process the end of a read: after an error log it, and read again later.

        After an expired session nothing is scheduled: the next session begins with `start`.
        """
        try:
            work.result()
        except SessionExpired:
            # The next session begins with `start`.
            return
        except EngineError as error:
            subject = self._reader.subject
            _log.error("Changes of %s could not be read, trying again: %s", subject, error)
            if not self._is_stopped:
                self._schedule_reading_in(CONFIG_CHANGES_RETRY_MS)

    async def _apply_changes(self) -> None:
        """Apply the changes since the last read.

        All entities are loaded if a change node was deleted unread.
        """
        self._is_reading = True
        try:
            changes, change_count = await self._watch_changes()
            new = range(self._next_change, change_count)
            names = [name for sequence, name in changes if sequence in new]
            # Not if a node was deleted unread, if one has a number of another store, or if the
            # directory was created again and has fewer changes than were applied.
            is_complete = len(names) == change_count - self._next_change
            if not (is_complete and await self._apply_all(names)):
                subject = self._reader.subject
                _log.warning("A change of %s was removed unread: reading all of them", subject)
                await self._reader.load_everything()
            self._next_change = change_count
            await self._purge(changes)
        finally:
            self._end_reading()

    async def _apply_all(self, names: Iterable[str]) -> bool:
        """Apply changes in order; return False if a change node was deleted before it was read.

        A change that cannot be decoded is logged and left out.
        """
        for name in names:
            path = f"{self._reader.directory}/{name}"
            try:
                data, _ = await self._znodes.get(path)
            except NoNode:
                return False
            try:
                await self._reader.apply(data, path)
            except InvalidZnodeValue as error:
                _log.error("A change is left out: %s", error)
        return True

    async def _purge(self, changes: list[tuple[int, str]]) -> None:
        """Delete the change nodes that are older than CONFIG_CHANGE_KEPT_MS.

        All brokers have read them.
        """
        directory = self._reader.directory
        names = {name for _, name in changes}
        self._made_ms = {name: at for name, at in self._made_ms.items() if name in names}
        for name in names:
            if name not in self._made_ms:
                stat = await self._znodes.exists(f"{directory}/{name}")
                if stat is not None:
                    self._made_ms[name] = stat.ctime_ms
        now_ms = self._clock.wall_ms()
        for name, made_ms in list(self._made_ms.items()):
            if now_ms - made_ms > CONFIG_CHANGE_KEPT_MS:
                del self._made_ms[name]
                try:
                    await self._znodes.delete(f"{directory}/{name}")
                except NoNode:
                    continue
