"""`kctl configs`: settings of topics, brokers and brokers' loggers."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.connect import ClusterOptions
from kctl.options.cluster import (
    Documentation,
    DryRun,
    Output,
    noun,
    on_cluster,
)

app = noun("Settings of topics, brokers and brokers' loggers: show, set, unset.")

_Topics = Annotated[
    list[str] | None, typer.Option("--topic", metavar="NAME", help="A topic; may be repeated.")
]
_Brokers = Annotated[
    list[int] | None, typer.Option("--broker", metavar="ID", help="A broker; may be repeated.")
]
_Defaults = Annotated[
    bool, typer.Option("--broker-defaults", help="Cluster-wide defaults of all brokers.")
]
_Loggers = Annotated[
    list[int] | None,
    typer.Option("--broker-logger", metavar="ID", help="Log levels of a broker; may be repeated."),
]


@app.command(
    "describe",
    epilog="Examples: kctl configs describe --topic clicks · kctl configs describe --broker 1 "
    "--doc log.retention.ms num.io.threads",
)
@on_cluster
def describe(
    cluster: ClusterOptions,
    keys: Annotated[
        list[str] | None, typer.Argument(metavar="KEY...", help="Settings to show; default: all.")
    ] = None,
    topics: _Topics = None,
    brokers: _Brokers = None,
    broker_defaults: _Defaults = False,
    loggers: _Loggers = None,
    all_: Annotated[bool, typer.Option("--all", help="Include values that are defaults.")] = False,
    doc: Documentation = False,
    output: Output = "table",
) -> int:
    """Show settings with the source of each value; values that are defaults only with --all."""
    from kctl.commands.configs.settings import DescribeRequest, describe_configs, named_resources

    request = DescribeRequest(
        resources=named_resources(topics, brokers, broker_defaults, loggers),
        keys=keys or [],
        all=all_,
        doc=doc,
        output=output,
    )
    return describe_configs(cluster, request)


@app.command(
    "set",
    epilog="Examples: kctl configs set --topic clicks retention.ms=86400000 · kctl configs set "
    "--topic clicks cleanup.policy+=compact · kctl configs set --broker-logger 1 root=INFO",
)
@on_cluster
def set_(
    cluster: ClusterOptions,
    changes: Annotated[
        list[str],
        typer.Argument(
            metavar="KEY=VALUE...", help="KEY+=VALUE appends to a list, KEY-=VALUE removes from it."
        ),
    ],
    topics: _Topics = None,
    brokers: _Brokers = None,
    broker_defaults: _Defaults = False,
    loggers: _Loggers = None,
    dry_run: DryRun = False,
    output: Output = "table",
) -> int:
    """Change the given settings; other settings are not changed."""
    from kctl.commands.configs.settings import (
        ChangeRequest,
        change_configs,
        named_resources,
        parse_change,
    )

    request = ChangeRequest(
        resources=named_resources(topics, brokers, broker_defaults, loggers),
        changes=[parse_change(text) for text in changes],
        dry_run=dry_run,
        output=output,
    )
    return change_configs(cluster, request)


@app.command("unset", epilog="Example: kctl configs unset --topic clicks retention.ms")
@on_cluster
def unset(
    cluster: ClusterOptions,
    keys: Annotated[list[str], typer.Argument(metavar="KEY...", help="Settings.")],
    topics: _Topics = None,
    brokers: _Brokers = None,
    broker_defaults: _Defaults = False,
    loggers: _Loggers = None,
    dry_run: DryRun = False,
    output: Output = "table",
) -> int:
    """Remove settings, so that the value of the next source applies, such as the default."""
    from kctl.commands.configs.settings import (
        ChangeRequest,
        change_configs,
        named_resources,
        parse_removals,
    )

    request = ChangeRequest(
        resources=named_resources(topics, brokers, broker_defaults, loggers),
        changes=parse_removals(keys),
        dry_run=dry_run,
        output=output,
    )
    return change_configs(cluster, request)
