"""Make Typer commands check the guards of contexts (`guard`) before they run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from typer._click.core import Command, Context

_Command = TypeVar("_Command", bound="Command")


def with_guard(command: _Command, command_path: str) -> _Command:
    """Make a Typer command and its subcommands call `check_guards` before they run; return it."""
    for name, child in getattr(command, "commands", {}).items():
        with_guard(child, f"{command_path} {name}")
    if not getattr(command, "commands", {}):
        # To a type checker a method of a class cannot be replaced on one object.
        replaced: Any = command
        replaced.invoke = partial(_check_and_invoke, command_path, command.invoke)
    return command


def _check_and_invoke(
    command_path: str, invoke: Callable[[Context], object], context: Context
) -> object:
    """Check the contexts' guards with a command's option values, then run the command.

    `invoke` runs it; `context` is click's, with the values.
    """
    # Not reached for --help, which needs no guard.
    from kctl.guard import check_guards

    check_guards(command_path, context.params)
    return invoke(context)
