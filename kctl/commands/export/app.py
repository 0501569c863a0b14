"""`kctl export`: the state of a cluster as files of declared state."""

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
            help="topics, users, acls, quotas, brokers; each of them if none is given.",
        ),
    ] = None,
    match: Annotated[
        str | None,
        typer.Option("--match", metavar="REGEX", help="Only topics whose whole name matches."),
    ] = None,
    placement: Annotated[
        bool, typer.Option("--placement", help="With the brokers of each partition.")
    ] = False,
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            metavar="FILE|DIR/",
            help="Write it there, to a file for each kind in a folder; else to stdout.",
        ),
    ] = None,
) -> int:
    """Write the state of a cluster as YAML that `kctl apply` takes, always in the same order.

    Only what was set: no defaults, no internal topics. Nobody can read passwords: users get a
    reference to a variable of the environment.
    """
    from kctl.commands.export.exporting import ExportRequest, export_state

    return export_state(cluster, ExportRequest(kinds or [], match, placement, out))
