"""TLS of listeners, from every kind of store, and of connections to them, on real sockets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.host.event_loop import EventLoop
from engine.host.ports import Connection
from engine.host.real import RealClock
from engine.host.real_network import RealNetwork
from engine.host.tls_listener import TlsListenerSettings, create_client_layer, create_server_layer
from engine.host.tls_stores import BadTlsFile
from engine.security.distinguished_name import subject_of
from tests.unit.host.listening import Told

_STORES = Path(__file__).parent / "tls" / "stores"


def _store(name: str) -> str:
    return str(_STORES / name)


def _text(name: str) -> str:
    return (_STORES / name).read_text()


def _parts(text: str) -> tuple[str, str]:
    key, begin, chain = text.partition("-----BEGIN CERTIFICATE")
    return key, begin + chain


PEM = TlsListenerSettings(
    _store("broker-all.pem"), None, None, None, None, _store("ca.pem"), None, None
)
_KEY, _CHAIN = _parts(_text("broker-all.pem"))
_CLIENT = PEM._replace(key_location=_store("client-all.pem"))
_STRANGER = PEM._replace(
    key_location=None, key_pem=_text("stranger.key"), chain_pem=_text("stranger.pem")
)
_FROM_STORES = {
    "PEM": PEM,
    "texts": PEM._replace(
        key_location=None,
        key_pem=_KEY,
        chain_pem=_CHAIN,
        trust_location=None,
        trusted_pem=_text("ca.pem"),
    ),
    "encrypted": PEM._replace(
        key_location=None,
        key_pem=_text("broker-encrypted.key"),
        chain_pem=_CHAIN,
        key_password="key-pw",
    ),
    "PKCS12": PEM._replace(
        key_location=_store("broker.p12"),
        key_store_password="store-pw",
        trust_location=_store("trust.p12"),
        trust_password="trust-pw",
    ),
    "JKS": PEM._replace(
        key_location=_store("broker.jks"),
        key_store_password="store-pw",
        trust_location=_store("trust.jks"),
        trust_password="trust-pw",
    ),
}


class Stage:
    """A listener with TLS that sends every frame back, and connections to it."""

    def __init__(self) -> None:
        self.loop = EventLoop()
        self.network = RealNetwork(self.loop, RealClock())
        self.told = Told()
        self.certificates: list[bytes | None] = []
        self.responses: list[bytes] = []
        self.ended: list[str] = []

    def listen(self, settings: TlsListenerSettings) -> int:
        def accept(connection: Connection) -> None:
            def take(frame: memoryview) -> None:
                self.certificates.append(connection.peer_certificate())
                connection.send([bytes(frame)])

            connection.on_frame = take

        options = self.told.options(layer=create_server_layer(settings))
        return self.network.listen("127.0.0.1", 0, accept, options).port

    def ask(self, port: int, settings: TlsListenerSettings, host: str = "127.0.0.1") -> None:
        """Send a frame, and wait for what comes of it."""
        layer = create_client_layer(settings)(host)
        connection = self.network.connect("127.0.0.1", port, layer=layer)
        before = len(self.responses) + len(self.ended)
        connection.on_frame = lambda frame: self.responses.append(bytes(frame))
        connection.on_close = self.ended.append
        connection.send([b"x" * 100_000])
        self.turn_until(lambda: len(self.responses) + len(self.ended) > before)
        connection.on_close = lambda _reason: None
        connection.close("done")

    def turn_until(self, is_so: Callable[[], object]) -> None:
        for _ in range(1_000_000):
            self.loop.call_soon(self.loop.stop)
            self.loop.run()
            if is_so():
                return
        raise AssertionError("it never was so")

    def close(self) -> None:
        self.network.close()
        self.loop.close()


@pytest.fixture
def stage() -> Iterator[Stage]:
    made = Stage()
    yield made
    made.close()


@pytest.mark.parametrize("kind", _FROM_STORES)
def test_key_and_trust_come_from_every_kind_of_store(stage: Stage, kind: str) -> None:
    settings = _FROM_STORES[kind]._replace(client_auth="required")
    stage.ask(stage.listen(settings), settings)
    assert [b"x" * 100_000] == stage.responses
    (certificate,) = stage.certificates
    assert certificate is not None
    assert "CN=broker,O=Kafka,C=DE" == subject_of(certificate)


def test_names_that_are_not_ascii_may_stand_beside_certificates(
    stage: Stage, tmp_path: Path
) -> None:
    pem = "# Főtanúsítvány\n" + _text("ca.pem")
    bundle = tmp_path / "bundle.pem"
    bundle.write_text(pem)
    for settings in (
        PEM._replace(trust_location=str(bundle)),
        PEM._replace(trust_location=None, trusted_pem=pem),
    ):
        stage.ask(stage.listen(settings._replace(client_auth="required")), _CLIENT)
    assert [] == stage.ended
    assert 2 == len(stage.responses)


@pytest.mark.parametrize(
    ("auth", "client", "is_served"),
    [
        ("none", _STRANGER, True),
        ("requested", _CLIENT, True),
        ("requested", _STRANGER, False),
        ("required", _CLIENT, True),
        ("required", _STRANGER, False),
    ],
)
def test_a_certificate_must_be_trusted_where_one_is_requested(
    stage: Stage, auth: str, client: TlsListenerSettings, *, is_served: bool
) -> None:
    stage.ask(stage.listen(PEM._replace(client_auth=auth)), client)
    assert is_served is bool(stage.responses)
    assert is_served is not bool(stage.told.refused)


def test_our_side_believes_the_host_that_it_wants_alone(stage: Stage) -> None:
    port = stage.listen(PEM)
    stage.ask(port, _CLIENT, "elsewhere")
    assert "Hostname mismatch" in stage.ended[0] or "not valid for" in stage.ended[0]
    stage.ended.clear()
    stage.ask(port, _CLIENT._replace(verifies_host=False), "elsewhere")
    stage.ask(port, _CLIENT, "localhost")
    assert [] == stage.ended


def test_a_version_that_one_side_does_not_have_is_refused(stage: Stage) -> None:
    port = stage.listen(PEM._replace(versions=("TLSv1.3",)))
    stage.ask(port, _CLIENT._replace(versions=("TLSv1.2",)))
    assert "handshake failed" in stage.ended[0]
    assert [] == stage.responses


def test_ciphers_that_are_not_chosen_are_refused(stage: Stage) -> None:
    chosen = PEM._replace(
        versions=("TLSv1.2",), ciphers="ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-ECDSA-AES128-SHA256"
    )
    port = stage.listen(chosen)
    others = {"TLSv1.2": "ECDHE-ECDSA-CHACHA20-POLY1305", "TLSv1.3": None}
    for version, ciphers in others.items():
        stage.ask(port, _CLIENT._replace(versions=(version,), ciphers=ciphers))
    assert ["handshake failed", "handshake failed"] == [text[:16] for text in stage.ended]
    stage.ended.clear()
    stage.ask(port, _CLIENT)
    stage.ask(port, _CLIENT._replace(versions=("TLSv1.2",), ciphers=chosen.ciphers))
    assert [] == stage.ended


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (PEM._replace(key_location="/no/such.pem"), "cannot be read: No such file"),
        (PEM._replace(key_location=_store("ca.pem")), "has no private key"),
        (PEM._replace(trust_location=_store("stranger.key")), "holds no certificate"),
        (PEM._replace(key_location=_store("trust.jks")), "has no private key"),
        (PEM._replace(key_location=_store("broker.p12")), "the password is wrong"),
        (PEM._replace(trust_location=_store("trust.p12"), trust_password="x"), "password is wrong"),
        (_FROM_STORES["encrypted"]._replace(key_password=None), "needs ssl.key.password"),
        (_FROM_STORES["encrypted"]._replace(key_password="x"), "does not open it"),
        (_FROM_STORES["encrypted"]._replace(key_password="long" * 500), "does not open it"),
        (_STRANGER._replace(key_pem=_KEY), "is not that of its first certificate"),
    ],
)
def test_what_is_wrong_with_a_store_is_said_without_its_secrets(
    settings: TlsListenerSettings, reason: str
) -> None:
    with pytest.raises(BadTlsFile, match=reason) as caught:
        create_server_layer(settings)
    assert "-pw" not in str(caught.value)
    assert "-pw" not in repr(settings)


def test_a_bound_of_a_connection_that_has_closed_is_no_fault(stage: Stage) -> None:
    """Such as the bound of a client that authenticates again, and reads no response."""
    faults: list[BaseException] = []
    stage.loop.handle_faults(faults.append)

    def accept(connection: Connection) -> None:
        def take(_frame: memoryview) -> None:
            connection.close("too many unsent bytes")
            connection.bound_frames(None)

        connection.on_frame = take

    options = stage.told.options(layer=create_server_layer(PEM))
    stage.ask(stage.network.listen("127.0.0.1", 0, accept, options).port, PEM)
    assert (["closed by the peer"], []) == (stage.ended, faults)
