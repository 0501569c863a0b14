"""Work in steps: done at once, or when what it waits for is there."""

from __future__ import annotations

import pytest

from engine.errors import ConfigError
from engine.host.coroutine import drive
from engine.host.promise import Promise


async def doubled(number: Promise[int]) -> int:
    return 2 * await number


def test_work_that_never_waits_is_done_when_drive_returns() -> None:
    number: Promise[int] = Promise()
    number.keep(4)
    assert drive(doubled(number)).result() == 8


def test_work_goes_on_when_its_promise_is_kept() -> None:
    number: Promise[int] = Promise()
    done = drive(doubled(number))
    assert not done.is_kept
    number.keep(5)
    assert done.result() == 10


def test_an_error_is_raised_where_it_is_awaited_and_passed_on() -> None:
    number: Promise[int] = Promise()
    done = drive(doubled(number))
    number.fail(ConfigError("a", 1, "is wrong"))
    with pytest.raises(ConfigError, match="is wrong"):
        done.result()


def test_those_that_watch_are_run_once_in_order() -> None:
    number: Promise[int] = Promise()
    seen: list[str] = []
    number.watch(lambda: seen.append("first"))
    number.watch(lambda: seen.append("second"))
    number.keep(1)
    number.watch(lambda: seen.append("late"))
    assert seen == ["first", "second", "late"]


class Given:
    """A wait that ends when nobody waits for it."""

    def __init__(self) -> None:
        self.number: Promise[int] = Promise()
        self.number.source = self

    def abandon(self) -> None:
        self.number.keep(0)


async def summed(*numbers: Promise[int]) -> int:
    return sum([await number for number in numbers])


def test_work_that_nobody_wants_waits_no_more_and_goes_on() -> None:
    work = drive(summed(Given().number, Given().number))
    work.abandon()
    assert 0 == work.result()


def test_what_has_to_happen_is_waited_for_by_work_that_nobody_wants() -> None:
    number: Promise[int] = Promise()
    work = drive(summed(number, Given().number))
    work.abandon()
    assert not work.is_kept
    number.keep(5)
    assert 5 == work.result()
