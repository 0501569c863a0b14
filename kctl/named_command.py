"""The command of a noun that the command line names, without the others of the noun.

Typer makes each command of its function's signature, which takes a fifth of the time of a short
answer. Where the first word is the name of one, the others are never asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any


def command_for(app: Any, args: Sequence[str]) -> Any:
    """Return the command of a Typer application: with one child if the arguments name it."""
    from typer.main import get_command, get_group

    commands = app.registered_commands
    named = [info for info in commands if args and info.name == args[0]]
    # An application with one command may be that command, without a name.
    if len(named) != 1 or len(commands) == 1 or app.registered_groups:
        return get_command(app)
    only_named = copy(app)
    only_named.registered_commands = named
    return get_group(only_named)
