"""`kafka-streams-groups --delete` and `--delete-offsets`.

Source: StreamsGroupCommand.deleteGroups, deleteOffsets of 4.3.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TextIO

from engine.client.blocking import KafkaClient
from engine.client.group_admin import delete_groups
from engine.client.groups import request_commits
from engine.errors import EngineError
from engine.model import TopicPartition
from kctl.compat.group_answers import Waits, cause_text, failure, groups_of_type
from kctl.compat.groups_changes import delete_partitions, partitions_to_delete, print_deleted
from kctl.compat.java_options import GivenOptions
from kctl.compat.java_order import in_java_map_order, names_in_java_order
from kctl.compat.streams_groups_views import (
    STREAMS_TYPE,
    chosen_groups,
    described,
    source_topics,
)
from kctl.compat.streams_topics import cause_of, delete_internal_topics, request_internal_topics
from kctl.compat.typed_groups import deletion_refusals

_DELETE_CALL: Final = "deleteConsumerGroups(api=FIND_COORDINATOR)"
_OFFSETS_CALL: Final = "offsetFetch(api=FIND_COORDINATOR)"


# Deletion of groups


def delete_streams_groups(
    client: KafkaClient, given: GivenOptions, out: TextIO, err: TextIO
) -> None:
    """Delete streams groups, with their internal topics if requested, and print the results.

    Errors: ToolFailure.
    """
    group_ids = chosen_groups(client, given)
    listed = groups_of_type(client, STREAMS_TYPE, Waits.TWICE)
    unknown = "does not exist or is not a streams group."
    failed = deletion_refusals(group_ids, listed, "Streams", unknown)
    left = [group_id for group_id in group_ids if group_id not in failed]
    topics: Mapping[str, Sequence[str]] = {}
    if left and given.has("delete-all-internal-topics"):
        topics = request_internal_topics(client, left, out, err)
    results = delete_groups(client, left)
    failed |= {name: cause_text(e, _DELETE_CALL) for name, e in results.items() if e is not None}
    deleted = names_in_java_order(name for name, error in results.items() if error is None)
    failures = _delete_topics(client, deleted, topics, out)
    _print_results(deleted, failed, out)
    if topics:
        _print_topic_results(deleted, topics, failures, out)


def _delete_topics(
    client: KafkaClient,
    deleted: Iterable[str],
    topics: Mapping[str, Sequence[str]],
    out: TextIO,
) -> dict[str, str]:
    """Delete the internal topics of groups that were deleted; return error texts by group."""
    failures = {}
    for group_id in deleted:
        failed, error = delete_internal_topics(client, topics.get(group_id, ()))
        out.writelines(f"Failed to delete internal topic: {topic}\n" for topic in failed)
        if error is not None:
            failures[group_id] = cause_of(error)
    return failures


def _print_results(deleted: Sequence[str], failed: Mapping[str, str], out: TextIO) -> None:
    """Print which groups were deleted, and the errors of the other groups."""
    named = "', '".join(deleted)
    if not failed:
        out.write(f"Deletion of requested streams groups ('{named}') was successful.\n")
        return
    out.write("\nError: Deletion of some streams groups failed:\n")
    for group_id in names_in_java_order(failed):
        out.write(f"* Group '{group_id}' could not be deleted due to: {failed[group_id]}\n")
    if deleted:
        out.write(f"\nThese streams groups were deleted successfully: '{named}'.\n")


def _print_topic_results(
    deleted: Sequence[str],
    topics: Mapping[str, Sequence[str]],
    failures: Mapping[str, str],
    out: TextIO,
) -> None:
    """Print whether the internal topics of deleted groups were deleted."""
    if not deleted:
        return
    if not failures:
        named = "', '".join(group_id for group_id in deleted if group_id in topics)
        out.write(
            "Deletion of associated internal topics of the streams groups "
            f"('{named}') was successful.\n"
        )
        return
    out.write("Deletion of some associated internal topics failed:\n")
    for group_id in names_in_java_order(failures):
        out.write(
            f"* Internal topics of the streams group '{group_id}' could not be deleted due to: "
            f"{failures[group_id]}\n"
        )


# Deletion of offsets


def delete_streams_offsets(client: KafkaClient, given: GivenOptions, out: TextIO) -> None:
    """Delete a streams group's committed offsets, and print the result of each partition.

    They are those of all input topics, or of --input-topic. Errors: ToolFailure, OptionsRefused.
    """
    group_id = given.needed("group")
    results: dict[TopicPartition, str | None] = {}
    if given.has("all-input-topics"):
        partitions = input_partitions(client, group_id)
    else:
        partitions = partitions_to_delete(client, given.texts("input-topic"), results)
    code = delete_partitions(client, group_id, partitions, results)
    print_deleted(group_id, code, results, out)


def input_partitions(client: KafkaClient, group_id: str) -> list[TopicPartition]:
    """Return the partitions of a streams group's input topics with a committed offset.

    They are in Java's order. Errors: ToolFailure.
    """
    topics = source_topics(described(client, group_id, Waits.TWICE), has_repartitions=False)
    return [key for key in committed_partitions(client, group_id) if key.topic in topics]


def committed_partitions(client: KafkaClient, group_id: str) -> list[TopicPartition]:
    """Return the partitions for which a group has a committed offset, in Java's order.

    Errors: ToolFailure.
    """
    try:
        return in_java_map_order(request_commits(client, group_id))
    except EngineError as error:
        raise failure(error, _OFFSETS_CALL, Waits.TWICE) from error
