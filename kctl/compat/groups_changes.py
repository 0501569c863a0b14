"""`kafka-consumer-groups --delete` and `--delete-offsets`.

Source: ConsumerGroupCommand.deleteGroups, deleteOffsets of 3.9.1 and 4.3.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from engine.client.blocking import KafkaClient
from engine.client.errors import TimedOut, Unreachable
from engine.client.group_admin import delete_groups, delete_offsets
from engine.errors import ApiError, EngineError, api_error
from engine.kafka_errors import (
    GROUP_AUTHORIZATION_FAILED,
    GROUP_ID_NOT_FOUND,
    GROUP_SUBSCRIBED_TO_TOPIC,
    INVALID_GROUP_ID,
    NON_EMPTY_GROUP,
    NONE,
    REQUEST_TIMED_OUT,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_OR_PARTITION,
    kafka_error,
)
from engine.model import TopicPartition
from kctl.compat.group_answers import cause_text, list_consumer_groups, request_topic_partitions
from kctl.compat.java_failures import message_of
from kctl.compat.java_numbers import is_java_number
from kctl.compat.java_options import GivenOptions, OptionsRefused
from kctl.compat.java_order import names_in_java_order
from kctl.compat.java_split import java_split

_EXECUTION = "java.util.concurrent.ExecutionException"
_NO_PARTITION = -1
_NOT_PROVIDED = "Not Provided"
_PARTITION_ERRORS = (
    GROUP_SUBSCRIBED_TO_TOPIC,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_OR_PARTITION,
)


def delete_selected_groups(client: KafkaClient, given: GivenOptions, out: TextIO) -> None:
    """Delete groups as kafka-consumer-groups --delete does, and print the results.

    Errors: ToolFailure if all groups are selected and cannot be listed.
    """
    if given.has("all-groups"):
        group_ids: Sequence[str] = [group.group_id for group in list_consumer_groups(client)]
    else:
        group_ids = given.texts("group")
    results = delete_groups(client, group_ids)
    order = names_in_java_order(results)
    deleted = [group_id for group_id in order if results[group_id] is None]
    failed = {group_id: error for group_id in order if (error := results[group_id]) is not None}
    if not failed:
        named = ("', '" if given.is_four else ", ").join(deleted)
        out.write(f"Deletion of requested consumer groups ('{named}') was successful.\n")
        return
    out.write("\nError: Deletion of some consumer groups failed:\n")
    for group_id, error in failed.items():
        cause = cause_text(error, "deleteConsumerGroups(api=FIND_COORDINATOR)")
        reason = cause if given.is_four else f"{_EXECUTION}: {cause}"
        out.write(f"* Group '{group_id}' could not be deleted due to: {reason}\n")
    if deleted:
        named = "', '".join(deleted)
        end = "" if given.is_four else ", '"
        out.write(f"\nThese consumer groups were deleted successfully: '{named}'{end}\n")


def delete_selected_offsets(client: KafkaClient, given: GivenOptions, out: TextIO) -> None:
    """Delete a group's committed offsets of topics, and print the result of each partition.

    Errors: ToolFailure, OptionsRefused.
    """
    group_id = given.needed("group")
    topics = given.texts("topic")
    results: dict[TopicPartition, str | None] = {}
    partitions = partitions_to_delete(client, topics, results)
    code = delete_partitions(client, group_id, partitions, results)
    if given.is_four:
        print_deleted(group_id, code, results, out)
        return
    if code == NONE:
        out.write(
            f"Request succeed for deleting offsets with topic {', '.join(topics)} "
            f"group {group_id}\n"
        )
    else:
        out.write(f"\nError: {_error_text(code, group_id)}\n")
    _print_results(results, out)


def delete_partitions(
    client: KafkaClient,
    group_id: str,
    partitions: Sequence[TopicPartition],
    results: dict[TopicPartition, str | None],
) -> int:
    """Delete a group's committed offsets; store each partition's error text, or None, in `results`.

    Returns the error code of the group, else of the first partition that failed, else NONE.
    """
    code = NONE
    try:
        changed = delete_offsets(client, group_id, partitions)
    except EngineError as error:
        code = error.code if isinstance(error, ApiError) else _code_of(error)
        changed = dict.fromkeys(partitions, error)
    for partition, failed in changed.items():
        results[partition] = None if failed is None else _cause(failed)
        if code == NONE and isinstance(failed, ApiError):
            code = failed.code
    return code


def _code_of(error: EngineError) -> int:
    """Return the error code by which Java's client reports an error without a code."""
    is_late = isinstance(error, TimedOut | Unreachable)
    return REQUEST_TIMED_OUT if is_late else UNKNOWN_SERVER_ERROR


