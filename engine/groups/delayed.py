"""The delayed operations of groups, and the purgatory in which they wait.

| operation | key | completes | at its deadline |
|---|---|---|---|
| DelayedJoin | group's join | all members have joined | members that did not join are removed |
| DelayedJoin of an empty group | group's join | never | waits again if a member joined |
| DelayedHeartbeat | member | it sent a request, or a response is pending | the member is removed |
| DelayedSync | group's sync | all sent SyncGroup | members that did not send it are removed |

`Rebalances` passes the condition and the continuation of each operation as callbacks.

Source: GRP-3 ... GRP-5, GRP-10 ... GRP-12; DelayedJoin, DelayedHeartbeat, DelayedSync of 3.9.1.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from engine.groups.ports import NoteDeadline
from engine.host.each import do_each
from engine.host.ports import Clock
from engine.timing.purgatory import DelayedOperation, Purgatory, PurgatoryCount
from engine.timing.wheel import TimingWheel

_PURGE_INTERVAL = 1000


class GroupOperation(DelayedOperation):
    """A delayed operation with a condition and a continuation."""

    __slots__ = ("_can_complete", "_completed")

    def __init__(
        self,
        deadline_ms: int,
        can_complete: Callable[[], bool],
        completed: Callable[[bool], None],
    ) -> None:
        """Create an operation that completes by `can_complete` or at `deadline_ms` (monotonic).

        `completed(is_expired)` is called once; `is_expired` is True if the deadline completed it.
        """
        super().__init__(deadline_ms)
        self._can_complete = can_complete
        self._completed = completed

    def can_complete(self) -> bool:
        """Return True if the operation's condition is true, so that it completes."""
        return self._can_complete()

    def finish(self) -> None:
        """Call the continuation of an operation that the purgatory has just marked as completed."""
        completed = self._completed
        self.drop()
        completed(self.is_expired)

    def drop(self) -> None:
        """Replace both callbacks, so that the group is freed; the continuation is never called."""
        self._can_complete = _always
        self._completed = _nothing


def _always() -> bool:
    """Return True: the condition of a dropped operation."""
    return True


def _nothing(_is_expired: bool) -> None:
    """Do nothing: the continuation of a dropped operation."""
    return


def _kind_of(key: Hashable) -> str:
    """Return the name of Kafka's purgatory for the operations of `key`."""
    return "Heartbeat" if isinstance(key, tuple) and key[0] == "member" else "Rebalance"


class GroupDelays:
    """The purgatory of one broker's groups."""

    def __init__(self, clock: Clock, note_deadline: NoteDeadline) -> None:
        """Create the purgatory without operations.

        `note_deadline` is called with the deadline (monotonic) of each operation that has to wait.
        """
        self._clock = clock
        self._note_deadline = note_deadline
        wheel: TimingWheel[GroupOperation] = TimingWheel(clock.monotonic_ms())
        self._purgatory: Purgatory[GroupOperation] = Purgatory(
            wheel, purge_interval=_PURGE_INTERVAL
        )

    @property
    def delayed_count(self) -> int:
        """Return the number of operations that wait for their condition or deadline."""
        return self._purgatory.delayed_count

    def purgatory_counts(self) -> dict[str, PurgatoryCount]:
        """Return the counts of waiting operations for the metrics of Kafka's two purgatories.

        The keys are "Heartbeat" (session timers) and "Rebalance" (join and sync phases).
        """
        none = PurgatoryCount(0, 0)
        return {"Heartbeat": none, "Rebalance": none, **self._purgatory.counts_by(_kind_of)}

    def wait(
        self,
        key: Hashable,
        delay_ms: int,
        can_complete: Callable[[], bool],
        completed: Callable[[bool], None],
    ) -> None:
        """Call `completed(False)` once `can_complete` is True, or `completed(True)` after
        `delay_ms`.

        `can_complete` is evaluated now and at each `check` of `key`. If it is True now, `completed`
        is called within this call.
        """
        deadline_ms = self._clock.monotonic_ms() + delay_ms
        operation = GroupOperation(deadline_ms, can_complete, completed)
        if self._purgatory.try_complete_else_watch(operation, (key,)):
            operation.finish()
        elif not operation.is_completed:
            self._note_deadline(deadline_ms)

    def check(self, key: Hashable) -> None:
        """Evaluate the conditions of the operations under `key`.

        Those whose condition is true are completed.
        """
        do_each(self._purgatory.complete_for(key), GroupOperation.finish)

    def advance(self) -> None:
        """Complete the operations whose deadline has passed; the broker's timer calls this."""
        do_each(self._purgatory.advance(self._clock.monotonic_ms()), GroupOperation.finish)

    def next_deadline_ms(self) -> int | None:
        """Return the earliest deadline (monotonic), None if no operation waits."""
        return self._purgatory.next_deadline_ms()

    def stop(self) -> None:
        """Drop all waiting operations without calling their continuations."""
        for operation in self._purgatory.drain():
            operation.drop()
