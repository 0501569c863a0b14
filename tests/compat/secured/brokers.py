"""A broker of Kafka's jars on a ZooKeeper of its own, and one of ours, with the same settings.

| listener | protocol | |
|---|---|---|
| PLAINTEXT | PLAINTEXT | brokers; `User:ANONYMOUS` is a super user |
| SASL, SASLSSL | SASL_PLAINTEXT, SASL_SSL | PLAIN, SCRAM, OAUTHBEARER with unsecured tokens |
| REAUTH | SASL_PLAINTEXT | the same; sessions end |
| SSL, WANTED, CERTIFIED | SSL | no certificate of a client, one if it has one, one in any case |
| EXPIRED | SSL | the broker's certificate has expired |

Users: alice by PLAIN and SCRAM, others by PLAIN with a password `<name>-pw`. Rules are those of Kafka's AclAuthorizer.
"""  # noqa: E501 - a table

from __future__ import annotations

import hashlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Final

from engine.wire.structs import message_class
from tests.cluster.raw_client import RawClient
from tests.cluster.real_kafka import JAVA
from tests.compat.secured.certificates import AUTHORITY, BROKER, EXPIRED_BROKER, write_certificates

LISTENERS: Final = {
    "PLAINTEXT": "PLAINTEXT",
    "SASL": "SASL_PLAINTEXT",
    "SASLSSL": "SASL_SSL",
    "REAUTH": "SASL_PLAINTEXT",
    "SSL": "SSL",
    "WANTED": "SSL",
    "CERTIFIED": "SSL",
    "EXPIRED": "SSL",
}
#: How long a session of the listener REAUTH lasts.
REAUTH_MS: Final = 3000
USERS: Final = ("alice", "nobody", "partly")
_SASL_LISTENERS: Final = [name for name, protocol in LISTENERS.items() if "SASL" in protocol]
_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
_START_S: Final = 90.0
_MODULES: Final = "org.apache.kafka.common.security"
_ITERATIONS: Final = 4096


def password_of(user: str) -> str:
    """Return a user's password."""
    return f"{user}-pw"


