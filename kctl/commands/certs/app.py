"""`kctl certs`: keys and certificates for test clusters."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.options.cluster import Output, noun

app = noun("Keys and certificates for rehearsals.")
_DAYS_MAX = 3650


# With a callback Typer keeps the subcommand `new`, though it is the only one.
@app.callback()
def certs() -> None:
    """Keys and certificates for test clusters."""


@app.command(
    "new", epilog="Example: kctl certs new ./tls --broker broker --host kafka1 --client billing"
)
def new(
    folder: Annotated[
        str, typer.Argument(metavar="DIR", help="Target directory, created if missing.")
    ],
    broker: Annotated[
        list[str] | None,
        typer.Option("--broker", metavar="NAME", help="Name of a broker; may be repeated."),
    ] = None,
    client: Annotated[
        list[str] | None,
        typer.Option("--client", metavar="NAME", help="Name of a client; may be repeated."),
    ] = None,
    host: Annotated[
        list[str] | None,
        typer.Option(
            "--host",
            metavar="NAME",
            help="Host of brokers in addition to localhost; may be repeated.",
        ),
    ] = None,
    days: Annotated[
        int,
        typer.Option("--days", min=1, max=_DAYS_MAX, metavar="N", help="Validity in days."),
    ] = 365,
    output: Output = "table",
) -> int:
    """Create a certificate authority, and certificates for brokers and clients, as PEM files.

    DIR/ca.pem is a truststore, DIR/NAME.pem a keystore (key and chain), both of type PEM for Kafka.
    Only you may read the keys. No file is overwritten; an authority that exists in DIR is reused.
    """
    from kctl.commands.certs.issuing import CertificatesRequest, new_certificates

    request = CertificatesRequest(folder, broker or [], client or [], host or [], days, output)
    return new_certificates(request)
