"""What --help shows of each command."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from kctl.render import FORMATS
from tests.cli.commands import all_leaves

_ALL = [pytest.param(command, id=path) for path, command in all_leaves().items()]


@pytest.mark.parametrize("command", _ALL)
def test_what_takes_a_value_says_what_kind_in_words(command: Any) -> None:
    shown = [each for each in command.params if not getattr(each, "hidden", False)]
    nameless = [
        each.name for each in shown if each.metavar is None and not getattr(each, "is_flag", False)
    ]
    assert [] == nameless


@pytest.mark.parametrize("command", _ALL)
def test_no_help_shows_what_is_meant_for_its_formatter(command: Any) -> None:
    texts = [command.help, command.epilog, *(param.help for param in command.params)]
    assert [] == [text for text in texts if text and ("\\b" in text or "\b" in text)]


@pytest.mark.parametrize("command", _ALL)
def test_the_help_of_an_output_names_every_format_that_it_takes(command: Any) -> None:
    for param in command.params:
        if "--output" in param.opts:
            words = set(re.findall(r"[a-z]+", param.help))
            # Those of a text, or of Kafka's lines, are fewer.
            wanted = set(FORMATS) - ({"name"} if "text" in words else set())
            if "Kafka" not in param.help:
                assert wanted <= words


def test_commands_that_hints_name_have_the_options_that_they_name() -> None:
    commands = all_leaves()
    sources = (Path(__file__).parents[3] / "kctl").rglob("*.py")
    wrong = []
    for source in sources:
        for line in re.findall(r"`kctl ([^`]+)`", re.sub(r'"\n\s+f?"', "", source.read_text())):
            words = line.replace("{", " ").split()
            path = next((p for p in (" ".join(words[:2]), words[0]) if p in commands), None)
            if path is None:
                continue
            params = commands[path].params
            known = {opt for param in params for opt in (*param.opts, *param.secondary_opts)}
            given = [word.partition("=")[0] for word in words if re.match("--[a-z]", word)]
            wrong += [line for opt in given if opt not in known | {"--help", "--verbose"}]
            rest = words[len(path.split()) :]
            # A word beside settings that is none names nothing: `configs set topic NAME`.
            if path == "configs set" and rest and not rest[0].startswith("-"):
                wrong.append(line)
    assert [] == wrong
