"""The rules for creating a topic, and for adding partitions to an existing one: pure.

The checks of a new topic, in Kafka's order:

| rule | error |
|---|---|
| the brokers' metadata does not have it | TOPIC_ALREADY_EXISTS |
| no setting is null | INVALID_CONFIG |
| it has counts or an assignment, not both | INVALID_REQUEST |
| counts fit the live brokers | INVALID_PARTITIONS, INVALID_REPLICATION_FACTOR |
| its name is allowed | INVALID_TOPIC_EXCEPTION |
| it is not being deleted, nor stored already | TOPIC_ALREADY_EXISTS |
| no other topic differs only in '.' and '_' | INVALID_TOPIC_EXCEPTION |
| an assignment has equal counts, no duplicates, partitions from 0 | INVALID_REPLICA_ASSIGNMENT |
| its settings are allowed | INVALID_CONFIG |
| the operator's policy allows it (`policies.py`) | POLICY_VIOLATION |

Source: ZkAdminManager.createTopics, AdminZkClient.validateTopicCreate and
createNewPartitionsAssignment, and the output of kafka-topics.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from engine.admin.config_message import config_message
from engine.admin.topic_errors import TopicRefused
from engine.config.settings import BrokerSettings
from engine.config.topic_config import check_topic_overrides
from engine.errors import ConfigError
from engine.kafka_errors import (
    INVALID_CONFIG,
    INVALID_PARTITIONS,
    INVALID_REPLICA_ASSIGNMENT,
    INVALID_REQUEST,
    INVALID_TOPIC_EXCEPTION,
    TOPIC_ALREADY_EXISTS,
)
from engine.limits import TOPIC_NAME_CHARS_MAX, TOPIC_PARTITIONS_MAX
from engine.naming import InvalidTopicName, topics_collide, validate_topic

#: Instead of a count: the broker's default.
BROKERS_DEFAULT = -1


class CreatableTopic(NamedTuple):
    """A topic to create, with counts, or with an assignment by partition as in the request."""

    name: str
    partition_count: int = BROKERS_DEFAULT
    replication_factor: int = BROKERS_DEFAULT
    assignments: Sequence[tuple[int, tuple[int, ...]]] = ()
    configs: Sequence[tuple[str, str | None]] = ()


def check_form(topic: CreatableTopic) -> None:
    """Raise TopicRefused if a request for a new topic is malformed.

    A setting is null, both counts and an assignment are given, or there are too many partitions.
    """
    nulls = [name for name, value in topic.configs if value is None]
    if nulls:
        raise TopicRefused(
            INVALID_CONFIG, f"Null value not supported for topic configs: {','.join(nulls)}"
        )
    has_counts = (
        topic.partition_count != BROKERS_DEFAULT or topic.replication_factor != BROKERS_DEFAULT
    )
    if has_counts and topic.assignments:
        raise TopicRefused(
            INVALID_REQUEST,
            "Both numPartitions or replicationFactor and replicasAssignments were set. "
            "Both cannot be used at the same time.",
        )
    check_partition_count(max(topic.partition_count, len(topic.assignments)))


def check_partition_count(partition_count: int) -> None:
    """Raise TopicRefused for more partitions than a znode can have children."""
    if partition_count > TOPIC_PARTITIONS_MAX:
        raise TopicRefused(
            INVALID_PARTITIONS,
            f"Number of partitions must not be larger than {TOPIC_PARTITIONS_MAX}.",
        )


def check_name(topic: str) -> None:
    """Raise TopicRefused with Kafka's message if a topic name is invalid."""
    try:
        validate_topic(topic)
    except InvalidTopicName as error:
        message = f"Topic name is invalid: {_name_error(topic)}"
        raise TopicRefused(INVALID_TOPIC_EXCEPTION, message) from error


def is_name(topic: str) -> bool:
    """Return True if Kafka allows the topic name."""
    try:
        validate_topic(topic)
    except InvalidTopicName:
        return False
    return True


def _name_error(topic: str) -> str:
    """Return Kafka's reason why a topic name is invalid."""
    if not topic:
        return "the empty string is not allowed"
    if topic in (".", ".."):
        return f"'{topic}' is not allowed"
    if len(topic) > TOPIC_NAME_CHARS_MAX:
        return (
            f"the length of '{topic}' is longer than the max allowed length {TOPIC_NAME_CHARS_MAX}"
        )
    return (
        f"'{topic}' contains one or more characters other than ASCII alphanumerics, "
        "'.', '_' and '-'"
    )


def already_exists(topic: str) -> TopicRefused:
    """Return the error for the creation of a topic that exists."""
    return TopicRefused(TOPIC_ALREADY_EXISTS, f"Topic '{topic}' already exists.")


def can_collide(topic: str) -> bool:
    """Return True if another topic's name could be equal to this one in metric names."""
    return "." in topic or "_" in topic


