"""The TLS settings of a listener.

| setting of the listener or the broker | meaning |
|---|---|
| `ssl.keystore.type`, `ssl.truststore.type` | PEM, PKCS12 or JKS; the last two are detected by content |
| `ssl.keystore.location`, `.password`, `ssl.key.password` | a file with key and chain |
| `ssl.keystore.key`, `ssl.keystore.certificate.chain` | the same as text, with PEM |
| `ssl.truststore.location`, `.password`, `.certificates` | trusted certificates, default: the system's |
| `ssl.client.auth` | none, requested, required; with SASL only if set for the listener |
| `ssl.enabled.protocols` | TLSv1.2, TLSv1.3 |
| `ssl.cipher.suites` | Java's names; either all or none of TLS 1.3 |
| `ssl.endpoint.identification.algorithm` | for connections to brokers: empty skips host name checks |
| `ssl.principal.mapping.rules` | only of the broker |

Source: ChannelBuilders.create, SslFactory, DefaultSslEngineFactory of 3.9.1.
"""  # noqa: E501 - a table

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from engine.config.listener_settings import ListenerSettings
from engine.config.listeners import ListenerAddress
from engine.config.settings import BrokerSettings
from engine.config.value import HIDDEN
from engine.errors import ConfigError
from engine.host.stream_layer import LayerOf, LayerTo
from engine.host.tls_ciphers import BadCiphers, CipherChoice, choose_ciphers
from engine.host.tls_listener import (
    TLS_VERSIONS,
    TlsListenerSettings,
    create_client_layer,
    create_server_layer,
    read_first_certificate,
)
from engine.host.tls_stores import BadTlsFile
from engine.security.distinguished_name import subject_of
from engine.security.principal_mapping import MappingRefused, PrincipalMapping
from engine.security.principals import ANONYMOUS, user_principal

_STORE_KINDS: Final = ("PEM", "PKCS12", "JKS")
_CLIENT_AUTH: Final = "ssl.client.auth"
_CIPHERS: Final = "ssl.cipher.suites"
_RULES: Final = "ssl.principal.mapping.rules"
#: Settings that would change which clients are accepted, or how; they are not supported.
_UNSERVED: Final = (
    ("ssl.engine.factory.class", "classes of Java cannot be run here"),
    ("ssl.provider", "TLS is that of OpenSSL, leave it out"),
)


def listener_layer(settings: BrokerSettings, listener: ListenerAddress) -> LayerOf:
    """Load a listener's key and trust stores; return its TLS layer for new connections.

    Raises ConfigError.
    """
    of_listener = ListenerSettings(settings, listener.name)
    given = _tls_settings(of_listener, listener)
    try:
        return create_server_layer(given)
    except BadTlsFile as error:
        raise ConfigError(of_listener.name_of("ssl.*"), error.path, error.reason) from error


def own_certificate(settings: BrokerSettings, listener: ListenerAddress) -> bytes:
    """Return the certificate (DER) that the listener presents to clients; raises ConfigError."""
    of_listener = ListenerSettings(settings, listener.name)
    try:
        return read_first_certificate(_tls_settings(of_listener, listener))
    except BadTlsFile as error:
        raise ConfigError(of_listener.name_of("ssl.*"), error.path, error.reason) from error


def store_files(settings: BrokerSettings, listener: ListenerAddress) -> list[str]:
    """Return the paths of a listener's key store and trust store, if they are files."""
    of_listener = ListenerSettings(settings, listener.name)
    paths = (of_listener.text(f"ssl.{store}.location") for store in ("keystore", "truststore"))
    return [path for path in paths if path is not None]


def peer_layer(settings: BrokerSettings, listener: ListenerAddress) -> LayerTo:
    """Load a listener's stores; return the TLS layer for connections to other brokers.

    Raises ConfigError.
    """
    of_listener = ListenerSettings(settings, listener.name)
    given = _tls_settings(of_listener, listener)
    try:
        return create_client_layer(given)
    except BadTlsFile as error:
        raise ConfigError(of_listener.name_of("ssl.*"), error.path, error.reason) from error


def principal_of_certificates(settings: BrokerSettings) -> Callable[[bytes | None], str]:
    """Return a function that maps a client's certificate (DER) to its principal.

    It goes by `ssl.principal.mapping.rules`, for which ConfigError is raised. The function raises
    MalformedDer and NoMappingRule; it returns ANONYMOUS for None.
    """
    rules = settings.value(_RULES)
    assert isinstance(rules, str)
    try:
        mapping = PrincipalMapping(rules)
    except MappingRefused as error:
        raise ConfigError(_RULES, rules, str(error)) from error

    def principal_of(certificate: bytes | None) -> str:
        """Return the principal by the mapping rules."""
        if certificate is None:
            return ANONYMOUS
        return user_principal(mapping.user_of(subject_of(certificate)))

    return principal_of


