"""Expiry time of the certificate that a server presents."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from engine.errors import EngineError
from engine.host.tls import create_tls_context

if TYPE_CHECKING:
    from engine.host.streams import TlsSettings

_MS_PER_S = 1000


class NoCertificate(EngineError):
    """A server showed no certificate that is trusted."""

    def __init__(self, host: str, port: int, reason: str) -> None:
        super().__init__(f"{host}:{port}: {reason}")
        self.host = host
        self.port = port


def fetch_certificate_expiry_ms(host: str, port: int, tls: TlsSettings, timeout_s: float) -> int:
    """Connect to a server and return when its certificate expires, in ms since the epoch.

    Blocks. Errors: NoCertificate, also for an untrusted or expired one; BadTlsFile.
    """
    import ssl

    context = create_tls_context(tls)
    try:
        with (
            socket.create_connection((host, port), timeout_s) as connection,
            context.wrap_socket(connection, server_hostname=host) as secured,
        ):
            shown = secured.getpeercert() or {}
    except (OSError, ValueError) as error:
        raise NoCertificate(host, port, str(error)) from error
    return round(ssl.cert_time_to_seconds(str(shown["notAfter"])) * _MS_PER_S)
