"""Ours print what Kafka's tools of 3.9.1 printed, call by call. Source: tests/golden/tools."""

from __future__ import annotations

import pytest

from tests.unit.kctl.played_tools import Ended, PlayedTools, normalised, steps

_STEPS = steps()


@pytest.fixture(scope="module")
def played() -> dict[str, Ended]:
    return PlayedTools().play()


@pytest.mark.parametrize("name", _STEPS)
def test_a_call_prints_and_returns_what_kafkas_tool_did(
    played: dict[str, Ended], name: str
) -> None:
    step, ended = _STEPS[name], played[name]
    assert normalised(step, step["stdout"]) == normalised(step, ended.stdout)
    assert step.get("exit", 0) == ended.exit_code


@pytest.mark.parametrize("name", [n for n, step in _STEPS.items() if "stderr_first_line" in step])
def test_what_goes_to_stderr_begins_as_kafkas_does(played: dict[str, Ended], name: str) -> None:
    told = _STEPS[name]["stderr_first_line"]
    told = told.removeprefix('Exception in thread "main" joptsimple.UnrecognizedOptionException: ')
    assert told == played[name].stderr.split("\n")[0]
