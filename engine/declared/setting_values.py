"""Compare two texts of a setting by their meaning, so that an equal value is no change.

Brokers give values as they have parsed them: `0.50` comes back as `0.5`, `a, b` as `a,b`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from engine.declared.resources import ClusterSetting

#: Throttles of replication are set and taken away by the mover of replicas.
OF_MOVES: Final = frozenset(
    (
        "leader.replication.throttled.replicas",
        "follower.replication.throttled.replicas",
        "leader.replication.throttled.rate",
        "follower.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    )
)
#: With KRaft brokers set it for all when they are new, and refuse to unset it (KIP-966).
OF_CLUSTER: Final = "min.insync.replicas"
_SECRET_WORDS: Final = re.compile(r"password|secret|jaas|keystore\.key", re.IGNORECASE)


def _whole(text: str) -> object:
    """Return the number in a text: `010` and `10` are the same."""
    return int(text)


def _number(text: str) -> object:
    """Return the number in a text: `0.50` and `0.5` are the same."""
    return float(text)


def _boolean(text: str) -> object:
    """Return a boolean's text in lower case: `True` and `true` are the same to Kafka."""
    return text.lower()


def _list(text: str) -> object:
    """Return a list's entries in order; spaces around an entry mean nothing."""
    return [part.strip() for part in text.split(",")] if text.strip() else []


_MEANINGS: Final[Mapping[str, Callable[[str], object]]] = {
    "int": _whole,
    "short": _whole,
    "long": _whole,
    "double": _number,
    "boolean": _boolean,
    "list": _list,
}


def means_the_same(declared: str, current: str, setting_type: str | None) -> bool:
    """Return True if two texts are one value of a type; of an unknown type they must be equal."""
    return _meaning(declared, setting_type) == _meaning(current, setting_type)


def _meaning(text: str, setting_type: str | None) -> object:
    """Return a text's value by the setting's type; unknown ones as text without outer spaces.

    So `1e3` and `1000` are not a difference.
    """
    try:
        return _MEANINGS[setting_type or ""](text.strip())
    except (KeyError, ValueError):
        return text.strip()


def is_secret(name: str, setting: ClusterSetting | None) -> bool:
    """Return True if the value of a setting must not be shown: the cluster says so, or its name."""
    return (setting is not None and setting.is_sensitive) or bool(_SECRET_WORDS.search(name))
