"""`-v`: prints on stderr which cluster a command connects to, and why.

Every command that takes `--bootstrap-server` or `--zookeeper` and a timeout has the option; it is
added here, so that none of them lacks it.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from typer._click.core import Command

_Command = TypeVar("_Command", bound="Command")

_TARGET_OPTIONS = ("--timeout", "--bootstrap-server"), ("--timeout", "--zookeeper")


class Verbosity:
    """Whether this process prints its choices."""

    is_on = False


def print_choice(what: str, address: str, source: str) -> None:
    """With -v, print on stderr the address that a command connects to, and its source.

    `what` names what is connected to, such as "cluster".
    """
    if Verbosity.is_on:
        sys.stderr.write(f"{what}: {address} (by {source})\n")


def _turn_on(_context: object, _parameter: object, value: bool) -> None:
    """Set whether choices are printed to the value of -v; called by click."""
    Verbosity.is_on = bool(value)


def add_verbose(command: _Command) -> _Command:
    """Add `-v` to a Typer command and its children that connect to a cluster; return it.

    These have --timeout and an address. A command that has --verbose itself is left as it is.
    """
    from typer.core import TyperOption

    for child in getattr(command, "commands", {}).values():
        add_verbose(child)
    options = {option for parameter in command.params for option in parameter.opts}
    if any(options.issuperset(both) for both in _TARGET_OPTIONS) and "--verbose" not in options:
        command.params.append(
            TyperOption(
                param_decls=["-v", "--verbose"],
                is_flag=True,
                expose_value=False,
                callback=_turn_on,
                help="Show on stderr which cluster is used, and which setting chose it.",
            )
        )
    return command
