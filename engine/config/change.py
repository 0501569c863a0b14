"""The broker settings that may change at run time.

| key | for one broker | for all brokers |
|---|---|---|
| read-only | no | no |
| per broker | yes | no |
| of a listener (`listener.name.<name>.`) | yes | only limits of connections and threads |
| TLS secrets and stores without a listener's name | no | no |
| cluster-wide, throttles | yes | yes |
| unknown | yes | yes: a plug-in may read it |

`max.connections` and `max.connection.creation.rate` must be above 0, including those of a listener.
A number of threads must stay within half and double of the present value. The effective value
counts, so a value for all brokers is not checked where the broker has its own. Local retention of
tiered logs must not exceed total retention, and a listener keeps its security protocol. Passwords
are encrypted in znodes: this concerns each key that ends like a password key, also of a plug-in.

Source: kafka.server.DynamicBrokerConfig.validateConfigs, DynamicThreadPool, DynamicLogConfig,
DynamicListenerConfig, ListenerConnectionQuota.validateReconfiguration; a real broker's responses
(`configs.md`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

from engine.config.broker_config import BrokerConfig
from engine.config.key import ConfigKey, ConfigType, UpdateMode, broker_keys
from engine.config.listener_settings import LISTENER_PREFIX
from engine.config.settings import BrokerSettings, find_key
from engine.config.topic_config import TopicConfig
from engine.config.value import HIDDEN, ConfigValue, parse_value
from engine.errors import ConfigError

#: Keys that may be set for all brokers with a listener's prefix.
_CLUSTER_LEVEL_LISTENER_KEYS = frozenset(
    ("max.connections", "max.connection.creation.rate", "num.network.threads")
)
#: Limits that may be 0 only at a start: no connection would be left to change it.
_ABOVE_ZERO = ("max.connections", "max.connection.creation.rate")
#: TLS stores, which are read again when they change.
ONLY_BY_LISTENER = frozenset(
    (
        "ssl.keystore.type",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.key.password",
        "ssl.truststore.type",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.certificates",
    )
)
#: Keys that may change for an open listener.
_OPEN_LISTENER_KEYS = ONLY_BY_LISTENER | _CLUSTER_LEVEL_LISTENER_KEYS
#: Thread pool sizes; that of network threads may be set per listener.
_POOLS = (
    "num.io.threads",
    "num.replica.fetchers",
    "num.recovery.threads.per.data.dir",
    "background.threads",
    "log.cleaner.threads",
)
_CLEANER_THREADS = "log.cleaner.threads"
_OF_A_LISTENER = "num.network.threads"
#: Prefix of Kafka's own classes; this engine has its own implementations of them.
_CLASSES_OF_KAFKA = "org.apache.kafka."
_REPORTERS = "metric.reporters"
_OWN_REPORTERS = {"org.apache.kafka.common.metrics.JmxReporter"}
#: Retention without a limit, and local retention that equals the total one.
_NO_LIMIT, _AS_IN_ALL = -1, -2


class ReconfigurationRefused(ConfigError):
    """A running broker cannot apply a value; Kafka's response then names an exception."""


def check_broker_change(changed: Mapping[str, str], *, per_broker: bool) -> None:
    """Raise ConfigError if a setting of one broker, or of all, must not get its new value."""
    for name, text in changed.items():
        _check_mode(name, text, per_broker=per_broker)
        key = find_key(name)
        if key is not None:
            value = _parse_value(key, name, text)
            if key.name in _ABOVE_ZERO and value == 0:
                raise ReconfigurationRefused(
                    name,
                    text,
                    "must be above 0 while the broker runs",
                    kafka_message=f"Invalid {key.name} 0",
                )


def _parse_value(key: ConfigKey, name: str, text: str) -> ConfigValue:
    """Return the new value of a setting; raises ConfigError.

    `name` is the key's name, with or without a listener's prefix.
    """
    is_of_start = key.update_mode is UpdateMode.READ_ONLY
    try:
        value = parse_value(key, text)
        is_class = key.type is ConfigType.CLASS and value is not None
        if is_class and not text.startswith(_CLASSES_OF_KAFKA):
            raise ConfigError(key.name, text, f"Class {text} could not be found.")
        if key.name == _REPORTERS and isinstance(value, tuple) and not set(value) <= _OWN_REPORTERS:
            raise ReconfigurationRefused(
                name,
                text,
                "no other reporter of metrics is there",
                kafka_message=f"Validation of dynamic config update of Set({name}) failed with "
                "class class kafka.server.DynamicMetricsReporters",
            )
    except ConfigError as error:
        if is_of_start and name != key.name:
            # Kafka parses this setting when it opens the listener.
            raise ReconfigurationRefused(error.key, error.value, error.rule) from error
        raise
    return value


def is_only_by_listener(name: str) -> bool:
    """Return True if a key may change only with the prefix of a listener.

    Such keys are the TLS stores, which belong to one listener.
    """
    return name in ONLY_BY_LISTENER


def is_only_per_broker(name: str) -> bool:
    """Return True if a key may change only for one broker, not for all brokers together."""
    if name.startswith(LISTENER_PREFIX):
        base = name.removeprefix(LISTENER_PREFIX).partition(".")[2]
        return base not in _CLUSTER_LEVEL_LISTENER_KEYS
    key = broker_keys().get(name)
    return key is not None and key.update_mode is UpdateMode.PER_BROKER


def check_thread_counts(
    before: BrokerSettings, after: BrokerSettings, listeners: Iterable[str]
) -> None:
    """Raise ConfigError if a number of threads would change by more than Kafka allows.

    `listeners` are the names of the listeners, which have network threads of their own.
    """
    for name in _POOLS:
        _check_threads(name, _integer_value(before, name), _integer_value(after, name))
    for listener in listeners:
        own = f"{LISTENER_PREFIX}{listener.lower()}.{_OF_A_LISTENER}"
        _check_threads(own, _network_threads(before, own), _network_threads(after, own))


