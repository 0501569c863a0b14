"""Operations of groups that wait in the purgatory.

| operation | key | completes | at its deadline |
|---|---|---|---|
| DelayedJoin | group's join | all members have joined | the others are removed |
| DelayedJoin of an empty group | group's join | never | waits again if a member joined |
| DelayedHeartbeat | member | it sent a request, or waits for a response | it is removed |
| DelayedSync | group's sync | all members have sent SyncGroup | the others are removed |

The owner passes the condition and the continuation of each; the operation holds only its callbacks.

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
    """An operation of a group, with its condition and its continuation."""

    __slots__ = ("_can_complete", "_completed")

    def __init__(
        self,
        deadline_ms: int,
        can_complete: Callable[[], bool],
        completed: Callable[[bool], None],
    ) -> None:
        """`completed` is called once, with whether the deadline passed.

        `can_complete` returns whether the condition of the operation is met.
        """
        super().__init__(deadline_ms)
        self._can_complete = can_complete
        self._completed = completed

    def can_complete(self) -> bool:
        """Return whether the condition is true."""
        return self._can_complete()

    def finish(self) -> None:
        """Run the continuation; called by the code that completed it."""
        completed = self._completed
        self.drop()
        completed(self.is_expired)

    def drop(self) -> None:
        """Release the group."""
        self._can_complete = _always
        self._completed = _nothing


def _always() -> bool:
    """Let an operation whose group was released be over at the next check."""
    return True


def _nothing(_is_expired: bool) -> None:
    """Do nothing as an operation ends whose group was released."""
    return


def _kind_of(key: Hashable) -> str:
    """Return the purgatory that Kafka has for a key, which begins with its kind."""
    return "Heartbeat" if isinstance(key, tuple) and key[0] == "member" else "Rebalance"


class GroupDelays:
    """The purgatory of one broker's groups."""

    def __init__(self, clock: Clock, note_deadline: NoteDeadline) -> None:
        """`note_deadline` gets the deadline of each operation that begins to wait (monotonic)."""
        self._clock = clock
        self._note_deadline = note_deadline
        wheel: TimingWheel[GroupOperation] = TimingWheel(clock.monotonic_ms())
        self._purgatory: Purgatory[GroupOperation] = Purgatory(
            wheel, purge_interval=_PURGE_INTERVAL
        )

    @property
    def delayed_count(self) -> int:
        """Count the operations that wait."""
        return self._purgatory.delayed_count

    def purgatory_counts(self) -> dict[str, PurgatoryCount]:
        """Count what waits, by the names of the two purgatories that Kafka has for it."""
        none = PurgatoryCount(0, 0)
        return {"Heartbeat": none, "Rebalance": none, **self._purgatory.counts_by(_kind_of)}

    def wait(
        self,
        key: Hashable,
        delay_ms: int,
        can_complete: Callable[[], bool],
        completed: Callable[[bool], None],
    ) -> None:
        """Complete now if it can, else at an event under `key` or after `delay_ms`."""
        deadline_ms = self._clock.monotonic_ms() + delay_ms
        operation = GroupOperation(deadline_ms, can_complete, completed)
        if self._purgatory.try_complete_else_watch(operation, (key,)):
            operation.finish()
        elif not operation.is_completed:
            self._note_deadline(deadline_ms)

    def check(self, key: Hashable) -> None:
        """Complete the operations under a key that can be by now."""
        do_each(self._purgatory.check(key), GroupOperation.finish)

    def advance(self) -> None:
        """Complete the operations past their deadline."""
        do_each(self._purgatory.advance(self._clock.monotonic_ms()), GroupOperation.finish)

    def next_deadline_ms(self) -> int | None:
        """Return when to advance next (monotonic), None if nothing waits."""
        return self._purgatory.next_deadline_ms()

    def stop(self) -> None:
        """Drop all waiting operations: the broker stops."""
        for operation in self._purgatory.drain():
            operation.drop()
