"""Ours print what Kafka's tools of 3.9.1 printed, call by call. Source: tests/golden/tools."""

from __future__ import annotations

import pytest

from tests.unit.kctl.played_groups import PlayedGroups
from tests.unit.kctl.played_tools import Ended, PlayedTools, Recorded

_MOVES = Recorded("reassign_and_election")
_GROUPS = Recorded("consumer_groups")
_TOPICS = Recorded("topics")
_OFFSETS = Recorded("offsets_and_directories")
_CALLS = [
    (recorded, name) for recorded in (_MOVES, _GROUPS, _TOPICS, _OFFSETS) for name in recorded.calls
]
_CALLS_THAT_FAIL = [
    (recorded, name) for recorded, name in _CALLS if "stderr_first_line" in recorded.calls[name]
]


@pytest.fixture(scope="module")
def played() -> dict[str, Ended]:
    moves = PlayedTools(_MOVES, replica_fetch_max_bytes="300")
    topics = PlayedTools(_TOPICS, auto_create_topics_enable="false")
    offsets = PlayedTools(_OFFSETS)
    return {
        **moves.play(),
        **PlayedGroups(_GROUPS).play(),
        **topics.play(),
        **offsets.play(),
    }


@pytest.mark.parametrize(("recorded", "name"), _CALLS, ids=[name for _, name in _CALLS])
def test_a_call_prints_and_returns_what_kafkas_tool_did(
    played: dict[str, Ended], recorded: Recorded, name: str
) -> None:
    step, ended = recorded.calls[name], played[name]
    assert recorded.normalised(step, step["stdout"]) == recorded.normalised(step, ended.stdout)
    assert step.get("exit", 0) == ended.exit_code


@pytest.mark.parametrize(
    ("recorded", "name"), _CALLS_THAT_FAIL, ids=[name for _, name in _CALLS_THAT_FAIL]
)
def test_what_goes_to_stderr_begins_as_kafkas_does(
    played: dict[str, Ended], recorded: Recorded, name: str
) -> None:
    printed = recorded.calls[name]["stderr_first_line"]
    printed = printed.removeprefix(
        'Exception in thread "main" joptsimple.UnrecognizedOptionException: '
    )
    assert printed == played[name].stderr.lstrip("\n").split("\n")[0]
