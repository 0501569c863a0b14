"""Compares texts of a setting by meaning, so that an equal value is not a change.

Brokers return values as they parsed them: `0.50` is returned as `0.5`, `a, b` as `a,b`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from engine.declared.resources import ClusterSetting

#: Replication throttles, which moves of replicas set and remove.
OF_MOVES: Final = frozenset(
    (
        "leader.replication.throttled.replicas",
        "follower.replication.throttled.replicas",
        "leader.replication.throttled.rate",
        "follower.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    )
)
#: New KRaft brokers set it for all brokers, and refuse to unset it (KIP-966).
OF_CLUSTER: Final = "min.insync.replicas"
_SECRET_WORDS: Final = re.compile(r"password|secret|jaas|keystore\.key", re.IGNORECASE)


def _parse_whole(text: str) -> object:
    """Return the whole number in a text: `010` and `10` are equal."""
    return int(text)


def _parse_number(text: str) -> object:
    """Return the number in a text: `0.50` and `0.5` are equal."""
    return float(text)


def _parse_boolean(text: str) -> object:
    """Return a boolean's text in lower case: `True` and `true` are equal."""
    return text.lower()


def _parse_list(text: str) -> object:
    """Return the entries of a list in order, without spaces around them."""
    return [part.strip() for part in text.split(",")] if text.strip() else []


_MEANINGS: Final[Mapping[str, Callable[[str], object]]] = {
    "int": _parse_whole,
    "short": _parse_whole,
    "long": _parse_whole,
    "double": _parse_number,
    "boolean": _parse_boolean,
    "list": _parse_list,
}


def means_the_same(declared: str, current: str, setting_type: str | None) -> bool:
    """Return True if two texts are the same value of the setting's type.

    With an unknown type the texts must be equal.
    """
    return _parsed_value(declared, setting_type) == _parsed_value(current, setting_type)


def _parsed_value(text: str, setting_type: str | None) -> object:
    """Return the value of a text by the setting's type, for comparison.

    With an unknown type, and for an unreadable text, it is the text without outer spaces.
    """
    try:
        return _MEANINGS[setting_type or ""](text.strip())
    except (KeyError, ValueError):
        return text.strip()


def is_secret(name: str, setting: ClusterSetting | None) -> bool:
    """Return True if a setting's value must not be shown, by the cluster or by its name."""
    return (setting is not None and setting.is_sensitive) or bool(_SECRET_WORDS.search(name))
