"""What is said when TLS fails: which file, or what of the other side's.

`tls/` has self-signed certificates with their keys: for this host, for another, and an expired one.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.host.certificate_expiry import NoCertificate, fetch_certificate_expiry_ms
from engine.host.real_streams import RealStreams
from engine.host.streams import StreamEvent, TlsSettings
from engine.host.tls import create_tls_context
from engine.host.tls_stores import BadTlsFile

FOLDER = Path(__file__).parent / "tls"
WAIT_MS = 10_000
Serve = Callable[[str, bool], int]


def _path(name: str) -> str:
    return str(FOLDER / name)


HERE = _path("here.pem")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (TlsSettings(ca_path="/no/such.pem"), "/no/such.pem: cannot be read: No such file"),
        (TlsSettings(ca_path=str(FOLDER)), "is a directory"),
        (TlsSettings(ca_path=threading.__file__), "is no PEM file"),
        (TlsSettings(ca_path=_path("here.key")), "holds no certificate that can be read"),
        (TlsSettings(ca_pem="nonsense"), "ssl.truststore.certificates: holds no certificate"),
        (
            TlsSettings(certificate_path=HERE, key_path=_path("here-encrypted.key")),
            "here-encrypted.key: needs ssl.key.password",
        ),
        (
            TlsSettings(None, None, HERE, _path("here-encrypted.key"), "wrong"),
            "here-encrypted.key: ssl.key.password does not open it",
        ),
        (
            TlsSettings(None, None, HERE, _path("here-encrypted.key"), "long" * 500),
            "here-encrypted.key: ssl.key.password does not open it",
        ),
        (
            TlsSettings(certificate_path=HERE, key_path=_path("elsewhere.pem")),
            "elsewhere.pem: is not the key of the certificate in",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_named(settings: TlsSettings, said: str) -> None:
    with pytest.raises(BadTlsFile) as caught:
        create_tls_context(settings)
    assert said in str(caught.value)
    assert 2 == caught.value.exit_code


@pytest.mark.parametrize(
    ("head", "kind"), [(b"\xfe\xed\xfe\xed\0", "JKS"), (b"\x30\x82\x01\x02", "PKCS12")]
)
def test_a_store_in_javas_format_is_recognised_by_its_bytes(
    tmp_path: Path, head: bytes, kind: str
) -> None:
    store = tmp_path / "store"
    store.write_bytes(head * 100)
    with pytest.raises(BadTlsFile, match=f"cannot be read as {kind}"):
        create_tls_context(TlsSettings(ca_path=str(store)))


def test_a_certificate_without_its_key_says_where_keys_are_named(tmp_path: Path) -> None:
    alone = tmp_path / "alone.pem"
    alone.write_text(Path(HERE).read_text().partition("-----BEGIN PRIVATE KEY")[0])
    with pytest.raises(BadTlsFile, match=r"no private key; ssl\.key\.location names its file"):
        create_tls_context(TlsSettings(certificate_path=str(alone)))


def test_names_that_are_not_ascii_may_stand_beside_certificates(tmp_path: Path) -> None:
    pem = "# Főtanúsítvány\n" + Path(HERE).read_text()
    bundle = tmp_path / "bundle.pem"
    bundle.write_text(pem)
    for settings in (TlsSettings(ca_path=str(bundle)), TlsSettings(ca_pem=pem)):
        assert 1 == create_tls_context(settings).cert_store_stats()["x509"]


def test_what_is_right_is_taken() -> None:
    create_tls_context(TlsSettings(HERE, None, HERE, _path("here-encrypted.key"), "secret"))


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Listen with a certificate; the other end is accepted once, and what it says is read."""
    threads: list[threading.Thread] = []
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(WAIT_MS / 1000)

    def start(certificate: str, asks_for_ours: bool) -> int:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        if asks_for_ours:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(HERE)

        def run() -> None:
            connection, _ = listener.accept()
            connection.settimeout(WAIT_MS / 1000)
            try:
                with context.wrap_socket(connection, server_side=True) as secured:
                    secured.recv(1)
            except OSError:
                connection.close()

        threads.append(threading.Thread(target=run))
        threads[-1].start()
        return int(listener.getsockname()[1])

    yield start
    for thread in threads:
        thread.join(WAIT_MS / 1000)
        assert not thread.is_alive()
    listener.close()


def _end(port: int, tls: TlsSettings) -> StreamEvent:
    streams = RealStreams()
    try:
        streams.connect("127.0.0.1", port, tls)
        for _ in range(100):
            for event in streams.wait(WAIT_MS):
                if event.kind == "closed":
                    return event
    finally:
        streams.close()
    raise AssertionError("the connection does not end")


def test_authorities_need_no_key_usage_on_any_python(monkeypatch: pytest.MonkeyPatch) -> None:
    create = ssl.create_default_context

    def strict(**given: str) -> ssl.SSLContext:
        context = create(**given)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    monkeypatch.setattr(ssl, "create_default_context", strict)
    assert not create_tls_context(TlsSettings()).verify_flags & ssl.VERIFY_X509_STRICT


def test_a_certificate_for_another_host_is_called_that(serve: Serve) -> None:
    other = _path("elsewhere.pem")
    event = _end(serve(other, False), TlsSettings(ca_path=other))
    assert event.reason.startswith("the broker's certificate is for another host: IP address")
    assert "ssl.endpoint.identification.algorithm" in str(event.hint)


def test_an_expired_certificate_is_called_that(serve: Serve) -> None:
    expired = _path("expired.pem")
    event = _end(serve(expired, False), TlsSettings(ca_path=expired))
    assert "the broker's certificate has expired" == event.reason


def test_the_time_at_which_a_certificate_expires_is_read_of_a_handshake(serve: Serve) -> None:
    trusted = TlsSettings(ca_path=HERE)
    expiry_ms = fetch_certificate_expiry_ms("127.0.0.1", serve(HERE, False), trusted, 30)
    assert ssl.cert_time_to_seconds("Jan  1 00:00:00 2120 GMT") * 1000 == expiry_ms
    with pytest.raises(NoCertificate, match="expired"):
        expired = _path("expired.pem")
        fetch_certificate_expiry_ms("127.0.0.1", serve(expired, False), TlsSettings(expired), 30)


def test_a_certificate_of_a_stranger_is_not_trusted(serve: Serve) -> None:
    event = _end(serve(HERE, False), TlsSettings(ca_path=_path("elsewhere.pem")))
    assert event.reason.startswith("the broker's certificate is not trusted: self")
    assert "ssl.truststore.location" in str(event.hint)


def test_a_broker_that_asks_for_our_certificate_is_understood(serve: Serve) -> None:
    event = _end(serve(HERE, True), TlsSettings(ca_path=HERE))
    assert "the broker asks for a certificate of ours, and there is none" == event.reason
    stranger = TlsSettings(ca_path=HERE, certificate_path=_path("elsewhere.pem"))
    assert "the broker does not accept our certificate: unknown ca" == (
        _end(serve(HERE, True), stranger).reason
    )


@pytest.mark.parametrize("answer", [b"", b"\0\0\0\x05hello, this is not TLS", b"HTTP/1.1 400"])
def test_a_peer_without_tls_is_called_that(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def run() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(answer)

        thread = threading.Thread(target=run)
        thread.start()
        event = _end(listener.getsockname()[1], TlsSettings())
        thread.join(WAIT_MS / 1000)
    assert "the other side does not speak TLS" == event.reason
    assert "security.protocol" in str(event.hint)
