"""What was opened is closed the other way round, all of it, even if some closes fail."""

from __future__ import annotations

import pytest

from engine.broker.close_stack import CloseStack
from engine.errors import EngineError
from engine.host.coroutine import drive


class Steps:
    def __init__(self, failures: dict[str, Exception] | None = None) -> None:
        self.closed: list[str] = []
        self.closing = CloseStack()
        for name in ("first", "second", "third"):
            self._add(name, (failures or {}).get(name))

    def _add(self, name: str, failure: Exception | None) -> None:
        def undo() -> None:
            self.closed.append(name)
            if failure is not None:
                raise failure

        self.closing.add(name, undo)


def test_steps_run_once_the_last_one_first() -> None:
    steps = Steps()
    drive(steps.closing.run()).result()
    drive(steps.closing.run()).result()
    assert ["third", "second", "first"] == steps.closed


def test_an_expected_failure_is_reported_and_the_others_follow(
    caplog: pytest.LogCaptureFixture,
) -> None:
    steps = Steps({"second": EngineError("gone")})
    drive(steps.closing.run()).result()
    assert ["third", "second", "first"] == steps.closed
    assert ["second could not be closed in order: gone"] == caplog.messages


def test_the_first_fault_of_the_code_is_raised_behind_the_last_step() -> None:
    steps = Steps({"third": KeyError("cause"), "second": ValueError("what follows from it")})
    with pytest.raises(KeyError, match="cause"):
        drive(steps.closing.run()).result()
    assert ["third", "second", "first"] == steps.closed


def test_a_step_that_waits_is_awaited() -> None:
    closed: list[str] = []

    async def undo() -> None:
        closed.append("slowly")

    closing = CloseStack()
    closing.add("it", undo)
    drive(closing.run()).result()
    assert ["slowly"] == closed
