"""Reload keys and certificates of a broker's listeners at run time; open connections stay.

| event | effect |
|---|---|
| a change of the listener's `ssl.*` settings | its files are read; a change to unreadable files is refused |
| a request changes any setting of this broker | all replaced files are read |
| a file is replaced, without a request | its listener's files are read within seconds (`tls_file_watch.py`) |

New connections, from clients and to other brokers, use the files that were read last. A certificate
may only be replaced by one with the same name and at least the same hosts, unless
`ssl.allow.dn.changes` or `ssl.allow.san.changes` allow other ones.

Source: SslFactory.validateReconfiguration, SslFactory.CertificateEntries,
DynamicBrokerConfig.reloadUpdatedFilesWithoutConfigChange of 3.9.1, a real broker's responses.
Differs: Kafka reads replaced files only after requests.
"""  # noqa: E501 - a table

from __future__ import annotations

import hashlib
import logging
import socket
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeAlias

from engine.admin.config_errors import InvalidConfiguration, InvalidRequest
from engine.broker.dynamic_config import LiveConfig
from engine.broker.listener_tls import listener_layer, own_certificate, peer_layer, store_files
from engine.config.change import ONLY_BY_LISTENER
from engine.config.listener_settings import ListenerSettings
from engine.config.listeners import ListenerAddress
from engine.config.settings import BrokerSettings
from engine.errors import ConfigError
from engine.host.stream_layer import LayerOf, LayerTo, StreamLayer
from engine.host.tls_stores import (
    BadTlsFile,
    StoreFileState,
    read_file_state,
    read_store_file,
)
from engine.security.distinguished_name import alternative_names, subject_of

_log = logging.getLogger("kafka.network.SocketServer")
_FAILED: Final = "Validation of dynamic config update of SSLFactory failed: "
_CONFIG_EXCEPTION: Final = "org.apache.kafka.common.config.ConfigException"
_INVALID_CONFIGURATION: Final = "org.apache.kafka.common.errors.InvalidConfigurationException"
_KAFKA_EXCEPTION: Final = "org.apache.kafka.common.KafkaException"

#: The states of a listener's files, in the order of `store_files`; None for a missing file.
FileStates: TypeAlias = tuple[StoreFileState | None, ...]


class AnotherCertificate(ConfigError):
    """A listener's new certificate has another name, or lacks a host of the old one."""

    def __init__(self, rule: str, allowed_by: str) -> None:
        """Create the error for a new certificate with another name or without an old host.

        `rule` is its sentence, `allowed_by` the setting that allows the change.
        """
        super().__init__("ssl.keystore.location", None, rule)
        self.hint = (
            f"put one for the same name and hosts there; {allowed_by}=true, at the broker's next "
            "start, allows others"
        )


class _Certificate(NamedTuple):
    """The subject and the alternative host names of a listener's certificate."""

    name: str
    hosts: frozenset[str]


class _Loaded(NamedTuple):
    """The loaded key and certificate of a listener."""

    layer: LayerOf
    certificate: _Certificate
    #: Digest of the content of its files, and their states before they were read.
    digest: bytes
    states: FileStates
    #: The values of the settings whose change reloads the files; other TLS settings wait for the
    #: next start.
    stores: tuple[str | None, ...]


class _Prepared(NamedTuple):
    """Loaded TLS files of a listener; `to_peers` is None unless brokers connect by it."""

    loaded: _Loaded
    to_peers: LayerTo | None


class ReplacedFiles(NamedTuple):
    """The result of reading a listener's changed files."""

    listener: ListenerAddress
    states: FileStates
    #: The files in use when the changed ones were read.
    used: _Loaded
    #: The changed files or their error; None if the content is that in use.
    found: _Prepared | ConfigError | None