def print_deleted(
    group_id: str, code: int, results: dict[TopicPartition, str | None], out: TextIO
) -> None:
    """Print the results of deleting offsets in the format of 4.3.0."""
    if code == NONE:
        out.write(f"Request succeeded for deleting offsets from group {group_id}.\n")
    elif code in _PARTITION_ERRORS:
        out.write("\nError: Encountered some partition-level error, see the follow-up details.\n")
    else:
        known = (INVALID_GROUP_ID, GROUP_ID_NOT_FOUND, GROUP_AUTHORIZATION_FAILED, NON_EMPTY_GROUP)
        message = (
            message_of(api_error(code))
            if code in known
            else f"Encountered some unknown error: {kafka_error(code).name}"
        )
        out.write(f"\nError: {message}\n")
    width = max([15, *(len(partition.topic) for partition in results)])
    rows = [("TOPIC", "PARTITION", "STATUS")]
    for partition in sorted(results, key=lambda key: f"{key.topic}{key.partition}"):
        error = results[partition]
        number = str(partition.partition) if partition.partition >= 0 else "-"
        status = "Successful" if error is None else f"Error: {error}"
        rows.append((partition.topic, number, status))
    out.write("\n")
    for topic, number, status in rows:
        out.write(f"{topic:<{width}} {number:<10} {status:<15}\n")


def _cause(error: EngineError) -> str:
    """Return the text of an error of OffsetDelete, as Java's client words it."""
    return cause_text(error, "offsetDelete(api=FIND_COORDINATOR)")


def partitions_to_delete(
    client: KafkaClient, topics: Sequence[str], results: dict[TopicPartition, str | None]
) -> list[TopicPartition]:
    """Return the partitions whose committed offsets are deleted.

    They are given as `TOPIC` or `TOPIC:0,1`. For a topic without metadata, its error is stored in
    `results`. Errors: OptionsRefused.
    """
    named = [partition for topic in topics if ":" in topic for partition in parse_partitions(topic)]
    whole = list(dict.fromkeys(topic for topic in topics if ":" not in topic))
    try:
        found = request_topic_partitions(client, whole)
    except (TimedOut, Unreachable) as error:
        found = dict.fromkeys(whole, error)
    for topic, of_topic in found.items():
        if isinstance(of_topic, EngineError):
            results[TopicPartition(topic, _NO_PARTITION)] = cause_text(of_topic, "listNodes")
        else:
            named += of_topic
    return list(dict.fromkeys(named))


def parse_partitions(text: str) -> list[TopicPartition]:
    """Parse `topic:0,1` into partitions; raises OptionsRefused."""
    parts = java_split(text, ":")
    if len(parts) != 2:
        message = f"Invalid topic arg '{text}', expected topic name and partitions"
        raise OptionsRefused(message, shows_usage=True)
    topic, numbers = parts
    return [TopicPartition(topic, _partition(word, text)) for word in java_split(numbers, ",")]


def _partition(word: str, text: str) -> int:
    """Parse a partition's number; raises OptionsRefused with Java's message."""
    if not is_java_number(word):
        message = f"Invalid partition '{word}' specified in topic arg '{text}''"
        raise OptionsRefused(message, shows_usage=True)
    return int(word)


def _error_text(code: int, group_id: str) -> str:
    """Return the tool's message for the error code of deleting offsets."""
    if code == INVALID_GROUP_ID:
        return f"'{group_id}' is not valid."
    if code == GROUP_ID_NOT_FOUND:
        return f"'{group_id}' does not exist."
    if code == GROUP_AUTHORIZATION_FAILED:
        return f"Access to '{group_id}' is not authorized."
    if code == NON_EMPTY_GROUP:
        return (
            f"Deleting offsets of a consumer group '{group_id}' is forbidden "
            "if the group is not empty."
        )
    if code in _PARTITION_ERRORS:
        return "Encounter some partition level error, see the follow-up details:"
    return f"Encounter some unknown error: {kafka_error(code).name}"


def _print_results(results: dict[TopicPartition, str | None], out: TextIO) -> None:
    """Print which offsets were deleted, in the format of 3.9.1: a table without line breaks."""
    out.write("\n" + _row("TOPIC", "PARTITION", "STATUS"))
    for partition in sorted(results, key=lambda key: f"{key.topic}{key.partition}"):
        error = results[partition]
        status = "Successful" if error is None else f"Error: :{error}"
        number = str(partition.partition) if partition.partition >= 0 else _NOT_PROVIDED
        out.write(_row(partition.topic, number, status))


def _row(topic: str, partition: str, status: str) -> str:
    """Return the padded cells of a table's row, without a line end."""
    return f"{topic:<30} {partition:<15} {status:<15}"
