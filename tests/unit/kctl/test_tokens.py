"""`kctl tokens`: what a client that logs in by a token is told."""

from __future__ import annotations

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
