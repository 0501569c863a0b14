"""Options that commands share which talk to a cluster."""

from __future__ import annotations

from typing import Annotated

import typer

Bootstrap = Annotated[
    str | None,
    typer.Option(
        "-b", "--bootstrap-server", metavar="HOST:PORT", help="Where the cluster is: HOST:PORT,…"
    ),
]
CommandConfig = Annotated[
    str | None,
    typer.Option(
        "--command-config", metavar="FILE", help="Kafka client.properties: security, timeouts."
    ),
]
Context = Annotated[
    str | None,
    typer.Option("--context", metavar="NAME", help="Cluster kept by `kctl context`."),
]
Timeout = Annotated[
    float, typer.Option("--timeout", min=0.001, metavar="SECONDS", help="Give up after this time.")
]
Output = Annotated[
    str,
    typer.Option(
        "-o", "--output", metavar="FORMAT", help="table, wide, json, ndjson, yaml, csv or name."
    ),
]
Documentation = Annotated[
    bool,
    typer.Option("--doc", "--documentation", help="With what each setting does, if brokers say."),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Have it checked by the cluster; change nothing.")
]
Yes = Annotated[bool, typer.Option("-y", "--yes", help="Do not ask.")]

TIMEOUT_S = 30.0


def one_command() -> typer.Typer:
    """Return the Typer application of a noun that is a command itself."""
    return typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


def noun(help_text: str) -> typer.Typer:
    """Return the Typer application of a noun."""
    return typer.Typer(
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        no_args_is_help=True,
        help=help_text,
    )
