"""Options that commands share which talk to a cluster."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cached_property
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
Settings = Annotated[
    list[str] | None,
    typer.Option("-X", metavar="KEY=VALUE", help="A client setting, as client.id=me."),
]
#: The names of `kctl.render.FORMATS`, in words; a test keeps them equal.
FORMATS_HELP = "table, wide, json, ndjson, yaml, csv, name, markdown, html or tsv."
Output = Annotated[
    str,
    typer.Option(
        "-o",
        "--output",
        metavar="FORMAT",
        help=FORMATS_HELP,
    ),
]
Documentation = Annotated[
    bool,
    typer.Option(
        "--doc", "--documentation", help="With what each setting does, where brokers document it."
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Have it checked by the cluster; change nothing.")
]
Yes = Annotated[bool, typer.Option("-y", "--yes", help="Do not ask.")]

TIMEOUT_S = 30.0


def on_cluster(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command the options that select the cluster, as its first parameter.

    They precede the last option of the command, which is `-o` if it has one. A parameter whose type
    is a NamedTuple of options, for instance `MoveOptions`, becomes these options, after all others.
    A command with client settings of its own declares `-X` itself.
    """
    return _OnCluster(command)


class _OnCluster:
    """A command on a cluster; its options are only made if Typer asks for them."""

    def __init__(self, command: Callable[..., int]) -> None:
        """`command` is the function of the command, and returns its exit code."""
        self._command = command
        self.__name__ = command.__name__
        self.__doc__ = command.__doc__
        self.__module__ = command.__module__
        # `get_type_hints` resolves annotations in the names of its module.
        self.__wrapped__ = command

    @cached_property
    def _options(self) -> tuple[list[inspect.Parameter], dict[str, Any]]:
        """Return the command's options, read once and only when needed."""
        return _options_of(self._command)

    @cached_property
    def __signature__(self) -> inspect.Signature:
        own, _ = self._options
        added = [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind
            )
            for name, kind, default in (
                ("bootstrap", Bootstrap, None),
                ("command_config", CommandConfig, None),
                ("context", Context, None),
                ("timeout", Timeout, TIMEOUT_S),
                ("client_settings", Settings, None),
            )
            if kind is not Settings or not any(map(_is_settings, own))
        ]
        return inspect.Signature([*own[:-1], *added, *own[-1:]])

    @property
    def __annotations__(self) -> dict[str, Any]:  # type: ignore[override]
        return {p.name: p.annotation for p in self.__signature__.parameters.values()}

    def __call__(
        self,
        *,
        bootstrap: str | None,
        command_config: str | None,
        context: str | None,
        timeout: float,
        client_settings: list[str] | None = None,
        **others: Any,
    ) -> int:
        """Run the command with the values of its options."""
        _, sets = self._options
        for name, kind in sets.items():
            others[name] = kind(**{field: others.pop(field) for field in kind._fields})
        cluster = ClusterOptions(bootstrap, command_config, context, timeout)
        return self._command(with_settings(cluster, client_settings), **others)


def with_settings(cluster: ClusterOptions, settings: list[str] | None) -> ClusterOptions:
    """Return the options of a cluster with client settings that override its file.

    Errors: UnreadableArgument, UnknownClientSetting.
    """
    if not settings:
        return cluster
    from kctl.client_overrides import client_overrides

    return cluster._replace(overrides=client_overrides(settings).shared)


def _is_settings(parameter: inspect.Parameter) -> bool:
    """Return whether a parameter is the option -X, settings of the client."""
    # Typer keeps the first word of an annotated option where a default would stand.
    options = getattr(parameter.annotation, "__metadata__", ())
    return any(option.default == "-X" for option in options)


def _options_of(
    command: Callable[..., int],
) -> tuple[list[inspect.Parameter], dict[str, Any]]:
    """Return the parameters after the first, with option sets expanded at the end, and the sets."""
    hints = get_type_hints(command, include_extras=True)
    _, *parameters = inspect.signature(command).parameters.values()
    sets = {p.name: hints[p.name] for p in parameters if hasattr(hints[p.name], "_field_defaults")}
    named = [(p.name, hints[p.name], p.default) for p in parameters if p.name not in sets]
    for kind in sets.values():
        fields = get_type_hints(kind, include_extras=True)
        named += [(name, fields[name], kind._field_defaults[name]) for name in kind._fields]
    own = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)
        for name, hint, default in named
    ]
    return own, sets


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
