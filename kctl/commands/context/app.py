"""`kctl context`: clusters stored under names."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.options.cluster import Output, noun

app = noun("Clusters by name: keep, choose, show.")

_Name = Annotated[str, typer.Argument(metavar="NAME", help="A context.")]


@app.command("list", epilog="Example: kctl context list -o name")
def list_(output: Output = "table") -> int:
    """List the stored contexts."""
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
        typer.Option(
            "-b", "--bootstrap-server", metavar="HOST:PORT", help="Address of the cluster."
        ),
    ] = None,
    command_config: Annotated[
        str | None,
        typer.Option(
            "--command-config",
            metavar="FILE",
            help="Kafka client.properties; empty to remove them.",
        ),
    ] = None,
    use: Annotated[bool, typer.Option("--use", help="Make it the current context.")] = False,
    protected: Annotated[
        bool | None,
        typer.Option(
            "--protected/--no-protected",
            help="Commands that change the cluster require typing the name, despite -y.",
        ),
    ] = None,
    read_only: Annotated[
        bool | None,
        typer.Option(
            "--read-only/--no-read-only",
            help="Refuse commands that change the cluster, with exit code 2.",
        ),
    ] = None,
    cluster_id: Annotated[
        str | None,
        typer.Option(
            "--cluster-id",
            metavar="ID",
            help="Required id of the cluster; empty to store it at the next use.",
        ),
    ] = None,
) -> int:
    """Create a context, or change the given parts of one. The first context becomes current.

    The cluster's id is requested now if it responds; each use of the context checks the id.
    """
    from kctl.commands.context.contexts import ContextChange, set_context

    change = ContextChange(bootstrap, command_config, protected, read_only, cluster_id)
    return set_context(name, change, use=use)


@app.command("use", epilog="Example: kctl context use prod")
def use_(name: _Name) -> int:
    """Make a context current: commands use it if neither options nor variables name a cluster."""
    from kctl.commands.context.contexts import use_context

    return use_context(name)


@app.command("show", epilog="Example: kctl context show")
def show(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Context; default: what commands use now.")
    ] = None,
    output: Output = "table",
) -> int:
    """Show a context; without NAME the cluster that commands would use, and why."""
    from kctl.commands.context.contexts import show_context

    return show_context(name, output)


@app.command("delete", epilog="Example: kctl context delete old")
def delete(name: _Name) -> int:
    """Delete a context. The cluster and the properties file are not changed."""
    from kctl.commands.context.contexts import delete_context

    return delete_context(name)
