"""SASL for clients of an embedded cluster: the user, and the settings to log in.

| who | mechanism | where the password is |
|---|---|---|
| brokers, to each other | PLAIN | in the settings of the plan, generated for each cluster |
| the user, PLAIN | PLAIN | in the settings of the plan |
| the user, SCRAM | SCRAM-SHA-256, -512 | a credential, which the brokers' user creates |

Connections are not encrypted (SASL_PLAINTEXT): the listeners accept only local connections.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.errors import AuthenticationFailed, Unreachable
from engine.client.sasl import SaslSettings
from engine.client.scram_admin import NewCredential, alter_credentials
from engine.client.settings import Address, ClientSettings
from engine.errors import EngineError
from engine.security.scram import ITERATIONS_MIN, ScramMechanism

BROKER_USER: Final = "broker"
PLAIN: Final = "PLAIN"
PROTOCOL: Final = "SASL_PLAINTEXT"
_LISTENER: Final = "SECURE"
_MODULE: Final = "org.apache.kafka.common.security"
_SCRAM: Final = {
    "SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256,
    "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512,
}
_NAME: Final = re.compile(r"\w+")


class BadLogin(EngineError):
    """A user, password or mechanism is not possible for an embedded cluster."""

    def __init__(self, what: str, rule: str) -> None:
        super().__init__(f"{what} {rule}")
        self.what = what
        self.rule = rule


class Login(NamedTuple):
    """The user that clients log in as; the repr omits the password."""

    username: str
    password: str
    mechanism: str = "SCRAM-SHA-512"

    def __repr__(self) -> str:
        return f"Login({self.username}, {self.mechanism})"

    @property
    def client_settings(self) -> ClientSettings:
        """The settings of a KafkaClient that logs in as this user."""
        return ClientSettings(sasl=SaslSettings(self.mechanism, self.username, self.password))


def check_login(login: Login) -> None:
    """Raise BadLogin if a cluster cannot have this user."""
    if login.mechanism != PLAIN and login.mechanism not in _SCRAM:
        known = ", ".join((PLAIN, *_SCRAM))
        raise BadLogin(f"mechanism {login.mechanism}", f"is none of {known}")
    if not _NAME.fullmatch(login.username) or login.username == BROKER_USER:
        raise BadLogin(
            f"user {login.username!r}", f"is not of letters, digits and _, or is {BROKER_USER}"
        )
    if not login.password or not login.password.isprintable():
        raise BadLogin("the password", "is empty, or has characters that do not print")


def login_settings(login: Login, broker_password: str) -> dict[str, str]:
    """Return the broker settings with which brokers accept this user and each other."""
    users = {BROKER_USER: broker_password}
    mechanisms = [PLAIN]
    listener = f"listener.name.{_LISTENER.lower()}"
    settings = {}
    if login.mechanism == PLAIN:
        users[login.username] = login.password
    else:
        mechanisms.insert(0, login.mechanism)
        jaas = f"{listener}.{login.mechanism.lower()}.sasl.jaas.config"
        settings[jaas] = f"{_MODULE}.scram.ScramLoginModule required;"
    options = {"username": BROKER_USER, "password": broker_password}
    options |= {f"user_{name}": password for name, password in users.items()}
    plain = " ".join(f'{key}="{_escape_quotes(text)}"' for key, text in options.items())
    return {
        **settings,
        "listener.security.protocol.map": f"{_LISTENER}:{PROTOCOL}",
        "inter.broker.listener.name": _LISTENER,
        "sasl.mechanism.inter.broker.protocol": PLAIN,
        "sasl.enabled.mechanisms": ",".join(mechanisms),
        f"{listener}.plain.sasl.jaas.config": f"{_MODULE}.plain.PlainLoginModule required {plain};",
        "super.users": ";".join(f"User:{name}" for name in (BROKER_USER, login.username)),
    }


def _escape_quotes(text: str) -> str:
    """Return a text for a quoted value of a JAAS configuration."""
    return re.sub(r'(["\\])', r"\\\1", text)


def create_login_user(client: KafkaClient, login: Login) -> None:
    """Create the credential of a SCRAM user; a PLAIN user needs none. Raises ApiError."""
    mechanism = _SCRAM.get(login.mechanism)
    if mechanism is None:
        return
    credential = NewCredential(mechanism, ITERATIONS_MIN, login.password.encode())
    alter_credentials(client, login.username, (), [credential])


def await_login(connect: Callable[[Address], KafkaClient], address: Address) -> None:
    """Log in to a broker, and retry until it knows the credential or the client's timeout.

    Raises AuthenticationFailed, Unreachable.
    """
    with connect(address) as first:
        deadline_ms = first.clock.monotonic_ms() + first.timeout_ms
        attempt = 0
        while True:
            try:
                with connect(address) as client:
                    client.brokers_view()
                    return
            except (AuthenticationFailed, Unreachable):
                if first.clock.monotonic_ms() > deadline_ms:
                    raise
            first.back_off(attempt)
            attempt += 1


def java_properties(bootstrap: str, login: Login | None) -> Mapping[str, str]:
    """Return the properties of a Java client; without a login only the addresses."""
    if login is None:
        return {"bootstrap.servers": bootstrap}
    package, name = ("plain", "Plain") if login.mechanism == PLAIN else ("scram", "Scram")
    user, password = _escape_quotes(login.username), _escape_quotes(login.password)
    return {
        "bootstrap.servers": bootstrap,
        "security.protocol": PROTOCOL,
        "sasl.mechanism": login.mechanism,
        "sasl.jaas.config": f"{_MODULE}.{package}.{name}LoginModule required "
        f'username="{user}" password="{password}";',
    }


def librdkafka_settings(bootstrap: str, login: Login | None) -> dict[str, str]:
    """Return the settings of a client based on librdkafka, for instance confluent-kafka."""
    if login is None:
        return {"bootstrap.servers": bootstrap}
    return {
        "bootstrap.servers": bootstrap,
        "security.protocol": PROTOCOL,
        "sasl.mechanism": login.mechanism,
        "sasl.username": login.username,
        "sasl.password": login.password,
    }


def python_settings(bootstrap: str, login: Login | None) -> dict[str, str]:
    """Return the keyword arguments for clients of kafka-python and aiokafka."""
    if login is None:
        return {"bootstrap_servers": bootstrap}
    return {
        "bootstrap_servers": bootstrap,
        "security_protocol": PROTOCOL,
        "sasl_mechanism": login.mechanism,
        "sasl_plain_username": login.username,
        "sasl_plain_password": login.password,
    }
