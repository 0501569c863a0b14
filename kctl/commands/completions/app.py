"""`kctl completions`: the completion script of a shell."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from engine.errors import EngineError
from kctl.options.cluster import one_command

app = one_command()


class UnknownShell(EngineError):
    """The shell has no completion script."""

    exit_code = 2

    def __init__(self, name: str) -> None:
        super().__init__(f"no completions for {name!r}: one of bash, zsh, fish")
        self.name = name


@app.command()
def completions(
    shell: Annotated[str, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")],
) -> None:
    """Print the completion script of a shell, to be sourced or saved."""
    from kctl.completions import SHELLS, script

    if shell not in SHELLS:
        raise UnknownShell(shell)
    sys.stdout.write(script(shell))
