"""The protocol of a group member, classic or consumer, and the settings that only one of them has.

| `group.protocol` | who assigns | refused |
|---|---|---|
| classic | a member, by `partition.assignment.strategy` | `group.remote.assignor` |
| consumer | the broker, by `group.remote.assignor` | `partition.assignment.strategy`, `heartbeat.interval.ms`, `session.timeout.ms`: the group's on the broker count |

Source: ConsumerConfig.checkUnsupportedConfigsPostProcess of 3.9.1; KIP-848.
"""  # noqa: E501 - a table

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from engine.errors import ConfigError

CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"
GROUP_PROTOCOLS: Final = (CLASSIC, CONSUMER)

_REFUSED: Final[Mapping[str, tuple[str, ...]]] = {
    CLASSIC: ("group.remote.assignor",),
    CONSUMER: ("partition.assignment.strategy", "heartbeat.interval.ms", "session.timeout.ms"),
}


class SettingOfOtherProtocol(ConfigError):
    """Settings that have no effect in the protocol of the group."""

    exit_code = 2

    def __init__(self, keys: tuple[str, ...], values: Mapping[str, str], protocol: str) -> None:
        self.keys = keys
        super().__init__(
            ", ".join(keys),
            ", ".join(values[key] for key in keys),
            f"cannot be set when group.protocol={protocol.upper()}",
        )
        self.args = (f"{', '.join(keys)} cannot be set when group.protocol={protocol.upper()}",)


def refuse_others(properties: Mapping[str, str], protocol: str) -> None:
    """Raise SettingOfOtherProtocol if `protocol` (classic, consumer) lacks a set property."""
    refused = tuple(key for key in _REFUSED[protocol] if properties.get(key, "").strip())
    if refused:
        raise SettingOfOtherProtocol(refused, properties, protocol)
