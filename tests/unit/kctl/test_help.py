"""What --help shows of each command."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from typer.main import get_command

from kctl.app import NOUNS


def _commands(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    children = getattr(command, "commands", {})
    if not children:
        yield path, command
    for name, child in children.items():
        yield from _commands(f"{path} {name}", child)


def _all() -> list[Any]:
    return [
        pytest.param(command, id=path)
        for name, noun in NOUNS.items()
        for path, command in _commands(
            name, get_command(import_module(f"kctl.commands.{noun.module}").app)
        )
    ]


@pytest.mark.parametrize("command", _all())
def test_what_takes_a_value_says_what_kind_in_words(command: Any) -> None:
    shown = [each for each in command.params if not getattr(each, "hidden", False)]
    nameless = [
        each.name for each in shown if each.metavar is None and not getattr(each, "is_flag", False)
    ]
    assert [] == nameless
