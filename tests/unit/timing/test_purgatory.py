"""Delayed operations: completed once, by an event or by their deadline."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from engine.timing.purgatory import DelayedOperation, Purgatory
from engine.timing.wheel import TimingWheel


class Waiting(DelayedOperation):
    """Can complete when told so; runs `on_poll` at each look, with the number of the look."""

    __slots__ = ("looks", "on_poll", "ready")

    def __init__(self, deadline_ms: int = 100) -> None:
        super().__init__(deadline_ms)
        self.ready = False
        self.looks = 0
        self.on_poll: Callable[[int], None] = lambda look: None

    def can_complete(self) -> bool:
        self.looks += 1
        self.on_poll(self.looks)
        return self.ready

    def drop(self) -> None:
        self.on_poll = lambda look: None


def purgatory_of(*, purge_interval: int = 1000) -> Purgatory[Waiting]:
    return Purgatory(TimingWheel(0), purge_interval=purge_interval)


def test_what_can_complete_at_once_is_never_watched() -> None:
    purgatory = purgatory_of()
    operation = Waiting()
    operation.ready = True
    assert purgatory.try_complete_else_watch(operation, ["a"])
    assert operation.is_completed
    assert (1, 0, 0) == (operation.looks, purgatory.watched_count, purgatory.delayed_count)


def test_an_event_completes_what_it_makes_ready() -> None:
    purgatory = purgatory_of()
    first, second = Waiting(), Waiting()
    for operation in (first, second):
        assert not purgatory.try_complete_else_watch(operation, ["a", "b"])
    assert [] == purgatory.complete_for("a")
    second.ready = True
    assert [] == purgatory.complete_for("c")
    assert [second] == purgatory.complete_for("b")
    assert [] == purgatory.complete_for("a")
    assert not second.is_expired
    assert [first] == purgatory.advance(100)
    assert first.is_expired


def test_an_event_between_try_and_watch_is_seen_by_the_second_try() -> None:
    purgatory = purgatory_of()
    operation = Waiting()

    def event_after_first_look(look: int) -> None:
        if look == 1:
            assert [] == purgatory.complete_for("a")
        else:
            operation.ready = True

    operation.on_poll = event_after_first_look
    assert purgatory.try_complete_else_watch(operation, ["a"])
    assert 2 == operation.looks
    assert 0 == purgatory.delayed_count
    assert [] == purgatory.complete_for("a")
    assert (0, 0) == (purgatory.watched_count, purgatory.key_count)


def test_a_check_that_leads_to_its_own_completion_arms_no_timer() -> None:
    purgatory = purgatory_of()
    operation = Waiting()
    won = []

    def complete_in_second_look(look: int) -> None:
        if look == 2:
            won.append(operation.force_complete())

    operation.on_poll = complete_in_second_look
    assert not purgatory.try_complete_else_watch(operation, ["a"])
    assert [True] == won
    assert 0 == purgatory.delayed_count
    assert [] == purgatory.advance(100)


def test_a_nested_check_completes_once() -> None:
    purgatory = purgatory_of()
    operation = Waiting()
    assert not purgatory.try_complete_else_watch(operation, ["a"])
    nested: list[Waiting] = []

    def check_again(look: int) -> None:
        operation.on_poll = lambda look: None
        nested.extend(purgatory.complete_for("a"))

    operation.ready = True
    operation.on_poll = check_again
    assert [] == purgatory.complete_for("a")
    assert [operation] == nested
    assert 0 == purgatory.watched_count


def test_a_forced_completion_is_owed_by_who_forced_it() -> None:
    purgatory = purgatory_of()
    operation = Waiting()
    purgatory.try_complete_else_watch(operation, ["a"])
    assert operation.force_complete()
    assert not operation.force_complete()
    operation.ready = True
    assert [] == purgatory.complete_for("a")
    assert [] == purgatory.advance(1000)


def test_dead_entries_are_swept_when_they_exceed_the_interval() -> None:
    purgatory = purgatory_of(purge_interval=4)
    for number in range(3):
        operation = Waiting()
        purgatory.try_complete_else_watch(operation, [number, "shared"])
        operation.ready = True
        assert [operation] == purgatory.complete_for(number)
    assert 3 == purgatory.watched_count
    purgatory.advance(1)
    assert 3 == purgatory.watched_count
    waiting = Waiting()
    purgatory.try_complete_else_watch(waiting, ["other"])
    # Three dead ones and one that waits: not above the interval.
    assert 4 == purgatory.watched_count
    purgatory.try_complete_else_watch(Waiting(), ["another"])
    assert (2, 2) == (purgatory.watched_count, purgatory.key_count)


def test_what_its_deadline_completes_is_counted_under_each_of_its_keys() -> None:
    purgatory = purgatory_of(purge_interval=100)
    keys = range(30)
    for now_ms in range(500):
        purgatory.watch(Waiting(now_ms + 1), keys)
        assert 1 == len(purgatory.advance(now_ms + 1))
        assert purgatory.watched_count <= 100 + len(keys)


def test_a_sweep_costs_no_more_than_the_watching_that_led_to_it() -> None:
    purgatory = purgatory_of(purge_interval=10)
    for number in range(1000):
        purgatory.watch(Waiting(10_000), [number])
    swept = 0
    for _ in range(1000):
        before = purgatory.watched_count
        dead = Waiting()
        purgatory.watch(dead, ["dead"])
        dead.force_complete()
        swept += before + 1 > purgatory.watched_count
    assert swept <= 1
    assert purgatory.watched_count <= 2000


def test_what_nobody_waits_for_any_more_is_dropped_without_a_response() -> None:
    purgatory = purgatory_of()
    operation, done = Waiting(), Waiting()
    purgatory.watch(operation, ["a"])
    purgatory.watch(done, ["a"])
    assert done.force_complete()
    on_poll = operation.on_poll, done.on_poll
    operation.abandon()
    done.abandon()
    # The one that has been completed is dropped by whom that was.
    assert (True, False) == (operation.on_poll is not on_poll[0], done.on_poll is not on_poll[1])
    assert 0 == purgatory.delayed_count
    assert ([], []) == (purgatory.complete_for("a"), purgatory.advance(1000))


def test_watching_alone_keeps_the_lists_bounded() -> None:
    purgatory = purgatory_of(purge_interval=10)
    for number in range(1000):
        operation = Waiting(10_000)
        purgatory.try_complete_else_watch(operation, [number, "quiet"])
        operation.ready = True
        assert [operation] == purgatory.complete_for(number)
        assert purgatory.watched_count <= 11


def test_expired_operations_come_earliest_first() -> None:
    purgatory = purgatory_of()
    late, early = Waiting(50), Waiting(20)
    for operation in (late, early):
        purgatory.try_complete_else_watch(operation, ["a"])
    assert 20 == purgatory.next_deadline_ms()
    assert [early, late] == purgatory.advance(60)
    assert purgatory.next_deadline_ms() is None


def test_an_operation_without_keys_waits_for_its_deadline() -> None:
    purgatory = purgatory_of()
    operation = Waiting(5)
    assert not purgatory.try_complete_else_watch(operation, [])
    assert [operation] == purgatory.advance(5)


def test_a_stop_completes_all_that_waits() -> None:
    purgatory = purgatory_of()
    keyed, keyless, done = Waiting(9), Waiting(7), Waiting(8)
    purgatory.try_complete_else_watch(keyed, ["a", "b"])
    purgatory.try_complete_else_watch(keyless, [])
    purgatory.try_complete_else_watch(done, ["a"])
    done.force_complete()
    assert [keyless, keyed] == purgatory.drain()
    assert (0, 0) == (purgatory.watched_count, purgatory.delayed_count)
    assert [] == purgatory.advance(100)


def test_a_request_that_was_just_checked_waits_without_another_check() -> None:
    purgatory = purgatory_of()
    first, second = Waiting(50), Waiting()
    purgatory.watch(first, ["a", "b"])
    purgatory.watch(second, ["a"])
    assert (0, 0, 2) == (first.looks, second.looks, purgatory.delayed_count)
    second.ready = True
    assert [second] == purgatory.complete_for("a")
    assert [first] == purgatory.advance(50)


def test_watching_without_a_check_sweeps_the_dead_as_well() -> None:
    purgatory = purgatory_of(purge_interval=3)
    for number in range(20):
        operation = Waiting()
        purgatory.watch(operation, [number])
        operation.force_complete()
    assert purgatory.watched_count <= 4


def test_a_fault_of_a_check_loses_no_operation_that_could_complete() -> None:
    purgatory = purgatory_of()
    ready, faulty, last = Waiting(), Waiting(), Waiting()
    for operation in (ready, faulty, last):
        purgatory.watch(operation, ["a"])
    ready.ready = last.ready = True

    def fail(_look: int) -> None:
        raise KeyError("a fault of our own")

    faulty.on_poll = fail
    with pytest.raises(KeyError):
        purgatory.complete_for("a")
    faulty.on_poll = lambda look: None
    assert [ready, last] == purgatory.complete_for("a")
    assert [faulty] == purgatory.advance(100)
