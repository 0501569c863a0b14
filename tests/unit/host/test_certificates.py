"""Certificates that are made are taken by OpenSSL as strictly as it can check."""

from __future__ import annotations

import ssl
import sys
import time
from pathlib import Path

import pytest

from engine.host.certificates import (
    BadAuthority,
    BadCertificateName,
    IssuedCertificate,
    NoCertificates,
    Validity,
    create_authority,
    issue_certificate,
    read_authority,
)

pytest.importorskip("cryptography")
NOW = Validity(int(time.time() * 1000), 2)


@pytest.fixture(scope="module")
def authority() -> IssuedCertificate:
    return create_authority("an authority", NOW)


def handshake(
    folder: Path, authority: IssuedCertificate, broker: IssuedCertificate, host: str
) -> None:
    """Have a client check a broker's certificate for a host; raises SSLError."""
    (folder / "broker.pem").write_bytes(broker.key_pem + broker.certificate_pem)
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(folder / "broker.pem")
    asking = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    asking.verify_flags |= ssl.VERIFY_X509_STRICT
    asking.load_verify_locations(cadata=authority.certificate_pem.decode())
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = asking.wrap_bio(to_client, to_server, server_hostname=host)
    server = serving.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(4):
        for side in (client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "kafka1"])
def test_a_broker_is_who_it_says_at_its_hosts(
    tmp_path: Path, authority: IssuedCertificate, host: str
) -> None:
    hosts = ["localhost", "127.0.0.1", "kafka1"]
    broker = issue_certificate(authority, "broker", hosts, NOW, is_broker=True)
    handshake(tmp_path, authority, broker, host)


def test_a_broker_is_nobody_at_another_host(tmp_path: Path, authority: IssuedCertificate) -> None:
    broker = issue_certificate(authority, "broker", ["localhost"], NOW, is_broker=True)
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(tmp_path, authority, broker, "elsewhere")


def test_a_client_is_no_broker(tmp_path: Path, authority: IssuedCertificate) -> None:
    client = issue_certificate(authority, "client", ["localhost"], NOW, is_broker=False)
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(tmp_path, authority, client, "localhost")


def test_a_key_of_another_authority_issues_nothing(authority: IssuedCertificate) -> None:
    other = create_authority("another", NOW)
    mixed = authority._replace(key_pem=other.key_pem)
    for one in (mixed, authority._replace(key_pem=b"")):
        with pytest.raises(BadAuthority):
            issue_certificate(one, "broker", [], NOW, is_broker=True)


def test_what_of_an_authority_cannot_be_read_is_named(authority: IssuedCertificate) -> None:
    for one, what in (
        (authority._replace(key_pem=b"junk"), "no authority to issue certificates: its key cannot"),
        (authority._replace(certificate_pem=b"junk"), "its certificate cannot be read"),
    ):
        with pytest.raises(BadAuthority, match=what):
            read_authority(one.key_pem, one.certificate_pem, NOW.now_ms)


def test_a_certificate_ends_with_its_authority_at_the_latest(
    authority: IssuedCertificate,
) -> None:
    longer = NOW._replace(days=NOW.days + 1)
    issued = issue_certificate(authority, "late", [], longer, is_broker=False)
    assert authority.expires_ms == issued.expires_ms
    shorter = NOW._replace(days=NOW.days - 1)
    issued = issue_certificate(authority, "early", [], shorter, is_broker=False)
    assert issued.expires_ms < authority.expires_ms


def test_an_authority_that_has_expired_issues_nothing(authority: IssuedCertificate) -> None:
    after = Validity(authority.expires_ms + 1000, 1)
    with pytest.raises(BadAuthority, match="it has expired"):
        read_authority(authority.key_pem, authority.certificate_pem, after.now_ms)
    with pytest.raises(BadAuthority, match="it has expired"):
        issue_certificate(authority, "late", [], after, is_broker=False)


def test_an_authority_is_read_with_its_name_and_its_end(authority: IssuedCertificate) -> None:
    subject, read = read_authority(authority.key_pem, authority.certificate_pem, NOW.now_ms)
    assert ("CN=an authority", authority) == (subject, read)


def test_a_name_has_1_to_64_characters(authority: IssuedCertificate) -> None:
    for name in ("", "x" * 65):
        with pytest.raises(BadCertificateName):
            issue_certificate(authority, name, [], NOW, is_broker=False)


def test_keys_show_in_no_repr(authority: IssuedCertificate) -> None:
    assert "PRIVATE" not in repr(authority)


def test_without_the_package_nothing_is_made_or_read(
    authority: IssuedCertificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    for make in (
        lambda: create_authority("an authority", NOW),
        lambda: issue_certificate(authority, "broker", [], NOW, is_broker=True),
        lambda: read_authority(authority.key_pem, authority.certificate_pem, NOW.now_ms),
    ):
        with pytest.raises(NoCertificates, match="needs the package cryptography"):
            make()
