"""Options of `kctl acls` that select resources, principals, hosts and operations."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import typer

Pattern = Annotated[
    str | None,
    typer.Option(
        "--pattern",
        metavar="TYPE",
        help="How names are compared: literal or prefixed; to filter also match or any.",
    ),
]
Hosts = Annotated[
    list[str] | None,
    typer.Option("--host", metavar="ADDRESS", help="From this address; may be repeated."),
]
Operations = Annotated[
    list[str] | None,
    typer.Option("--operation", metavar="OPERATION,…", help="read, write, …; may be repeated."),
]
JobName = Annotated[
    str | None,
    typer.Option(
        "--for", metavar="JOB", help="For a consumer, producer, transactional or streams."
    ),
]
Inputs = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        metavar="TOPIC",
        help="A topic that is read, with --for transactional or streams; may be repeated.",
    ),
]


class ResourceOptions(NamedTuple):
    """The resources that options name."""

    topic: Annotated[
        list[str] | None, typer.Option("--topic", metavar="NAME", help="A topic; * is every one.")
    ] = None
    group: Annotated[
        list[str] | None, typer.Option("--group", metavar="ID", help="A group; * is every one.")
    ] = None
    cluster: Annotated[bool, typer.Option("--cluster", help="The cluster.")] = False
    transactional_id: Annotated[
        list[str] | None,
        typer.Option("--transactional-id", metavar="ID", help="A transactional id."),
    ] = None
    delegation_token: Annotated[
        list[str] | None,
        typer.Option("--delegation-token", metavar="ID", help="A delegation token."),
    ] = None
    user: Annotated[
        list[str] | None,
        typer.Option("--user", metavar="USER", help="A user whose tokens are meant."),
    ] = None


class FilterOptions(NamedTuple):
    """Options that select access rules; without any, all."""

    principal: Annotated[
        list[str] | None,
        typer.Option("--principal", metavar="USER", help="Of this user: alice is User:alice."),
    ] = None
    operation: Operations = None
    permission: Annotated[
        str | None, typer.Option("--permission", metavar="WORD", help="allow or deny.")
    ] = None
    host: Hosts = None
    pattern: Pattern = None
