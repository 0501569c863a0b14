"""`kctl records`: delete the oldest records of partitions."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.connect import ClusterOptions
from kctl.options.cluster import (
    Output,
    Yes,
    noun,
    on_cluster,
)

app = noun("Records: delete the oldest ones.")


@app.callback()
def records() -> None:
    """Records: delete the oldest ones."""


@app.command(
    "delete",
    epilog="Examples: kctl records delete clicks --before -7d --dry-run · kctl records delete "
    "clicks:3 --before 1200 -y",
)
@on_cluster
def delete(
    cluster: ClusterOptions,
    selectors: Annotated[
        list[str],
        typer.Argument(metavar="TOPIC[:PARTITIONS]...", help="clicks, clicks:3, clicks:0,4-6."),
    ],
    before: Annotated[
        str,
        typer.Option(
            "--before",
            metavar="POINT",
            help="Delete records before this point: an offset, end, -COUNT (keep the last COUNT), "
            "-7d, @MILLISECONDS or 2026-01-31T12:00:00Z.",
        ),
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be deleted; change nothing.")
    ] = False,
    yes: Yes = False,
    output: Output = "table",
) -> int:
    """Delete the records before a point in each partition, after showing them and asking."""
    from kctl.commands.offsets.ends import DeleteRequest, delete_records

    request = DeleteRequest(
        selectors=selectors, before=before, dry_run=dry_run, yes=yes, output=output
    )
    return delete_records(cluster, request)
