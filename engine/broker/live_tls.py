"""TLS of a broker's listeners while it runs: keys and certificates are read again, connections stay.

| event | read again |
|---|---|
| a change of the listener's `ssl.*` settings | when the broker gets it; a change that cannot be read is refused |
| any change of this broker's settings, by a request | files that were replaced at their paths |
| a file is replaced, without a request | nothing, as in Kafka |

New connections, of clients and to other brokers, use the files read last. A certificate may be
replaced by one for the same name and for at least the same hosts, unless `ssl.allow.dn.changes` or
`ssl.allow.san.changes` allow others.

Source: SslFactory.validateReconfiguration, SslFactory.CertificateEntries,
DynamicBrokerConfig.reloadUpdatedFilesWithoutConfigChange of 3.9.1, a real broker's responses.
"""  # noqa: E501 - a table

from __future__ import annotations

import hashlib
import logging
import socket
from typing import Final, NamedTuple

from engine.admin.config_errors import InvalidConfiguration, InvalidRequest
from engine.broker.dynamic_config import LiveConfig
from engine.broker.listener_tls import listener_layer, own_certificate, peer_layer, store_files
from engine.config.change import ONLY_BY_LISTENER
from engine.config.listener_settings import ListenerSettings
from engine.config.listeners import ListenerAddress
from engine.config.settings import BrokerSettings
from engine.errors import ConfigError
from engine.host.stream_layer import LayerOf, LayerTo, StreamLayer
from engine.host.tls_stores import BadTlsFile, read_store_file
from engine.security.distinguished_name import alternative_names, subject_of

_log = logging.getLogger("kafka.network.SocketServer")
_FAILED: Final = "Validation of dynamic config update of SSLFactory failed: "
_CONFIG_EXCEPTION: Final = "org.apache.kafka.common.config.ConfigException"
_INVALID_CONFIGURATION: Final = "org.apache.kafka.common.errors.InvalidConfigurationException"
_KAFKA_EXCEPTION: Final = "org.apache.kafka.common.KafkaException"


class _Certificate(NamedTuple):
    """Whom a listener's certificate is for."""

    name: str
    hosts: frozenset[str]


class _Loaded(NamedTuple):
    """The keys and certificates of a listener."""

    layer: LayerOf
    certificate: _Certificate
    #: Of the files that it was read from.
    digest: bytes
    #: The settings of their paths and passwords; a change of others waits for the
    #: next start.
    stores: tuple[str | None, ...]


