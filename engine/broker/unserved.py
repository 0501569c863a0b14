"""Refuse to start with settings that require features which this broker lacks.

A broker that ignored one of these settings would grant access that it should deny, or lose records.
All other settings are either supported or have no effect here.

| setting | supported |
|---|---|
| mechanisms of SASL | `listener_sasl.py` |
| TLS settings | `listener_tls.py` |
| `principal.builder.class` | Kafka's |
| `authorizer.class.name` | Kafka's AclAuthorizer, without a separate metadata store |
| policies of topics and configs | classes of Python (`engine/admin/policies.py`) |
| classes of quotas, tiered storage | no |
| `replica.selector.class` | the two of Kafka |
| `process.roles` | no: metadata is in znodes |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from engine.config.broker_config import BrokerConfig
from engine.config.change import ONLY_BY_LISTENER
from engine.config.listeners import ListenerAddress
from engine.config.replica_selectors import REPLICA_SELECTORS
from engine.config.settings import BrokerSettings, synonym_names
from engine.errors import ConfigError
from engine.security.principals import super_users_of
from engine.znode.login import JAAS_FILE, LOGIN_KEYS

#: The only supported authorizer.
AUTHORIZER_CLASS: Final = "kafka.security.authorizer.AclAuthorizer"
_PRINCIPAL_BUILDER: Final = (
    "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"
)
_OFF = ("", "false")
#: Prefixes of TLS and SASL settings, after the names of listener and mechanism.
_OF_SECURITY: Final = ("ssl.", "sasl.", "connections.max.reauth.ms")
_IF_NO_RULE = "allow.everyone.if.no.acl.found"
_SET_ACL: Final = "zookeeper.set.acl"
_AUTHORIZER_KEYS = (_IF_NO_RULE, "super.users")
_UNSERVED = (
    ("process.roles", "metadata lies in znodes here, leave it out"),
    ("client.quota.callback.class", "quotas are those that are set, and no others"),
    ("remote.log.storage.system.enable", "tiered storage is not there"),
    ("zookeeper.metadata.migration.enable", "there is nothing to migrate to"),
    ("zookeeper.ssl.client.enable", "ZooKeeper is spoken to in plain text"),
)


#: Raises InvalidRequest if a listener with TLS cannot use changed settings.
CheckTls: TypeAlias = Callable[[ListenerAddress, BrokerSettings], None]


def check_served(settings: BrokerSettings, config: BrokerConfig) -> None:
    """Raise ConfigError for a setting that needs a feature which the engine does not have.

    Called as a broker starts, so that no such setting is ignored silently.
    """
    _check_listeners(settings, config)
    for name, rule in _UNSERVED:
        text = settings.configured_text(name)
        if text is not None and text.strip().lower() not in _OFF:
            raise ConfigError(name, text, rule)
    if settings.value(_SET_ACL) and not settings.configured_text(JAAS_FILE):
        rule = f"needs a login to the metadata store: {JAAS_FILE}, a file with a section Client"
        raise ConfigError(_SET_ACL, "true", rule)
    selector = config.replica_selector_class
    if selector is not None and selector not in REPLICA_SELECTORS:
        raise ConfigError(
            "replica.selector.class", selector, f"must be one of {', '.join(REPLICA_SELECTORS)}"
        )
    builder = settings.value("principal.builder.class")
    if builder not in ("", _PRINCIPAL_BUILDER):
        raise ConfigError("principal.builder.class", builder, f"must be {_PRINCIPAL_BUILDER}")
    _check_authorizer(settings, config)


def check_listener_change(
    before: BrokerSettings, after: BrokerSettings, check_tls: CheckTls
) -> None:
    """Raise ConfigError or InvalidRequest if a listener could not use changed security settings.

    A broker that accepted them would not start again. Only changes of security settings read key
    stores: a store that was removed since the start does not block other changes.

    Source: ListenerReconfigurable.validateReconfiguration of SslChannelBuilder.
    """
    names = {
        name
        for settings in (before, after)
        for name in (*settings.dynamic_broker, *settings.dynamic_default)
    }
    changed = [
        name for name in names if before.configured_text(name) != after.configured_text(name)
    ]
    if any(synonym_names(name)[-1].startswith(_OF_SECURITY) for name in changed):
        config = BrokerConfig.parse(after)
        has_other_stores = any(synonym_names(name)[-1] in ONLY_BY_LISTENER for name in changed)
        for listener in config.bound_listeners:
            if listener.has_tls and has_other_stores:
                check_tls(listener, after)
        _check_listeners(after, config)


def _check_listeners(settings: BrokerSettings, config: BrokerConfig) -> None:
    """Raise ConfigError for invalid SASL and TLS settings of listeners or of the broker's login."""
    for listener in config.bound_listeners:
        # Imported here since most listeners have neither, and a start has to be fast.
        if listener.has_sasl:
            from engine.broker.listener_sasl import check_sasl

            check_sasl(settings, listener.name)
        if listener.has_tls:
            from engine.broker.listener_tls import listener_layer, principal_of_certificates

            listener_layer(settings, listener)
            principal_of_certificates(settings)
    if config.inter_broker_endpoint.has_sasl:
        from engine.broker.listener_sasl import broker_login

        broker_login(settings, config)


def passed_over(settings: BrokerSettings) -> list[str]:
    """Return the names of configured settings that the broker does not know.

    They may be mistyped.
    """
    read = (*_AUTHORIZER_KEYS, *LOGIN_KEYS)
    return [name for name in settings.unknown_names() if name not in read]


def _check_authorizer(settings: BrokerSettings, config: BrokerConfig) -> None:
    """Raise ConfigError for an authorizer other than AclAuthorizer, or for its invalid settings."""
    name = config.authorizer_class_name
    if not name:
        return
    if name != AUTHORIZER_CLASS:
        raise ConfigError("authorizer.class.name", name, f"must be {AUTHORIZER_CLASS}")
    text = settings.configured_text("super.users") or ""
    _, wrong = super_users_of(text)
    if wrong:
        raise ConfigError("super.users", text, f"{wrong[0]!r} is no principal such as User:alice")
    is_open = settings.configured_text(_IF_NO_RULE)
    if is_open is not None and is_open.lower() not in ("true", "false"):
        raise ConfigError(_IF_NO_RULE, is_open, "must be true or false")
    url = settings.configured_text("authorizer.zookeeper.url")
    if url is not None:
        raise ConfigError(
            "authorizer.zookeeper.url", url, "access rules lie where all other metadata does"
        )
