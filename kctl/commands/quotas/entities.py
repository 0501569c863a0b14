"""Options of `kctl quotas` that select the entity of a quota."""

from __future__ import annotations

from typing import Annotated, Final, NamedTuple

import typer

from engine.errors import EngineError
from kctl import exits
from kctl.arguments import UnreadableArgument, is_utf8

#: Name of the default entity, as in Kafka's znodes.
DEFAULT: Final = "<default>"


class EntityOptions(NamedTuple):
    """Options that define the entity of a quota."""

    user: Annotated[
        str | None, typer.Option("--user", metavar="NAME", help="User name, without User:.")
    ] = None
    user_default: Annotated[bool, typer.Option("--user-default", help="Users without a quota.")] = (
        False
    )
    client_id: Annotated[
        str | None, typer.Option("--client-id", metavar="ID", help="Client id.")
    ] = None
    client_id_default: Annotated[
        bool, typer.Option("--client-id-default", help="Client ids without a quota.")
    ] = False
    ip: Annotated[str | None, typer.Option("--ip", metavar="ADDRESS", help="Client address.")] = (
        None
    )
    ip_default: Annotated[bool, typer.Option("--ip-default", help="Addresses without a quota.")] = (
        False
    )


class EntityNotClear(EngineError):
    """The options do not define one entity, or the entity does not have the quota."""

    exit_code = exits.USAGE
    hint = "give --user, --client-id, both, or --ip; --user-default and its like for all others"

    def __init__(self, reason: str) -> None:
        super().__init__(reason)


#: Parts of an entity by type; "" is the default entity of a type.
Parts = dict[str, str]


def entity_parts(options: EntityOptions) -> Parts:
    """Return the name for each of user, client-id and ip that options give.

    The name "" is the default entity, which applies to all without quotas of their own. Errors:
    EntityNotClear, UnreadableArgument.
    """
    parts: Parts = {}
    for kind, name, is_default in (
        ("user", options.user, options.user_default),
        ("client-id", options.client_id, options.client_id_default),
        ("ip", options.ip, options.ip_default),
    ):
        if name is not None and is_default:
            raise EntityNotClear(f"--{kind} names one, --{kind}-default all others: not both")
        if name is not None and (not name or not is_utf8(name)):
            raise UnreadableArgument("a name", name, "a text of UTF-8 that is not empty")
        if name is not None or is_default:
            parts[kind] = name or ""
    if "ip" in parts and len(parts) > 1:
        raise EntityNotClear("quotas of an address have neither user nor client id")
    return parts


def required_entity_parts(options: EntityOptions) -> Parts:
    """Return the parts of the entity to change; raises EntityNotClear if options name none."""
    parts = entity_parts(options)
    if not parts:
        raise EntityNotClear("whose quotas? Nobody is named")
    return parts