class LiveTls:
    """The TLS layers of all listeners, as last loaded."""

    def __init__(self, live: LiveConfig) -> None:
        self._live = live
        self._loaded: dict[str, _Loaded] = {}
        self._peer: LayerTo | None = None

    def layer(self, listener: ListenerAddress) -> LayerOf:
        """Load a listener's TLS files and return its TLS layer.

        Returns its layer, which uses files that are loaded later, too. Raises ConfigError.
        """
        name = listener.name
        self._loaded[name] = _load_tls_files(self._live.settings, listener)

        def layer_of(sock: socket.socket) -> StreamLayer:
            """Return the layer of a new connection, with the files loaded last."""
            return self._loaded[name].layer(sock)

        return layer_of

    def layer_to_peers(self, listener: ListenerAddress) -> LayerTo:
        """Load the TLS files for connections to brokers.

        Returns the function from a host to its layer. Later connections use the files loaded last.
        Raises ConfigError.
        """
        self._peer = peer_layer(self._live.settings, listener)

        def layer_to(host: str) -> LayerOf:
            """Return the layer of new connections to a host, with the files loaded last."""
            assert self._peer is not None
            return self._peer(host)

        return layer_to

    def check(self, listener: ListenerAddress, after: BrokerSettings) -> None:
        """Raise InvalidRequest, with Kafka's message, if the listener's TLS fails with `after`.

        Called before a change of dynamic settings is stored.
        """
        try:
            new = _load_tls_files(after, listener)
            _check_certificate(listener, after, self._loaded.get(listener.name), new)
        except ConfigError as error:
            cause = f"{_FAILED}{_java_text(error, ListenerSettings(after, listener.name))}"
            raise InvalidRequest(
                f"Invalid value {_CONFIG_EXCEPTION}: {cause} for configuration "
                "Invalid dynamic configuration"
            ) from error

    def reload_replaced_files(self) -> None:
        """Load the TLS files whose content has changed; an AlterConfigs request triggers this.

        Raises InvalidConfiguration, with Kafka's message, for unusable files. A listener with
        unusable files keeps its present ones.
        """
        settings, config = self._live.settings, self._live.config
        for listener in config.bound_listeners:
            loaded = self._loaded.get(listener.name)
            if loaded is None or _digest(settings, listener) == loaded.digest:
                continue
            try:
                new = self._prepare(listener, settings)
                _check_certificate(listener, settings, loaded, new.loaded)
            except ConfigError as error:
                cause = _java_text(error, ListenerSettings(settings, listener.name))
                name = f"ConfigResource(type=BROKER, name='{config.broker_id}')"
                raise InvalidConfiguration(
                    f"Invalid config value for resource {name}: {_FAILED}{cause}"
                ) from error
            self.use(listener, new)

    @property
    def is_used(self) -> bool:
        """True if any listener has TLS."""
        return bool(self._loaded)

    def make_replaced_reader(
        self, judged: Mapping[str, FileStates]
    ) -> Callable[[], list[ReplacedFiles]]:
        """Return a function, for any thread, that reads the TLS files whose states have changed.

        A file's state is compared with the last one examined (`judged`, by listener), otherwise
        with the state of the file in use.
        """
        settings, loaded = self._live.settings, dict(self._loaded)
        listeners = [one for one in self._live.config.bound_listeners if one.name in loaded]

        def read() -> list[ReplacedFiles]:
            """Return the listeners whose files have changed, with the files that were read."""
            found = []
            for listener in listeners:
                used = loaded[listener.name]
                states = _file_states(settings, listener)
                if states != judged.get(listener.name, used.states):
                    new = self._prepare_or_refuse(listener, settings, used)
                    found.append(ReplacedFiles(listener, states, used, new))
            return found

        return read

    def is_current(self, replaced: ReplacedFiles) -> bool:
        """True if the listener still uses the files that were in use when `replaced` was read.

        False: a request has loaded other files meanwhile, and `replaced` is to be ignored.
        """
        return self._loaded[replaced.listener.name] is replaced.used

    def use(self, listener: ListenerAddress, new: _Prepared) -> None:
        """Use newly loaded files for new connections; open connections keep their TLS session."""
        if new.to_peers is not None:
            self._peer = new.to_peers
        self._loaded[listener.name] = new.loaded
        name = new.loaded.certificate.name
        _log.info("Listener %s goes by the certificate of %s", listener.name, name)

    def follow_settings(self) -> None:
        """Load the TLS files of listeners whose settings have changed; log a failure."""
        settings = self._live.settings
        for listener in self._live.config.bound_listeners:
            loaded = self._loaded.get(listener.name)
            if loaded is None or loaded.stores == _store_settings(settings, listener):
                continue
            try:
                self.use(listener, self._prepare(listener, settings))
            except ConfigError as error:
                _log.error("The TLS of listener %s stays as it is: %s", listener.name, error)

    def _prepare(self, listener: ListenerAddress, settings: BrokerSettings) -> _Prepared:
        """Load a listener's TLS files, for both directions if brokers use it.

        Raises ConfigError.
        """
        loaded = _load_tls_files(settings, listener)
        between = self._live.config.inter_broker_endpoint
        if self._peer is None or listener.name != between.name:
            return _Prepared(loaded, None)
        return _Prepared(loaded, peer_layer(settings, between))

    def _prepare_or_refuse(
        self, listener: ListenerAddress, settings: BrokerSettings, used: _Loaded
    ) -> _Prepared | ConfigError | None:
        """Load a listener's replaced TLS files.

        Returns the error for unusable ones, None if their content is unchanged.
        """
        if _digest(settings, listener) == used.digest:
            return None
        try:
            new = self._prepare(listener, settings)
            _check_certificate(listener, settings, used, new.loaded)
        except ConfigError as error:
            return error
        return new