def check_local_retention(before: BrokerSettings, after: BrokerSettings) -> None:
    """Raise ConfigError if a change makes local retention longer or larger than total retention."""
    for kind in ("ms", "bytes"):
        kept, local = _retention_limits(after, kind)
        if (
            (kept, local) == _retention_limits(before, kind)
            or kept == _NO_LIMIT
            or local == _AS_IN_ALL
        ):
            continue
        whole = f"log.retention.{kind}"
        name = f"log.local.retention.{kind}"
        if local == _NO_LIMIT:
            raise ReconfigurationRefused(
                name, local, f"Value must not be -1 as {whole} value is set as {kept}."
            )
        if local > kept:
            rule = f"Value must not be more than {whole} property value: {kept}"
            raise ReconfigurationRefused(name, local, rule)


def check_open_listeners(
    before: BrokerSettings, after: BrokerSettings, config: BrokerConfig
) -> None:
    """Raise ConfigError if a listener that is open would get other settings or another protocol.

    Its TLS stores and limits of connections and threads may change. `config` is that of `after`.
    """
    protocols = {
        one.name: one.security_protocol for one in BrokerConfig.parse(before).bound_listeners
    }
    for name, _, _, protocol in config.bound_listeners:
        if name not in protocols:
            continue
        shown = f"existing listener ListenerName({name})"
        if _fixed_of_listener(before, name) != (fixed := _fixed_of_listener(after, name)):
            rule = (
                f"Configs cannot be updated dynamically for {shown}, restart broker or create a "
                "new listener for update"
            )
            key = next(iter(fixed), f"{LISTENER_PREFIX}{name.lower()}.")
            raise ReconfigurationRefused(key, HIDDEN, rule, kafka_message=rule)
        if protocols[name] != protocol:
            rule = f"Security protocol cannot be updated for {shown}"
            text = config.listener_security_protocol_map
            key = "listener.security.protocol.map"
            raise ReconfigurationRefused(key, text, rule, kafka_message=rule)


def _fixed_of_listener(settings: BrokerSettings, listener: str) -> dict[str, str]:
    """Return a listener's own settings that cannot change while it is open."""
    prefix = f"{LISTENER_PREFIX}{listener.lower()}."
    sources = (settings.static, settings.dynamic_default, settings.dynamic_broker)
    return {
        name: text
        for source in sources
        for name, text in source.items()
        if name.startswith(prefix) and name.removeprefix(prefix) not in _OPEN_LISTENER_KEYS
    }


def is_encrypted(name: str) -> bool:
    """Return True if the value of a broker's key is stored encrypted in its znode."""
    return name.endswith(_password_suffixes())


@cache
def _password_suffixes() -> tuple[str, ...]:
    """Return the names of the passwords that may change at run time.

    The same names with a listener's prefix end with them.
    """
    return tuple(
        key.name
        for key in broker_keys().values()
        if key.is_sensitive and key.update_mode is not UpdateMode.READ_ONLY
    )


def _check_mode(name: str, text: str, *, per_broker: bool) -> None:
    """Raise ConfigError if a key is read-only, or cannot be set at this level."""
    key = broker_keys().get(name)
    if key is not None and key.update_mode is UpdateMode.READ_ONLY:
        raise ConfigError(name, text, "cannot be changed while the broker runs")
    if name in ONLY_BY_LISTENER:
        raise ConfigError(name, HIDDEN, "can be changed only after listener.name.<listener>.")
    if not per_broker and is_only_per_broker(name):
        shown = HIDDEN if key is None or key.is_sensitive else text
        raise ConfigError(name, shown, "can be set only for one broker")


def _check_threads(name: str, old: int, new: int) -> None:
    """Raise ReconfigurationRefused unless `new` is at least 1 and from half to double of `old`.

    The message is that of Kafka.
    """
    if new == old or (new >= 1 and old // 2 <= new <= old * 2):
        return
    base = name.rpartition(_OF_A_LISTENER)[1] or name
    if name == _CLEANER_THREADS:
        less, more = "reduced to less than half", "increased to more than double"
        bound = "should be at least 1" if new < 1 else f"cannot be {less if new < old else more}"
        message = f"Log cleaner threads {bound}"
    else:
        bound = "at least 1" if new < 1 else "at least half" if new < old else ""
        bound = f"should be {bound}" if bound else "should not be greater than double"
        message = f"Dynamic thread count update validation failed for {base}={new}, value {bound}"
    if new >= 1:
        message += f" the current value {old}"
    rule = f"must be at least 1 and within half and double of {old}"
    raise ReconfigurationRefused(name, new, rule, kafka_message=message)


def _retention_limits(settings: BrokerSettings, kind: str) -> tuple[int, int]:
    """Return the total and the local retention of a log; `kind` is "ms" or "bytes"."""
    logs = TopicConfig.of({}, settings)
    if kind == "ms":
        return logs.retention_ms, logs.local_retention_ms
    return logs.retention_bytes, logs.local_retention_bytes


def _network_threads(settings: BrokerSettings, own_name: str) -> int:
    """Return a listener's `num.network.threads`, the broker's if the listener has none.

    `own_name` is the key with the listener's prefix.
    """
    text = settings.configured_text(own_name)
    if text is None:
        return _integer_value(settings, _OF_A_LISTENER)
    value = parse_value(broker_keys()[_OF_A_LISTENER], text)
    assert isinstance(value, int)
    return value


def _integer_value(settings: BrokerSettings, name: str) -> int:
    """Return the value of an integer setting."""
    value = settings.value(name)
    assert isinstance(value, int)
    return value
