"""Kafka's client properties, as settings of this client.

| property | meaning here |
|---|---|
| `client.id` | name in the broker's log and quotas |
| `security.protocol` | PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL |
| `sasl.mechanism`, `sasl.jaas.config` | PLAIN or SCRAM; user and password, or a delegation token |
| `sasl.oauthbearer.token.endpoint.url` | OAUTHBEARER (`oauth_login.py`) |
| `sasl.username`, `sasl.password` | the same, as librdkafka spells it |
| `ssl.truststore.location` (`.certificates`), `ssl.ca.location` | trusted certificates |
| `ssl.keystore.location`, `ssl.certificate.location`, `ssl.key.location` | our own |
| `ssl.keystore.key`, `ssl.keystore.certificate.chain` | our own as texts of PEM |
| `ssl.truststore.password`, `ssl.keystore.password`, `ssl.key.password` | open them |
| `ssl.endpoint.identification.algorithm` | empty or `none`: the host's name is not checked |
| `request.timeout.ms`, `socket.connection.setup.timeout.ms` | patience |
| `retry.backoff.ms`, `retry.backoff.max.ms` | pauses before asking again |

Files are PEM, PKCS12 or JKS: their first bytes say.

| property of `ssl.`, `sasl.` or `security.` besides | |
|---|---|
| that no client of Kafka's has | refused, in every protocol: a mistyped one would be silence |
| of Java's client, of a protocol in use | refused as not honoured here |
| of Java's client, of a protocol that is not in use | passed over, as Java's client does |
| harmless (`_HARMLESS`) | passed over |

Harmless are choices of Java's TLS library, and what is for Kerberos and logins that are renewed.

Every other that this client has no use for (those of consumers and producers) is passed over.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from engine.client.errors import ClientSettingRefused
from engine.host.streams import TlsSettings
from engine.limits import CLIENT_PORT_DEFAULT

if TYPE_CHECKING:
    from engine.client.oauth_login import OAuthLogin
    from engine.client.sasl import SaslSettings

_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_SECURITY_PREFIXES: Final = ("ssl.", "sasl.", "security.")
_TOKEN_URL: Final = "sasl.oauthbearer.token.endpoint.url"
_LOGIN_HANDLER: Final = "sasl.login.callback.handler.class"
_OAUTH: Final = "org.apache.kafka.common.security.oauthbearer"
#: Java's class that reads the token from the file or address of the URL.
_LOGIN_HANDLERS: Final = (
    f"{_OAUTH}.OAuthBearerLoginCallbackHandler",
    f"{_OAUTH}.secured.OAuthBearerLoginCallbackHandler",
)
_STORE_KINDS: Final = ("PEM", "PKCS12", "JKS")
_CHAIN: Final = "ssl.keystore.certificate.chain"
#: The longest string of a request, and the largest number of Java's client.
_CLIENT_ID_BYTES_MAX: Final = (1 << 15) - 1
_NUMBER_MAX: Final = (1 << 63) - 1
#: Every property that has an effect on a client, in the order of the table.
CLIENT_KEYS: Final = (
    "client.id",
    "security.protocol",
    "sasl.mechanism",
    "sasl.jaas.config",
    "sasl.oauthbearer.token.endpoint.url",
    "sasl.username",
    "sasl.password",
    "ssl.truststore.location",
    "ssl.truststore.certificates",
    "ssl.truststore.type",
    "ssl.truststore.password",
    "ssl.ca.location",
    "ssl.keystore.location",
    "ssl.keystore.type",
    "ssl.keystore.password",
    "ssl.keystore.key",
    "ssl.keystore.certificate.chain",
    "ssl.certificate.location",
    "ssl.key.location",
    "ssl.key.password",
    "ssl.endpoint.identification.algorithm",
    "request.timeout.ms",
    "socket.connection.setup.timeout.ms",
    "retry.backoff.ms",
    "retry.backoff.max.ms",
)
#: Security properties without an effect on a client with user and password, or with PEM files.
_HARMLESS: Final = frozenset(
    (
        "ssl.protocol",
        "ssl.enabled.protocols",
        "ssl.provider",
        "ssl.secure.random.implementation",
        "ssl.trustmanager.algorithm",
        "ssl.keymanager.algorithm",
        "ssl.client.auth",
        "security.providers",
        "sasl.login.class",
        "sasl.login.connect.timeout.ms",
        "sasl.login.read.timeout.ms",
        "sasl.login.retry.backoff.ms",
        "sasl.login.retry.backoff.max.ms",
        "sasl.login.refresh.buffer.seconds",
        "sasl.login.refresh.min.period.seconds",
        "sasl.login.refresh.window.factor",
        "sasl.login.refresh.window.jitter",
        "sasl.kerberos.kinit.cmd",
        "sasl.kerberos.min.time.before.relogin",
        "sasl.kerberos.service.name",
        "sasl.kerberos.ticket.renew.jitter",
        "sasl.kerberos.ticket.renew.window.factor",
        "sasl.oauthbearer.clock.skew.seconds",
        "sasl.oauthbearer.expected.audience",
        "sasl.oauthbearer.expected.issuer",
        "sasl.oauthbearer.header.urlencode",
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        "sasl.oauthbearer.jwks.endpoint.url",
        "sasl.oauthbearer.scope.claim.name",
        "sasl.oauthbearer.sub.claim.name",
    )
)
#: Security properties of Java's client with an effect that this client does not have: refused.
_NOT_HONOURED: Final = frozenset(
    (
        "ssl.cipher.suites",
        "ssl.engine.factory.class",
        "sasl.client.callback.handler.class",
        "sasl.login.callback.handler.class",
    )
)
#: Security properties that this client follows, in Java's and librdkafka's spelling.
_HONOURED: Final = frozenset(
    (
        "security.protocol",
        "sasl.mechanism",
        "sasl.mechanisms",
        "sasl.jaas.config",
        "sasl.oauthbearer.token.endpoint.url",
        "sasl.username",
        "sasl.password",
        "ssl.truststore.location",
        "ssl.truststore.type",
        "ssl.truststore.certificates",
        "ssl.ca.location",
        "ssl.keystore.location",
        "ssl.keystore.type",
        "ssl.keystore.key",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.password",
        "ssl.truststore.password",
        "ssl.certificate.location",
        "ssl.key.location",
        "ssl.key.password",
        "ssl.endpoint.identification.algorithm",
    )
)


class Address(NamedTuple):
    """Host and port of a broker."""

    host: str
    port: int

    def __str__(self) -> str:
        """Return `host:port`; an IPv6 address is in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class ClientSettings(NamedTuple):
    """All settings of a client besides the addresses of the cluster."""

    client_id: str = "kctl"
    tls: TlsSettings | None = None
    sasl: SaslSettings | None = None
    request_timeout_ms: int = 30_000
    connect_timeout_ms: int = 10_000
    retry_backoff_ms: int = 100
    retry_backoff_ms_max: int = 1_000