def _check_certificate(
    listener: ListenerAddress, settings: BrokerSettings, loaded: _Loaded | None, new: _Loaded
) -> None:
    """Raise AnotherCertificate if the new certificate has another name, or lacks a host of the old.

    `ssl.allow.dn.changes` and `ssl.allow.san.changes` allow it. `loaded` None: there is no old one.
    """
    if loaded is None:
        return
    of_listener = ListenerSettings(settings, listener.name)
    old, now = loaded.certificate, new.certificate
    key = "ssl.allow.dn.changes"
    if old.name != now.name and not of_listener.value(key):
        raise AnotherCertificate(
            "Keystore DistinguishedName does not match:  "
            f"existing={{alias=1, DN={old.name}}}, new={{alias=1, DN={now.name}}}",
            of_listener.name_of(key),
        )
    key = "ssl.allow.san.changes"
    if old.hosts - now.hosts and not of_listener.value(key):
        existing, changed = (", ".join(sorted(one.hosts)) for one in (old, now))
        raise AnotherCertificate(
            "Keystore SubjectAltNames do not match:  "
            f"existing={{alias=1, SAN=[{existing}]}}, new={{alias=1, SAN=[{changed}]}}",
            of_listener.name_of(key),
        )


def _load_tls_files(settings: BrokerSettings, listener: ListenerAddress) -> _Loaded:
    """Load the TLS files that a listener's settings name; raises ConfigError."""
    # States are taken before the content, so that a file written meanwhile is read again.
    states, digest = _file_states(settings, listener), _digest(settings, listener)
    layer = listener_layer(settings, listener)
    certificate = own_certificate(settings, listener)
    return _Loaded(
        layer,
        _Certificate(subject_of(certificate), alternative_names(certificate)),
        digest,
        states,
        _store_settings(settings, listener),
    )


def _store_settings(settings: BrokerSettings, listener: ListenerAddress) -> tuple[str | None, ...]:
    """Return the values of the TLS settings whose change reloads the listener's files."""
    of_listener = ListenerSettings(settings, listener.name)
    return tuple(of_listener.text(key) for key in sorted(ONLY_BY_LISTENER))


def _file_states(settings: BrokerSettings, listener: ListenerAddress) -> FileStates:
    """Return the file states (time, size …) of a listener's stores.

    A file whose state differs was replaced.
    """
    return tuple(map(read_file_state, store_files(settings, listener)))


def _digest(settings: BrokerSettings, listener: ListenerAddress) -> bytes:
    """Return a digest of the content of a listener's store files."""
    found = hashlib.sha256()
    for path in store_files(settings, listener):
        try:
            content = read_store_file(path)
        except BadTlsFile:
            content = b""
        found.update(hashlib.sha256(content).digest())
    return found.digest()


def _java_text(error: ConfigError, of_listener: ListenerSettings) -> str:
    """Return Kafka's message for an unusable store or a certificate that may not be used."""
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
