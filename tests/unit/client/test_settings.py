from __future__ import annotations

import pytest

from engine.client.errors import ClientSettingRefused
from engine.client.settings import Address, client_settings, parse_addresses, parse_jaas_options

JAAS = 'org.apache.kafka…PlainLoginModule required username="bob" password="p\\"w;1";'


def test_addresses() -> None:
    assert [Address("a", 1), Address("::1", 9092), Address("b", 9092)] == parse_addresses(
        "a:1, [::1]:9092,b"
    )
    assert "[::1]:9092" == str(Address("::1", 9092))


@pytest.mark.parametrize("text", ["", ",", "a:", ":1", "a:b", "a:0", "a:65536"])
def test_wrong_addresses_are_refused(text: str) -> None:
    with pytest.raises(ClientSettingRefused):
        parse_addresses(text)


def test_nothing_said_is_plaintext() -> None:
    settings = client_settings({"group.id": "g", "ssl.key.password": "", "acks": "1"})
    assert (None, None, "kctl") == (settings.tls, settings.sasl, settings.client_id)


def test_jaas_options_lose_their_quotes() -> None:
    assert {"username": "bob", "password": 'p"w;1'} == parse_jaas_options(JAAS)


def test_sasl_over_tls() -> None:
    settings = client_settings(
        {
            "security.protocol": "sasl_ssl",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": JAAS,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": "/ca.pem",
            "ssl.endpoint.identification.algorithm": "",
            "request.timeout.ms": "5",
        }
    )
    assert settings.sasl is not None
    assert settings.tls is not None
    assert ("SCRAM-SHA-512", "bob") == settings.sasl[:2]
    assert ("/ca.pem", False) == (settings.tls.ca_path, settings.tls.verifies_host)
    assert 5 == settings.request_timeout_ms
    assert 'p"w;1' not in repr(settings)


@pytest.mark.parametrize(
    ("properties", "named"),
    [
        ({"security.protocol": "TLS"}, "security.protocol"),
        ({"security.protocol": "SASL_SSL"}, "GSSAPI"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"}, "GSSAPI"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}, "sasl.jaas.config"),
        ({"security.protocol": "SSL", "ssl.truststore.type": "BKS"}, "must be one of PEM, PKCS12"),
        ({"ssl.trustore.location": "a"}, "no client of Kafka's has this property"),
        ({"sasl.jaas.confg": "a"}, "no client of Kafka's has this property"),
        ({"security.protcol": "SSL"}, "no client of Kafka's has this property"),
        ({"security.protocol": "SSL", "ssl.keystore.key": "-----"}, "go together"),
        ({"security.protocol": "SSL", "ssl.cipher.suites": "X"}, "ssl.cipher.suites"),
        ({"request.timeout.ms": "soon"}, "request.timeout.ms"),
    ],
)
def test_what_cannot_be_followed_is_refused(properties: dict[str, str], named: str) -> None:
    with pytest.raises(ClientSettingRefused, match=named):
        client_settings(properties)


def test_security_that_is_not_in_use_does_not_matter() -> None:
    client_settings({"sasl.mechanism": "GSSAPI", "ssl.cipher.suites": "X"})


def test_a_mistyped_property_is_answered_with_the_nearest() -> None:
    with pytest.raises(ClientSettingRefused) as caught:
        client_settings({"ssl.trustore.location": "a"})
    assert "did you mean ssl.truststore.location?" == caught.value.hint


def test_what_changes_nothing_here_is_passed_over() -> None:
    settings = client_settings(
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": JAAS,
            "ssl.enabled.protocols": "TLSv1.3",
            "ssl.truststore.password": "unused",
            "sasl.kerberos.service.name": "kafka",
            "sasl.login.refresh.window.factor": "0.8",
        }
    )
    assert settings.tls is not None


@pytest.mark.parametrize(
    ("protocol", "refused"),
    [("PLAINTEXT", None), ("SSL", "ssl.cipher.suites"), ("SASL_PLAINTEXT", "sasl.client.callback")],
)
def test_what_is_not_honoured_is_refused_where_its_protocol_is_in_use(
    protocol: str, refused: str | None
) -> None:
    properties = {
        "security.protocol": protocol,
        "sasl.client.callback.handler.class": "a.B",
        "ssl.cipher.suites": "x",
    }
    if protocol.startswith("SASL"):
        properties |= {"sasl.mechanism": "PLAIN", "sasl.username": "u", "sasl.password": "p"}
    if refused is None:
        assert client_settings(properties).sasl is None
    else:
        with pytest.raises(ClientSettingRefused, match=refused):
            client_settings(properties)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("client.id", "x" * 32768),
        ("client.id", "\u00e4" * 16384),
        ("request.timeout.ms", "9" * 5000),
        ("retry.backoff.ms", str(1 << 63)),
    ],
    ids=["characters", "bytes", "digits", "int64"],
)
def test_what_no_request_or_timer_can_hold_is_refused(key: str, text: str) -> None:
    with pytest.raises(ClientSettingRefused, match=key):
        client_settings({key: text})


def test_the_longest_client_id_is_taken() -> None:
    assert "x" * 32767 == client_settings({"client.id": "x" * 32767}).client_id
