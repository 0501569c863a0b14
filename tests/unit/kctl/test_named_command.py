"""The command that is named, without its noun's others: the same as with them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from typer.main import get_command

from kctl.app import NOUNS
from kctl.named_command import command_for
from tests.cli.commands import all_leaves


def _app(noun: str) -> Any:
    return import_module(f"kctl.commands.{NOUNS[noun].module}.app").app


def _shown(group: Any, words: list[str]) -> str:
    """Return the help of a command that a noun's group leads to."""
    context = group.make_context(f"kctl {words[0]}", words[1:], resilient_parsing=True)
    name, command, rest = group.resolve_command(context, words[1:])
    assert [] == rest
    child = command.make_context(name, [], parent=context, resilient_parsing=True)
    return str(command.get_help(child)) + repr(child.params)


@pytest.mark.parametrize("path", [path for path in all_leaves() if " " in path])
def test_a_named_command_is_made_alone_and_the_same(path: str) -> None:
    words = path.split()
    app = _app(words[0])
    alone = command_for(app, words[1:])
    assert [words[1]] == list(alone.commands)
    assert _shown(get_command(app), words) == _shown(alone, words)


@pytest.mark.parametrize("args", [[], ["--help"], ["lst"], ["--help", "list"]])
def test_without_a_name_a_noun_has_all_its_commands(args: list[str]) -> None:
    assert {"list", "describe", "alter"} <= command_for(_app("topics"), args).commands.keys()
