"""Describing and changing the settings of topics, brokers and brokers' loggers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from engine.client.blocking import ANY, Destination, KafkaClient
from engine.client.connection import Call, RequestMessage
from engine.errors import ApiError, EngineError, api_error
from engine.kafka_errors import NONE
from engine.wire import messages
from engine.wire.structs import message_class

#: The release whose brokers list resources of all kinds.
_LATER_RELEASE: Final = "4.3.0"


class ConfigResourceType(IntEnum):
    """Types of resources that have settings; the numbers are Kafka's."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class Resource(NamedTuple):
    """One thing with settings; a broker without a name stands for the default of all brokers."""

    kind: ConfigResourceType
    name: str

    @property
    def broker_id(self) -> int | None:
        """Return the only broker that can describe the resource, None if any broker can."""
        if self.kind in _OF_ANY_BROKER or not self.name:
            return None
        return int(self.name)


_OF_ANY_BROKER = (
    ConfigResourceType.TOPIC,
    ConfigResourceType.CLIENT_METRICS,
    ConfigResourceType.GROUP,
)


class ConfigSource(IntEnum):
    """The source of a setting's value; the numbers are Kafka's."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8

    @classmethod
    def of(cls, number: int) -> ConfigSource:
        """Return the source with this number in DescribeConfigs.

        UNKNOWN for one of a later release.
        """
        return cls(number) if number in _SOURCES else cls.UNKNOWN


_SOURCES = frozenset(ConfigSource)

_TYPES = {
    1: "boolean",
    2: "string",
    3: "int",
    4: "short",
    5: "long",
    6: "double",
    7: "list",
    8: "class",
    9: "password",
}


class Synonym(NamedTuple):
    """A value that would be used if the synonyms before it were removed."""

    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    """One setting; the value of a sensitive one is None."""

    name: str
    value: str | None
    source: ConfigSource
    is_sensitive: bool
    is_read_only: bool
    type: str | None
    documentation: str | None
    synonyms: tuple[Synonym, ...]

    @property
    def is_default(self) -> bool:
        """True if the value is Kafka's default: no configuration sets it."""
        return self.source is ConfigSource.DEFAULT_CONFIG


class ConfigOp(IntEnum):
    """The operation of a change; APPEND and SUBTRACT are for lists."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigChange(NamedTuple):
    """One change of one setting."""

    op: ConfigOp
    name: str
    value: str | None = None


def describe_configs(
    client: KafkaClient,
    resources: Iterable[Resource],
    *,
    names: Sequence[str] | None = None,
    with_synonyms: bool = False,
    with_documentation: bool = False,
    is_sorted: bool = True,
) -> dict[Resource, list[ConfigEntry] | EngineError]:
    """Return the settings of each resource, or its error; all settings, or those in `names`.

    The settings are sorted by name, or have the broker's order unless `is_sorted`. Raises the error
    of a request that any broker may answer.
    """
    configs: dict[Resource, list[ConfigEntry] | EngineError] = {}
    for to, requested in _by_destination(resources).items():
        message = _describe_request(requested, names, with_synonyms, with_documentation)
        try:
            response: messages.DescribeConfigsResponse
            response = client.send("DescribeConfigs", message, to=to, lowest=1).message
        except EngineError as error:
            if to == ANY:
                raise
            configs |= dict.fromkeys(requested, error)
            continue
        configs |= configs_of(response, is_sorted=is_sorted)
    return configs


def configs_call(resources: Sequence[Resource], names: Sequence[str]) -> Call:
    """Return the DescribeConfigs call for the settings `names` of resources.

    The caller sends it to a broker that can describe all of them.
    """
    return Call("DescribeConfigs", _describe_request(resources, names), 1)


def configs_of(
    response: messages.DescribeConfigsResponse, *, is_sorted: bool = True
) -> dict[Resource, list[ConfigEntry] | EngineError]:
    """Return the settings of each resource in a response, or the resource's error."""
    return {
        Resource(ConfigResourceType(row.resource_type), row.resource_name): _entries(row, is_sorted)
        for row in response.results
    }