def check_collisions(topic: str, others: Iterable[str]) -> None:
    """Raise TopicRefused if the name of one of `others` differs only in '.' and '_'."""
    colliding = [other for other in others if topics_collide(topic, other)]
    if topic in colliding:
        raise already_exists(topic)
    if colliding:
        raise TopicRefused(
            INVALID_TOPIC_EXCEPTION,
            f"Topic '{topic}' collides with existing topics: {', '.join(colliding)}",
        )


def check_assignment(assignment: Mapping[int, tuple[int, ...]]) -> None:
    """Raise TopicRefused for an invalid assignment of a new topic; unknown brokers are allowed."""
    if len({len(replicas) for replicas in assignment.values()}) != 1:
        raise TopicRefused(
            INVALID_REPLICA_ASSIGNMENT, "All partitions should have the same number of replicas"
        )
    if any(len(replicas) != len(set(replicas)) for replicas in assignment.values()):
        raise TopicRefused(
            INVALID_REPLICA_ASSIGNMENT,
            f"Duplicate replica assignment found: {_scala_map(assignment)}",
        )
    if 0 not in assignment and _has_sum_of_range(assignment):
        # Kafka's check by the sum of the indexes passes; it fails later, without partition 0.
        return
    if sorted(assignment) != list(range(len(assignment))):
        raise TopicRefused(
            INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        )


def _has_sum_of_range(indexes: Iterable[int]) -> bool:
    """Return True if indexes have the sum of 0 to n-1, with negative ones as 0: Kafka's check."""
    counted = list(indexes)
    return sum(max(index, 0) for index in counted) == len(counted) * (len(counted) - 1) // 2


def check_configs(configs: Mapping[str, str], settings: BrokerSettings) -> None:
    """Raise TopicRefused if a setting of a new topic is invalid."""
    try:
        check_topic_overrides(configs, settings)
    except ConfigError as error:
        raise TopicRefused(INVALID_CONFIG, config_message(error)) from error


def check_growth(old_count: int, new_count: int) -> None:
    """Raise TopicRefused unless the partition count increases."""
    if new_count < old_count:
        raise TopicRefused(
            INVALID_PARTITIONS,
            f"Topic currently has {old_count} partitions, which is higher than the requested "
            f"{new_count}.",
        )
    if new_count == old_count:
        raise TopicRefused(INVALID_PARTITIONS, f"Topic already has {old_count} partitions.")


def check_added_replicas(
    assignments: Sequence[tuple[int, ...]],
    *,
    old_count: int,
    new_count: int,
    replication_factor: int,
    broker_ids: AbstractSet[int],
) -> None:
    """Raise TopicRefused if the requested replicas of added partitions are invalid.

    `broker_ids` are the live brokers, `replication_factor` is that of partition 0.

    Differs: five or more unknown brokers are listed in the given order, in Kafka in hash order.
    """
    named = dict.fromkeys(broker_id for replicas in assignments for broker_id in replicas)
    unknown = [broker_id for broker_id in named if broker_id not in broker_ids]
    if unknown:
        raise TopicRefused(
            INVALID_REPLICA_ASSIGNMENT,
            f"Unknown broker(s) in replica assignment: {_join_numbers(unknown)}.",
        )
    if len(assignments) != new_count - old_count:
        raise TopicRefused(
            INVALID_REPLICA_ASSIGNMENT,
            f"Increasing the number of partitions by {new_count - old_count} "
            f"but {len(assignments)} assignments provided.",
        )
    for partition, replicas in enumerate(assignments, old_count):
        _check_added(partition, replicas)
    uneven = {
        partition: len(replicas)
        for partition, replicas in enumerate(assignments, old_count)
        if len(replicas) != replication_factor
    }
    if uneven:
        raise TopicRefused(
            INVALID_REPLICA_ASSIGNMENT,
            "Inconsistent replication factor between partitions, partition 0 has "
            f"{replication_factor} while partitions [{_join_numbers(uneven)}] have replication "
            f"factors [{_join_numbers(uneven.values())}], respectively.",
        )


def _check_added(partition: int, replicas: tuple[int, ...]) -> None:
    """Raise TopicRefused if a new partition has no replicas, or a broker twice."""
    if not replicas:
        raise TopicRefused(
            INVALID_REPLICA_ASSIGNMENT,
            f"Cannot have replication factor of 0 for partition id {partition}.",
        )
    if len(replicas) != len(set(replicas)):
        raise TopicRefused(
            INVALID_REPLICA_ASSIGNMENT,
            f"Duplicate brokers not allowed in replica assignment: {_join_numbers(replicas)} for "
            f"partition id {partition}.",
        )


def _scala_map(assignment: Mapping[int, tuple[int, ...]]) -> str:
    """Return an assignment as Scala prints a map, for Kafka's message."""
    pairs = (f"{p} -> ArrayBuffer({_join_numbers(replicas)})" for p, replicas in assignment.items())
    return f"HashMap({', '.join(pairs)})"


def _join_numbers(values: Iterable[int]) -> str:
    """Return numbers separated by commas."""
    return ", ".join(map(str, values))
