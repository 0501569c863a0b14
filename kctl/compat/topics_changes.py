"""`kafka-topics --create`, `--alter` and `--delete`.

Source: TopicCommand.TopicService.createTopic, alterTopic, deleteTopic of 3.9.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, TextIO

from engine.admin.config_message import config_message
from engine.client.blocking import KafkaClient
from engine.client.topic_admin import (
    BROKER_DEFAULT,
    CreatedTopic,
    NewPartitions,
    NewTopic,
    create_partitions,
    create_topics,
    delete_topics,
)
from engine.config.key import topic_keys
from engine.config.settings import BrokerSettings
from engine.config.topic_config import check_topic_overrides
from engine.errors import ApiError, ConfigError
from engine.kafka_errors import TOPIC_ALREADY_EXISTS
from kctl.compat.java_admin import (
    ILLEGAL_ARGUMENT,
    UNNAMED_TOPIC,
    admin_call,
    admin_failure,
    raise_first,
)
from kctl.compat.java_failures import ADMIN_COMMAND_FAILED, ADMIN_OPERATION, ToolFailure
from kctl.compat.java_numbers import INT_BITS, java_number
from kctl.compat.java_options import GivenOptions
from kctl.compat.java_order import names_in_java_order
from kctl.compat.java_split import java_split, java_split_pattern
from kctl.compat.topics_views import need_topics, request_selected_topics

_SHORT_MAX: Final = 0x7FFF
_INVALID_TOPIC: Final = "org.apache.kafka.common.errors.InvalidTopicException"
_CONFIG_REFUSED: Final = "org.apache.kafka.common.config.ConfigException"
_KEY_UNKNOWN: Final = "org.apache.kafka.common.errors.InvalidConfigurationException"
_FORMAT_VERSION: Final = "message.format.version"


class _Wanted(NamedTuple):
    """The topic that options define; None means the brokers' default."""

    name: str
    partition_count: int | None
    replication_factor: int | None
    assignment: list[tuple[int, ...]]
    configs: dict[str, str]


def create_named_topic(client: KafkaClient, given: GivenOptions, out: TextIO) -> None:
    """Create the topic of --create and print the result; raises ToolFailure."""
    wanted = _parse_topic(given, out)
    if "." in wanted.name or "_" in wanted.name:
        out.write(
            "WARNING: Due to limitations in metric names, topics with a period ('.') or "
            "underscore ('_') could collide. To avoid issues it is best to use either, but not "
            "both.\n"
        )
    factor, count = wanted.replication_factor, wanted.partition_count
    if factor is not None and not 1 <= factor <= _SHORT_MAX:
        message = f"The replication factor must be between 1 and {_SHORT_MAX} inclusive"
        raise ToolFailure(ILLEGAL_ARGUMENT, message)
    if count is not None and count < 1:
        raise ToolFailure(ILLEGAL_ARGUMENT, "The partitions must be greater than 0")
    if not wanted.name:
        raise ToolFailure(_INVALID_TOPIC, UNNAMED_TOPIC)
    result = _create(client, wanted)
    if isinstance(result, CreatedTopic):
        out.write(f"Created topic {wanted.name}.\n")
    elif result.code != TOPIC_ALREADY_EXISTS or not given.has("if-not-exists"):
        raise admin_failure(result, "createTopics")


def _create(client: KafkaClient, wanted: _Wanted) -> CreatedTopic | ApiError:
    """Create the topic; return its description, or the broker's error."""
    count, factor = wanted.partition_count, wanted.replication_factor
    topic = NewTopic(
        wanted.name,
        BROKER_DEFAULT if count is None else count,
        BROKER_DEFAULT if factor is None else factor,
        tuple(wanted.assignment),
        wanted.configs,
    )
    with admin_call("createTopics"):
        return create_topics(client, [topic])[wanted.name]


