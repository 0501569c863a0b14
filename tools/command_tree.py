"""Walks all commands of kctl with their options, for the reference and the manual pages."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any, NamedTuple


class CommandEntry(NamedTuple):
    """A command, or a group of them, by its words."""

    path: str
    #: A Click command of Typer's own copy of Click, which has no public types.
    command: Any

    @property
    def options(self) -> list[Any]:
        """Return its parameters that help shows, arguments first as they are declared."""
        return [p for p in self.command.params if not getattr(p, "hidden", False)]

    @property
    def children(self) -> dict[str, Any]:
        """Return the commands of a group by their names."""
        return dict(getattr(self.command, "commands", {}))


def all_commands() -> Iterator[CommandEntry]:
    """Yield every command, each group before its commands."""
    from typer.main import get_command

    from kctl.app import NOUNS
    from kctl.verbosity import add_verbose

    for name, noun in NOUNS.items():
        app = import_module(f"kctl.commands.{noun.module}.app").app
        yield from _below(f"kctl {name}", add_verbose(get_command(app)))


def _below(path: str, command: Any) -> Iterator[CommandEntry]:
    entry = CommandEntry(path, command)
    yield entry
    for name, child in entry.children.items():
        yield from _below(f"{path} {name}", child)


def parameter_words(parameter: Any) -> str:
    """Return how a parameter is written: `-o, --output FORMAT`, or an argument's name."""
    if parameter.param_type_name == "argument":
        return str(parameter.metavar)
    words = ", ".join([*parameter.opts, *parameter.secondary_opts])
    return words if parameter.is_flag else f"{words} {parameter.metavar}"