def _tls_settings(of_listener: ListenerSettings, listener: ListenerAddress) -> TlsListenerSettings:
    """Return the TLS settings of a listener.

    Raises ConfigError for unsupported values and for stores that contradict each other.
    """
    for key, rule in _UNSERVED:
        text = of_listener.text(key)
        if text:
            raise ConfigError(key, text, rule)
    _check_key_store(of_listener)
    _check_trust_store(of_listener)
    versions = of_listener.value("ssl.enabled.protocols")
    assert isinstance(versions, tuple)
    wrong = [version for version in versions if version not in TLS_VERSIONS]
    if wrong or not versions:
        rule = f"must be of {', '.join(TLS_VERSIONS)}"
        raise ConfigError("ssl.enabled.protocols", ",".join(versions), rule)
    ciphers = _ciphers(of_listener, versions)
    identification = of_listener.text("ssl.endpoint.identification.algorithm")
    return TlsListenerSettings(
        key_location=of_listener.text("ssl.keystore.location"),
        key_store_password=of_listener.text("ssl.keystore.password"),
        key_password=of_listener.text("ssl.key.password"),
        key_pem=of_listener.text("ssl.keystore.key"),
        chain_pem=of_listener.text("ssl.keystore.certificate.chain"),
        trust_location=of_listener.text("ssl.truststore.location"),
        trust_password=of_listener.text("ssl.truststore.password"),
        trusted_pem=of_listener.text("ssl.truststore.certificates"),
        client_auth=_client_auth(of_listener, listener),
        versions=ciphers.versions,
        ciphers=ciphers.of_1_2,
        verifies_host=identification is None or identification.strip().lower() == "https",
    )


def _ciphers(of_listener: ListenerSettings, versions: tuple[str, ...]) -> CipherChoice:
    """Return the cipher suites for the TLS versions by `ssl.cipher.suites`; raises ConfigError."""
    names = of_listener.value(_CIPHERS) or ()
    assert isinstance(names, tuple)
    try:
        return choose_ciphers(names, versions)
    except BadCiphers as error:
        raise ConfigError(_CIPHERS, ",".join(names), str(error)) from error


def _client_auth(of_listener: ListenerSettings, listener: ListenerAddress) -> str:
    """Return `ssl.client.auth`; a SASL listener uses only a setting of the listener."""
    if listener.has_sasl and of_listener.own_text(_CLIENT_AUTH) is None:
        # The broker-wide setting does not apply to listeners with SASL.
        return "none"
    value = of_listener.value(_CLIENT_AUTH)
    assert isinstance(value, str)
    return value


def _check_key_store(of_listener: ListenerSettings) -> None:
    """Raise ConfigError, with Kafka's message, unless exactly one private key is configured."""
    is_pem = _store_type(of_listener, "ssl.keystore.type") == "PEM"
    location, key, chain = (
        of_listener.text(f"ssl.keystore.{name}")
        for name in ("location", "key", "certificate.chain")
    )
    if key is not None or chain is not None:
        name = "ssl.keystore.key"
        if not is_pem:
            raise ConfigError(name, HIDDEN, "needs ssl.keystore.type=PEM")
        if location is not None:
            raise ConfigError(
                name, HIDDEN, "Both SSL key store location and separate private key are specified."
            )
        if key is None:
            rule = "SSL certificate chain is specified, but private key is not specified"
            raise ConfigError(name, None, rule)
        if chain is None:
            rule = "SSL private key is specified, but certificate chain is not specified."
            raise ConfigError(name, HIDDEN, rule)
    elif location is None:
        rule = f"must be given, or {of_listener.name_of('ssl.keystore.location')}, for TLS"
        raise ConfigError("ssl.keystore.location", None, rule)
    if is_pem and of_listener.text("ssl.keystore.password") is not None:
        rule = (
            "SSL key store password cannot be specified with PEM format, "
            "only key password may be specified"
        )
        raise ConfigError("ssl.keystore.password", HIDDEN, rule)


def _check_trust_store(of_listener: ListenerSettings) -> None:
    """Raise ConfigError for trust store settings that contradict each other."""
    is_pem = _store_type(of_listener, "ssl.truststore.type") == "PEM"
    location = of_listener.text("ssl.truststore.location")
    if of_listener.text("ssl.truststore.certificates") is not None:
        name = "ssl.truststore.certificates"
        if not is_pem:
            raise ConfigError(name, HIDDEN, "needs ssl.truststore.type=PEM")
        if location is not None:
            rule = "Both SSL trust store location and separate trust certificates are specified."
            raise ConfigError(name, HIDDEN, rule)
    if is_pem and of_listener.text("ssl.truststore.password") is not None:
        rule = "SSL trust store password cannot be specified for PEM format."
        raise ConfigError("ssl.truststore.password", HIDDEN, rule)


def _store_type(of_listener: ListenerSettings, key: str) -> str:
    """Return the type of a key or trust store, like PEM.

    Raises ConfigError for an unsupported one.
    """
    value = of_listener.value(key)
    if value not in _STORE_KINDS:
        raise ConfigError(key, value, f"must be of {', '.join(_STORE_KINDS)}")
    assert isinstance(value, str)
    return value