def parse_addresses(text: str) -> list[Address]:
    """Return the addresses in the text of `bootstrap.servers`.

    The form is `host:port,…`; the default port is 9092. An IPv6 address is written in brackets.
    Raises ClientSettingRefused.
    """
    addresses = [_parse_address(part.strip()) for part in text.split(",") if part.strip()]
    if not addresses:
        raise ClientSettingRefused(
            "bootstrap.servers", text, "expected HOST:PORT, several by comma"
        )
    return addresses


def _parse_address(text: str) -> Address:
    """Return the address of HOST[:PORT], port 9092 by default; raises ClientSettingRefused."""
    # Kafka's own tools accept a listener name as prefix (PLAINTEXT://host:9092).
    bare = text.split("://", 1)[-1]
    host, colon, port = bare.rpartition(":")
    if not colon or bare.endswith("]"):
        host, port = bare, str(CLIENT_PORT_DEFAULT)
    if not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        rule = "expected HOST:PORT with a port of 1 to 65535, as in localhost:9092"
        raise ClientSettingRefused("bootstrap.servers", text, rule)
    return Address(host.strip("[]"), int(port))


def client_settings(properties: Mapping[str, str]) -> ClientSettings:
    """Convert client properties in Kafka's names; raise ClientSettingRefused for a wrong value."""
    reader = _Reader(properties)
    protocol = reader.choice("security.protocol", "PLAINTEXT", _PROTOCOLS)
    defaults = ClientSettings()
    settings = ClientSettings(
        client_id=_client_id(reader) or defaults.client_id,
        tls=_read_tls(reader) if protocol.endswith("SSL") else None,
        sasl=_read_sasl(reader) if protocol.startswith("SASL") else None,
        request_timeout_ms=reader.count("request.timeout.ms", defaults.request_timeout_ms),
        connect_timeout_ms=reader.count(
            "socket.connection.setup.timeout.ms", defaults.connect_timeout_ms
        ),
        retry_backoff_ms=reader.count("retry.backoff.ms", defaults.retry_backoff_ms),
        retry_backoff_ms_max=reader.count("retry.backoff.max.ms", defaults.retry_backoff_ms_max),
    )
    reader.refuse_unread_settings(protocol)
    return settings


