"""`kafka-streams-groups --reset-offsets`: select partitions, compute offsets, delete topics.

1. Each group is described; a group with members is refused, an unknown group is reset, too.
2. Its partitions are those of --input-topic, if all of them are committed, of --all-input-topics,
   or of the file.
3. Their new offsets come from the scenario; with --execute they are committed.
4. With --execute the named internal topics, or all of the topology, are deleted.
5. The table, or CSV, shows all groups.

Source: StreamsGroupCommand.resetOffsets, printOffsetsToReset of 4.3.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TextIO

from engine.client.blocking import KafkaClient
from engine.client.group_admin import set_offsets
from engine.client.groups import request_commits
from engine.client.streams_groups import StreamsGroup, describe_streams_group
from engine.errors import ApiError, EngineError
from engine.host.ports import Files
from engine.kafka_errors import GROUP_ID_NOT_FOUND, UNKNOWN_TOPIC_OR_PARTITION
from engine.model import TopicPartition
from kctl.compat.group_answers import Waits, failure
from kctl.compat.groups_plan import PLAN_HEADS, ResetPlan, plan_text
from kctl.compat.java_admin import admin_call
from kctl.compat.java_failures import ToolFailure, java_class
from kctl.compat.java_options import GivenOptions, refused
from kctl.compat.java_order import (
    in_java_map_order,
    names_in_copied_java_order,
    names_in_java_order,
)
from kctl.compat.offset_scenarios import OffsetScenarios
from kctl.compat.reset_partitions import check_partitions, request_named_partitions
from kctl.compat.streams_groups_changes import committed_partitions, input_partitions
from kctl.compat.streams_groups_views import DESCRIBE_CALL, chosen_groups, described, source_topics
from kctl.compat.streams_topics import cause_of, delete_internal_topics, request_internal_topics

_INACTIVE: Final = ("Empty", "Dead")
_COMMIT_CALL: Final = "offsetCommit(api=FIND_COORDINATOR)"


def reset_streams_offsets(
    client: KafkaClient, given: GivenOptions, files: Files, out: TextIO, err: TextIO
) -> None:
    """Compute new offsets of streams groups, commit them with --execute, and print them.

    A group with members is refused. Errors: ToolFailure, OptionsRefused.
    """
    reset = _StreamsReset(client, given, files, out, err)
    group_ids = names_in_copied_java_order(chosen_groups(client, given))
    found = {group_id: _described(client, group_id) for group_id in group_ids}
    plan = {}
    for group_id, group in found.items():
        if isinstance(group, EngineError):
            if not (isinstance(group, ApiError) and group.code == GROUP_ID_NOT_FOUND):
                raise failure(group, DESCRIBE_CALL, Waits.TWICE)
            plan[group_id] = reset.of_group(group_id)
        elif group.state not in _INACTIVE:
            out.write(
                f"\nError: Assignments can only be reset if the group '{group_id}' is inactive, "
                f"but the current state is {group.state}.\n"
            )
            plan[group_id] = {}
        else:
            plan[group_id] = reset.of_group(group_id)
            if given.has("execute"):
                reset.delete_topics_of(group_id)
    ordered = {group_id: plan[group_id] for group_id in names_in_java_order(plan)}
    if given.has("export"):
        names_groups = len(given.texts("group")) != 1
        out.write(plan_text(ordered, names_groups=names_groups) + "\n")
    else:
        _print_plan(ordered, out)


def _described(client: KafkaClient, group_id: str) -> StreamsGroup | EngineError:
    """Return a streams group's description, or its error instead of raising it."""
    try:
        return describe_streams_group(client, group_id)
    except EngineError as error:
        return error


def _print_plan(plan: ResetPlan, out: TextIO) -> None:
    """Print new offsets as a table with fixed column widths."""
    rows = [
        (group_id, key.topic, str(key.partition), str(offset))
        for group_id, offsets in plan.items()
        for key, offset in offsets.items()
    ]
    out.write("\n")
    for group_id, topic, partition, offset in (PLAN_HEADS, *rows) if plan else ():
        out.write(f"{group_id:<30} {topic:<30} {partition:<10} {offset:<15}\n")


