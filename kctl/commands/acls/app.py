"""`kctl acls`: access rules of principals on resources."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.commands.acls.options import (
    FilterOptions,
    Hosts,
    Inputs,
    JobName,
    Operations,
    Pattern,
    ResourceOptions,
)
from kctl.connect import ClusterOptions
from kctl.options.cluster import Output, Yes, noun, on_cluster

app = noun("Access rules: list, create, delete, check, apply a file.")

_Try = Annotated[bool, typer.Option("--dry-run", help="Show what would be done; change nothing.")]


@app.command(
    "list",
    epilog="Examples: kctl acls list --principal alice · kctl acls list --topic orders --pattern "
    "match",
)
@on_cluster
def list_(
    cluster: ClusterOptions,
    filters: FilterOptions,
    resources: ResourceOptions,
    output: Output = "table",
) -> int:
    """List access rules; without options all.

    --pattern match lists every rule that is about a name: literal ones, * and prefixes.
    """
    from kctl.commands.acls.listing import list_rules

    return list_rules(cluster, filters, resources, output)


@app.command(
    "create",
    epilog="Examples: kctl acls create --allow alice --operation read --topic orders · kctl acls "
    "create --allow billing --for consumer --topic orders --group billing",
)
@on_cluster
def create(
    cluster: ClusterOptions,
    resources: ResourceOptions,
    allow: Annotated[
        list[str] | None,
        typer.Option("--allow", metavar="USER", help="Allow it to this user; may be repeated."),
    ] = None,
    deny: Annotated[
        list[str] | None,
        typer.Option("--deny", metavar="USER", help="Deny it to this user; may be repeated."),
    ] = None,
    operation: Operations = None,
    job: JobName = None,
    inputs: Inputs = None,
    host: Hosts = None,
    pattern: Pattern = None,
    dry_run: _Try = False,
    output: Output = "table",
) -> int:
    """Create access rules: every user, host, operation and resource with each other.

    With --for only what the job needs. Rules that are there stay, so it may be run again.
    """
    from kctl.commands.acls.creating import create_rules
    from kctl.commands.acls.wanted_rules import RulesRequest

    request = RulesRequest(
        allow=allow or (),
        deny=deny or (),
        operations=operation or (),
        hosts=host or (),
        resources=resources,
        pattern=pattern,
        job=job,
        inputs=inputs or (),
    )
    return create_rules(cluster, request, dry_run=dry_run, output=output)


@app.command(
    "delete", epilog="Example: kctl acls delete --principal alice --topic orders --dry-run"
)
@on_cluster
def delete(
    cluster: ClusterOptions,
    filters: FilterOptions,
    resources: ResourceOptions,
    all_: Annotated[bool, typer.Option("--all", help="Every rule of the cluster.")] = False,
    dry_run: _Try = False,
    yes: Yes = False,
    output: Output = "table",
) -> int:
    """Delete the access rules that `kctl acls list` lists with the same options."""
    from kctl.commands.acls.listing import delete_rules

    return delete_rules(
        cluster, filters, resources, is_all=all_, dry_run=dry_run, yes=yes, output=output
    )


@app.command(
    "check",
    epilog="Examples: kctl acls check alice read topic:orders · kctl acls check billing --for "
    "consumer --topic orders --group billing",
)
@on_cluster
def check(
    cluster: ClusterOptions,
    resources: ResourceOptions,
    principal: Annotated[str, typer.Argument(metavar="USER", help="alice is User:alice.")],
    operation: Annotated[
        str | None, typer.Argument(metavar="OPERATION", help="read, write, describe, …")
    ] = None,
    resource: Annotated[
        str | None, typer.Argument(metavar="RESOURCE", help="topic:orders, group:billing, cluster.")
    ] = None,
    host: Annotated[
        str | None,
        typer.Option("--host", metavar="ADDRESS", help="From there; else from every address."),
    ] = None,
    pattern: Annotated[
        str | None,
        typer.Option(
            "--pattern", metavar="TYPE", help="With prefixed: all names that begin with the given."
        ),
    ] = None,
    job: JobName = None,
    inputs: Inputs = None,
    super_user: Annotated[
        list[str] | None,
        typer.Option("--super-user", metavar="USER", help="One of super.users; may be repeated."),
    ] = None,
    allow_everyone: Annotated[
        bool | None,
        typer.Option(
            "--allow-everyone/--deny-everyone", help="What allow.everyone.if.no.acl.found is."
        ),
    ] = None,
    output: Output = "table",
) -> int:
    """Show whether a user may do something, and the rule that decides; exit code 4 if not.

    With --for: each rule that a job needs, and the commands that make those that are missing. Both
    settings of the authorizer are asked of a broker; Kafka's show that they are set, not to what.
    """
    from kctl.commands.acls.checking import CheckRequest, check_rules
    from kctl.commands.acls.wanted_rules import RulesRequest

    wanted = RulesRequest(resources=resources, pattern=pattern, job=job, inputs=inputs or ())
    request = CheckRequest(
        principal, operation, resource, host, wanted, super_user or (), allow_everyone, output
    )
    return check_rules(cluster, request)


@app.command("apply", epilog="Example: kctl acls apply acls.yaml --prune --dry-run")
@on_cluster
def apply(
    cluster: ClusterOptions,
    path: Annotated[str, typer.Argument(metavar="FILE", help="YAML, or JSON.")],
    prune: Annotated[
        bool, typer.Option("--prune", help="Delete all rules that the file does not have.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the difference; exit code 5 if there is one.")
    ] = False,
    yes: Yes = False,
    output: Output = "table",
) -> int:
    """Create the access rules of a file that are missing, and show the difference.

    The file is a list under acls: entries with allow or deny, operations or for, topic, group, …,
    hosts and pattern, as the options of create; or what `kctl acls list -o yaml` prints.
    """
    from kctl.commands.acls.creating import ApplyRequest, apply_file

    return apply_file(cluster, ApplyRequest(path, prune, dry_run, yes, output))
