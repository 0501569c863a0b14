"""`kctl quotas`: rate limits of clients."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.commands.quotas.entities import EntityOptions
from kctl.connect import ClusterOptions
from kctl.options.cluster import DryRun, Output, noun, on_cluster

app = noun("Quotas of users, client ids and addresses: list, set, unset.")


@app.command("list", epilog="Examples: kctl quotas list · kctl quotas list --user billing")
@on_cluster
def list_(cluster: ClusterOptions, entity: EntityOptions, output: Output = "table") -> int:
    """List quotas: all, or those of the given user, client id or address.

    <default> is the quota of entities without a quota. A client has the most specific quota that
    exists: for user and client id, else for the user, else for the client id.
    """
    from kctl.commands.quotas.limits import list_quotas

    return list_quotas(cluster, entity, output)


@app.command(
    "set",
    epilog="Examples: kctl quotas set produce=10MB consume=20MB --user billing · kctl quotas set "
    "request=50% --user-default · kctl quotas set connections=20/s --ip 10.0.0.9",
)
@on_cluster
def set_(
    cluster: ClusterOptions,
    quotas: Annotated[
        list[str],
        typer.Argument(
            metavar="QUOTA=AMOUNT...",
            help="produce=10MB, consume=10MB, request=50%, mutations=5, connections=20.",
        ),
    ],
    entity: EntityOptions,
    dry_run: DryRun = False,
    output: Output = "table",
) -> int:
    """Set quotas of a user, a client id, both together, or an address, per broker.

    Bytes per second, percent of threads' time, partitions and connections per second. Kafka's
    names, such as producer_byte_rate, are accepted, too.
    """
    from kctl.commands.quotas.limits import change_quotas, set_request

    return change_quotas(cluster, set_request(entity, quotas, dry_run=dry_run, output=output))


@app.command("unset", epilog="Example: kctl quotas unset produce --user billing")
@on_cluster
def unset(
    cluster: ClusterOptions,
    entity: EntityOptions,
    quotas: Annotated[
        list[str] | None, typer.Argument(metavar="QUOTA...", help="produce, consume, request, …")
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="All quotas of the entity.")] = False,
    dry_run: DryRun = False,
    output: Output = "table",
) -> int:
    """Remove quotas, so that the next less specific quota applies, or none."""
    from kctl.commands.quotas.limits import change_quotas, parse_unset_request

    request = parse_unset_request(entity, quotas or [], is_all=all_, dry_run=dry_run, output=output)
    return change_quotas(cluster, request)