class SecuredBroker:
    """One of the two: its processes and the ports of its listeners."""

    def __init__(self, folder: Path, certificates: Path, libs: str | None) -> None:
        """`libs` are the jars of Kafka, None for a broker of ours."""
        folder.mkdir(parents=True)
        self._folder = folder
        self.certificates = certificates
        self._libs = libs
        self._processes: list[subprocess.Popen[bytes]] = []
        *ports, self._zookeeper_port = free_ports(len(LISTENERS) + 1)
        self.ports = dict(zip(LISTENERS, ports, strict=True))

    def address(self, listener: str) -> str:
        """Return where a listener is."""
        return f"localhost:{self.ports[listener]}"

    @property
    def pid(self) -> int:
        """Return the broker's process."""
        return self._processes[-1].pid

    def log_text(self) -> str:
        """Return what the broker has logged."""
        return (self._folder / "broker.log").read_text(errors="replace")

    def start(self, more: Mapping[str, str]) -> None:
        """Return once it serves; raises RuntimeError with the end of its log if it does not."""
        settings = self._settings() | more
        config = self._folder / "server.properties"
        config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        if self._libs is None:
            self._spawn(
                "broker", [sys.executable, "-m", "kctl", "broker", "run", "--config", str(config)]
            )
        else:
            java = [*JAVA, "-Dzookeeper.admin.enableServer=false", "-cp", f"{self._libs}/*"]
            main = "org.apache.zookeeper.server.ZooKeeperServerMain"
            znodes = str(self._folder / "znodes")
            self._spawn("zookeeper", [*java, main, str(self._zookeeper_port), znodes])
            self._wait(self._zookeeper_port)
            self._spawn("broker", [*java, "kafka.Kafka", str(config)])
        self._wait(self.ports["PLAINTEXT"])
        deadline_s = time.monotonic() + _START_S
        while not self._serves():
            self._check(deadline_s)
            time.sleep(0.1)

    def stop(self) -> None:
        """End its processes."""
        for process in reversed(self._processes):
            process.kill()
            process.wait()

    def _settings(self) -> dict[str, str]:
        settings = {
            "broker.id": "1",
            "log.dirs": str(self._folder / "logs"),
            "listeners": ",".join(
                f"{name}://localhost:{port}" for name, port in self.ports.items()
            ),
            "listener.security.protocol.map": ",".join(
                f"{name}:{protocol}" for name, protocol in LISTENERS.items()
            ),
            "inter.broker.listener.name": "PLAINTEXT",
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "super.users": "User:ANONYMOUS",
            "auto.create.topics.enable": "false",
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.num.partitions": "1",
            "transaction.state.log.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.certificates / BROKER),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.certificates / AUTHORITY),
            "listener.name.wanted.ssl.client.auth": "requested",
            "listener.name.certified.ssl.client.auth": "required",
            "listener.name.expired.ssl.keystore.type": "PEM",
            "listener.name.expired.ssl.keystore.location": str(self.certificates / EXPIRED_BROKER),
            "sasl.enabled.mechanisms": ",".join(_MECHANISMS),
            "listener.name.reauth.connections.max.reauth.ms": str(REAUTH_MS),
        }
        if self._libs is not None:
            settings["zookeeper.connect"] = f"localhost:{self._zookeeper_port}"
        users = " ".join(f'user_{user}="{password_of(user)}"' for user in USERS)
        modules = {
            "PLAIN": f"{_MODULES}.plain.PlainLoginModule required {users};",
            "OAUTHBEARER": f"{_MODULES}.oauthbearer.OAuthBearerLoginModule required;",
        }
        for listener in _SASL_LISTENERS:
            for mechanism in _MECHANISMS:
                module = modules.get(mechanism, f"{_MODULES}.scram.ScramLoginModule required;")
                key = f"listener.name.{listener.lower()}.{mechanism.lower()}.sasl.jaas.config"
                settings[key] = module
        return settings

    def _spawn(self, name: str, command: list[str]) -> None:
        with open(self._folder / f"{name}.log", "wb") as log:
            self._processes.append(subprocess.Popen(command, stdout=log, stderr=log))

    def _wait(self, port: int) -> None:
        deadline_s = time.monotonic() + _START_S
        while True:
            with suppress(OSError), socket.create_connection(("localhost", port), 5):
                return
            self._check(deadline_s)
            time.sleep(0.1)

    def _check(self, deadline_s: float) -> None:
        if time.monotonic() > deadline_s or any(p.poll() is not None for p in self._processes):
            logs = sorted(self._folder.glob("*.log"))
            ends = (f"{log}:\n{log.read_text(errors='replace')[-3000:]}" for log in logs)
            raise RuntimeError("a broker does not serve\n" + "\n".join(ends))

    def _serves(self) -> bool:
        """Return whether its controller knows it, and make the user of SCRAM."""
        try:
            with RawClient(self.address("PLAINTEXT")) as client:
                view = client.ask("Metadata", 9, topics=[])
                if not view.brokers or view.controller_id != 1:
                    return False
                _make_scram_users(client)
        except OSError:
            return False
        return True


def _make_scram_users(client: RawClient) -> None:
    of = message_class("AlterUserScramCredentialsRequest")
    salt = b"some salt of any length"
    upsertions = [
        of.ScramCredentialUpsertion(
            name="alice",
            mechanism=number,
            iterations=_ITERATIONS,
            salt=salt,
            salted_password=hashlib.pbkdf2_hmac(
                name, password_of("alice").encode(), salt, _ITERATIONS
            ),
        )
        for number, name in ((1, "sha256"), (2, "sha512"))
    ]
    answer = client.ask("AlterUserScramCredentials", 0, upsertions=upsertions)
    assert not any(result.error_code for result in answer.results), answer


def free_ports(count: int) -> list[int]:
    """Return ports that nobody listens on."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.create_server(("localhost", 0))) for _ in range(count)]
        return [one.getsockname()[1] for one in sockets]


@contextmanager
def both_brokers(
    folder: Path,
    libs: str,
    more: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[tuple[SecuredBroker, SecuredBroker]]:
    """Run both, with some settings more; yields Kafka's, then ours."""
    certificates = folder / "certificates"
    certificates.mkdir(parents=True)
    write_certificates(certificates)
    real = SecuredBroker(folder / "real", certificates, libs)
    ours = SecuredBroker(folder / "ours", certificates, None)
    try:
        for broker in (real, ours):
            broker.start(more)
        yield real, ours
    finally:
        for broker in (real, ours):
            broker.stop()
