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
            "--owner",
            metavar="USER",
            help="Show only tokens that this user owns or may renew; may be repeated.",
        ),
    ] = None,
    show_hmac: Annotated[
        bool,
        typer.Option("--show-hmac", help="Show the HMAC, which lets anyone log in as the owner."),
    ] = False,
    output: Output = "table",
) -> int:
    """List the tokens that you own, requested, or may renew or describe."""
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
        typer.Option("--owner", metavar="USER", help="Owner of the token; default: yourself."),
    ] = None,
    renewer: Annotated[
        list[str] | None,
        typer.Option("--renewer", metavar="USER", help="User who may renew it; may be repeated."),
    ] = None,
    max_lifetime: Annotated[
        str | None,
        typer.Option(
            "--max-lifetime", metavar="DURATION", help="Such as 12h or 7d; default: the broker's."
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="Write client properties with this login, readable only by you.",
        ),
    ] = None,
    mechanism: Annotated[
        str | None,
        typer.Option(
            "--mechanism",
            metavar="NAME",
            help="With --out: SCRAM-SHA-512 or SCRAM-SHA-256; default: that of your login.",
        ),
    ] = None,
    dry_run: _Try = False,
    output: Output = "table",
) -> int:
    """Create a token; requires a connection with SASL, or with TLS and a client certificate.

    Without --out the HMAC, which is the secret, is printed. If your own login does not use SCRAM,
    the file has SCRAM-SHA-256, unless --mechanism is given.
    """
    from kctl.commands.tokens.changes import TokenRequest, create_delegation_token

    request = TokenRequest(owner, renewer or [], max_lifetime, out, dry_run, output, mechanism)
    return create_delegation_token(cluster, request)


@app.command("renew", epilog="Example: kctl tokens renew mxI9TBuWR2qbOgcx3Tnm8A --for 1d")
@on_cluster
def renew(
    cluster: ClusterOptions,
    token: _Token,
    duration: Annotated[
        str | None,
        typer.Option("--for", metavar="DURATION", help="Such as 12h or 7d; default: the broker's."),
    ] = None,
    dry_run: _Try = False,
    output: Output = "table",
) -> int:
    """Extend a token's validity, up to the end of its lifetime."""
    from kctl.commands.tokens.changes import renew_delegation_token

    return renew_delegation_token(cluster, token, duration, dry_run=dry_run, output=output)


@app.command("expire", epilog="Example: kctl tokens expire mxI9TBuWR2qbOgcx3Tnm8A --dry-run")
@on_cluster
def expire(
    cluster: ClusterOptions,
    token: _Token,
    duration: Annotated[
        str | None, typer.Option("--after", metavar="DURATION", help="Such as 10m; default: now.")
    ] = None,
    dry_run: _Try = False,
    yes: Yes = False,
    output: Output = "table",
) -> int:
    """Expire a token, so that it accepts no more logins. Open sessions are not closed."""
    from kctl.commands.tokens.changes import expire_delegation_token

    return expire_delegation_token(
        cluster, token, duration, dry_run=dry_run, yes=yes, output=output
    )
