"""Options of `kctl acls` that select resources, principals, hosts and operations."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import typer

Pattern = Annotated[
    str | None,
    typer.Option(
        "--pattern",
        metavar="TYPE",
        help="How names match: literal or prefixed; for filters also match or any.",
    ),
]
Hosts = Annotated[
    list[str] | None,
    typer.Option("--host", metavar="ADDRESS", help="Client address; may be repeated."),
]
Operations = Annotated[
    list[str] | None,
    typer.Option("--operation", metavar="OPERATION,…", help="read, write, …; may be repeated."),
]
JobName = Annotated[
    str | None,
    typer.Option(
        "--for", metavar="JOB", help="Rules for a consumer, producer, transactional or streams."
    ),
]
Inputs = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        metavar="TOPIC",
        help="Topic that --for transactional or streams reads; may be repeated.",
    ),
]


class ResourceOptions(NamedTuple):
    """The resources that options name."""

    topic: Annotated[
        list[str] | None,
        typer.Option("--topic", metavar="NAME", help="A topic; * means every topic."),
    ] = None
    group: Annotated[
        list[str] | None,
        typer.Option("--group", metavar="ID", help="A group; * means every group."),
    ] = None
    cluster: Annotated[bool, typer.Option("--cluster", help="The cluster resource.")] = False
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
        typer.Option("--user", metavar="USER", help="Owner of delegation tokens."),
    ] = None


class FilterOptions(NamedTuple):
    """Options that select access rules; without any, all."""

    principal: Annotated[
        list[str] | None,
        typer.Option(
            "--principal", metavar="USER", help="Rules of this user; alice means User:alice."
        ),
    ] = None
    operation: Operations = None
    permission: Annotated[
        str | None, typer.Option("--permission", metavar="WORD", help="allow or deny.")
    ] = None
    host: Hosts = None
    pattern: Pattern = None
