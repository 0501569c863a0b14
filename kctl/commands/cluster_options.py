"""Options that commands share which talk to a cluster."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, get_type_hints

import typer

from kctl.connect import ClusterOptions

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
Throttle = Annotated[
    str | None,
    typer.Option(
        "--throttle",
        metavar="BYTES",
        help="What a broker sends and takes in each second for moves: 50MB, or auto.",
    ),
]
MovesPerBroker = Annotated[
    int,
    typer.Option(
        "--moves-per-broker", min=1, metavar="N", help="At once, inwards and outwards each."
    ),
]
PlanOnly = Annotated[
    bool, typer.Option("--dry-run", help="Show what would be done; exit code 5 if anything.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Have it checked by the cluster; change nothing.")
]
Yes = Annotated[bool, typer.Option("-y", "--yes", help="Do not ask.")]

TIMEOUT_S = 30.0


def on_cluster(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command the options that say which cluster, as one `ClusterOptions` in front.

    They stand before the last option of the command, which is `-o` where there is one.
    """
    hints = get_type_hints(command, include_extras=True)
    _, *own = inspect.signature(command).parameters.values()
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, kind, default in (
            ("bootstrap", Bootstrap, None),
            ("command_config", CommandConfig, None),
            ("context", Context, None),
            ("timeout", Timeout, TIMEOUT_S),
        )
    ]
    own = [p.replace(annotation=hints[p.name], kind=p.KEYWORD_ONLY) for p in own]

    @functools.wraps(command)
    def with_cluster(
        *,
        bootstrap: str | None,
        command_config: str | None,
        context: str | None,
        timeout: float,
        **others: Any,
    ) -> int:
        return command(ClusterOptions(bootstrap, command_config, context, timeout), **others)

    parameters = [*own[:-1], *added, *own[-1:]]
    with_cluster.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    with_cluster.__annotations__ = {p.name: p.annotation for p in parameters}
    return with_cluster


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
