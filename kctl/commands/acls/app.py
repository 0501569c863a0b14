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
    """List the access rules that match the options; without options every rule.

    --pattern match lists every rule that applies to a name: literal rules, * and prefixes.
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
        typer.Option("--allow", metavar="USER", help="User to allow; may be repeated."),
    ] = None,
    deny: Annotated[
        list[str] | None,
        typer.Option("--deny", metavar="USER", help="User to deny; may be repeated."),
    ] = None,
    operation: Operations = None,
    job: JobName = None,
    inputs: Inputs = None,
    host: Hosts = None,
    pattern: Pattern = None,
    dry_run: _Try = False,
    output: Output = "table",
) -> int:
    """Create an access rule for each combination of user, host, operation and resource.

    With --for: only the rules that the job needs. Existing rules are kept: it may be run again.
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
    principal: Annotated[str, typer.Argument(metavar="USER", help="alice means User:alice.")],
    operation: Annotated[
        str | None, typer.Argument(metavar="OPERATION", help="read, write, describe, …")
    ] = None,
    resource: Annotated[
        str | None, typer.Argument(metavar="RESOURCE", help="topic:orders, group:billing, cluster.")
    ] = None,
    host: Annotated[
        str | None,
        typer.Option("--host", metavar="ADDRESS", help="Client address; default: every address."),
    ] = None,
    pattern: Annotated[
        str | None,
        typer.Option(
            "--pattern", metavar="TYPE", help="prefixed: every name that begins with RESOURCE's."
        ),
    ] = None,
    job: JobName = None,
    inputs: Inputs = None,
    super_user: Annotated[
        list[str] | None,
        typer.Option(
            "--super-user", metavar="USER", help="Treat as one of super.users; may be repeated."
        ),
    ] = None,
    allow_everyone: Annotated[
        bool | None,
        typer.Option(
            "--allow-everyone/--deny-everyone", help="Value of allow.everyone.if.no.acl.found."
        ),
    ] = None,
    output: Output = "table",
) -> int:
    """Show whether a user may perform an operation, and the deciding rule; exit code 4 if denied.

    With --for: each rule that a job needs, and the commands that create the missing rules. The two
    settings of the authorizer are read from a broker; Kafka's brokers hide their values.
    """
    from kctl.commands.acls.checking import CheckRequest, check_permissions
    from kctl.commands.acls.wanted_rules import RulesRequest

    wanted = RulesRequest(resources=resources, pattern=pattern, job=job, inputs=inputs or ())
    request = CheckRequest(
        principal, operation, resource, host, wanted, super_user or (), allow_everyone, output
    )
    return check_permissions(cluster, request)


@app.command("apply", epilog="Example: kctl acls apply acls.yaml --prune --dry-run")
@on_cluster
def apply(
    cluster: ClusterOptions,
    path: Annotated[str, typer.Argument(metavar="FILE", help="YAML or JSON.")],
    prune: Annotated[
        bool, typer.Option("--prune", help="Delete the cluster's rules that the file lacks.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the difference; exit code 5 if there is one.")
    ] = False,
    yes: Yes = False,
    output: Output = "table",
) -> int:
    """Create the access rules of a file that the cluster lacks, and show the difference.

    The file is a list under acls: entries with allow or deny, operations or for, topic, group, …,
    hosts and pattern, like the options of create; or the output of `kctl acls list -o yaml`.
    """
    from kctl.commands.acls.creating import ApplyRequest, apply_file

    return apply_file(cluster, ApplyRequest(path, prune, dry_run, yes, output))
