"""Implementation of `kctl certs new`: keys and certificates in PEM files that Kafka reads.

| file | holds | mode |
|---|---|---|
| `ca.key` | the key of the authority | 0600 |
| `ca.pem` | its certificate: `ssl.truststore.location` | 0644 |
| `<name>.pem` | a key and its chain: `ssl.keystore.location` | 0600 |

No file is overwritten. An existing authority issues the new certificates.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Final, NamedTuple

from engine.errors import EngineError
from engine.host.certificates import (
    IssuedCertificate,
    Validity,
    check_common_name,
    create_authority,
    issue_certificate,
    read_authority,
)
from engine.host.ports import Files
from engine.host.private_file import create_file
from engine.host.real import RealClock, RealFiles
from kctl import exits
from kctl.arguments import UnreadableArgument
from kctl.command_results import end_with
from kctl.render import Column, check_format
from kctl.render.rows import OutputRow

CERTIFICATE_COLUMNS: Final = (
    Column("file", "FILE", is_name=True),
    Column("kind", "KIND"),
    Column("subject", "SUBJECT"),
    Column("hosts", "HOSTS", kind="string[]"),
    Column("expires_ms", "EXPIRES", is_time=True, kind="integer?"),
    Column("result", "RESULT"),
)
AUTHORITY_KEY: Final = "ca.key"
AUTHORITY: Final = "ca.pem"
#: Host names and addresses of a cluster on this machine.
LOCAL_HOSTS: Final = ("localhost", "127.0.0.1", "::1")
_AUTHORITY_NAME: Final = "kctl rehearsal CA"
_AUTHORITY_FILE: Final = "ca"
_FILE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
#: Labels separated by dots; the first may be a wildcard (RFC 6125).
_LABEL: Final = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_HOST_NAME: Final = re.compile(rf"(?:\*\.)?{_LABEL}(?:\.{_LABEL})*")
_HOST_CHARACTERS_MAX: Final = 253


class FilesExist(EngineError):
    """Files would be overwritten, or only one of the authority's two files exists."""

    exit_code = exits.USAGE

    def __init__(self, paths: Sequence[str], hint: str) -> None:
        super().__init__(f"{', '.join(paths)}: there already, nothing was written")
        self.paths = paths
        self.hint = hint


class CertificatesRequest(NamedTuple):
    """The options of `kctl certs new`."""

    folder: str
    brokers: Sequence[str]
    clients: Sequence[str]
    hosts: Sequence[str]
    days: int
    output: str


def new_certificates(request: CertificatesRequest) -> int:
    """Create the certificates of `kctl certs` and print a row for each; returns the exit code."""
    check_format(request.output)
    rows = write_certificates(request, RealFiles(), now_ms=RealClock().wall_ms())
    return end_with(CERTIFICATE_COLUMNS, rows, request.output)


def write_certificates(
    request: CertificatesRequest, files: Files, *, now_ms: int
) -> list[OutputRow]:
    """Write a PEM file with key and certificate for each broker and client; return their rows.

    The authority of the folder is created if it is missing. No existing file is overwritten.
    Errors: FilesExist, UnreadableArgument, those of `engine.host.certificates` and `create_file`.
    """
    names = list(dict.fromkeys((*request.brokers, *request.clients)))
    if set(request.brokers) & set(request.clients):
        raise UnreadableArgument("names of brokers and clients", str(names), "each name once")
    for name in names:
        _check_name(name)
    for host in request.hosts:
        _check_host(host)
    present = [name for name in names if files.exists(_path(request.folder, name))]
    if present:
        hint = "choose other names or another folder, or remove them"
        raise FilesExist([_path(request.folder, name) for name in present], hint)
    validity = Validity(now_ms, request.days)
    files.make_dir(request.folder)
    authority, rows = _ensure_authority(request.folder, files, validity)
    hosts = list(dict.fromkeys((*LOCAL_HOSTS, *request.hosts)))
    for name in names:
        is_broker = name in request.brokers
        of_name = hosts if is_broker else []
        issued = issue_certificate(authority, name, of_name, validity, is_broker=is_broker)
        chain = issued.key_pem + issued.certificate_pem + authority.certificate_pem
        create_file(_path(request.folder, name), chain)
        kind = "broker" if is_broker else "client"
        rows.append(_file_row(_path(request.folder, name), kind, name, of_name, issued.expires_ms))
    return rows


def _ensure_authority(
    folder: str, files: Files, validity: Validity
) -> tuple[IssuedCertificate, list[OutputRow]]:
    """Read the certificate authority of a folder, or create it.

    Returns the authority and the rows of its file. Errors: FilesExist if only one of its two files
    exists; those of `read_authority`.
    """
    key_path, path = f"{folder}/{AUTHORITY_KEY}", f"{folder}/{AUTHORITY}"
    present = [one for one in (key_path, path) if files.exists(one)]
    if len(present) == 1:
        raise FilesExist(present, f"{AUTHORITY_KEY} and {AUTHORITY} belong together")
    if present:
        subject, kept = read_authority(
            files.read_bytes(key_path), files.read_bytes(path), validity.now_ms
        )
        row = _file_row(path, "authority", _AUTHORITY_NAME, [], kept.expires_ms)
        return kept, [{**row, "subject": subject, "result": "kept"}]
    made = create_authority(_AUTHORITY_NAME, validity)
    create_file(key_path, made.key_pem)
    create_file(path, made.certificate_pem, is_private=False)
    return made, [_file_row(path, "authority", _AUTHORITY_NAME, [], made.expires_ms)]


def _path(folder: str, name: str) -> str:
    """Return the PEM file of a broker or client: key and certificates in one file."""
    return os.path.join(folder, f"{name}.pem")


def _check_name(name: str) -> None:
    """Raise unless the name is valid for a file and for a certificate.

    Errors: UnreadableArgument, BadCertificateName.
    """
    if not _FILE_NAME.fullmatch(name) or name.lower() == _AUTHORITY_FILE:
        expected = "letters, digits, '.', '_' and '-', and not ca"
        raise UnreadableArgument("a name", name, expected)
    check_common_name(name)


def _check_host(host: str) -> None:
    """Raise UnreadableArgument unless `host` is an IP address or a valid host name."""
    try:
        ip_address(host)
    except ValueError:
        if len(host) > _HOST_CHARACTERS_MAX or not _HOST_NAME.fullmatch(host):
            expected = "a name such as kafka1.example.com or an address, without a port"
            raise UnreadableArgument("a host", host, expected) from None


def _file_row(path: str, kind: str, name: str, hosts: Sequence[str], expires_ms: int) -> OutputRow:
    """Return the output row of a written file; `expires_ms` is in ms since 1970."""
    return {
        "file": path,
        "kind": kind,
        "subject": f"CN={name}",
        "hosts": list(hosts),
        "expires_ms": expires_ms,
        "result": "created",
    }
