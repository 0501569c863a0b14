"""Builds only the command that the command line names, without its siblings.

Typer builds each command from its function's signature, which takes a fifth of the time of a short
command. Where the first word names a command, the others are not built.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typer import Typer
    from typer._click.core import Command


def command_for(app: Typer, args: Sequence[str]) -> Command:
    """Return the click command of a Typer application, with only the child that is called.

    This is the one that the first of `args` names; all children are there if it names none.
    """
    from typer.main import get_command, get_group

    commands = app.registered_commands
    named = [info for info in commands if args and info.name == args[0]]
    # An application with one command may be that command, without a name.
    if len(named) != 1 or len(commands) == 1 or app.registered_groups:
        return get_command(app)
    only_named = copy(app)
    only_named.registered_commands = named
    return get_group(only_named)
