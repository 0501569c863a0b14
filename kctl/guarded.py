"""Make Typer commands check the guards of contexts (`guard`) before they run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any


def with_guard(command: Any, command_path: str) -> Any:
    """Make a Typer command and its subcommands call `guard.enter` before they run; return it."""
    for name, child in getattr(command, "commands", {}).items():
        with_guard(child, f"{command_path} {name}")
    if not getattr(command, "commands", {}):
        command.invoke = partial(_entered, command_path, command.invoke)
    return command


def _entered(command_path: str, invoke: Callable[[object], object], context: Any) -> object:
    """Call `guard.enter` with the command's parameters, then run the command."""
    # Not reached for --help, which needs no guard.
    from kctl.guard import enter

    enter(command_path, context.params)
    return invoke(context)
