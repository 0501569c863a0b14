"""Ours print what Java's tools of share and streams groups printed.

Source: tests/group_tools.py.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from kctl.compat.streams_topics import is_internal
from tests.client_session import Outcome
from tests.group_tools import FILES, STEPS, Call, load_recording, masked, replay

_RECORDED = load_recording()
_CALLS = [
    pytest.param(step, id=f"{number}: {step['tool'].removeprefix('kafka-')} {step['words']}")
    for number, step in enumerate(_RECORDED)
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("given")
    for name, text in FILES.items():
        (made / name).write_text(text)
    return made


def played(step: dict[str, Any], folder: Path) -> Outcome:
    return replay(step, str(folder))


@pytest.mark.parametrize("step", _CALLS)
def test_a_call_prints_and_returns_what_javas_tool_did(step: dict[str, Any], folder: Path) -> None:
    expected = step["stdout"].replace("{FOLDER}", str(folder))
    ended = played(step, folder)
    assert masked(expected) == masked(ended.stdout)
    assert step["exit"] == ended.exit
    first_line = step["stderr_first_line"].replace("{FOLDER}", str(folder))
    assert masked(_without_class(first_line)) == masked(_first_line(ended.stderr))


def _without_class(line: str) -> str:
    """Return a line of Java's without the class of what the parser of options throws."""
    return re.sub(r"^joptsimple\.(Un\w+|OptionMissing\w+)Exception: ", "", line)


def _first_line(text: str) -> str:
    """Return the first line of ours; the warnings of Java's logger were not recorded."""
    text = re.sub(r"(?m)^WARN .*\n", "", text)
    return text.lstrip("\n").split("\n")[0]


def test_the_recorded_calls_are_those_of_the_scenario() -> None:
    calls = [(step.tool, step.words) for step in STEPS if isinstance(step, Call)]
    assert calls == [(step["tool"], step["words"]) for step in _RECORDED]


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        ("app-counts-changelog", True),
        ("app-words-repartition", True),
        ("app-x-subscription-registration-topic", True),
        ("app-x-subscription-response-topic", True),
        ("app-1-KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-0000000006-topic", True),
        ("app-1-KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-14-topic", True),
        ("app-1-KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE--topic", False),
        ("app-counts", False),
        ("application-counts-changelog", False),
        ("app-changelogs", False),
    ],
)
def test_internal_topics_are_known_by_their_names(topic: str, expected: bool) -> None:
    assert expected == is_internal(topic, "app")
