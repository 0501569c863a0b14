"""Follows a directory of change notes: sequential nodes, each names a changed entity.

```
<directory> ── a child more ──> ChangeWatch ── `apply` of its note, or `load_everything`
```

Everything is read at the start, afterwards the entity of each note. A note older than 15 minutes is
removed by any broker that sees it, so a broker whose clock is ahead can remove one before another
broker has read it. The numbers show this, and everything is read again.

Source: ZkNodeChangeNotificationListener of 3.9.1; `znodes.md` §5.
Differs: a new session with the store, or a note that was removed unread, reads everything again;
Kafka reads the notes that are there and keeps its state of an entity whose note was removed.
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
    """Reads the entity of a note; raises InvalidZnodeValue for a note that cannot be read."""

    def __call__(self, data: bytes | None, path: str) -> PromiseCoroutine[None]:
        """Read it; `data` and `path` are those of the note."""
        ...


class ChangeReader(NamedTuple):
    """The functions that process the notes of a directory."""

    directory: str
    #: The kind of the entities, for the log: `settings`.
    subject: str
    load_everything: Callable[[], PromiseCoroutine[None]]
    apply: ApplyNotification


class ChangeWatch:
    """Reads the noted changes, one reading at a time.

    Notes are numbered without gaps, and the stat of their parent counts all that were ever made.
    A number at or above `_next_change` without a node is a note that another broker removed.
    """

    def __init__(
        self, znodes: ZnodeClient, reader: ChangeReader, *, clock: Clock, timers: Timers
    ) -> None:
        """`reader` loads everything at the start, and applies each change later."""
        self._znodes = znodes
        self._reader = reader
        self._clock = clock
        self._timers = timers
        #: The number that the first change not applied yet has, or will have.
        self._next_change = 0
        #: When each present note was created (wall clock), by its path: old ones are removed.
        self._made_ms: dict[str, int] = {}
        #: Whether a reading is scheduled, and whether one is under way.
        self._is_due = False
        self._is_reading = False
        #: Whether a change was noted while others were read.
        self._has_unread_change = False
        #: True before `start` and after `stop`: no watch is armed.
        self._is_stopped = True
        #: Cancels the timer of the next delayed reading.
        self._cancel: Callable[[], None] = lambda: None

    @property
    def is_stopped(self) -> bool:
        """Return whether no more changes are taken."""
        return self._is_stopped

    async def start(self) -> None:
        """Read all settings and watch for changes; must be called again for each new session.

        Raises the errors of the store; the broker cannot start then.
        """
        self._is_stopped = False
        self._is_reading = True
        try:
            changes = await self._watched_changes()
            self._next_change = await self._change_count()
            # The next reading contains these changes.
            await self._reader.load_everything()
            await self._purge(changes)
        finally:
            self._has_read()

    def stop(self) -> None:
        """Ignore all later changes."""
        self._is_stopped = True
        self._cancel()

    async def _watched_changes(self) -> list[tuple[int, str]]:
        """Return the notes in the order they were made, and watch for more."""
        directory = self._reader.directory
        await self._znodes.watch(directory, WatchKind.CHILDREN, self._note)
        changes = []
        for name in await self._znodes.children(directory):
            try:
                changes.append((sequence_of(name), name))
            except NotSequential as error:
                _log.warning("A node among the changes is left alone: %s", error)
        return sorted(changes)

    async def _change_count(self) -> int:
        """Return how many changes were ever made: cversion is `2 x made - present`."""
        stat = await self._znodes.exists(self._reader.directory)
        return 0 if stat is None else (stat.cversion + stat.child_count) // 2

    def _note(self, _event: WatchEvent) -> None:
        """Have the new change notes read: the watch of their directory has fired."""
        self._later()

    def _later(self) -> None:
        """Read the change notes on a later turn, once for all events until then."""
        if not self._is_due:
            self._is_due = True
            self._timers.call_soon(self._catch_up)

    def _catch_up(self) -> None:
        """Read the new change notes, or note that they are due after the reading in progress."""
        self._is_due = False
        if self._is_stopped:
            return
        if self._is_reading:
            # Two readers at once could end with the older state.
            self._has_unread_change = True
            return
        work = drive(self._apply_changes())
        work.watch(lambda: self._applied(work))

    def _has_read(self) -> None:
        """End a read of the changes; schedule another one if changes arrived meanwhile."""
        self._is_reading = False
        has_unread_change, self._has_unread_change = self._has_unread_change, False
        if has_unread_change:
            self._later()

    def _again_in(self, delay_ms: int) -> None:
        """Read the change notes after a delay; an earlier delay is cancelled."""
        self._cancel()
        self._cancel = self._timers.call_at(self._clock.monotonic_ms() + delay_ms, self._later)

    def _applied(self, work: Promise[None]) -> None:
        """Log a failed reading and schedule another; after an expired session `start` reads."""
        try:
            work.result()
        except SessionExpired:
            # The next session begins with `start`.
            return
        except EngineError as error:
            subject = self._reader.subject
            _log.error("Changes of %s could not be read, trying again: %s", subject, error)
            if not self._is_stopped:
                self._again_in(CONFIG_CHANGES_RETRY_MS)

    async def _apply_changes(self) -> None:
        """Apply the changes since the last reading; load everything if one was removed unread."""
        self._is_reading = True
        try:
            changes = await self._watched_changes()
            change_count = await self._change_count()
            new_names = [name for sequence, name in changes if sequence >= self._next_change]
            is_complete = len(new_names) >= change_count - self._next_change
            if not (is_complete and await self._apply_all(new_names)):
                subject = self._reader.subject
                _log.warning("A change of %s was removed unread: reading all of them", subject)
                await self._reader.load_everything()
            self._next_change = change_count
            await self._purge(changes)
        finally:
            self._has_read()

    async def _apply_all(self, names: Iterable[str]) -> bool:
        """Apply changes in order; return False if a change node was deleted before it was read."""
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
        """Remove the notes that are older than any broker needs."""
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
