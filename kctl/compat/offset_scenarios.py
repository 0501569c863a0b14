"""The scenarios of `--reset-offsets`: which offset each partition is reset to.

| option | offset |
|---|---|
| to-offset, shift-by, from-file | the requested one, limited to the log's range with a warning |
| to-earliest, to-latest | log start offset, log end offset |
| to-datetime, by-duration | first record at or after it; without one the end, with a warning |
| to-current | the committed offset, else the log end offset |

Source: ConsumerGroupCommand.prepareOffsetsToReset, checkOffsetsRange of 3.9.1;
OffsetsUtils of 4.3.0.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final, TextIO
from zlib import crc32

from engine.client.blocking import KafkaClient
from engine.host.ports import Files
from engine.model import TopicPartition
from kctl.compat.group_answers import end_offsets, request_offsets_at, start_offsets
from kctl.compat.groups_plan import parse_plan
from kctl.compat.java_failures import ToolFailure
from kctl.compat.java_options import GivenOptions, refused
from kctl.compat.java_order import in_java_order
from kctl.compat.java_times import duration_ms_of, time_ms_of
from kctl.compat.plan_json import read_text

#: Returns the committed offsets of a group id.
CommittedOf = Callable[[str], Mapping[TopicPartition, int]]

_NO_OFFSET: Final = -1
_SPEC: Final = "org.apache.kafka.clients.admin.OffsetSpec$"


class OffsetScenarios:
    """Computes the new offsets of groups one by one, by the scenario in a call's options."""

    def __init__(
        self,
        client: KafkaClient,
        given: GivenOptions,
        files: Files,
        out: TextIO,
        err: TextIO,
        *,
        committed: CommittedOf,
    ) -> None:
        """Create the computation of new offsets for --reset-offsets, by the options of the call.

        `committed` returns a group's committed offsets.
        """
        self._client = client
        self._given = given
        self._files = files
        self._out = out
        self._err = err
        self._committed = committed

    def compute_offsets(
        self, group_id: str, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """Return each partition's new offset by the given scenario, such as --to-earliest.

        A partition that is given twice fails where Java makes a map of the partitions: its message
        has the map's value, an offset or the name of a class. --from-file names its own partitions.
        Errors: OptionsRefused without a scenario, ToolFailure.
        """
        given, client = self._given, self._client
        if given.has("to-offset"):
            offset = self._named_offset()
            refuse_repeated(partitions, lambda _key: str(offset))
            return self._limit_to_log(dict.fromkeys(partitions, offset))
        if given.has("to-earliest"):
            refuse_repeated(partitions, _spec("EarliestSpec"))
            return start_offsets(client, partitions)
        if given.has("to-latest"):
            refuse_repeated(partitions, _spec("LatestSpec"))
            return end_offsets(client, partitions)
        if given.has("shift-by"):
            return self._shift_offsets(group_id, partitions, given.number("shift-by", 0))
        if given.has("to-datetime"):
            # In 4.3.0 the first of repeated values counts.
            text = given.texts("to-datetime")[0] if given.is_four else given.needed("to-datetime")
            return self._request_at_time(partitions, time_ms_of(text))
        if given.has("by-duration"):
            now_ms = client.clock.wall_ms()
            duration_ms = duration_ms_of(given.needed("by-duration"))
            return self._request_at_time(partitions, now_ms - duration_ms)
        if given.has("from-file"):
            return self._read_from_file(group_id)
        if given.has("to-current"):
            return self._current_offsets(group_id, partitions)
        scenarios = (
            "[to-offset], [to-current], [to-datetime], [from-file], [by-duration], "
            "[to-earliest], [to-latest], [shift-by]"
        )
        raise refused(
            f"Option '[reset-offsets]' requires one of the following scenarios: [{scenarios}]"
        )

    def _named_offset(self) -> int:
        """Return the offset of --to-offset; in 4.3.0 the first if it is repeated."""
        if self._given.is_four:
            return self._given.numbers("to-offset")[0]
        return self._given.number("to-offset", 0)

    def _limit_to_log(self, requested: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Limit each offset to the range of its log, and print a warning if it changes."""
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

    def _shift_offsets(
        self, group_id: str, partitions: Collection[TopicPartition], count: int
    ) -> dict[TopicPartition, int]:
        """Return committed offsets plus `count`, limited to the log.

        Raises OptionsRefused for a partition without a committed offset.
        """
        current = self._committed(group_id)
        for partition in partitions:
            if partition not in current:
                raise refused(
                    f"Cannot shift offset for partition {partition} since there is no current "
                    "committed offset"
                )
        refuse_repeated(partitions, lambda key: str(current[key] + count))
        return self._limit_to_log({key: current[key] + count for key in partitions})

    def _request_at_time(
        self, partitions: Collection[TopicPartition], time_ms: int
    ) -> dict[TopicPartition, int]:
        """Return the first offsets at or after a time, the log end offset if there is none."""
        refuse_repeated(partitions, _spec("TimestampSpec"))
        found = request_offsets_at(self._client, dict.fromkeys(partitions, time_ms))
        late = [key for key in in_java_order(found) if found[key] == _NO_OFFSET]
        for partition in late:
            self._out.write(
                f"\nWarn: Partition {partition.partition} from topic {partition.topic} is empty. "
                "Falling back to latest known offset.\n"
            )
        return {**found, **end_offsets(self._client, late)}

    def _current_offsets(
        self, group_id: str, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """Return committed offsets, or the log end offset for a partition without one."""
        current = self._committed(group_id)
        left = [key for key in partitions if key not in current]
        known = {key: current[key] for key in partitions if key in current}
        refuse_repeated([key for key in partitions if key in current], _committed_text(current))
        refuse_repeated(left, _spec("LatestSpec"))
        return {**known, **end_offsets(self._client, left)}

    def _read_from_file(self, group_id: str) -> dict[TopicPartition, int]:
        """Return the group's offsets in the file of --from-file, limited to the logs.

        Empty if the file has none of this group. Errors: ToolFailure.
        """
        path = self._given.needed("from-file")
        try:
            text = read_text(self._files, path)
        except ToolFailure as error:
            # The tool wraps the exception of reading the file.
            message = f"{error.java_class}: {error}"
            raise ToolFailure("java.lang.RuntimeException", message, message) from error
        plan = parse_plan(text, list(self._given.texts("group")), self._err)
        if group_id not in plan:
            self._out.write(f"\nError: No reset plan for group {group_id} found\n")
            return {}
        return self._limit_to_log(plan[group_id])


def refuse_repeated(
    partitions: Collection[TopicPartition], shown: Callable[[TopicPartition], str]
) -> None:
    """Raise ToolFailure for a repeated partition, as Java's Collectors.toMap does.

    `shown` returns the text of the map's value for a partition.
    """
    seen: set[TopicPartition] = set()
    for partition in partitions:
        if partition in seen:
            value = shown(partition)
            message = f"Duplicate key {partition} (attempted merging values {value} and {value})"
            raise ToolFailure("java.lang.IllegalStateException", message)
        seen.add(partition)


def _committed_text(offsets: Mapping[TopicPartition, int]) -> Callable[[TopicPartition], str]:
    """Return a function that returns Java's text of a partition's OffsetAndMetadata."""
    return lambda key: f"OffsetAndMetadata{{offset={offsets[key]}, leaderEpoch=null, metadata=''}}"


def _spec(name: str) -> Callable[[TopicPartition], str]:
    """Return a function that returns Java's default toString of an OffsetSpec.

    It has the class name and a hash, which in Java differs from run to run.
    """
    return lambda key: f"{_SPEC}{name}@{crc32(str(key).encode()):x}"