class _StreamsReset:
    """Resets groups one by one, by the options of a call."""

    def __init__(
        self, client: KafkaClient, given: GivenOptions, files: Files, out: TextIO, err: TextIO
    ) -> None:
        """Create a reset with the options of the call; `files` is read for --from-file."""
        self._client = client
        self._given = given
        self._out = out
        self._err = err
        self._scenarios = OffsetScenarios(client, given, files, out, err, committed=self._committed)

    def of_group(self, group_id: str) -> dict[TopicPartition, int]:
        """Return a group's new offsets, and commit them with --execute.

        Errors: ToolFailure, OptionsRefused.
        """
        offsets = self._scenarios.compute_offsets(group_id, self._select_partitions(group_id))
        ordered = {partition: offsets[partition] for partition in in_java_map_order(offsets)}
        if self._given.has("execute"):
            self._commit(group_id, ordered)
        return ordered

    def _select_partitions(self, group_id: str) -> Sequence[TopicPartition]:
        """Return the partitions to reset: of all input topics, or of --input-topic.

        Empty for --from-file, which names them, or if one of --input-topic is not committed.
        Errors: OptionsRefused without any of these options, ToolFailure.
        """
        given = self._given
        if given.has("all-input-topics"):
            return input_partitions(self._client, group_id)
        if given.has("input-topic"):
            topics = given.texts("input-topic")
            partitions = request_named_partitions(self._client, topics, given.release)
            check_partitions(self._client, partitions)
            if set(partitions) <= set(committed_partitions(self._client, group_id)):
                return partitions
            self._out.write(
                f"\nError: One or more topics are not part of the group '{group_id}'.\n"
            )
            return []
        if not given.has("from-file"):
            raise refused("One of the reset scopes should be defined: --all-topics, --topic.")
        return []

    def _committed(self, group_id: str) -> dict[TopicPartition, int]:
        """Return a group's committed offsets of topics that its topology reads."""
        group = described(self._client, group_id, Waits.TWICE)
        topics = source_topics(group, has_repartitions=True)
        found = request_commits(self._client, group_id)
        return {key: commit.offset for key, commit in found.items() if key.topic in topics}

    def _commit(self, group_id: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit the new offsets; raises ToolFailure that names all failed partitions."""
        with admin_call(_COMMIT_CALL):
            results = set_offsets(self._client, group_id, offsets)
        failed = {key: error for key in in_java_map_order(results) if (error := results[key])}
        for error in failed.values():
            if not isinstance(error, ApiError):
                raise error
            named = ", ".join(map(str, failed))
            message = f"Failed altering group offsets for the following partitions: [{named}]"
            raise ToolFailure(java_class(error), message)

    # Internal topics

    def delete_topics_of(self, group_id: str) -> None:
        """Delete the named internal topics, or all of a group, after its reset.

        Failures are printed. If all topics of a group without any are to be deleted, raises
        ToolFailure like the tool.
        """
        topics: Sequence[str] = self._given.texts("delete-internal-topic")
        if self._given.has("delete-all-internal-topics"):
            found = request_internal_topics(self._client, [group_id], self._out, self._err)
            if group_id not in found:
                message = (
                    'Cannot invoke "java.util.List.isEmpty()" because "internalTopics" is null'
                )
                raise ToolFailure("java.lang.NullPointerException", message)
            topics = found[group_id]
        _, error = delete_internal_topics(self._client, topics) if topics else ((), None)
        if error is None:
            return
        self._out.write(f"\nError: Deleting internal topics for group '{group_id}' failed ")
        if isinstance(error, ApiError) and error.code == UNKNOWN_TOPIC_OR_PARTITION:
            self._out.write("because the topics do not exist.\n")
            return
        self._out.write(f"due to {cause_of(error)}\n")
        self._err.write(f"java.util.concurrent.ExecutionException: {cause_of(error)}\n")
