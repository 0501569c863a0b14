"""A broker whose listeners have TLS: settings that stop its start, users of certificates."""

from __future__ import annotations

from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from engine.broker.listener_tls import principal_of_certificates
from engine.config.settings import BrokerSettings
from engine.errors import ConfigError
from engine.kafka_errors import INVALID_REQUEST, NONE
from engine.wire.structs import message_class
from tests.unit.broker.memory_broker import MemoryBroker, request_frame

_STORES = Path(__file__).parents[1] / "host" / "tls" / "stores"
_KEY_STORE = str(_STORES / "broker-all.pem")
_PEM = {"ssl.keystore.type": "PEM", "ssl.keystore.location": _KEY_STORE}
_CERTIFICATE = b64decode(
    (_STORES / "client-all.pem")
    .read_text()
    .partition("-----BEGIN CERTIFICATE-----")[2]
    .partition("-----END")[0]
)


def _broker(settings: dict[str, str]) -> MemoryBroker:
    stage = MemoryBroker(
        listeners="PLAINTEXT://here:0,SSL://here:0",
    )
    for name, text in settings.items():
        stage.set(name, text)
    return stage.start()


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({}, "must be given, or listener.name.ssl.ssl.keystore.location"),
        ({**_PEM, "ssl.keystore.type": "BKS"}, "must be of PEM, PKCS12, JKS"),
        ({**_PEM, "ssl.keystore.password": "secret"}, "cannot be specified with PEM format"),
        ({**_PEM, "ssl.keystore.key": "secret"}, "Both SSL key store location and separate"),
        ({"ssl.keystore.key": "secret"}, "needs ssl.keystore.type=PEM"),
        ({"ssl.keystore.type": "PEM", "ssl.keystore.key": "secret"}, "chain is not specified"),
        (
            {"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": "c"},
            "private key is not specified",
        ),
        ({**_PEM, "ssl.keystore.location": "/no/such"}, "/no/such: cannot be read"),
        ({**_PEM, "ssl.truststore.certificates": "c"}, "needs ssl.truststore.type=PEM"),
        (
            {**_PEM, "ssl.truststore.type": "PEM", "ssl.truststore.password": "secret"},
            "trust store password cannot be specified",
        ),
        ({**_PEM, "ssl.enabled.protocols": "TLSv1.1,TLSv1.2"}, "must be of TLSv1.2, TLSv1.3"),
        ({**_PEM, "ssl.cipher.suites": "TLS_AES_256_GCM_SHA384"}, "all of TLS 1.3 or none"),
        ({**_PEM, "ssl.cipher.suites": "TLS_NONE"}, "OpenSSL has no TLS_NONE"),
        ({**_PEM, "ssl.engine.factory.class": "my.Factory"}, "classes of Java"),
        ({**_PEM, "ssl.principal.mapping.rules": "RULE:x"}, "Invalid rule: RULE:x"),
        ({**_PEM, "ssl.client.auth": "maybe"}, "must be of"),
    ],
)
def test_what_cannot_be_gone_by_stops_the_start(settings: dict[str, str], rule: str) -> None:
    with pytest.raises(ConfigError, match=rule) as refused:
        _broker(settings)
    assert "secret" not in str(refused.value)


def test_a_certificate_is_a_user_by_the_rules() -> None:
    name = "1.2.840.113549.1.9.1=#16056140622e63,CN=alice,O=Ex\\, Inc.,ST=Berlin,C=DE"
    by_default = principal_of_certificates(BrokerSettings({}))
    assert f"User:{name}" == by_default(_CERTIFICATE)
    assert "User:ANONYMOUS" == by_default(None)
    rules = {"ssl.principal.mapping.rules": "RULE:^.*CN=(.*?),.*$/$1/U"}
    assert "User:ALICE" == principal_of_certificates(BrokerSettings(rules))(_CERTIFICATE)


def _asked(stage: MemoryBroker, certificate: bytes | None) -> tuple[list[bytes], Any]:
    """Ask over a listener with TLS, as somebody with a certificate; returns what came."""
    frames: list[bytes] = []
    connection = stage.network.connect("here", stage.broker.ports["SSL"])
    connection.on_frame = lambda frame: frames.append(bytes(frame))
    (ours,) = stage.network.listeners[-1]._connections
    ours.peer_certificate = lambda: certificate  # type: ignore[method-assign]
    frame = request_frame("ApiVersions", 0, message_class("ApiVersionsRequest")())
    connection.send([frame])
    connection.send([frame])
    stage.timers.run_until_idle()
    return frames, connection


def test_the_first_frame_makes_the_client_known() -> None:
    stage = _broker(_PEM)
    frames, _ = _asked(stage, _CERTIFICATE)
    assert 2 == len(frames)
    (session,) = stage.broker.table.admission.sessions
    assert session.principal.startswith("User:1.2.840.113549.1.9.1=#16056140622e63,CN=alice")
    stage.stop()


@pytest.mark.parametrize("rules", ["RULE:^CN=bob$/bob/", "RULE:.*/${user}/"])
def test_who_no_rule_is_about_is_not_served(rules: str) -> None:
    stage = _broker({**_PEM, "ssl.principal.mapping.rules": rules})
    frames, connection = _asked(stage, _CERTIFICATE)
    assert [] == frames
    assert connection.is_closed
    stage.stop()


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        ("listener.name.ssl.ssl.keystore.location", "/no/such", INVALID_REQUEST),
        ("listener.name.ssl.ssl.truststore.location", "/no/such", INVALID_REQUEST),
        ("listener.name.ssl.ssl.cipher.suites", "TLS_NONE", INVALID_REQUEST),
        ("listener.name.ssl.ssl.keystore.location", _KEY_STORE, NONE),
        ("listener.name.ssl.max.connections", "9", NONE),
        ("listener.name.ssl.ssl.client.auth", "required", INVALID_REQUEST),
    ],
)
def test_a_change_with_which_the_broker_could_not_start_again_is_refused(
    name: str, text: str, code: int
) -> None:
    stage = _broker(_PEM)
    request = message_class("IncrementalAlterConfigsRequest")
    resource = request.AlterConfigsResource(
        resource_type=4,
        resource_name="1",
        configs=[request.AlterableConfig(name=name, config_operation=0, value=text)],
    )
    answer = stage.connect().ask("IncrementalAlterConfigs", 1, resources=[resource])
    assert [code] == [row.error_code for row in answer.responses]
    stage.stop()
