"""`kafka-share-groups --delete`, `--delete-offsets` and `--reset-offsets`.

Source: ShareGroupCommand.deleteShareGroups, deleteOffsets, resetOffsets of 4.3.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TextIO

from engine.client.blocking import KafkaClient
from engine.client.group_admin import delete_groups
from engine.client.share_groups import (
    delete_share_starts,
    describe_share_group,
    request_share_starts,
    set_share_starts,
)
from engine.errors import ApiError, EngineError
from engine.host.ports import Files
from engine.kafka_errors import (
    GROUP_AUTHORIZATION_FAILED,
    GROUP_ID_NOT_FOUND,
    INVALID_GROUP_ID,
    NON_EMPTY_GROUP,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from engine.model import TopicPartition
from kctl.compat.group_answers import Waits, cause_text, groups_of_type
from kctl.compat.groups_plan import print_plan_table
from kctl.compat.java_admin import ILLEGAL_ARGUMENT, admin_call, admin_failure
from kctl.compat.java_failures import TerseFailure, ToolFailure, java_class, with_api_code
from kctl.compat.java_options import GivenOptions
from kctl.compat.java_order import (
    in_java_map_order,
    names_in_copied_java_order,
    names_in_java_order,
)
from kctl.compat.offset_scenarios import OffsetScenarios
from kctl.compat.reset_partitions import check_partitions, request_named_partitions
from kctl.compat.share_groups_views import DESCRIBE_CALL, SHARE_TYPE, STARTS_CALL
from kctl.compat.typed_groups import deletion_refusals

_INACTIVE: Final = ("Empty", "Dead")
_DELETE_CALL: Final = "deleteShareGroups(api=FIND_COORDINATOR)"
_DELETE_STARTS_CALL: Final = "deleteShareGroupOffsets(api=FIND_COORDINATOR)"
_ALTER_CALL: Final = "alterShareGroupOffsets(api=FIND_COORDINATOR)"
#: Errors of a group of which only the message is printed.
_KNOWN: Final = (INVALID_GROUP_ID, GROUP_ID_NOT_FOUND, GROUP_AUTHORIZATION_FAILED, NON_EMPTY_GROUP)
#: Errors of topics that are not printed for the group.
_OF_TOPICS: Final = (TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION)


# Deletion of groups


def delete_share_groups(client: KafkaClient, given: GivenOptions, out: TextIO) -> None:
    """Delete share groups as kafka-share-groups --delete does, and print the results.

    Errors: ToolFailure.
    """
    listed = groups_of_type(client, SHARE_TYPE, Waits.TWICE)
    group_ids: Sequence[str] = given.texts("group")
    if given.has("all-groups"):
        group_ids = [group.group_id for group in listed]
    refusals = deletion_refusals(group_ids, listed, "Share", "is not a share group.")
    results = delete_groups(client, [name for name in group_ids if name not in refusals])
    errors = {name: cause_text(e, _DELETE_CALL) for name, e in results.items() if e is not None}
    deleted = names_in_java_order(name for name, error in results.items() if error is None)
    named = ", ".join(f"'{name}'" for name in deleted)
    failed = {**refusals, **errors}
    if not failed:
        out.write(f"Deletion of requested share groups ({named}) was successful.\n")
        return
    out.write("\nError: Deletion of some share groups failed:\n")
    for group_id in names_in_copied_java_order(names_in_java_order(refusals), errors):
        out.write(f"* Group '{group_id}' could not be deleted due to: {failed[group_id]}\n")
    if deleted:
        out.write(f"\nThese share groups were deleted successfully: {named}\n")


# Deletion of start offsets


def delete_share_start_offsets(client: KafkaClient, given: GivenOptions, out: TextIO) -> None:
    """Delete a share group's start offsets of topics, and print the results.

    Errors: ToolFailure.
    """
    group_id = given.needed("group")
    topics = names_in_java_order(given.texts("topic"))
    results: dict[str, EngineError | None] = {}
    try:
        deleted = delete_share_starts(client, group_id, topics)
        results = {topic: deleted.get(topic, _absent(topic)) for topic in topics}
    except EngineError as error:
        results = dict.fromkeys(topics, with_api_code(error))
        _print_error_of_group(with_api_code(error), out)
    else:
        first = next((error for error in results.values() if error is not None), None)
        if first is not None:
            _print_error_of_group(first, out)
    width = max([15, *map(len, topics)])
    out.write(f"\n{'TOPIC':<{width}} STATUS\n")
    for topic in sorted(topics):
        failed = results[topic]
        status = "Successful" if failed is None else f"Error: {_message(failed)}"
        out.write(f"{topic:<{width}} {status}\n")


def _absent(topic: str) -> ToolFailure:
    """Return the failure for a topic that the response lacks."""
    message = f'Offset deletion result for topic "{topic}" was not included in the response'
    return ToolFailure(ILLEGAL_ARGUMENT, message)


def _print_error_of_group(error: EngineError, out: TextIO) -> None:
    """Print the error of a group, unless it is one that is printed per topic."""
    if isinstance(error, ApiError) and error.code in _KNOWN:
        out.write(f"\nError: {_message(error)}\n")
    elif not isinstance(error, ApiError) or error.code not in _OF_TOPICS:
        failed = admin_failure(error, _DELETE_STARTS_CALL)
        name = f"{failed.java_class}: " if isinstance(failed, ToolFailure) else ""
        out.write(f"\nError: Encounter some unknown error: {name}{failed}\n")


def _message(error: EngineError) -> str:
    """Return the message of an error, as Java's admin client words it."""
    return str(admin_failure(error, _DELETE_STARTS_CALL))