def _parse_topic(given: GivenOptions, out: TextIO) -> _Wanted:
    """Return the topic that options describe, for --create and --alter; raises ToolFailure.

    Options are checked in the order of Kafka's tool, since its first error is printed.
    """
    return _Wanted(
        given.needed("topic"),
        _count(given, "partitions"),
        _count(given, "replication-factor"),
        parse_replica_assignment(given.text("replica-assignment") or ","),
        _parse_configs(given.texts("config"), out),
    )


def _count(given: GivenOptions, name: str) -> int | None:
    """Return an option's integer, None without the option; raises ToolFailure for other texts."""
    return given.number(name, 0, INT_BITS) if given.has(name) else None


def parse_replica_assignment(text: str) -> list[tuple[int, ...]]:
    """Parse the replicas of each partition, `1:2,2:3`; empty for `,`. Raises ToolFailure."""
    assignment: list[tuple[int, ...]] = []
    for index, of_partition in enumerate(java_split(text, ",")):
        replicas = [java_number(part.strip()) for part in java_split(of_partition, ":")]
        twice = sorted({replica for replica in replicas if replicas.count(replica) > 1})
        if twice:
            named = ",".join(map(str, twice))
            message = f"Partition replica lists may not contain duplicate entries: {named}"
            raise ToolFailure(ADMIN_COMMAND_FAILED, message)
        assignment.append(tuple(replicas))
        if len(replicas) != len(assignment[0]):
            message = f"Partition {index} has different replication factor: {replicas}"
            raise ToolFailure(ADMIN_OPERATION, message)
    return assignment


def _parse_configs(texts: Sequence[str], out: TextIO) -> dict[str, str]:
    """Parse the settings of a new topic; raises ToolFailure for unknown ones."""
    pairs = [java_split_pattern(text, r"\s*=\s*") for text in texts]
    if any(len(pair) != 2 for pair in pairs):
        message = (
            "requirement failed: Invalid topic config: all configs to be added must be in the "
            'format "key=val".'
        )
        raise ToolFailure(ILLEGAL_ARGUMENT, message)
    configs = {name.strip(): value.strip() for name, value in pairs}
    try:
        check_topic_overrides(configs, BrokerSettings({}))
    except ConfigError as error:
        # The broker checks whether tiered storage is enabled.
        if not error.rule.startswith("needs tiered storage"):
            java_class = _CONFIG_REFUSED if error.key in topic_keys() else _KEY_UNKNOWN
            raise ToolFailure(java_class, config_message(error)) from error
    if _FORMAT_VERSION in configs:
        out.write(
            f"WARNING: The configuration {_FORMAT_VERSION}={configs[_FORMAT_VERSION]} is "
            "specified. "
            "This configuration will be ignored if the version is newer than the "
            "inter.broker.protocol.version specified in the broker or if the "
            "inter.broker.protocol.version is 3.0 or newer. This configuration is deprecated and "
            "it will be removed in Apache Kafka 4.0.\n"
        )
    return configs


def add_partitions(client: KafkaClient, given: GivenOptions, out: TextIO) -> None:
    """Raise the number of partitions of the selected topics (--alter); raises ToolFailure.

    `--replica-assignment` has the replicas of all partitions: those of the existing ones are
    skipped.
    """
    wanted = _parse_topic(given, out)
    found = request_selected_topics(client, given)
    need_topics(found, given)
    if not found or wanted.partition_count is None:
        return
    growth = {}
    by_name = {topic.name: topic for topic in found}
    for name in names_in_java_order(by_name):
        topic = by_name[name]
        added = tuple(wanted.assignment[len(topic.partitions) :])
        is_assigned = bool(wanted.assignment)
        growth[topic.name] = NewPartitions(wanted.partition_count, added if is_assigned else None)
    with admin_call("createPartitions"):
        results = create_partitions(client, growth)
    raise_first(results)


def delete_selected_topics(client: KafkaClient, given: GivenOptions) -> None:
    """Delete the topics that --topic selects (--delete); raises ToolFailure."""
    found = request_selected_topics(client, given)
    need_topics(found, given)
    if not found:
        return
    with admin_call("deleteTopics"):
        results = delete_topics(client, [topic.name for topic in found])
    raise_first(results)
