"""Hints below errors of usage: what Kafka's tools call otherwise, and which commands a noun has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from typer._click import Context, Parameter
    from typer._click.exceptions import UsageError
    from typer.core import TyperGroup, TyperOption

#: How many commands of a noun are listed in a hint.
_LISTED_MAX = 8


def usage_hint(error: UsageError) -> str:
    """Return the hint for an error that Typer found in the arguments; `error.ctx` is its context.

    Names what the command has for a well-known option of Kafka's tools, or the commands of a noun
    whose command does not exist.
    """
    context = cast("Context", error.ctx)
    usage = f"`{context.command_path} --help` shows the usage"
    option: str | None = getattr(error, "option_name", None)
    instead = None if option is None else _instead_of(option, context.command.params)
    if instead:
        return f"{instead}; {usage}"
    message = error.format_message()
    if message.startswith("No such command") and "Did you mean" not in message:
        names = cast("TyperGroup", context.command).list_commands(context)
        if len(names) <= _LISTED_MAX:
            listed = (
                f"commands are {', '.join(names)}" if len(names) > 1 else f"command is {names[0]}"
            )
            return f"its {listed}; {usage}"
    return usage


def _instead_of(option: str, params: Sequence[Parameter]) -> str | None:
    """Return what a command with these parameters has instead of an option of Kafka's tools.

    None if it has nothing of the kind, or if the option is none of theirs.
    """
    arguments = [param for param in params if param.param_type_name == "argument"]
    names = " ".join(param.metavar or param.name or "" for param in arguments).upper()
    options = {name: cast("TyperOption", param) for param in params for name in param.opts}
    if option == "--from-beginning":
        start = options.get("--from")
        if start is not None and start.default == "start":
            return "`--from start` reads from the beginning, and is the default"
        return "`--to-earliest` goes to the start" if "--to-earliest" in options else None
    if option == "--topic" and "TOPIC" in names and "--topics" not in options:
        return "topics are arguments, without --topic"
    if option == "--group" and "GROUP" in names and "--groups" not in options:
        return "groups are arguments, without --group"
    if option == "--add-config" and "=" in names:
        return f"settings are arguments, {names.strip('[{.}]')}"
    if option in ("--entity-type", "--entity-name"):
        if {"--topic", "--broker"} <= options.keys():
            return "--topic, --broker and their like name the resource"
        return "--user, --client-id, --ip name the resource" if "--ip" in options else None
    return None
