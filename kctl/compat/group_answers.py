"""Requests of `kafka-consumer-groups`, and failures as Java prints them.

A failure of the admin client is wrapped by ExecutionException, and again where the tool throws a
RuntimeException (`Waits.TWICE`).

Source: ConsumerGroupCommand.ConsumerGroupService, KafkaAdminClient of 3.9.1.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import Enum
from typing import Final

from engine.client.blocking import KafkaClient
from engine.client.errors import AuthenticationFailed, TimedOut, Unreachable
from engine.client.groups import (
    CONSUMER,
    CommitView,
    GroupDescription,
    GroupListing,
    committed_offsets,
    describe_group,
    list_groups,
    request_commits,
)
from engine.client.metadata import topic_failure
from engine.client.offsets import EARLIEST, LATEST, list_offsets
from engine.errors import ApiError, EngineError, api_error
from engine.kafka_errors import UNKNOWN_TOPIC_OR_PARTITION
from engine.model import TopicPartition
from kctl.compat.java_admin import UNNAMED_TOPIC, timed_out_text
from kctl.compat.java_failures import ToolFailure, java_text
from kctl.compat.java_order import names_in_java_order
from kctl.compat.releases import Release
from kctl.guard_errors import GUARD_ERRORS

_EXECUTION: Final = "java.util.concurrent.ExecutionException"
_RUNTIME: Final = "java.lang.RuntimeException"
_TIMEOUT: Final = "org.apache.kafka.common.errors.TimeoutException"


class Waits(Enum):
    """Number of exceptions that wrap a failure when the tool prints it."""

    ONCE = "once"
    TWICE = "twice"


def cause_text(error: EngineError, call: str) -> str:
    """Return Java's text for the failure of an admin call."""
    if isinstance(error, TimedOut | Unreachable):
        return f"{_TIMEOUT}: Timed out waiting for a node assignment. Call: {call}"
    return java_text(error)


def failure(error: EngineError, call: str, waits: Waits) -> ToolFailure:
    """Return the ToolFailure for a failed admin call, with Java's exceptions as causes.

    `waits` is how the tool waits for the call, on which the wrapping depends. Raises an error of a
    context's guards unchanged.
    """
    if isinstance(error, GUARD_ERRORS):
        raise error
    return _ended_by(cause_text(error, call), waits)


def _ended_by(cause: str, waits: Waits) -> ToolFailure:
    """Return the ToolFailure with this cause, wrapped as Java's futures wrap it."""
    if waits is Waits.ONCE:
        return ToolFailure(_EXECUTION, cause, cause)
    return ToolFailure(_RUNTIME, f"{_EXECUTION}: {cause}", f"{_EXECUTION}: {cause}", cause)


def connect_client(connect: Callable[[], KafkaClient]) -> KafkaClient:
    """Return a client of the cluster.

    Errors: ToolFailure, wrapped in a RuntimeException if a properties file is unreadable.
    """
    try:
        return connect()
    except ToolFailure as failure:
        if not failure.java_class.startswith("java."):
            raise
        cause = f"{failure.java_class}: {failure}"
        raise ToolFailure(_RUNTIME, cause, cause) from failure


def list_consumer_groups(
    client: KafkaClient,
    waits: Waits = Waits.TWICE,
    is_wanted: Callable[[GroupListing], bool] = lambda _group: True,
) -> list[GroupListing]:
    """Return the consumer groups that `is_wanted` accepts, in the order of Java's HashMap.

    `waits` is how many exceptions wrap a failure in the tool's output. Errors: ToolFailure.
    """
    return _in_map_order(
        group
        for group in _request_groups(client, waits)
        if group.protocol_type in (CONSUMER, "") and is_wanted(group)
    )


def groups_of_type(
    client: KafkaClient, group_type: str, waits: Waits, states: Collection[str] = ()
) -> list[GroupListing]:
    """Return the groups of a type and of `states` (empty: any), in Java's HashMap order.

    Errors: ToolFailure.
    """
    return _in_map_order(_request_groups(client, waits, types=[group_type], states=sorted(states)))


def _request_groups(
    client: KafkaClient, waits: Waits, *, types: Sequence[str] = (), states: Sequence[str] = ()
) -> list[GroupListing]:
    """Request the groups of all brokers; raises the first failure wrapped like Java's."""
    try:
        groups, failures = list_groups(client, types=types, states=states)
    except (AuthenticationFailed, TimedOut, Unreachable) as error:
        cause = "org.apache.kafka.common.KafkaException: Failed to find brokers to send ListGroups"
        raise _ended_by(cause, waits) from error
    except EngineError as error:
        raise failure(error, "listGroups", waits) from error
    for refusal in failures.values():
        raise failure(refusal, "listGroups", waits)
    return groups