def _client_id(reader: _Reader) -> str | None:
    """Return client.id, None if unset; raises ClientSettingRefused if it is too long."""
    text = reader.text("client.id")
    if text is not None and len(text.encode(errors="replace")) > _CLIENT_ID_BYTES_MAX:
        raise ClientSettingRefused("client.id", "…", f"has more than {_CLIENT_ID_BYTES_MAX} bytes")
    return text


class _Reader:
    """Reads properties one by one; knows which were not read."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._left = dict(properties)

    def text(self, key: str, *, when_empty: str | None = None) -> str | None:
        """Return the value of a property and count it as read.

        None if unset, `when_empty` if empty.
        """
        value = self._left.pop(key, None)
        return when_empty if value == "" else value

    def choice(self, key: str, default: str, allowed: tuple[str, ...]) -> str:
        """Return a property in upper case.

        Raises ClientSettingRefused unless it is in `allowed`.
        """
        choice = (self.text(key) or default).upper()
        if choice not in allowed:
            raise ClientSettingRefused(key, choice, f"must be one of {', '.join(allowed)}")
        return choice

    def count(self, key: str, default: int) -> int:
        """Return a property that is a number of ms.

        Raises ClientSettingRefused for any other text.
        """
        text = self.text(key)
        if text is None:
            return default
        # Checked first: Python's int() refuses numbers with thousands of digits.
        if len(text) > len(str(_NUMBER_MAX)) or not text.isdecimal() or int(text) > _NUMBER_MAX:
            raise ClientSettingRefused(key, text, "must be a number of milliseconds")
        return int(text)

    def refuse_unread_settings(self, protocol: str) -> None:
        """Raise ClientSettingRefused for security properties that this client does not support.

        Ignoring one could weaken the protection that the user expects. Called after all supported
        properties were read.
        """
        used = [p for p in _SECURITY_PREFIXES if p != "ssl." or protocol.endswith("SSL")]
        if not protocol.startswith("SASL"):
            used.remove("sasl.")
        for key, value in self._left.items():
            if not key.startswith(_SECURITY_PREFIXES) or key in _HARMLESS:
                continue
            if key in _NOT_HONOURED:
                if value and key.startswith(tuple(used)):
                    rule = "this property of Java's client is not honoured here"
                    raise ClientSettingRefused(key, "…", rule)
            elif key not in _HONOURED:
                raise _unknown_property(key)


def _unknown_property(key: str) -> ClientSettingRefused:
    """Return the error for an unknown property, with a hint at a similar one."""
    from difflib import get_close_matches

    refused = ClientSettingRefused(key, "…", "no client of Kafka's has this property")
    alike = get_close_matches(key, sorted(_HONOURED | _NOT_HONOURED | _HARMLESS), n=1, cutoff=0.7)
    if alike:
        refused.hint = f"did you mean {alike[0]}?"
    return refused


def _read_tls(reader: _Reader) -> TlsSettings:
    """Return the TLS settings in the `ssl.*` properties; librdkafka's names are accepted, too.

    An empty `ssl.endpoint.identification.algorithm` disables the check of the host name.
    """
    identification = reader.text("ssl.endpoint.identification.algorithm", when_empty="none")
    key_pem, chain_pem = reader.text("ssl.keystore.key"), reader.text(_CHAIN)
    if (key_pem is None) is not (chain_pem is None):
        missing = _CHAIN if chain_pem is None else "ssl.keystore.key"
        raise ClientSettingRefused(missing, None, "a key and its certificates go together")
    return TlsSettings(
        ca_path=_read_store(reader, "ssl.truststore") or reader.text("ssl.ca.location"),
        ca_pem=reader.text("ssl.truststore.certificates"),
        certificate_path=(
            _read_store(reader, "ssl.keystore") or reader.text("ssl.certificate.location")
        ),
        key_path=reader.text("ssl.key.location"),
        key_password=reader.text("ssl.key.password"),
        verifies_host=(identification or "https").lower() == "https",
        ca_password=reader.text("ssl.truststore.password"),
        store_password=reader.text("ssl.keystore.password"),
        key_pem=key_pem,
        chain_pem=chain_pem,
    )


def _read_store(reader: _Reader, store: str) -> str | None:
    """Return the path of a key or trust store, None if unset.

    Its `type` must be a known one, but the file's first bytes decide the format later.
    """
    location = reader.text(f"{store}.location")
    kind = reader.text(f"{store}.type") or "PEM"
    if kind.upper() not in _STORE_KINDS:
        rule = f"must be one of {', '.join(_STORE_KINDS)}"
        raise ClientSettingRefused(f"{store}.type", kind, rule)
    return location


def _read_sasl(reader: _Reader) -> SaslSettings:
    """Return the SASL settings in the `sasl.*` properties and the JAAS entry.

    Raises ClientSettingRefused for a mechanism that is not supported, or missing credentials.
    """
    from engine.client.oauth_login import OAUTHBEARER
    from engine.client.sasl import SCRAM_HASHES, SaslSettings

    mechanisms = ("PLAIN", *SCRAM_HASHES, OAUTHBEARER)
    mechanism = (
        reader.text("sasl.mechanism") or reader.text("sasl.mechanisms") or "GSSAPI"
    ).upper()
    if mechanism not in mechanisms:
        rule = f"kctl's client supports {', '.join(mechanisms)}"
        raise ClientSettingRefused("sasl.mechanism", mechanism, rule)
    given = parse_jaas_options(reader.text("sasl.jaas.config") or "")
    url = reader.text(_TOKEN_URL)
    if mechanism == OAUTHBEARER:
        return SaslSettings(mechanism, "", "", oauth=_read_oauth(reader, given, url))
    username = given.get("username") or reader.text("sasl.username")
    password = given.get("password") or reader.text("sasl.password")
    if username is None or password is None:
        raise ClientSettingRefused(
            "sasl.jaas.config", "…", 'must have username="…" and password="…"'
        )
    is_token = given.get("tokenauth", "").lower() == "true"
    if is_token and mechanism not in SCRAM_HASHES:
        rule = f"tokenauth=true needs {' or '.join(SCRAM_HASHES)}"
        raise ClientSettingRefused("sasl.mechanism", mechanism, rule)
    return SaslSettings(mechanism, username, password, is_token)


def _read_oauth(reader: _Reader, given: Mapping[str, str], url: str | None) -> OAuthLogin:
    """Return how to get access tokens for OAUTHBEARER: from `url`, or unsecured for a principal.

    `given` are the JAAS options. Raises ClientSettingRefused.
    """
    handler = reader.text(_LOGIN_HANDLER)
    if handler is not None and (handler not in _LOGIN_HANDLERS or url is None):
        rule = f"must be {_LOGIN_HANDLERS[0]}, beside {_TOKEN_URL}"
        raise ClientSettingRefused(_LOGIN_HANDLER, handler, rule)
    client_id, client_secret = given.get("clientId"), given.get("clientSecret")
    principal = given.get("unsecuredLoginStringClaim_sub")
    if url is None and principal is None:
        rule = 'must be given, or unsecuredLoginStringClaim_sub="…" in sasl.jaas.config'
        raise ClientSettingRefused(_TOKEN_URL, None, rule)
    if url is not None and not url.startswith(("file:", "http://", "https://")):
        raise ClientSettingRefused(_TOKEN_URL, url, "must begin with file:, http:// or https://")
    if url is not None and url.startswith("http") and (client_id is None or client_secret is None):
        rule = 'must have clientId="…" and clientSecret="…"'
        raise ClientSettingRefused("sasl.jaas.config", "…", rule)
    from engine.client.oauth_login import OAuthLogin

    return OAuthLogin(url, client_id, client_secret, given.get("scope"), principal)


def parse_jaas_options(text: str) -> dict[str, str]:
    """Return the options of a JAAS line: `<class> required key="value" …;`."""
    import re

    pairs = re.findall(r'(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))', text)
    return {key: re.sub(r"\\(.)", r"\1", quoted) or bare for key, quoted, bare in pairs}
