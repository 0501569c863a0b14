"""`kctl audit`: requests that authorizers allowed and denied, read from brokers' logs."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.options.cluster import Output, one_command

app = one_command()


@app.command(
    epilog="Examples: kctl audit --denied --since -1h --summary · kctl audit kafka-authorizer.log "
    "--principal billing --resource topic:orders -o json"
)
def audit(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[LOG]...",
            help="Brokers' logs, plain or gzip, - for stdin; default: the embedded cluster's.",
        ),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option("--data", metavar="DIR", help="Directory of the embedded cluster."),
    ] = None,
    principal: Annotated[
        list[str] | None,
        typer.Option("--principal", metavar="USER", help="Only of this user; may be repeated."),
    ] = None,
    operation: Annotated[
        list[str] | None,
        typer.Option(
            "--operation", metavar="NAME", help="Such as read or create-tokens; may be repeated."
        ),
    ] = None,
    resource: Annotated[
        list[str] | None,
        typer.Option(
            "--resource",
            metavar="KIND[:NAME]",
            help="Such as topic or topic:orders; may be repeated.",
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since", metavar="TIME", help="Inclusive, such as -1h or 2026-01-31T12:00Z."
        ),
    ] = None,
    until: Annotated[str | None, typer.Option("--until", metavar="TIME", help="Exclusive.")] = None,
    denied: Annotated[bool, typer.Option("--denied", help="Show denials only.")] = False,
    utc: Annotated[
        bool, typer.Option("--utc", help="Read log times as UTC; default: local time.")
    ] = False,
    summary: Annotated[
        bool, typer.Option("--summary", help="Count equal attempts, the most frequent first.")
    ] = False,
    output: Output = "table",
) -> int:
    """Show which users tried which operations, from the lines authorizers write to brokers' logs.

    Brokers log denials; also allowed operations if kafka.authorizer.logger is at DEBUG.
    """
    from kctl.commands.audit.decisions import AuditFilter, AuditRequest, show_audit

    wanted = AuditFilter.from_options(
        principal, operation, resource, since, until, is_denied_alone=denied
    )
    return show_audit(AuditRequest(files or [], data, wanted, utc, summary, output))
