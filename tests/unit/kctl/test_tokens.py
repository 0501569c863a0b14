"""`kctl tokens`: what a client that logs in by a token is told."""

from __future__ import annotations

from pathlib import Path

from engine.client.sasl import SaslSettings
from engine.client.settings import ClientSettings, client_settings
from engine.client.token_admin import IssuedToken
from engine.config.java_properties import parse_properties
from engine.host.streams import TlsSettings
from kctl.commands.tokens.changes import client_properties

TOKEN = IssuedToken("id-1", b"\xff\x00", ("User", "a"), ("User", "a"), (), 1, 2, 3)


def _parsed(settings: ClientSettings) -> dict[str, str]:
    return parse_properties(client_properties(TOKEN, settings).encode(), "x")


def test_properties_log_in_by_the_token() -> None:
    settings = client_settings(_parsed(ClientSettings()))
    assert SaslSettings("SCRAM-SHA-256", "id-1", "/wA=", is_token=True) == settings.sasl
    assert settings.tls is None


def test_properties_are_of_the_same_mechanism_and_trust_the_same() -> None:
    other = ClientSettings(
        tls=TlsSettings(ca_path="/ca.pem", ca_password="p", verifies_host=False),
        sasl=SaslSettings("SCRAM-SHA-512", "a", "b"),
    )
    settings = client_settings(_parsed(other))
    assert settings.sasl is not None
    assert settings.tls is not None
    assert "SCRAM-SHA-512" == settings.sasl.mechanism
    assert other.tls == settings.tls


_STORES = Path(__file__).parents[1] / "host" / "tls" / "stores"


def test_properties_name_the_type_of_a_trust_store_for_clients_of_java() -> None:
    """Without it a store is JKS to them, which PKCS12 may be and PEM may not."""
    types = {}
    for name in ("ca.pem", "trust.jks", "trust.p12"):
        parsed = _parsed(ClientSettings(tls=TlsSettings(ca_path=str(_STORES / name))))
        types[name] = parsed.get("ssl.truststore.type")
    assert {"ca.pem": "PEM", "trust.jks": None, "trust.p12": None} == types


def test_trusted_certificates_of_the_settings_are_those_of_the_token_too() -> None:
    pem = (_STORES / "ca.pem").read_text()
    parsed = _parsed(ClientSettings(tls=TlsSettings(ca_pem=pem)))
    assert ("PEM", pem) == (parsed["ssl.truststore.type"], parsed["ssl.truststore.certificates"])
    settings = client_settings(parsed)
    assert settings.tls is not None
    assert pem == settings.tls.ca_pem
