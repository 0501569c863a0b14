"""Which settings of a broker may change at run time.

| key | for one broker | for all |
|---|---|---|
| read-only | no | no |
| per broker | yes | no |
| of a listener (`listener.name.<name>.`) | yes | no, but for limits of connections and threads |
| secrets and stores of TLS without a listener's name | no | no |
| cluster-wide, throttles | yes | yes |
| of no table | yes | yes: a plug-in may read it |

A number of threads must also stay within half and double of what it is. Passwords lie encrypted in
a znode: whatever key ends as that of one does, a plug-in's too.

Source: kafka.server.DynamicBrokerConfig.validateConfigs, DynamicThreadPool; a real broker's
answers (`configs.md`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from engine.config.key import UpdateMode, broker_keys
from engine.config.settings import BrokerSettings, known_key
from engine.config.value import HIDDEN, parse_value
from engine.errors import ConfigError

_LISTENER_PREFIX = "listener.name."
#: Behind a listener's name these may be set for all brokers.
_CLUSTER_LEVEL_LISTENER_KEYS = frozenset(
    ("max.connections", "max.connection.creation.rate", "num.network.threads")
)
_ONLY_BY_LISTENER = frozenset(
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
_THREAD_COUNTS = frozenset(
    (
        "num.io.threads",
        "num.network.threads",
        "num.replica.fetchers",
        "num.recovery.threads.per.data.dir",
        "background.threads",
        "log.cleaner.threads",
    )
)


def check_broker_change(
    changed: Mapping[str, str], settings: BrokerSettings, *, per_broker: bool
) -> None:
    """Raise ConfigError unless a broker's (or all brokers') settings may be set to these."""
    for name, text in changed.items():
        _check_mode(name, text, per_broker=per_broker)
        key = known_key(name)
        if key is None:
            continue
        value = parse_value(key._replace(name=name), text)
        if name in _THREAD_COUNTS:
            assert isinstance(value, int)
            _check_threads(name, value, settings)


def is_encrypted(name: str) -> bool:
    """Tell whether the value of a broker's key lies encrypted in a znode."""
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
    if name in _ONLY_BY_LISTENER:
        raise ConfigError(name, HIDDEN, "can be changed only behind listener.name.<listener>.")
    if per_broker:
        return
    of_listener = name.startswith(_LISTENER_PREFIX)
    base = name.removeprefix(_LISTENER_PREFIX).partition(".")[2]
    if of_listener and base not in _CLUSTER_LEVEL_LISTENER_KEYS:
        raise ConfigError(name, HIDDEN, "can be set only for one broker")
    if key is not None and key.update_mode is UpdateMode.PER_BROKER:
        shown = HIDDEN if key.is_sensitive else text
        raise ConfigError(name, shown, "can be set only for one broker")


def _check_threads(name: str, value: int, settings: BrokerSettings) -> None:
    current = settings.value(name)
    assert isinstance(current, int)
    if value == current:
        return
    if value < 1 or value < current // 2 or value > current * 2:
        raise ConfigError(
            name, value, f"must be at least 1 and within half and double of {current}"
        )
