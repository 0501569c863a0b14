"""`kafka-consumer-groups --reset-offsets`: which partitions, to which offsets, and the table.

1. Each group is described; one with members is refused, the others are processed.
2. Its partitions are those of --topic, of --all-topics, or of the file.
3. Their new offsets come from the scenario; some are limited to the range of the log.
4. With --execute they are committed.
5. The table, or CSV, shows all groups.

Source: ConsumerGroupCommand.resetOffsets, prepareOffsetsToReset, checkOffsetsRange of 3.9.1;
OffsetsUtils of 4.3.0.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TextIO

from engine.client.blocking import KafkaClient
from engine.client.group_admin import set_offsets
from engine.errors import EngineError
from engine.host.ports import Files
from engine.model import TopicPartition
from kctl.compat.group_answers import (
    Waits,
    committed,
    consumer_groups,
    descriptions,
    end_offsets,
    failure,
    offsets_at,
    start_offsets,
    topic_partitions,
)
from kctl.compat.groups_changes import partitions_in
from kctl.compat.groups_plan import ResetPlan, plan_text, read_plan
from kctl.compat.java_admin import admin_failure
from kctl.compat.java_failures import ToolFailure
from kctl.compat.java_options import GivenOptions, OptionsRefused
from kctl.compat.java_order import in_java_order
from kctl.compat.java_times import duration_ms_of, time_ms_of
from kctl.compat.plan_json import read_text

_INACTIVE = ("Empty", "Dead")
_NO_OFFSET = -1
_UNKNOWN_PARTITION = "org.apache.kafka.common.errors.UnknownTopicOrPartitionException"
_HEADER = ("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET")


def reset_offsets_of(
    client: KafkaClient, given: GivenOptions, files: Files, out: TextIO, err: TextIO
) -> None:
    """Reset offsets of groups and print them; raises ToolFailure, OptionsRefused."""
    group_ids = list(given.texts("group"))
    if given.has("all-groups"):
        group_ids = [group.group_id for group in consumer_groups(client)]
    reset = OffsetReset(client, given, files, out, err)
    plan: ResetPlan = {}
    for group_id, group in descriptions(client, group_ids, Waits.TWICE).items():
        if group.state in _INACTIVE:
            plan[group_id] = reset.of_group(group_id)
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
        (_print_plan_4 if given.is_four else _print_plan)(plan, out)


def _print_plan_4(plan: ResetPlan, out: TextIO) -> None:
    """Print a table as wide as it needs."""
    rows = [
        (group_id, key.topic, str(key.partition), str(offset))
        for group_id, offsets in plan.items()
        for key, offset in offsets.items()
    ]
    widths = [max([15, *(len(row[column]) for row in rows)]) for column in (0, 1)]
    if plan:
        out.write("\n")
        for group_id, topic, partition, offset in (_HEADER, *rows):
            first = f"{group_id:<{widths[0]}} {topic:<{widths[1]}}"
            out.write(f"{first} {partition:<10} {offset}\n")


def _print_plan(plan: ResetPlan, out: TextIO) -> None:
    """Print a table without line breaks, as the tool does."""
    if plan:
        out.write("\n" + _row(*_HEADER))
    for group_id, offsets in plan.items():
        for partition, offset in offsets.items():
            number = str(partition.partition)
            out.write(_row(group_id, partition.topic, number, str(offset)))


def _row(group_id: str, topic: str, partition: str, offset: str) -> str:
    return f"{group_id:<30} {topic:<30} {partition:<10} {offset:<15}"


def _refuse_repeated(partitions: Collection[TopicPartition], offset: int) -> None:
    """Raise ToolFailure for a partition that is named twice, as Java's map of them does."""
    for index, partition in enumerate(partitions := list(partitions)):
        if partition in partitions[:index]:
            message = f"Duplicate key {partition} (attempted merging values {offset} and {offset})"
            raise ToolFailure("java.lang.IllegalStateException", message)


