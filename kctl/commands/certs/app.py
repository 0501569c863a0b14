"""`kctl certs`: keys and certificates for rehearsals."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.options.cluster import Output, noun

app = noun("Keys and certificates for rehearsals.")
_DAYS_MAX = 3650


# A callback keeps `new` a command of its own.
@app.callback()
def certs() -> None:
    """Keys and certificates for rehearsals."""


@app.command(
    "new", epilog="Example: kctl certs new ./tls --broker broker --host kafka1 --client billing"
)
def new(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="Made if it is not there.")],
    broker: Annotated[
        list[str] | None,
        typer.Option("--broker", metavar="NAME", help="A broker's certificate; may be repeated."),
    ] = None,
    client: Annotated[
        list[str] | None,
        typer.Option("--client", metavar="NAME", help="A client's certificate; may be repeated."),
    ] = None,
    host: Annotated[
        list[str] | None,
        typer.Option(
            "--host", metavar="NAME", help="A host of the brokers, besides localhost; repeatable."
        ),
    ] = None,
    days: Annotated[
        int,
        typer.Option("--days", min=1, max=_DAYS_MAX, metavar="N", help="How long they count."),
    ] = 365,
    output: Output = "table",
) -> int:
    """Make an authority, and certificates of it for brokers and clients, as PEM files for Kafka.

    DIR/ca.pem is a truststore, DIR/NAME.pem a keystore (key and chain), both of type PEM. Keys are
    for you alone. No file is overwritten; an authority that is in DIR is used again.
    """
    from kctl.commands.certs.issuing import CertificatesRequest, new_certificates

    request = CertificatesRequest(folder, broker or [], client or [], host or [], days, output)
    return new_certificates(request)
