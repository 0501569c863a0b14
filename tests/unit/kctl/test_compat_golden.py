"""Ours print what Kafka's tools printed, call by call. Source: tests/golden/tools.

A call that is only made, `compare: false`, is one whose text is that of a broker of 4.3.0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from tests.unit.kctl.played_groups import PlayedGroups
from tests.unit.kctl.played_tools import Ended, PlayedTools, Recorded


def _topics(recorded: Recorded) -> PlayedTools:
    return PlayedTools(recorded, auto_create_topics_enable="false")


def _moves(recorded: Recorded) -> PlayedTools:
    return PlayedTools(recorded, replica_fetch_max_bytes="300")


_STAGES: Mapping[str, Callable[[Recorded], PlayedTools]] = {
    "reassign_and_election": _moves,
    "consumer_groups": PlayedGroups,
    "topics": _topics,
    "offsets_and_directories": PlayedTools,
}
_OF_BOTH = {
    f"{name}{suffix}": (Recorded(f"{name}{suffix}"), stage)
    for suffix in ("", "_of_4_3")
    for name, stage in _STAGES.items()
}
_CALLS = [
    pytest.param(file, name, id=f"{file}: {name}")
    for file, (recorded, _) in _OF_BOTH.items()
    for name in recorded.calls
]
_CALLS_THAT_FAIL = [
    pytest.param(file, name, id=f"{file}: {name}")
    for file, (recorded, _) in _OF_BOTH.items()
    for name, step in recorded.calls.items()
    if "stderr_first_line" in step
]


@pytest.fixture(scope="module")
def played() -> dict[str, dict[str, Ended]]:
    return {file: stage(recorded).play() for file, (recorded, stage) in _OF_BOTH.items()}


@pytest.mark.parametrize(("file", "name"), _CALLS)
def test_a_call_prints_and_returns_what_kafkas_tool_did(
    played: dict[str, dict[str, Ended]], file: str, name: str
) -> None:
    recorded, _ = _OF_BOTH[file]
    step, ended = recorded.calls[name], played[file][name]
    assert recorded.normalised(step, step["stdout"]) == recorded.normalised(step, ended.stdout)
    assert step.get("exit", 0) == ended.exit_code


@pytest.mark.parametrize(("file", "name"), _CALLS_THAT_FAIL)
def test_what_goes_to_stderr_begins_as_kafkas_does(
    played: dict[str, dict[str, Ended]], file: str, name: str
) -> None:
    recorded, _ = _OF_BOTH[file]
    printed = recorded.calls[name]["stderr_first_line"]
    printed = printed.removeprefix(
        'Exception in thread "main" joptsimple.UnrecognizedOptionException: '
    )
    assert printed == played[file][name].stderr.lstrip("\n").split("\n")[0]
