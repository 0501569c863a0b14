"""A value that is there later: kept once, watched, gone on with."""

from __future__ import annotations

import pytest

from engine.errors import ConfigError, InvariantBroken
from engine.host.promise import Promise, StepFailed


def _error() -> ConfigError:
    return ConfigError("a", 1, "is wrong")


def test_a_step_makes_the_value_of_the_promise_that_follows() -> None:
    number: Promise[int] = Promise()
    text = number.then(str)
    number.keep(4)
    assert text.result() == "4"


def test_a_failure_passes_over_the_step() -> None:
    number: Promise[int] = Promise()
    seen: list[int] = []
    following = number.then(seen.append)
    error = _error()
    number.fail(error)
    assert (following.error, seen) == (error, [])


def test_an_error_of_the_step_fails_what_follows() -> None:
    def refuse(_number: int) -> int:
        raise _error()

    following = Promise.of(3).then(refuse)
    with pytest.raises(ConfigError):
        following.result()


def test_a_fault_of_the_step_goes_to_who_keeps_the_promise() -> None:
    def fault(_number: int) -> int:
        raise ZeroDivisionError

    number: Promise[int] = Promise()
    number.then(fault)
    with pytest.raises(ZeroDivisionError):
        number.keep(1)


def test_a_promise_can_be_made_kept_or_failed() -> None:
    assert Promise.of("a").result() == "a"
    error = _error()
    assert Promise.failed(error).error is error


def test_a_promise_is_kept_once() -> None:
    promise = Promise.of(1)
    with pytest.raises(AssertionError):
        promise.keep(2)
    with pytest.raises(AssertionError):
        promise.fail(_error())


def test_promises_share_nothing() -> None:
    first: Promise[int] = Promise()
    second: Promise[int] = Promise()
    seen: list[str] = []
    first.watch(lambda: seen.append("first"))
    second.keep(1)
    assert seen == []
    assert not first.is_kept


class Work:
    """Notes that it was given up."""

    def __init__(self) -> None:
        self.times_abandoned = 0

    def abandon(self) -> None:
        self.times_abandoned += 1


def test_a_promise_that_nobody_wants_gives_its_source_up_once() -> None:
    work = Work()
    number: Promise[int] = Promise()
    number.source = work
    text = number.then(str)
    text.abandon()
    text.abandon()
    assert (1, True, False) == (work.times_abandoned, number.is_abandoned, text.is_kept)


def test_a_promise_that_is_kept_gives_nothing_up() -> None:
    work = Work()
    number: Promise[int] = Promise()
    number.source = work
    number.keep(4)
    number.abandon()
    assert (0, False) == (work.times_abandoned, number.is_abandoned)


def test_what_others_need_too_is_not_given_up_with_it() -> None:
    work = Work()
    number: Promise[int] = Promise()
    number.source = work
    text = number.unabandonable().then(str)
    text.abandon()
    assert (0, False) == (work.times_abandoned, number.is_abandoned)
    number.keep(4)
    assert "4" == text.result()


def test_work_without_a_source_keeps_a_promise_that_nobody_wants() -> None:
    number: Promise[int] = Promise()
    number.abandon()
    number.keep(4)
    assert 4 == number.result()


def test_a_fault_of_one_watcher_leaves_no_other_waiting() -> None:
    number: Promise[int] = Promise()
    seen: list[int] = []

    def fail() -> None:
        raise KeyError("a fault of our own")

    number.watch(fail)
    number.watch(lambda: seen.append(number.result()))
    with pytest.raises(KeyError):
        number.keep(4)
    assert [4] == seen


def test_a_fault_of_the_step_also_fails_what_follows() -> None:
    fault = ZeroDivisionError()

    def step(_number: int) -> int:
        raise fault

    number: Promise[int] = Promise()
    following = number.then(step)
    later = following.then(str)
    with pytest.raises(ZeroDivisionError):
        number.keep(1)
    assert isinstance(later.error, StepFailed)
    assert (following.error, later.error.fault) == (later.error, fault)


def test_a_fault_in_a_fault_handler_does_not_hide_the_first_fault() -> None:
    def step(_number: int) -> int:
        raise ZeroDivisionError

    def told() -> None:
        raise KeyError

    number: Promise[int] = Promise()
    number.then(step).watch(told)
    with pytest.raises(ZeroDivisionError):
        number.keep(1)


def test_a_broken_rule_of_the_step_is_for_the_one_who_keeps_the_promise_alone() -> None:
    def step(_number: int) -> int:
        raise InvariantBroken("an epoch went back")

    number: Promise[int] = Promise()
    following = number.then(step)
    with pytest.raises(InvariantBroken):
        number.keep(1)
    assert not following.is_kept