class LiveTls:
    """The layers of all listeners with TLS."""

    def __init__(self, live: LiveConfig) -> None:
        self._live = live
        self._loaded: dict[str, _Loaded] = {}
        self._peer: LayerTo | None = None

    def layer(self, listener: ListenerAddress) -> LayerOf:
        """Return the layer that encrypts a listener's connections, always by the last keys read.

        Raises ConfigError.
        """
        name = listener.name
        self._loaded[name] = _load(self._live.settings, listener)

        def layer_of(sock: socket.socket) -> StreamLayer:
            return self._loaded[name].layer(sock)

        return layer_of

    def layer_to_peers(self, listener: ListenerAddress) -> LayerTo:
        """Return the layer of connections to the same listener of others; raises ConfigError."""
        self._peer = peer_layer(self._live.settings, listener)

        def layer_to(host: str) -> LayerOf:
            assert self._peer is not None
            return self._peer(host)

        return layer_to

    def check(self, listener: ListenerAddress, after: BrokerSettings) -> None:
        """Raise InvalidRequest, with Kafka's message, if a listener cannot use changes."""
        try:
            new = _load(after, listener)
            self._check_certificate(listener, after, new)
        except ConfigError as error:
            cause = f"{_FAILED}{_java_text(error, ListenerSettings(after, listener.name))}"
            raise InvalidRequest(
                f"Invalid value {_CONFIG_EXCEPTION}: {cause} for configuration "
                "Invalid dynamic configuration"
            ) from error

    def reload_replaced_files(self) -> None:
        """Read replaced files again; raises InvalidConfiguration, with Kafka's message.

        A file that cannot be used leaves its listener as it is.
        """
        settings, config = self._live.settings, self._live.config
        for listener in config.bound_listeners:
            loaded = self._loaded.get(listener.name)
            if loaded is None or _digest(settings, listener) == loaded.digest:
                continue
            try:
                new = _load(settings, listener)
                self._check_certificate(listener, settings, new)
                self._replace_tls(listener, new)
            except ConfigError as error:
                cause = _java_text(error, ListenerSettings(settings, listener.name))
                name = f"ConfigResource(type=BROKER, name='{config.broker_id}')"
                raise InvalidConfiguration(
                    f"Invalid config value for resource {name}: {_FAILED}{cause}"
                ) from error

    def follow_settings(self) -> None:
        """Reload the listeners whose TLS settings have changed; one that fails is logged."""
        settings = self._live.settings
        for listener in self._live.config.bound_listeners:
            loaded = self._loaded.get(listener.name)
            if loaded is None or loaded.stores == _stores(settings, listener):
                continue
            try:
                self._replace_tls(listener, _load(settings, listener))
            except ConfigError as error:
                _log.error("The TLS of listener %s stays as it is: %s", listener.name, error)

    def _replace_tls(self, listener: ListenerAddress, new: _Loaded) -> None:
        """Serve and connect with newly loaded files; a ConfigError leaves both as they are."""
        between = self._live.config.between_brokers
        if self._peer is not None and listener.name == between.name:
            self._peer = peer_layer(self._live.settings, between)
        self._loaded[listener.name] = new
        _log.info("Listener %s goes by the certificate of %s", listener.name, new.certificate.name)

    def _check_certificate(
        self, listener: ListenerAddress, settings: BrokerSettings, new: _Loaded
    ) -> None:
        """Raise ConfigError if a new certificate has another DN, or lacks a host of the old one."""
        loaded = self._loaded.get(listener.name)
        if loaded is None:
            return
        of_listener = ListenerSettings(settings, listener.name)
        old, now = loaded.certificate, new.certificate
        key = "ssl.keystore.location"
        if old.name != now.name and not of_listener.value("ssl.allow.dn.changes"):
            raise ConfigError(
                key,
                None,
                "Keystore DistinguishedName does not match:  "
                f"existing={{alias=1, DN={old.name}}}, new={{alias=1, DN={now.name}}}",
            )
        if old.hosts - now.hosts and not of_listener.value("ssl.allow.san.changes"):
            existing, changed = (", ".join(sorted(one.hosts)) for one in (old, now))
            raise ConfigError(
                key,
                None,
                "Keystore SubjectAltNames do not match:  "
                f"existing={{alias=1, SAN=[{existing}]}}, new={{alias=1, SAN=[{changed}]}}",
            )


def _load(settings: BrokerSettings, listener: ListenerAddress) -> _Loaded:
    """Return the keys and certificates that a listener's settings name; raises ConfigError."""
    digest = _digest(settings, listener)
    layer = listener_layer(settings, listener)
    certificate = own_certificate(settings, listener)
    return _Loaded(
        layer,
        _Certificate(subject_of(certificate), alternative_names(certificate)),
        digest,
        _stores(settings, listener),
    )


def _stores(settings: BrokerSettings, listener: ListenerAddress) -> tuple[str | None, ...]:
    of_listener = ListenerSettings(settings, listener.name)
    return tuple(of_listener.text(key) for key in sorted(ONLY_BY_LISTENER))


def _digest(settings: BrokerSettings, listener: ListenerAddress) -> bytes:
    """Return a digest of the content of a listener's files."""
    found = hashlib.sha256()
    for path in store_files(settings, listener):
        try:
            content = read_store_file(path)
        except BadTlsFile:
            content = b""
        found.update(hashlib.sha256(content).digest())
    return found.digest()


def _java_text(error: ConfigError, of_listener: ListenerSettings) -> str:
    """Return Java's message for stores that cannot be read, and for other names' certificates."""
    bad = error.__cause__
    if isinstance(bad, BadTlsFile):
        store = (
            "keystore" if of_listener.text("ssl.keystore.location") == bad.path else "truststore"
        )
        kind = of_listener.value(f"ssl.{store}.type")
        if kind == "PEM":
            return f"{_INVALID_CONFIGURATION}: Failed to load PEM SSL keystore {bad.path}"
        return f"{_KAFKA_EXCEPTION}: Failed to load SSL keystore {bad.path} of type {kind}"
    if error.key.endswith("store.type"):
        path = of_listener.text(error.key.replace(".type", ".location"))
        return f"{_KAFKA_EXCEPTION}: Failed to load SSL keystore {path} of type {error.value}"
    if error.key.endswith(".password"):
        return f"{_INVALID_CONFIGURATION}: {error.rule}"
    return f"{_CONFIG_EXCEPTION}: {error.rule if error.value is None else error}"
