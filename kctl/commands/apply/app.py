"""`kctl apply`: bring a cluster to the state that files declare."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.connect import ClusterOptions
from kctl.options.cluster import on_cluster, one_command
from kctl.options.moves import JobOptions
from kctl.options.state import Prune, StateFiles

app = one_command()


@app.command(
    epilog="Examples: kctl apply -f state.yaml --dry-run · kctl apply -f clusters/prod --context "
    "prod --prune --allow-delete --throttle 50MB"
)
@on_cluster
def apply(
    cluster: ClusterOptions,
    moves: JobOptions,
    file: StateFiles = None,
    prune: Prune = False,
    allow_delete: Annotated[
        bool,
        typer.Option(
            "--allow-delete",
            help="With --prune: allow the deletion of topics, users, access rules and quotas.",
        ),
    ] = False,
    max_deletions: Annotated[
        int,
        typer.Option(
            "--max-deletions",
            min=0,
            metavar="N",
            help="Refuse all steps if more than N would be deleted.",
        ),
    ] = 10,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schema of files, for editors.")
    ] = False,
) -> int:
    """Change a cluster to the state that files declare: topics, users, ACLs, quotas, brokers.

    Shows the steps in order and asks for confirmation. Resources that are not declared are kept,
    unless --prune. If a step fails, the error is printed and the remaining steps continue; the same
    command, run again, does the rest. Replicas move by a plan and a journal, as in `kctl reassign`.
    """
    from kctl.commands.apply.applying import ApplyStateRequest, apply_state, print_state_schema

    if schema:
        return print_state_schema()
    return apply_state(
        cluster, ApplyStateRequest(file or [], prune, allow_delete, max_deletions, moves.moves)
    )
