"""Named settings that their resource does not have, or has not set.

| named | of a topic or logger | of a broker |
|---|---|---|
| to be shown | an error | an error, except for keys that are only shown where they are set |
| to be unset, and unknown | an error, and nothing is changed | reported as not set |
| to be unset, and at its default | reported as not set | reported as not set |

Brokers store keys that they do not know, for plug-ins: setting such a key prints a note.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.client import config_admin
from engine.client.blocking import KafkaClient
from engine.client.config_admin import (
    ConfigChange,
    ConfigEntry,
    ConfigResourceType,
    ConfigSource,
    Resource,
)
from engine.errors import ApiError, EngineError
from engine.kafka_errors import INVALID_CONFIG, INVALID_REQUEST
from kctl.hints import did_you_mean
from kctl.setting_arguments import hint_on_settings

# Keys that topics return, and keys that brokers return.
_REFUSED_CODES = (INVALID_CONFIG, INVALID_REQUEST)

_OWN_SOURCES = (
    ConfigSource.DYNAMIC_TOPIC_CONFIG,
    ConfigSource.DYNAMIC_BROKER_CONFIG,
    ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG,
)


class NoSuchSetting(EngineError):
    """A setting was named that its resource does not have."""

    def __init__(self, key: str, resource: Resource) -> None:
        super().__init__(f"there is no setting {key}")
        question = did_you_mean(key, known_settings(resource))
        self.hint = " ".join(filter(None, (question, _listing_hint(resource))))
        self.key = key


def missing_settings(
    resource: Resource, keys: Sequence[str], entries: Sequence[ConfigEntry]
) -> list[NoSuchSetting]:
    """Return an error for each requested key that a resource's described settings lack.

    `entries` are those settings. No error is returned for the settings of all brokers, nor for
    those keys of a broker that brokers may omit.
    """
    if resource == Resource(ConfigResourceType.BROKER, ""):
        return []
    names = {entry.name for entry in entries}
    absent = [key for key in keys if key not in names]
    if resource.kind is ConfigResourceType.BROKER:
        absent = [key for key in absent if not _is_of_brokers(key)]
    return [NoSuchSetting(key, resource) for key in absent]


def known_settings(resource: Resource) -> Iterable[str]:
    """Return the setting keys of a resource's kind that this release of kctl knows.

    Empty for kinds other than topics and brokers.
    """
    from engine.config.key import broker_keys, topic_keys

    if resource.kind is ConfigResourceType.TOPIC:
        return topic_keys()
    return broker_keys() if resource.kind is ConfigResourceType.BROKER else ()


def find_unset_errors(
    client: KafkaClient, resources: Sequence[Resource], keys: Sequence[str]
) -> tuple[dict[Resource, NoSuchSetting], dict[Resource, list[str]]]:
    """Check the keys that are to be unset, before any change, by requesting the settings.

    It returns the error of each topic with an unknown key, and the keys that each resource has not
    set itself. A resource that cannot be read is in neither result: changing it will report the
    error.
    """
    requested = [
        resource for resource in resources if resource.kind is not ConfigResourceType.BROKER_LOGGER
    ]
    refused: dict[Resource, NoSuchSetting] = {}
    not_set: dict[Resource, list[str]] = {}
    if not requested or not keys:
        return refused, not_set
    for resource, entries in config_admin.describe_configs(client, requested, names=keys).items():
        if isinstance(entries, EngineError):
            continue
        errors = (
            missing_settings(resource, keys, entries)
            if resource.kind is ConfigResourceType.TOPIC
            else []
        )
        if errors:
            refused[resource] = errors[0]
        own = {entry.name for entry in entries if _is_own(resource, entry)}
        not_set[resource] = [key for key in keys if key not in own]
    return refused, not_set


def _is_own(resource: Resource, entry: ConfigEntry) -> bool:
    """Return True if a setting is set at the resource itself, so that unsetting it changes it."""
    if resource.kind is ConfigResourceType.BROKER and resource.name:
        # A value for all brokers remains when the key is unset for one.
        return entry.source is ConfigSource.DYNAMIC_BROKER_CONFIG
    return entry.source in _OWN_SOURCES


def notes_on_unknown(resource: Resource, keys: Iterable[str]) -> list[str]:
    """Return a note for each key that a broker stores but no known release of Kafka has.

    Empty for resources other than brokers.
    """
    if resource.kind is not ConfigResourceType.BROKER:
        return []
    lines = []
    for key in keys:
        if not _is_of_brokers(key):
            question = did_you_mean(key, known_settings(resource))
            line = f"note: {key} is kept for plug-ins, brokers of 3.9.1 have no such setting"
            lines.append(f"{line}; {question}" if question else line)
    return lines


def with_hint(
    error: EngineError, resource: Resource, changes: Sequence[ConfigChange]
) -> EngineError:
    """Return the error of refused changes of a resource's settings, with a hint.

    The hint is a similar key or the value without a unit, else the command that lists settings.
    Other errors are returned as they are.
    """
    if isinstance(error, ApiError) and error.code in _REFUSED_CODES:
        settings = {change.name: change.value for change in changes}
        is_logger = resource.kind is ConfigResourceType.BROKER_LOGGER
        meant = None if is_logger else hint_on_settings(settings, known_settings(resource))
        error.hint = meant or _listing_hint(resource)
    return error


def _listing_hint(resource: Resource) -> str:
    """Return a hint that names the command that lists the settings of a resource."""
    if resource.kind is ConfigResourceType.TOPIC:
        return f"`kctl topics configs {resource.name} --all --doc` shows what there is"
    if resource.kind is ConfigResourceType.BROKER_LOGGER:
        return f"`kctl configs describe --broker-logger {resource.name}` shows the loggers"
    broker = resource.name or "ID"
    return f"`kctl configs describe --broker {broker} --all -o wide` shows what can be changed"


def _is_of_brokers(key: str) -> bool:
    """Return True if Kafka has a broker setting with this key.

    Brokers do not return all of these.
    """
    from engine.config.settings import find_key

    return find_key(key) is not None
