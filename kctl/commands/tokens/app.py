"""`kctl tokens`: delegation tokens."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.connect import ClusterOptions
from kctl.options.cluster import Output, Yes, noun, on_cluster

app = noun("Delegation tokens: list, create, renew, expire.")

_Token = Annotated[str, typer.Argument(metavar="TOKEN", help="The id of a token.")]
_Try = Annotated[bool, typer.Option("--dry-run", help="Show what would be done; change nothing.")]


@app.command("list", epilog="Example: kctl tokens list --owner billing")
@on_cluster
def list_(
    cluster: ClusterOptions,
    owner: Annotated[
        list[str] | None,
        typer.Option(
            "--owner", metavar="USER", help="Only what this user owns or may renew; may repeat."
        ),
    ] = None,
    show_hmac: Annotated[
        bool, typer.Option("--show-hmac", help="Show the HMAC, by which anyone is the owner.")
    ] = False,
    output: Output = "table",
) -> int:
    """List tokens that you own, asked for, may renew or may describe."""
    from kctl.commands.tokens.changes import list_tokens

    return list_tokens(cluster, owner or [], show_hmac=show_hmac, output=output)


@app.command(
    "create", epilog="Example: kctl tokens create --renewer scheduler --out job.properties"
)
@on_cluster
def create(
    cluster: ClusterOptions,
    owner: Annotated[
        str | None,
        typer.Option("--owner", metavar="USER", help="Whom it stands for; else yourself."),
    ] = None,
    renewer: Annotated[
        list[str] | None,
        typer.Option("--renewer", metavar="USER", help="Who may renew it; may be repeated."),
    ] = None,
    max_lifetime: Annotated[
        str | None,
        typer.Option("--max-lifetime", metavar="DURATION", help="As 12h or 7d; else the broker's."),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="Write client properties that log in by it, for you alone.",
        ),
    ] = None,
    mechanism: Annotated[
        str | None,
        typer.Option(
            "--mechanism",
            metavar="NAME",
            help="With --out: SCRAM-SHA-512 or SCRAM-SHA-256; else that of your own login.",
        ),
    ] = None,
    dry_run: _Try = False,
    output: Output = "table",
) -> int:
    """Create a token; needs a connection with SASL, or TLS with a certificate of yours.

    Without --out its HMAC, the secret, is printed. Where your own login is by another mechanism the
    file has SCRAM-SHA-256, unless --mechanism says otherwise.
    """
    from kctl.commands.tokens.changes import TokenRequest, create_one

    request = TokenRequest(owner, renewer or [], max_lifetime, out, dry_run, output, mechanism)
    return create_one(cluster, request)


@app.command("renew", epilog="Example: kctl tokens renew mxI9TBuWR2qbOgcx3Tnm8A --for 1d")
@on_cluster
def renew(
    cluster: ClusterOptions,
    token: _Token,
    duration: Annotated[
        str | None,
        typer.Option("--for", metavar="DURATION", help="As 12h or 7d; else the broker's."),
    ] = None,
    dry_run: _Try = False,
    output: Output = "table",
) -> int:
    """Let a token hold for longer, up to the end of its lifetime."""
    from kctl.commands.tokens.changes import renew_one

    return renew_one(cluster, token, duration, dry_run=dry_run, output=output)


@app.command("expire", epilog="Example: kctl tokens expire mxI9TBuWR2qbOgcx3Tnm8A --dry-run")
@on_cluster
def expire(
    cluster: ClusterOptions,
    token: _Token,
    duration: Annotated[
        str | None, typer.Option("--after", metavar="DURATION", help="As 10m; without it now.")
    ] = None,
    dry_run: _Try = False,
    yes: Yes = False,
    output: Output = "table",
) -> int:
    """Let a token end: nobody logs in by it any more. Open sessions last as long as they would."""
    from kctl.commands.tokens.changes import expire_one

    return expire_one(cluster, token, duration, dry_run=dry_run, yes=yes, output=output)
