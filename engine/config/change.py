"""The settings of a broker that may change at run time.

| key | for one broker | for all |
|---|---|---|
| read-only | no | no |
| per broker | yes | no |
| of a listener (`listener.name.<name>.`) | yes | no, but for limits of connections and threads |
| secrets and stores of TLS without a listener's name | no | no |
| cluster-wide, throttles | yes | yes |
| of no table | yes | yes: a plug-in may read it |

`max.connections` and `max.connection.creation.rate` must be above 0, also those of a listener. A
number of threads must also stay within half and double of its present value: of the effective one,
so that one set for all changes nothing where the broker has a value. The retention of tiered logs
on the disk may not exceed their retention in all, and a listener keeps its security protocol.
Passwords are encrypted in a znode: each key that ends as that of one does, also of a plug-in.

Source: kafka.server.DynamicBrokerConfig.validateConfigs, DynamicThreadPool, DynamicLogConfig,
DynamicListenerConfig, ListenerConnectionQuota.validateReconfiguration; a real broker's answers
(`configs.md`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

from engine.config.broker_config import BrokerConfig
from engine.config.key import UpdateMode, broker_keys
from engine.config.listener_settings import LISTENER_PREFIX
from engine.config.settings import BrokerSettings, known_key
from engine.config.topic_config import TopicConfig
from engine.config.value import HIDDEN, parse_value
from engine.errors import ConfigError

#: With a listener's prefix these may be set for all brokers.
_CLUSTER_LEVEL_LISTENER_KEYS = frozenset(
    ("max.connections", "max.connection.creation.rate", "num.network.threads")
)
#: A broker may start with 0 of these, which no connection could change again.
_ABOVE_ZERO = ("max.connections", "max.connection.creation.rate")
#: Stores of TLS, which are read again when they change.
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
#: Threads of pools; those of listeners may be set for each.
_POOLS = (
    "num.io.threads",
    "num.replica.fetchers",
    "num.recovery.threads.per.data.dir",
    "background.threads",
    "log.cleaner.threads",
)
_OF_A_LISTENER = "num.network.threads"
#: Retention without a limit; local retention that is that of the whole log.
_NO_LIMIT, _AS_IN_ALL = -1, -2


def check_broker_change(changed: Mapping[str, str], *, per_broker: bool) -> None:
    """Raise ConfigError unless a broker's (or all brokers') settings may be set to these."""
    for name, text in changed.items():
        _check_mode(name, text, per_broker=per_broker)
        key = known_key(name)
        if key is not None:
            value = parse_value(key._replace(name=name), text)
            if key.name in _ABOVE_ZERO and value == 0:
                raise ConfigError(name, text, "must be above 0 while the broker runs")


def is_only_by_listener(name: str) -> bool:
    """Return whether a key may change only with the prefix of a listener."""
    return name in ONLY_BY_LISTENER


def is_only_per_broker(name: str) -> bool:
    """Return whether a key may change only for one broker, and not for all."""
    if name.startswith(LISTENER_PREFIX):
        base = name.removeprefix(LISTENER_PREFIX).partition(".")[2]
        return base not in _CLUSTER_LEVEL_LISTENER_KEYS
    key = broker_keys().get(name)
    return key is not None and key.update_mode is UpdateMode.PER_BROKER


def check_thread_counts(
    before: BrokerSettings, after: BrokerSettings, listeners: Iterable[str]
) -> None:
    """Raise ConfigError if a number of threads changes too much; listeners are given by name."""
    for name in _POOLS:
        _check_threads(name, _count(before, name), _count(after, name))
    for listener in listeners:
        own = f"{LISTENER_PREFIX}{listener.lower()}.{_OF_A_LISTENER}"
        _check_threads(own, _network_threads(before, own), _network_threads(after, own))


def check_local_retention(before: BrokerSettings, after: BrokerSettings) -> None:
    """Raise ConfigError if local retention is changed to more than retention, or retention to less.

    Values of a broker's start may be so already, and stay.
    """
    for kind in ("ms", "bytes"):
        kept, local = _retention(after, kind)
        if (kept, local) == _retention(before, kind) or kept == _NO_LIMIT or local == _AS_IN_ALL:
            continue
        whole = f"log.retention.{kind}"
        name = f"log.local.retention.{kind}"
        if local == _NO_LIMIT:
            raise ConfigError(
                name, local, f"Value must not be -1 as {whole} value is set as {kept}."
            )
        if local > kept:
            rule = f"Value must not be more than {whole} property value: {kept}"
            raise ConfigError(name, local, rule)


def check_security_protocols(before: BrokerConfig, after: BrokerConfig) -> None:
    """Raise ConfigError if a listener that is there would get another security protocol."""
    protocols = {one.name: one.security_protocol for one in before.bound_listeners}
    for name, _, _, protocol in after.bound_listeners:
        if protocols.get(name, protocol) != protocol:
            rule = f"Security protocol cannot be updated for existing listener {name}"
            text = after.listener_security_protocol_map
            raise ConfigError("listener.security.protocol.map", text, rule)


def is_encrypted(name: str) -> bool:
    """Return whether the value of a broker's key lies encrypted in a znode."""
    return name.endswith(_password_endings())


@cache
def _password_endings() -> tuple[str, ...]:
    return tuple(
        key.name
        for key in broker_keys().values()
        if key.is_sensitive and key.update_mode is not UpdateMode.READ_ONLY
    )


def _check_mode(name: str, text: str, *, per_broker: bool) -> None:
    key = broker_keys().get(name)
    if key is not None and key.update_mode is UpdateMode.READ_ONLY:
        raise ConfigError(name, text, "cannot be changed while the broker runs")
    if name in ONLY_BY_LISTENER:
        raise ConfigError(name, HIDDEN, "can be changed only behind listener.name.<listener>.")
    if not per_broker and is_only_per_broker(name):
        shown = HIDDEN if key is None or key.is_sensitive else text
        raise ConfigError(name, shown, "can be set only for one broker")


def _check_threads(name: str, old: int, new: int) -> None:
    if new != old and (new < 1 or new < old // 2 or new > old * 2):
        raise ConfigError(name, new, f"must be at least 1 and within half and double of {old}")


def _retention(settings: BrokerSettings, kind: str) -> tuple[int, int]:
    """Return how much of a log is kept in all, and how much of it on the disk."""
    logs = TopicConfig.of({}, settings)
    if kind == "ms":
        return logs.retention_ms, logs.local_retention_ms
    return logs.retention_bytes, logs.local_retention_bytes


def _network_threads(settings: BrokerSettings, own_name: str) -> int:
    text = settings.set_text(own_name)
    if text is None:
        return _count(settings, _OF_A_LISTENER)
    value = parse_value(broker_keys()[_OF_A_LISTENER], text)
    assert isinstance(value, int)
    return value


def _count(settings: BrokerSettings, name: str) -> int:
    value = settings.value(name)
    assert isinstance(value, int)
    return value