class OffsetReset:
    """The reset that the options of a call describe, for one group after the other."""

    def __init__(
        self,
        client: KafkaClient,
        given: GivenOptions,
        files: Files,
        out: TextIO,
        err: TextIO,
    ) -> None:
        self._client = client
        self._given = given
        self._files = files
        self._out = out
        self._err = err

    def of_group(self, group_id: str) -> dict[TopicPartition, int]:
        """Return the new offsets of a group, committed if so requested.

        Raises ToolFailure, OptionsRefused.
        """
        partitions = self._partitions(group_id)
        if self._given.is_four:
            self._check_partitions(partitions)
        offsets = self._offsets(group_id, partitions)
        ordered = {partition: offsets[partition] for partition in in_java_order(offsets)}
        if self._given.has("execute"):
            self._commit(group_id, ordered)
        return ordered

    def _commit(self, group_id: str, offsets: Mapping[TopicPartition, int]) -> None:
        call = "alterConsumerGroupOffsets(api=FIND_COORDINATOR)"
        try:
            results = set_offsets(self._client, group_id, offsets)
        except EngineError as error:
            raise failure(error, call, Waits.ONCE) from error
        for refusal in results.values():
            if refusal is not None:
                raise failure(refusal, call, Waits.ONCE)

    # Which partitions

    def _partitions(self, group_id: str) -> list[TopicPartition]:
        given = self._given
        if given.has("all-topics"):
            return list(committed(self._client, group_id))
        if given.has("topic"):
            return self._named_partitions()
        if not given.has("from-file"):
            message = "One of the reset scopes should be defined: --all-topics, --topic."
            raise OptionsRefused(message, shows_usage=True)
        return []

    def _named_partitions(self) -> list[TopicPartition]:
        """Return the partitions that --topic names, all of a topic without `:`."""
        topics = self._given.texts("topic")
        named = [key for topic in topics if ":" in topic for key in partitions_in(topic)]
        try:
            whole = topic_partitions(self._client, [name for name in topics if ":" not in name])
        except EngineError as error:
            raise failure(error, "describeTopics", Waits.TWICE) from error
        for found in whole.values():
            if isinstance(found, EngineError):
                if self._given.is_four:
                    raise admin_failure(found, "describeTopics")
                raise failure(found, "describeTopics", Waits.TWICE)
            named += found
        return named

    def _check_partitions(self, partitions: Collection[TopicPartition]) -> None:
        """Raise ToolFailure unless all partitions are there. Source: 4.3.0."""
        if not partitions:
            return
        found = topic_partitions(self._client, sorted({key.topic for key in partitions}))
        there: set[TopicPartition] = set()
        for of_topic in found.values():
            if isinstance(of_topic, EngineError):
                raise failure(of_topic, "describeTopics", Waits.TWICE)
            there.update(of_topic)
        missing = ",".join(str(key) for key in partitions if key not in there)
        if missing:
            message = f'The partitions "{missing}" do not exist'
            raise ToolFailure(_UNKNOWN_PARTITION, message)

    # Which offsets

    def _offsets(
        self, group_id: str, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """Return each partition's new offset by the scenario; raises OptionsRefused without one."""
        given, client = self._given, self._client
        if given.has("to-offset"):
            _refuse_repeated(partitions, given.number("to-offset", 0))
            return self._within_log(dict.fromkeys(partitions, given.number("to-offset", 0)))
        if given.has("to-earliest"):
            return start_offsets(client, partitions)
        if given.has("to-latest"):
            return end_offsets(client, partitions)
        if given.has("shift-by"):
            return self._shifted(group_id, partitions, given.number("shift-by", 0))
        if given.has("to-datetime"):
            return self._at_time(partitions, time_ms_of(given.needed("to-datetime")))
        if given.has("by-duration"):
            now_ms = client.clock.wall_ms()
            duration_ms = duration_ms_of(given.needed("by-duration"))
            return self._at_time(partitions, now_ms - duration_ms)
        if given.has("from-file"):
            return self._from_file(group_id)
        if given.has("to-current"):
            return self._current(group_id, partitions)
        scenarios = (
            "[to-offset], [to-current], [to-datetime], [from-file], [by-duration], "
            "[to-earliest], [to-latest], [shift-by]"
        )
        message = f"Option '[reset-offsets]' requires one of the following scenarios: [{scenarios}]"
        raise OptionsRefused(message, shows_usage=True)

    def _within_log(self, requested: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return offsets, each limited to the range of its log."""
        starts = start_offsets(self._client, requested.keys())
        ends = end_offsets(self._client, requested.keys())
        offsets = {}
        for partition in in_java_order(requested):
            offset, bound = requested[partition], None
            if offset > ends[partition]:
                bound, end_name, comparison = ends[partition], "latest", "higher"
            elif offset < starts[partition]:
                bound, end_name, comparison = starts[partition], "earliest", "lower"
            if bound is not None:
                self._err.write(
                    f"WARN New offset ({offset}) is {comparison} than {end_name} offset for topic "
                    f"partition {partition}. Value will be set to {bound}\n"
                )
            offsets[partition] = offset if bound is None else bound
        return offsets

    def _shifted(
        self, group_id: str, partitions: Collection[TopicPartition], count: int
    ) -> dict[TopicPartition, int]:
        current = committed(self._client, group_id)
        for partition in partitions:
            if partition not in current:
                raise OptionsRefused(
                    f"Cannot shift offset for partition {partition} since there is no current "
                    "committed offset",
                    shows_usage=True,
                )
        return self._within_log({key: current[key] + count for key in partitions})

    def _at_time(
        self, partitions: Collection[TopicPartition], time_ms: int
    ) -> dict[TopicPartition, int]:
        """Return the offsets of a time, the end where no record is as young."""
        found = offsets_at(self._client, dict.fromkeys(partitions, time_ms))
        late = [key for key in in_java_order(found) if found[key] == _NO_OFFSET]
        for partition in late:
            self._out.write(
                f"\nWarn: Partition {partition.partition} from topic {partition.topic} is empty. "
                "Falling back to latest known offset.\n"
            )
        return {**found, **end_offsets(self._client, late)}

    def _current(
        self, group_id: str, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, int]:
        current = committed(self._client, group_id)
        left = [key for key in partitions if key not in current]
        known = {key: current[key] for key in partitions if key in current}
        return {**known, **end_offsets(self._client, left)}

    def _from_file(self, group_id: str) -> dict[TopicPartition, int]:
        """Return the offsets that the file of --from-file has for the group, within their logs."""
        path = self._given.needed("from-file")
        try:
            text = read_text(self._files, path)
        except ToolFailure as error:
            # The tool wraps the exception of its file.
            message = f"{error.java_class}: {error}"
            raise ToolFailure("java.lang.RuntimeException", message, message) from error
        plan = read_plan(text, list(self._given.texts("group")), self._err)
        if group_id not in plan:
            self._out.write(f"\nError: No reset plan for group {group_id} found\n")
            return {}
        return self._within_log(plan[group_id])
