"""All commands of kctl as Typer knows them, by their words."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any

import typer

from kctl.app import NOUNS


def option_names(command: Any) -> set[str]:
    """Return the options of a command, as they are written."""
    return {word for parameter in command.params for word in parameter.opts}


def parameter_names(command: Any) -> set[str]:
    """Return the names that a command's function has for its options and arguments."""
    return {parameter.name for parameter in command.params}


@cache
def all_leaves() -> dict[str, Any]:
    """Return each command that has no commands below it."""
    found: dict[str, Any] = {}
    for noun, where in NOUNS.items():
        app = import_module(f"kctl.commands.{where.module}.app").app
        found |= dict(_leaves(typer.main.get_command(app), noun))
    return found


def _leaves(command: Any, words: str) -> Iterator[tuple[str, Any]]:
    children = getattr(command, "commands", {})
    for name, child in children.items():
        yield from _leaves(child, f"{words} {name}")
    if not children:
        yield words, command