# Reset


def reset_share_start_offsets(
    client: KafkaClient, given: GivenOptions, files: Files, out: TextIO, err: TextIO
) -> None:
    """Compute a share group's new start offsets, set them with --execute, and print them.

    Errors: ToolFailure, OptionsRefused; TerseFailure for a group that has members.
    """
    group_id = given.needed("group")
    _require_inactive(client, group_id)
    partitions = _partitions(client, given, group_id)
    check_partitions(client, partitions)
    scenarios = OffsetScenarios(client, given, files, out, err, committed=lambda _name: {})
    offsets = scenarios.compute_offsets(group_id, partitions)
    ordered = {partition: offsets[partition] for partition in in_java_map_order(offsets)}
    if given.has("execute"):
        _set_starts(client, group_id, ordered)
    print_plan_table({group_id: ordered}, out)


def _require_inactive(client: KafkaClient, group_id: str) -> None:
    """Raise TerseFailure if the group has members or cannot be described.

    An unknown group is valid.
    """
    try:
        state = describe_share_group(client, group_id).state
    except EngineError as error:
        if isinstance(error, ApiError) and error.code == GROUP_ID_NOT_FOUND:
            return
        failed = admin_failure(with_api_code(error), DESCRIBE_CALL)
        if isinstance(failed, ToolFailure):
            raise TerseFailure(str(failed)) from error
        raise
    if state not in _INACTIVE:
        raise TerseFailure(f"Share group '{group_id}' is not empty.")


def _partitions(client: KafkaClient, given: GivenOptions, group_id: str) -> list[TopicPartition]:
    """Return the partitions to reset: those of --topic, else those with a start offset."""
    if given.has("topic"):
        return request_named_partitions(client, given.texts("topic"), given.release)
    with admin_call(STARTS_CALL):
        return in_java_map_order(request_share_starts(client, group_id))


def _set_starts(client: KafkaClient, group_id: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Set the group's start offsets; raises ToolFailure that names all failed partitions."""
    with admin_call(_ALTER_CALL):
        results = set_share_starts(client, group_id, offsets)
    failed = {key: error for key in in_java_map_order(results) if (error := results[key])}
    for error in failed.values():
        named = ", ".join(map(str, failed))
        message = f"Failed altering group offsets for the following partitions: [{named}]"
        raise ToolFailure(java_class(error), message)