def _in_map_order(groups: Iterable[GroupListing]) -> list[GroupListing]:
    """Return groups in the order of Java's HashMap by id, in which the tool prints them."""
    by_id = {group.group_id: group for group in groups}
    return [by_id[group_id] for group_id in names_in_java_order(by_id)]


def describe_groups_in_order(
    client: KafkaClient,
    group_ids: Iterable[str],
    waits: Waits,
    release: Release = Release.V3_9,
) -> dict[str, GroupDescription]:
    """Describe groups, in the order of Java's HashMap; unknown ones are Dead. Raises ToolFailure.

    With the tool of 4.3.0, brokers of that release return an error for an unknown group.
    """
    found = {}
    for group_id in names_in_java_order(dict.fromkeys(group_ids)):
        try:
            found[group_id] = describe_group(client, group_id, release=release.value)
        except EngineError as error:
            call = "describeConsumerGroups(api=FIND_COORDINATOR)"
            raise failure(error, call, waits) from error
    return found


def committed(client: KafkaClient, group_id: str) -> dict[TopicPartition, int]:
    """Return a group's committed offsets; raises ToolFailure."""
    try:
        return committed_offsets(client, group_id)
    except EngineError as error:
        raise failure(error, "offsetFetch(api=FIND_COORDINATOR)", Waits.TWICE) from error


def committed_views(client: KafkaClient, group_id: str) -> dict[TopicPartition, CommitView]:
    """Return a group's committed offsets with leader epochs; raises ToolFailure."""
    try:
        return request_commits(client, group_id)
    except EngineError as error:
        raise failure(error, "offsetFetch(api=FIND_COORDINATOR)", Waits.TWICE) from error


def start_offsets(
    client: KafkaClient, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, int]:
    """Return the log start offsets of partitions; raises ToolFailure if one is not known."""
    return request_offsets_at(client, dict.fromkeys(partitions, EARLIEST))


def end_offsets(
    client: KafkaClient, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, int]:
    """Return the log end offsets of partitions; raises ToolFailure if one is not known."""
    return request_offsets_at(client, dict.fromkeys(partitions, LATEST))


def request_offsets_at(
    client: KafkaClient, times: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Return each partition's first offset at or after a time in ms; -1 if there is none.

    EARLIEST and LATEST are times, too. Unknown partitions are requested again until the time-out,
    as by Kafka's client. Errors: ToolFailure.
    """
    deadline_ms = client.clock.monotonic_ms() + client.timeout_ms
    attempts = 0
    while True:
        try:
            found = list_offsets(client, times) if times else {}
        except EngineError as error:
            raise failure(error, "listOffsets(api=METADATA)", Waits.TWICE) from error
        attempts += 1
        errors = [result for result in found.values() if isinstance(result, EngineError)]
        if not errors:
            return {
                partition: result.offset
                for partition, result in found.items()
                if not isinstance(result, EngineError)
            }
        if not all(map(_is_unknown, errors)):
            raise failure(errors[0], "listOffsets(api=METADATA)", Waits.TWICE)
        if client.clock.monotonic_ms() >= deadline_ms:
            raise _timed_out(client.clock.wall_ms(), attempts)
        client.back_off(0)


def _is_unknown(error: EngineError) -> bool:
    """Return True if the broker does not know the partition, so that Java's client retries."""
    return isinstance(error, ApiError) and error.code == UNKNOWN_TOPIC_OR_PARTITION


def _timed_out(now_ms: int, attempts: int) -> ToolFailure:
    """Return the ToolFailure of a ListOffsets call that was retried until its time-out."""
    cause = f"{_TIMEOUT}: {timed_out_text('listOffsets(api=METADATA)', now_ms, attempts)}"
    return ToolFailure(_RUNTIME, f"{_EXECUTION}: {cause}", f"{_EXECUTION}: {cause}", cause)


def request_topic_partitions(
    client: KafkaClient, topics: Sequence[str]
) -> dict[str, list[TopicPartition] | EngineError]:
    """Return the partitions of each topic, or the error of its metadata."""
    found: dict[str, list[TopicPartition] | EngineError] = {}
    if not topics:
        return found
    view = client.view(topics)
    for topic in topics:
        error = topic_failure(view, topic)
        if error is not None:
            found[topic] = api_error(error.code, None if topic else UNNAMED_TOPIC)
        else:
            rows = view.topics[topic].partitions
            found[topic] = [TopicPartition(topic, row.partition) for row in rows]
    return found
