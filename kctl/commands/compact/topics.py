"""Compacted topics of a cluster, with the settings that control their cleaning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.config_admin import (
    ConfigEntry,
    ConfigResourceType,
    ConfigSource,
    Resource,
    describe_configs,
)
from engine.client.metadata import topic_failure
from engine.errors import EngineError
from engine.forecast.topic_settings import log_config
from engine.log.log_config import LogConfig
from kctl.console import report_error
from kctl.selection import add_similar_topic_hints, matching_topics

#: Settings that decide when a log is cleaned, and values with which it is cleaned soon.
SOON: Final = {
    "min.cleanable.dirty.ratio": "0.01",
    "segment.ms": "60000",
    "min.compaction.lag.ms": "0",
}


class NotCompacted(EngineError):
    """A named topic is not compacted."""

    def __init__(self, topic: str, policy: str) -> None:
        self.topic = topic
        super().__init__(f"topic {topic} is not compacted: its cleanup.policy is {policy}")
        self.hint = (
            f"`kctl configs set --topic {topic} cleanup.policy=compact` has it compacted; "
            "`kctl compact plan --set cleanup.policy=compact` shows what that would free"
        )


class CompactedTopics(NamedTuple):
    """Compacted topics: log settings, reported entries, and the number of topics that failed."""

    configs: dict[str, LogConfig]
    entries: dict[str, Mapping[str, ConfigEntry]]
    failures: int


def find_compacted_topics(
    client: KafkaClient, topics: list[str], match: str | None, overrides: Mapping[str, str]
) -> CompactedTopics:
    """Return the compacted topics among the named and matching ones; all without either.

    Each with its settings, `overrides` applied. Prints an error for each named topic that is not
    compacted. Errors: those of `matching_topics`.
    """
    is_chosen = bool(topics) or match is not None
    view = client.view(None)
    names = matching_topics(client, topics, match) if is_chosen else sorted(view.topics)
    failures: list[EngineError] = []
    existing = []
    for name in dict.fromkeys(names):
        failure = topic_failure(view, name)
        if failure is None:
            existing.append(name)
        else:
            failures.append(failure)
    add_similar_topic_hints(client, failures, names)
    resources = [Resource(ConfigResourceType.TOPIC, name) for name in existing]
    found = CompactedTopics({}, {}, 0)
    for resource, entries in (describe_configs(client, resources) if resources else {}).items():
        if isinstance(entries, EngineError):
            failures.append(entries)
            continue
        by_key = {entry.name: entry for entry in entries}
        values = {name: entry.value for name, entry in by_key.items() if entry.value is not None}
        config = log_config({**values, **overrides})
        if config.is_compacted:
            found.configs[resource.name] = config
            found.entries[resource.name] = by_key
        elif resource.name in topics:
            failures.append(NotCompacted(resource.name, values.get("cleanup.policy", "delete")))
    for error in failures:
        report_error(error)
    return found._replace(failures=len(failures))


def advised_commands(topic: str, entries: Mapping[str, ConfigEntry]) -> list[str]:
    """Return the command that makes a broker clean a topic soon, then the commands that undo it.

    The first is empty if the topic's settings already have that effect. `entries` are its settings.
    """
    changes = {
        key: value
        for key, value in SOON.items()
        if key in entries and _number_or_zero(entries[key].value) > float(value)
    }
    if not changes:
        return [""]
    own = {
        key: entries[key]
        for key in changes
        if entries[key].source is ConfigSource.DYNAMIC_TOPIC_CONFIG
    }
    setting = " ".join(f"{key}={value}" for key, value in changes.items())
    lines = [f"kctl configs set --topic {topic} {setting}"]
    kept = " ".join(f"{key}={entry.value}" for key, entry in own.items())
    if kept:
        lines.append(f"kctl configs set --topic {topic} {kept}")
    given_up = " ".join(key for key in changes if key not in own)
    if given_up:
        lines.append(f"kctl configs unset --topic {topic} {given_up}")
    return lines


def _number_or_zero(text: str | None) -> float:
    """Return a setting as a number, 0.0 if it is None or not numeric."""
    try:
        return float(text or 0)
    except ValueError:
        return 0.0
