"""`kctl export`: the state of a cluster as files for `kctl apply`."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.connect import ClusterOptions
from kctl.options.cluster import on_cluster, one_command

app = one_command()


@app.command(
    epilog="Examples: kctl export > state.yaml · kctl export topics acls --match 'app-.*' "
    "--out folder/"
)
@on_cluster
def export(
    cluster: ClusterOptions,
    kinds: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KIND]...",
            help="topics, users, acls, quotas, brokers; by default each kind.",
        ),
    ] = None,
    match: Annotated[
        str | None,
        typer.Option("--match", metavar="REGEX", help="Only topics whose complete name matches."),
    ] = None,
    placement: Annotated[
        bool, typer.Option("--placement", help="Include the replicas of each partition.")
    ] = False,
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            metavar="FILE|DIR/",
            help="Target file, or directory for a file per kind; default: stdout.",
        ),
    ] = None,
) -> int:
    """Write the state of a cluster as YAML for `kctl apply`, in a stable order.

    Contains only what was set: no defaults, no internal topics. Passwords cannot be read from a
    cluster: users get a reference to an environment variable instead.
    """
    from kctl.commands.export.exporting import ExportRequest, export_state

    return export_state(cluster, ExportRequest(kinds or [], match, placement, out))
