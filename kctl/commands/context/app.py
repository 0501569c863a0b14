"""`kctl context`: clusters by name."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.options.cluster import Output, noun

app = noun("Clusters by name: keep, choose, show.")

_Name = Annotated[str, typer.Argument(metavar="NAME", help="A context.")]


@app.command("list", epilog="Example: kctl context list -o name")
def list_(output: Output = "table") -> int:
    """List the contexts that are kept."""
    from kctl.commands.context.contexts import list_contexts

    return list_contexts(output)


@app.command(
    "set",
    epilog="Examples: kctl context set prod -b kafka1:9092,kafka2:9092 --use · "
    "kctl context set prod --protected",
)
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
    protected: Annotated[
        bool | None,
        typer.Option(
            "--protected/--no-protected",
            help="What changes something needs the context's name typed; -y is not enough.",
        ),
    ] = None,
    read_only: Annotated[
        bool | None,
        typer.Option(
            "--read-only/--no-read-only", help="What changes something is refused, exit code 2."
        ),
    ] = None,
    cluster_id: Annotated[
        str | None,
        typer.Option(
            "--cluster-id",
            metavar="ID",
            help="The only cluster it is for; empty to learn it at the next use.",
        ),
    ] = None,
) -> int:
    """Keep a context, or change what is given of one. The first one becomes the current one.

    The cluster is asked for its id, if it answers now; each use of the context checks it.
    """
    from kctl.commands.context.contexts import ContextChange, set_context

    change = ContextChange(bootstrap, command_config, protected, read_only, cluster_id)
    return set_context(name, change, use=use)


@app.command("use", epilog="Example: kctl context use prod")
def use_(name: _Name) -> int:
    """Make a context the one that commands talk to when nothing else is said."""
    from kctl.commands.context.contexts import use_context

    return use_context(name)


@app.command("show", epilog="Example: kctl context show")
def show(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Else what commands would use now.")
    ] = None,
    output: Output = "table",
) -> int:
    """Show a context, or which cluster commands would talk to now, and what decides that."""
    from kctl.commands.context.contexts import show_context

    return show_context(name, output)


@app.command("delete", epilog="Example: kctl context delete old")
def delete(name: _Name) -> int:
    """Forget a context. The cluster and the properties file stay as they are."""
    from kctl.commands.context.contexts import delete_context

    return delete_context(name)