def _describe_request(
    resources: Sequence[Resource],
    names: Sequence[str] | None,
    with_synonyms: bool = False,
    with_documentation: bool = False,
) -> RequestMessage:
    """Return a function that builds DescribeConfigs for the version that a broker supports.

    Synonyms are requested from version 1 on, documentation from 3 on. `names` None requests all
    settings.
    """
    request = messages.DescribeConfigsRequest

    def build(version: int) -> messages.DescribeConfigsRequest:
        """Build the request with the fields that a version has."""
        rows = [
            request.DescribeConfigsResource(
                resource_type=int(r.kind),
                resource_name=r.name,
                configuration_keys=None if names is None else list(names),
            )
            for r in resources
        ]
        built = request(resources=rows)
        if version >= 1:
            built.include_synonyms = with_synonyms
        if version >= 3:
            built.include_documentation = with_documentation
        return built

    return build


def _by_destination(resources: Iterable[Resource]) -> dict[Destination, list[Resource]]:
    """Return the resources by the broker that has to get the request, or ANY.

    Only a broker itself has its own settings.
    """
    by_destination: dict[Destination, list[Resource]] = {}
    for resource in resources:
        broker_id = resource.broker_id
        by_destination.setdefault(ANY if broker_id is None else broker_id, []).append(resource)
    return by_destination


def _entries(
    row: messages.DescribeConfigsResponse.DescribeConfigsResult, is_sorted: bool
) -> list[ConfigEntry] | EngineError:
    """Return a resource's settings in the order of the response, or by name if `is_sorted`."""
    if row.error_code != NONE:
        return api_error(row.error_code, row.error_message)
    entries = [_entry(config) for config in row.configs]
    return sorted(entries, key=lambda entry: entry.name) if is_sorted else entries


def _entry(row: messages.DescribeConfigsResponse.DescribeConfigsResourceResult) -> ConfigEntry:
    """Convert one setting of a DescribeConfigs response; its type is None before version 3."""
    return ConfigEntry(
        row.name,
        row.value,
        ConfigSource.of(row.config_source),
        row.is_sensitive,
        row.read_only,
        _TYPES.get(row.config_type),
        row.documentation,
        tuple(Synonym(s.name, s.value, ConfigSource.of(s.source)) for s in row.synonyms),
    )


def alter_configs(
    client: KafkaClient,
    changes: Mapping[Resource, Sequence[ConfigChange]],
    *,
    validate_only: bool = False,
) -> dict[Resource, ApiError | None]:
    """Change the named settings of resources.

    Returns the error of each resource, None if it changed. Other settings stay unchanged. With
    `validate_only` nothing is changed. Raises NoCommonVersion for brokers before 2.3, which can
    only replace all settings together.
    """
    failures: dict[Resource, ApiError | None] = {}
    for to, requested in _by_destination(changes).items():
        message = _alter_request({r: changes[r] for r in requested}, validate_only)
        response: messages.IncrementalAlterConfigsResponse
        response = client.send("IncrementalAlterConfigs", message, to=to).message
        for row in response.responses:
            resource = Resource(ConfigResourceType(row.resource_type), row.resource_name)
            failed = row.error_code != NONE
            failures[resource] = api_error(row.error_code, row.error_message) if failed else None
    return failures


def _alter_request(
    changes: Mapping[Resource, Sequence[ConfigChange]], validate_only: bool
) -> messages.IncrementalAlterConfigsRequest:
    """Build an IncrementalAlterConfigs request with one row per resource."""
    request = messages.IncrementalAlterConfigsRequest
    rows = [
        request.AlterConfigsResource(
            resource_type=int(resource.kind),
            resource_name=resource.name,
            configs=[
                request.AlterableConfig(name=c.name, config_operation=int(c.op), value=c.value)
                for c in wanted
            ],
        )
        for resource, wanted in changes.items()
    ]
    return request(resources=rows, validate_only=validate_only)


def list_config_resources(
    client: KafkaClient, kinds: Sequence[ConfigResourceType]
) -> list[Resource]:
    """Return the resources of some kinds that have at least one setting of their own.

    Raises NoCommonVersion from brokers with ZooKeeper, and from older ones for kinds other than
    client metrics.
    Source: KIP-1142.
    """
    is_of_metrics = set(kinds) == {ConfigResourceType.CLIENT_METRICS}
    request = message_class("ListConfigResourcesRequest", _LATER_RELEASE)
    response = client.send(
        "ListConfigResources",
        lambda version: request(resource_types=list(kinds)) if version else request(),
        lowest=0 if is_of_metrics else 1,
        release=_LATER_RELEASE,
    ).message
    if response.error_code != NONE:
        raise api_error(response.error_code)
    return [
        Resource(ConfigResourceType(row.resource_type), row.resource_name)
        for row in response.config_resources
    ]
