"""Hints below errors of usage: what Kafka's tools call otherwise, and which commands a noun has."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from typer._click.core import Context
    from typer._click.exceptions import UsageError
    from typer.core import TyperGroup

#: Options of Kafka's tools that many fingers know, and what kctl has instead.
_KAFKA_OPTIONS = {
    "--add-config": "settings are arguments, NAME=VALUE",
    "--delete-config": "`kctl configs unset` removes settings",
    "--entity-name": "--topic, --broker and their like name the resource",
    "--entity-type": "--topic, --broker and their like name the resource",
    "--from-beginning": "`--from earliest` reads from the start",
    "--group": "groups are arguments, without --group",
    "--topic": "topics are arguments, without --topic",
}
#: How many commands of a noun are listed in a hint.
_LISTED_MAX = 8


def usage_hint(error: UsageError) -> str:
    """Return the hint for an error that Typer found in the arguments; `error.ctx` is its context.

    Names what kctl has for a well-known option of Kafka's tools, or the commands of a noun whose
    command does not exist.
    """
    context = cast("Context", error.ctx)
    usage = f"`{context.command_path} --help` shows the usage"
    instead = _KAFKA_OPTIONS.get(getattr(error, "option_name", None) or "")
    if instead is not None:
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
