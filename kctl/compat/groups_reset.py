"""`kafka-consumer-groups --reset-offsets`: select partitions, compute offsets, commit, print.

1. Each group is described; a group with members is refused, and the other groups are processed.
2. Its partitions are those of --topic, of --all-topics, or of the file.
3. Their new offsets come from the scenario; some are limited to the range of the log.
4. With --execute they are committed.
5. The table, or CSV, shows all groups.

Source: ConsumerGroupCommand.resetOffsets, prepareOffsetsToReset, checkOffsetsRange of 3.9.1;
OffsetsUtils of 4.3.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TextIO

from engine.client.blocking import KafkaClient
from engine.client.group_admin import set_offsets
from engine.errors import EngineError
from engine.host.ports import Files
from engine.model import TopicPartition
from kctl.compat.group_answers import (
    Waits,
    committed,
    describe_groups_in_order,
    failure,
    list_consumer_groups,
)
from kctl.compat.groups_plan import PLAN_HEADS, ResetPlan, plan_text, print_plan_table
from kctl.compat.java_options import GivenOptions, OptionsRefused
from kctl.compat.java_order import in_java_order
from kctl.compat.offset_scenarios import OffsetScenarios
from kctl.compat.reset_partitions import check_partitions, request_named_partitions

_INACTIVE = ("Empty", "Dead")


def reset_selected_groups(
    client: KafkaClient, given: GivenOptions, files: Files, out: TextIO, err: TextIO
) -> None:
    """Compute new offsets of groups, commit them with --execute, and print them.

    A group with members is refused. Errors: ToolFailure, OptionsRefused.
    """
    group_ids = list(given.texts("group"))
    if given.has("all-groups"):
        group_ids = [group.group_id for group in list_consumer_groups(client)]
    reset = OffsetReset(client, given, files, out, err)
    plan: ResetPlan = {}
    for group_id, group in describe_groups_in_order(client, group_ids, Waits.TWICE).items():
        if group.state in _INACTIVE:
            plan[group_id] = reset.reset_group(group_id)
        else:
            out.write(
                f"\nError: Assignments can only be reset if the group '{group_id}' is inactive, "
                f"but the current state is {group.state}.\n"
            )
            plan[group_id] = {}
    if given.has("export"):
        names_groups = len(given.texts("group")) != 1
        out.write(plan_text(plan, names_groups=names_groups) + "\n")
    else:
        (print_plan_table if given.is_four else _print_plan)(plan, out)


def _print_plan(plan: ResetPlan, out: TextIO) -> None:
    """Print new offsets in the format of 3.9.1: a table without line breaks."""
    if plan:
        out.write("\n" + _row(*PLAN_HEADS))
    for group_id, offsets in plan.items():
        for partition, offset in offsets.items():
            number = str(partition.partition)
            out.write(_row(group_id, partition.topic, number, str(offset)))


def _row(group_id: str, topic: str, partition: str, offset: str) -> str:
    """Return the padded cells of a table's row, without a line end."""
    return f"{group_id:<30} {topic:<30} {partition:<10} {offset:<15}"


class OffsetReset:
    """Resets groups one by one, by the options of a call."""

    def __init__(
        self,
        client: KafkaClient,
        given: GivenOptions,
        files: Files,
        out: TextIO,
        err: TextIO,
    ) -> None:
        """Create a reset with the options of the call; `files` is read for --from-file."""
        self._client = client
        self._given = given
        self._scenarios = OffsetScenarios(
            client, given, files, out, err, committed=partial(committed, client)
        )

    def reset_group(self, group_id: str) -> dict[TopicPartition, int]:
        """Return a group's new offsets, and commit them with --execute.

        Errors: ToolFailure, OptionsRefused.
        """
        partitions = self._select_partitions(group_id)
        if self._given.is_four:
            check_partitions(self._client, partitions)
        offsets = self._scenarios.compute_offsets(group_id, partitions)
        ordered = {partition: offsets[partition] for partition in in_java_order(offsets)}
        if self._given.has("execute"):
            self._commit(group_id, ordered)
        return ordered

    def _commit(self, group_id: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit the new offsets; raises the first failure, wrapped as Java's future wraps it."""
        call = "offsetCommit(api=FIND_COORDINATOR)"
        try:
            results = set_offsets(self._client, group_id, offsets)
        except EngineError as error:
            raise failure(error, call, Waits.ONCE) from error
        for refusal in results.values():
            if refusal is not None:
                raise failure(refusal, call, Waits.ONCE)

    # Selection of partitions

    def _select_partitions(self, group_id: str) -> list[TopicPartition]:
        """Return the partitions to reset; empty for --from-file, which names them.

        Errors: OptionsRefused without --all-topics, --topic and --from-file; ToolFailure.
        """
        given = self._given
        if given.has("all-topics"):
            return list(committed(self._client, group_id))
        if given.has("topic"):
            return request_named_partitions(self._client, given.texts("topic"), given.release)
        if not given.has("from-file"):
            message = "One of the reset scopes should be defined: --all-topics, --topic."
            raise OptionsRefused(message, shows_usage=True)
        return []
