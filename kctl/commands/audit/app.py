"""`kctl audit`: requests that authorizers allowed and denied, by brokers' logs."""

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
            help="Logs of any brokers, also of gzip; else those of the embedded cluster. - is "
            "stdin.",
        ),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option("--data", metavar="DIR", help="Where the embedded cluster's files are."),
    ] = None,
    principal: Annotated[
        list[str] | None,
        typer.Option("--principal", metavar="USER", help="Only of this user; may be repeated."),
    ] = None,
    operation: Annotated[
        list[str] | None,
        typer.Option("--operation", metavar="NAME", help="As read or create-tokens; may repeat."),
    ] = None,
    resource: Annotated[
        list[str] | None,
        typer.Option(
            "--resource", metavar="KIND[:NAME]", help="As topic or topic:orders; may repeat."
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="TIME", help="From then on: -1h, 2026-01-31T12:00Z."),
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="TIME", help="Before then.")
    ] = None,
    denied: Annotated[bool, typer.Option("--denied", help="Only what was denied.")] = False,
    utc: Annotated[
        bool, typer.Option("--utc", help="Times in the logs are UTC; else of this machine's zone.")
    ] = False,
    summary: Annotated[
        bool, typer.Option("--summary", help="How often each was tried, the most frequent first.")
    ] = False,
    output: Output = "table",
) -> int:
    """Show who tried what, by the lines that authorizers write into brokers' logs.

    Brokers log denials; what was allowed, too, where kafka.authorizer.logger is at DEBUG.
    """
    from kctl.commands.audit.decisions import AuditFilter, AuditRequest, show_audit

    wanted = AuditFilter.of(principal, operation, resource, since, until, is_denied_alone=denied)
    return show_audit(AuditRequest(files or [], data, wanted, utc, summary, output))
