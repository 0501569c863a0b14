"""Options of the commands that connect to a cluster."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Protocol, get_type_hints

import typer

from kctl.connect import ClusterOptions

if TYPE_CHECKING:

    class _OptionSet(Protocol):
        """A NamedTuple of options, as a class."""

        _fields: tuple[str, ...]
        _field_defaults: dict[str, object]

        def __call__(self, **values: object) -> object: ...


Bootstrap = Annotated[
    str | None,
    typer.Option(
        "-b", "--bootstrap-server", metavar="HOST:PORT", help="Addresses of brokers: HOST:PORT,…"
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
    typer.Option("--context", metavar="NAME", help="A cluster saved by `kctl context`."),
]
Timeout = Annotated[
    float, typer.Option("--timeout", min=0.001, metavar="SECONDS", help="Give up after this time.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option("-X", metavar="KEY=VALUE", help="A client setting, such as client.id=me."),
]
#: The names of `kctl.render.FORMATS`; a test compares them.
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
        "--doc", "--documentation", help="Also show what each setting does, if brokers document it."
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Let the cluster validate the change, but change nothing.")
]
Yes = Annotated[bool, typer.Option("-y", "--yes", help="Do not ask.")]

TIMEOUT_S = 30.0


def on_cluster(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options that select the cluster, such as --bootstrap-server, to a command.

    The command gets them as its first argument. They precede its last option, which is `-o` if it
    has one. A parameter whose type is a NamedTuple of options, for instance `MoveOptions`, is
    expanded into these options, after all others. A command that uses the client settings itself
    declares `-X` itself.
    """
    return _OnCluster(command)


class _OnCluster:
    """A command on a cluster; its options are built when Typer first asks for them."""

    def __init__(self, command: Callable[..., int]) -> None:
        """Wrap the function of a command, which returns the exit code."""
        self._command = command
        self.__name__ = command.__name__
        self.__doc__ = command.__doc__
        self.__module__ = command.__module__
        # `get_type_hints` resolves annotations with the names of the command's module.
        self.__wrapped__ = command

    @cached_property
    def _options(self) -> tuple[list[inspect.Parameter], dict[str, _OptionSet]]:
        """Return the command's own parameters, and the types of its sets of options by name."""
        return _options_of(self._command)

    @cached_property
    def __signature__(self) -> inspect.Signature:
        """Return the command's parameters with those that select the cluster; Typer reads it."""
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
    def __annotations__(self) -> dict[str, object]:  # type: ignore[override]
        """Return the types of the parameters in `__signature__`; Typer reads them, too."""
        return {p.name: p.annotation for p in self.__signature__.parameters.values()}

    def __call__(
        self,
        *,
        bootstrap: str | None,
        command_config: str | None,
        context: str | None,
        timeout: float,
        client_settings: list[str] | None = None,
        **others: object,
    ) -> int:
        """Run the command with the values that Typer has parsed; return its exit code."""
        _, sets = self._options
        for name, kind in sets.items():
            others[name] = kind(**{field: others.pop(field) for field in kind._fields})
        cluster = ClusterOptions(bootstrap, command_config, context, timeout)
        return self._command(with_settings(cluster, client_settings), **others)


def with_settings(cluster: ClusterOptions, settings: list[str] | None) -> ClusterOptions:
    """Return cluster options with the client settings of -X, which override a properties file.

    Errors: UnreadableArgument, UnknownClientSetting.
    """
    if not settings:
        return cluster
    from kctl.client_overrides import parse_client_overrides

    return cluster._replace(overrides=parse_client_overrides(settings).shared)


def _is_settings(parameter: inspect.Parameter) -> bool:
    """Return True if a parameter is the option -X."""
    # In annotations Typer stores the first option name as `default`.
    options = getattr(parameter.annotation, "__metadata__", ())
    return any(option.default == "-X" for option in options)


def _options_of(
    command: Callable[..., int],
) -> tuple[list[inspect.Parameter], dict[str, _OptionSet]]:
    """Return a command's parameters but the first, and the types of option sets by parameter.

    Option sets are expanded at the end of the parameters.
    """
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
    """Return the Typer application of a noun without subcommands."""
    return typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


def noun(help_text: str) -> typer.Typer:
    """Return the Typer application of a noun with subcommands."""
    return typer.Typer(
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        no_args_is_help=True,
        help=help_text,
    )
