"""`kctl context`: clusters by name."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.commands.cluster_options import Output, noun

app = noun("Clusters by name: keep, choose, show.")

_Name = Annotated[str, typer.Argument(metavar="NAME", help="A context.")]


@app.command("list", epilog="Example: kctl context list -o name")
def list_(output: Output = "table") -> int:
    """List the contexts that are kept."""
    from kctl.commands.context_work import list_contexts

    return list_contexts(output)


@app.command("set", epilog="Example: kctl context set prod -b kafka1:9092,kafka2:9092 --use")
def set_(
    name: _Name,
    bootstrap: Annotated[
        str | None,
        typer.Option("-b", "--bootstrap-server", metavar="HOST:PORT", help="Where the cluster is."),
    ] = None,
    command_config: Annotated[
        str | None,
        typer.Option(
            "--command-config",
            metavar="FILE",
            help="Kafka client.properties to talk to it with; empty for none.",
        ),
    ] = None,
    use: Annotated[bool, typer.Option("--use", help="Make it the current context.")] = False,
) -> int:
    """Keep a context, or change what is given of one. The first one becomes the current one."""
    from kctl.commands.context_work import set_context

    return set_context(name, bootstrap, command_config, use=use)


@app.command("use", epilog="Example: kctl context use prod")
def use_(name: _Name) -> int:
    """Make a context the one that commands talk to when nothing else is said."""
    from kctl.commands.context_work import use_context

    return use_context(name)


@app.command("show", epilog="Example: kctl context show")
def show(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Else what commands would use now.")
    ] = None,
    output: Output = "table",
) -> int:
    """Show a context, or which cluster commands would talk to now, and what decides that."""
    from kctl.commands.context_work import show_context

    return show_context(name, output)


@app.command("delete", epilog="Example: kctl context delete old")
def delete(name: _Name) -> int:
    """Forget a context. The cluster and the properties file stay as they are."""
    from kctl.commands.context_work import delete_context

    return delete_context(name)
