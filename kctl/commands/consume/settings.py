"""Client settings of `-X` that `kctl consume` applies."""

from __future__ import annotations

from collections.abc import Mapping

from engine.assignors.registry import ASSIGNORS
from engine.client.fetching import FetchOptions
from engine.client.group_consumer import AUTO_COMMIT_INTERVAL_MS
from engine.client.group_protocol import GROUP_PROTOCOLS, refuse_others
from engine.client.member_session import MemberSettings
from kctl.arguments import UnreadableArgument
from kctl.numbers import INT32_MAX, parse_whole_number

_ISOLATION = {"read_committed": True, "read_uncommitted": False}

#: Settings of a consumer, in addition to those of every client.
CONSUMER_KEYS = (
    "client.rack",
    "fetch.max.bytes",
    "fetch.max.wait.ms",
    "isolation.level",
    "metadata.max.age.ms",
    "max.partition.fetch.bytes",
)
#: Settings of a group member.
GROUP_KEYS = (
    "auto.commit.interval.ms",
    "group.instance.id",
    "group.protocol",
    "group.remote.assignor",
    "heartbeat.interval.ms",
    "max.poll.interval.ms",
    "partition.assignment.strategy",
    "session.timeout.ms",
)
#: Kafka's class names of assignors, which partition.assignment.strategy may contain.
_ASSIGNOR_CLASSES = {
    "org.apache.kafka.clients.consumer.RangeAssignor": "range",
    "org.apache.kafka.clients.consumer.RoundRobinAssignor": "roundrobin",
    "org.apache.kafka.clients.consumer.StickyAssignor": "sticky",
    "org.apache.kafka.clients.consumer.CooperativeStickyAssignor": "cooperative-sticky",
}


def fetch_options(settings: Mapping[str, str], *, read_committed: bool | None) -> FetchOptions:
    """Return the fetch options of client settings (-X), with Kafka's defaults.

    `read_committed` overrides isolation.level; None if no option gives it. Errors:
    UnreadableArgument.
    """
    level = settings.get("isolation.level", "read_uncommitted")
    if level not in _ISOLATION:
        raise UnreadableArgument("a value of isolation.level", level, ", ".join(_ISOLATION))
    defaults = FetchOptions()
    return FetchOptions(
        read_committed=_ISOLATION[level] if read_committed is None else read_committed,
        max_wait_ms=_parse_number(settings, "fetch.max.wait.ms", defaults.max_wait_ms),
        max_bytes=_parse_number(settings, "fetch.max.bytes", defaults.max_bytes),
        partition_max_bytes=_parse_number(
            settings, "max.partition.fetch.bytes", defaults.partition_max_bytes
        ),
        client_rack=settings.get("client.rack"),
        metadata_max_age_ms=_parse_number(
            settings, "metadata.max.age.ms", defaults.metadata_max_age_ms
        ),
    )


def group_settings(group_id: str, settings: Mapping[str, str]) -> MemberSettings:
    """Return the settings of a group member from the client settings (-X), with Kafka's defaults.

    Errors: UnreadableArgument; SettingOfOtherProtocol for a setting of the other `group.protocol`.
    """
    defaults = MemberSettings(group_id)
    protocol = settings.get("group.protocol", defaults.group_protocol)
    if protocol.lower() not in GROUP_PROTOCOLS:
        expected = ", ".join(GROUP_PROTOCOLS)
        raise UnreadableArgument("a value of group.protocol", protocol, expected)
    refuse_others(settings, protocol.lower())
    text = settings.get("partition.assignment.strategy", ",".join(defaults.assignors))
    names = [_ASSIGNOR_CLASSES.get(word.strip(), word.strip()) for word in text.split(",")]
    for name in names:
        if name not in ASSIGNORS:
            raise UnreadableArgument("an assignor", name, ", ".join(ASSIGNORS))
    return MemberSettings(
        group_id,
        group_instance_id=settings.get("group.instance.id"),
        session_timeout_ms=_parse_number(
            settings, "session.timeout.ms", defaults.session_timeout_ms
        ),
        heartbeat_interval_ms=_parse_number(
            settings, "heartbeat.interval.ms", defaults.heartbeat_interval_ms
        ),
        max_poll_interval_ms=_parse_number(
            settings, "max.poll.interval.ms", defaults.max_poll_interval_ms
        ),
        metadata_max_age_ms=_parse_number(
            settings, "metadata.max.age.ms", defaults.metadata_max_age_ms
        ),
        assignors=tuple(names),
        client_rack=settings.get("client.rack"),
        group_protocol=protocol.lower(),
        remote_assignor=settings.get("group.remote.assignor"),
    )


def commit_interval_ms(settings: Mapping[str, str]) -> int:
    """Return auto.commit.interval.ms of client settings (-X), Kafka's default if not set.

    Errors: UnreadableArgument.
    """
    return _parse_number(settings, "auto.commit.interval.ms", AUTO_COMMIT_INTERVAL_MS)


def _parse_number(settings: Mapping[str, str], key: str, default: int) -> int:
    """Return an integer setting from 1 to 2^31 - 1, `default` if unset.

    Errors: UnreadableArgument.
    """
    text = settings.get(key)
    if text is None:
        return default
    return parse_whole_number(text, f"a value of {key}", 1, INT32_MAX)
