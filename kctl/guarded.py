"""Commands of Typer that are entered through the guards of contexts (`guard`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any


def with_guard(command: Any, command_path: str) -> Any:
    """Return a Typer command that enters `guard` before it runs, and so do its children."""
    for name, child in getattr(command, "commands", {}).items():
        with_guard(child, f"{command_path} {name}")
    if not getattr(command, "commands", {}):
        command.invoke = partial(_entered, command_path, command.invoke)
    return command


def _entered(command_path: str, invoke: Callable[[object], object], context: Any) -> object:
    """Enter the guard with the command's parameters, then run the command."""
    # The help of a command needs no guard.
    from kctl.guard import enter

    enter(command_path, context.params)
    return invoke(context)
