"""Certificates of brokers and clients: right ones, expired ones, and those of another authority."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from engine.host.certificates import (
    IssuedCertificate,
    Validity,
    create_authority,
    issue_certificate,
)

_DAY_MS: Final = 86_400_000
#: File names of what can be shown, each with key and certificate.
BROKER, EXPIRED_BROKER = "broker.pem", "expired-broker.pem"
CLIENT, EXPIRED_CLIENT, FOREIGN_CLIENT = "client.pem", "expired-client.pem", "foreign-client.pem"
#: File names of who can be trusted.
AUTHORITY, FOREIGN_AUTHORITY = "ca.pem", "foreign-ca.pem"


def write_certificates(folder: Path) -> None:
    """Write all files into a folder."""
    now_ms = int(time.time() * 1000)
    valid = Validity(now_ms, 30)
    past = Validity(now_ms - 20 * _DAY_MS, 10)
    # Certificates that have expired were issued by an authority that counts still.
    authority = create_authority("authority", Validity(now_ms - 30 * _DAY_MS, 90))
    foreign = create_authority("foreign authority", valid)
    hosts = ["localhost", "127.0.0.1"]
    _write(folder / BROKER, issue_certificate(authority, "broker", hosts, valid, is_broker=True))
    expired = issue_certificate(authority, "broker", hosts, past, is_broker=True)
    _write(folder / EXPIRED_BROKER, expired)
    for name, issuer, validity in (
        (CLIENT, authority, valid),
        (EXPIRED_CLIENT, authority, past),
        (FOREIGN_CLIENT, foreign, valid),
    ):
        issued = issue_certificate(issuer, "client", [], validity, is_broker=False)
        _write(folder / name, issued)
    (folder / AUTHORITY).write_bytes(authority.certificate_pem)
    (folder / FOREIGN_AUTHORITY).write_bytes(foreign.certificate_pem)


def _write(path: Path, issued: IssuedCertificate) -> None:
    path.write_bytes(issued.key_pem + issued.certificate_pem)
