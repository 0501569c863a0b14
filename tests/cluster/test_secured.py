"""librdkafka and kctl against listeners with SASL and TLS, with right and wrong credentials."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient

from tests.cluster.embedded import EmbeddedCluster

_STORES = Path(__file__).parents[1] / "unit" / "host" / "tls" / "stores"
_TIMEOUT_S = 20.0
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
_SETTINGS = f"""\
listeners=SASL://localhost:{{SASL}},SASLSSL://localhost:{{SASLSSL}},CERTIFIED://localhost:{{CERTIFIED}}
listener.security.protocol.map=SASL:SASL_PLAINTEXT,SASLSSL:SASL_SSL,CERTIFIED:SSL
inter.broker.listener.name=SASL
sasl.mechanism.inter.broker.protocol=PLAIN
sasl.enabled.mechanisms=PLAIN
listener.name.sasl.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256
listener.name.sasl.plain.sasl.jaas.config={_PLAIN} required username="admin" \\
    password="admin-pw" user_admin="admin-pw";
listener.name.sasl.scram-sha-256.sasl.jaas.config={_SCRAM} required;
listener.name.saslssl.plain.sasl.jaas.config={_PLAIN} required user_alice="alice-pw";
listener.name.certified.ssl.client.auth=required
ssl.keystore.type=PEM
ssl.keystore.location={_STORES / "broker-all.pem"}
ssl.truststore.type=PEM
ssl.truststore.location={_STORES / "ca.pem"}
"""
_CA = {"ssl.ca.location": str(_STORES / "ca.pem")}
_ADMIN = {"sasl.username": "admin", "sasl.password": "admin-pw"}


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Return where the listeners of a cluster that runs are."""
    folder = tmp_path_factory.mktemp("secured")
    settings = folder / "secured.properties"
    found = dict(zip(("SASL", "SASLSSL", "CERTIFIED"), _free_ports(3), strict=True))
    settings.write_text(_SETTINGS.format(**found))
    cluster = EmbeddedCluster(folder / "cluster")
    cluster.start("--config", str(settings))
    yield {name: f"localhost:{port}" for name, port in found.items()}
    cluster.destroy()


def _free_ports(count: int) -> list[int]:
    with ExitStack() as held:
        sockets = [held.enter_context(socket.create_server(("localhost", 0))) for _ in range(count)]
        return [one.getsockname()[1] for one in sockets]


def _failure(address: str, settings: dict[str, str]) -> int | None:
    """Return the error code that a client of librdkafka hears first, None where it is let in."""
    errors: list[KafkaError] = []
    client = AdminClient(
        {"bootstrap.servers": address, "error_cb": errors.append, **settings},
        logger=_Silent(),
    )
    try:
        client.list_topics(timeout=0.5)
    except Exception:
        client.poll(_TIMEOUT_S)
        assert errors
        # A socket that closes meanwhile makes it a failure of transport, in the same words.
        if "certificate verify failed" in errors[0].str():
            return int(KafkaError._SSL)
        return int(errors[0].code())
    return None


class _Silent:
    def log(self, *_arguments: object) -> None:
        """Print nothing."""


@pytest.mark.parametrize(
    ("listener", "settings", "failure"),
    [
        ("SASL", {"security.protocol": "sasl_plaintext", **_ADMIN}, None),
        (
            "SASL",
            {"security.protocol": "sasl_plaintext", **_ADMIN, "sasl.password": "no"},
            KafkaError._AUTHENTICATION,
        ),
        (
            "SASL",
            {"security.protocol": "sasl_plaintext", **_ADMIN, "sasl.mechanism": "SCRAM-SHA-256"},
            KafkaError._AUTHENTICATION,
        ),
        (
            "SASLSSL",
            {
                "security.protocol": "sasl_ssl",
                "sasl.username": "alice",
                "sasl.password": "alice-pw",
                **_CA,
            },
            None,
        ),
        ("SASLSSL", {"security.protocol": "sasl_ssl", **_ADMIN, **_CA}, KafkaError._AUTHENTICATION),
        (
            "SASLSSL",
            {
                "security.protocol": "sasl_ssl",
                **_ADMIN,
                "ssl.ca.location": str(_STORES / "stranger.pem"),
            },
            KafkaError._SSL,
        ),
        (
            "CERTIFIED",
            {
                "security.protocol": "ssl",
                "ssl.certificate.location": str(_STORES / "client-all.pem"),
                "ssl.key.location": str(_STORES / "client-all.pem"),
                **_CA,
            },
            None,
        ),
    ],
)
def test_librdkafka_is_let_in_with_what_is_right_alone(
    addresses: dict[str, str], listener: str, settings: dict[str, str], failure: int | None
) -> None:
    given = {"sasl.mechanism": "PLAIN", **settings}
    if settings["security.protocol"] == "ssl":
        del given["sasl.mechanism"]
    assert failure == _failure(addresses[listener], given)


def test_records_go_through_tls_and_kctl_reads_them(
    addresses: dict[str, str], tmp_path: Path
) -> None:
    values = [b"%d " % n * 5000 for n in range(200)]
    producer = Producer(
        {
            "bootstrap.servers": addresses["SASLSSL"],
            "security.protocol": "sasl_ssl",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "alice",
            "sasl.password": "alice-pw",
            **_CA,
        }
    )
    for value in values:
        producer.produce("records", value)
    assert 0 == producer.flush(_TIMEOUT_S)
    config = tmp_path / "client.properties"
    config.write_text(
        "security.protocol=SSL\n"
        f"ssl.keystore.location={_STORES / 'client-all.pem'}\n"
        f"ssl.truststore.location={_STORES / 'trust.jks'}\n"
    )
    words = ["consume", "records", "-e", "--command-config", str(config)]
    done = subprocess.run(
        [sys.executable, "-m", "kctl", *words, "-b", addresses["CERTIFIED"]],
        capture_output=True,
        check=True,
    )
    assert values == done.stdout.splitlines()
