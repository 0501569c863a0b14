"""Ours print what Kafka's tools of 3.9.1 and 4.3.0 printed. Source: tests/golden/tools."""

from __future__ import annotations

import pytest

from tests.unit.kctl.played_console import PlayedConsole
from tests.unit.kctl.played_tools import Ended, Recorded

_RECORDED = {
    "3.9": Recorded("console_and_admin"),
    "4.3": Recorded("console_and_admin_of_4_3"),
}
_CALLS = [(version, name) for version, recorded in _RECORDED.items() for name in recorded.calls]


@pytest.fixture(scope="module")
def played() -> dict[str, dict[str, Ended]]:
    return {
        version: PlayedConsole(recorded, version).play() for version, recorded in _RECORDED.items()
    }


@pytest.mark.parametrize(
    ("version", "name"), _CALLS, ids=[f"{version}-{name}" for version, name in _CALLS]
)
def test_a_call_prints_and_returns_what_kafkas_tool_did(
    played: dict[str, dict[str, Ended]], version: str, name: str
) -> None:
    recorded, ended = _RECORDED[version], played[version][name]
    step = recorded.calls[name]
    assert recorded.normalised(step, step["stdout"]) == recorded.normalised(step, ended.stdout)
    assert step.get("exit", 0) == ended.exit_code
