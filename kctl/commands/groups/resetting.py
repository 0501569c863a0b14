"""Implementation of `kctl groups reset-offsets`: new offsets for groups without members.

1. Each group is described; a group with members is refused with their names.
2. Its partitions are those of --topic, of --all-topics (with a committed offset), or of the file.
3. The scenario gives each partition a new offset, limited to the range of its log.
4. The table shows old offset, new offset and the difference.
5. With --execute the new offsets are committed; without it nothing changes.

Source: KIP-122, KIP-396.
"""

from __future__ import annotations

import csv
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.group_admin import set_offsets
from engine.client.groups import committed_offsets, describe_group
from engine.client.offsets import EARLIEST, LATEST, list_offsets
from engine.errors import ApiError, EngineError, api_error
from engine.host.ports import Files
from engine.kafka_errors import GROUP_ID_NOT_FOUND
from engine.model import TopicPartition
from kctl import exits
from kctl.arguments import UnreadableArgument, counted
from kctl.command_results import ItemFailures
from kctl.commands.groups.changes import GroupHasMembers
from kctl.compat.java_failures import ToolFailure
from kctl.compat.java_times import duration_ms_of
from kctl.connect import ClusterOptions, connect
from kctl.console import notify, report_error
from kctl.iso_times import parse_age_ms, parse_time_ms
from kctl.numbers import read_whole
from kctl.render import Column, check_format
from kctl.render.rows import OutputRow
from kctl.selection import select_partitions

RESET_COLUMNS = (
    Column("group", "GROUP", is_name=True),
    Column("topic", "TOPIC", is_name=True),
    Column("partition", "PARTITION", right=True),
    Column("committed_offset", "COMMITTED", right=True, kind="integer?"),
    Column("new_offset", "NEW", right=True),
    Column("change", "CHANGE", right=True, kind="integer?"),
    Column("note", "NOTE", kind="string?"),
)
_FIELDS_OF_ONE_GROUP = 3
_NOTHING_FOUND = -1


class ResetRequest(NamedTuple):
    """The options of `kctl groups reset-offsets`; exactly one scenario is valid."""

    group_ids: Sequence[str]
    topics: Sequence[str]
    all_topics: bool
    to_earliest: bool
    to_latest: bool
    to_current: bool
    to_offset: int | None
    shift_by: int | None
    by_duration: str | None
    to_datetime: str | None
    from_group: str | None
    from_file: str | None
    execute: bool
    output: str

    def given_scenarios(self) -> list[str]:
        """Return the given options that define new offsets, such as `--to-earliest`."""
        given = {
            "--to-earliest": self.to_earliest,
            "--to-latest": self.to_latest,
            "--to-current": self.to_current,
            "--to-offset": self.to_offset is not None,
            "--shift-by": self.shift_by is not None,
            "--by-duration": self.by_duration is not None,
            "--to-datetime": self.to_datetime is not None,
            "--from-group": self.from_group is not None,
            "--from-file": self.from_file is not None,
        }
        return [name for name, is_given in given.items() if is_given]


class ContradictoryReset(EngineError):
    """Options of a reset contradict each other, or a required option is missing."""

    exit_code = exits.USAGE


class NoCommittedOffset(EngineError):
    """--shift-by needs a committed offset, but the partition has none."""

    hint = "use --to-earliest or --to-latest for partitions that the group has not committed for"

    def __init__(self, partition: TopicPartition) -> None:
        super().__init__(f"the group has no committed offset for {partition}")
        self.partition = partition


class UnreadablePlan(EngineError):
    """A line of an offsets file is malformed."""

    exit_code = exits.USAGE
    hint = "lines are TOPIC,PARTITION,OFFSET or GROUP,TOPIC,PARTITION,OFFSET"

    def __init__(self, path: str, line: int, text: str) -> None:
        super().__init__(f"{path}, line {line}: not an offset of a partition: {text!r}")
        self.path = path
        self.line = line


class NewOffset(NamedTuple):
    """The new offset of a partition; `note` explains a deviation from the request."""

    offset: int
    note: str | None = None


NewOffsets = dict[TopicPartition, NewOffset]


def check_request(request: ResetRequest) -> None:
    """Raise ContradictoryReset unless exactly one option defines the new offsets.

    Partitions must be selected by --topic or --all-topics; --from-group needs neither, and
    --from-file, which names them, allows neither.
    """
    scenarios = request.given_scenarios()
    if len(scenarios) != 1:
        given = f" and not {', '.join(scenarios)}" if scenarios else ""
        raise ContradictoryReset(
            "set the new offsets with one of --to-earliest, --to-latest, --to-current, "
            f"--to-offset, --shift-by, --by-duration, --to-datetime, --from-group, "
            f"--from-file{given}"
        )
    (scenario,) = scenarios
    has_scope = bool(request.topics) + request.all_topics
    if scenario == "--from-file" and has_scope:
        raise ContradictoryReset(
            "--from-file names the partitions: leave out --topic, --all-topics"
        )
    if scenario not in ("--from-file", "--from-group") and has_scope != 1:
        raise ContradictoryReset("name the partitions with --topic, or give --all-topics")


def reset_offsets(options: ClusterOptions, request: ResetRequest, files: Files) -> int:
    """Print the new offsets of groups, and commit them with --execute; returns the exit code.

    An error of one group is printed, and the others are still reset.
    """
    check_format(request.output)
    check_request(request)
    rows: list[OutputRow] = []
    failures = ItemFailures()
    changes = 0
    with connect(options) as client:
        for group_id in dict.fromkeys(request.group_ids):
            try:
                reset = GroupReset(client, request, files, group_id)
                group_rows, failed = reset.run()
            except EngineError as error:
                failures.report(error, group_id)
                continue
            rows += group_rows
            changes += sum(row["committed_offset"] != row["new_offset"] for row in group_rows)
            failures.count += failed
    if rows and not request.execute:
        notify(f"{counted(changes, 'offset')} would change: nothing is done without --execute")
    return failures.end_with(RESET_COLUMNS, rows, request.output)


class GroupReset:
    """The reset of a single group."""

    def __init__(
        self, client: KafkaClient, request: ResetRequest, files: Files, group_id: str
    ) -> None:
        self._client = client
        self._request = request
        self._files = files
        self._group_id = group_id

    def run(self) -> tuple[list[OutputRow], int]:
        """Compute a group's new offsets, and commit them with --execute.

        Returns the rows, and the number of partitions or selectors that failed. Errors:
        GroupHasMembers, and those of reading and committing offsets.
        """
        self._check_inactive()
        committed = committed_offsets(self._client, self._group_id)
        partitions, failures = self._select_partitions(committed)
        offsets = self._new_offsets(partitions, committed)
        if self._request.execute:
            changed = {key: new.offset for key, new in offsets.items()}
            for key, error in set_offsets(self._client, self._group_id, changed).items():
                if error is not None:
                    report_error(error, f"{self._group_id} {key}")
                    failures += 1
                    del offsets[key]
        return [
            self._reset_row(key, committed.get(key), offsets[key]) for key in sorted(offsets)
        ], failures

    def _check_inactive(self) -> None:
        """Raise GroupHasMembers if the group has members.

        An unknown group is valid: the commit of its offsets creates it.
        """
        try:
            group = describe_group(self._client, self._group_id)
        except ApiError as error:
            if error.code != GROUP_ID_NOT_FOUND:
                raise
        else:
            if group.members:
                raise GroupHasMembers(group)

    def _reset_row(self, key: TopicPartition, before: int | None, new: NewOffset) -> OutputRow:
        """Return the row of a partition; `change` is None without a committed offset."""
        return {
            "group": self._group_id,
            "topic": key.topic,
            "partition": key.partition,
            "committed_offset": before,
            "new_offset": new.offset,
            "change": None if before is None else new.offset - before,
            "note": new.note,
        }

    def _select_partitions(
        self, committed: Mapping[TopicPartition, int]
    ) -> tuple[list[TopicPartition], int]:
        """Return the partitions to reset, and the number of --topic arguments without a match.

        None for --from-file, which names the partitions with their offsets.
        """
        request = self._request
        if request.from_file is not None:
            return [], 0
        if request.topics:
            _, partitions, errors = select_partitions(self._client, request.topics)
            for error in errors:
                report_error(error)
            return partitions, len(errors)
        if request.from_group is not None and not request.all_topics:
            return list(committed_offsets(self._client, request.from_group)), 0
        if not committed:
            notify(f"group {self._group_id} has committed nothing")
        return list(committed), 0

    def _new_offsets(
        self, partitions: Collection[TopicPartition], committed: Mapping[TopicPartition, int]
    ) -> NewOffsets:
        """Return the new offset of each partition by the given scenario."""
        request = self._request
        if request.to_earliest:
            return self._offsets_for_times(dict.fromkeys(partitions, EARLIEST))
        if request.to_latest:
            return self._offsets_for_times(dict.fromkeys(partitions, LATEST))
        if request.to_current:
            known = {key: NewOffset(committed[key]) for key in partitions if key in committed}
            left = [key for key in partitions if key not in committed]
            return known | self._offsets_for_times(
                dict.fromkeys(left, LATEST), note="not committed: the end"
            )
        if request.by_duration is not None:
            age = parse_duration_ms(request.by_duration)
            return self._offsets_at_time(partitions, self._client.clock.wall_ms() - age)
        if request.to_datetime is not None:
            return self._offsets_at_time(partitions, parse_time_ms(request.to_datetime))
        return self._limit_to_log(self._requested_offsets(partitions, committed))

    def _requested_offsets(
        self, partitions: Collection[TopicPartition], committed: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int]:
        """Return the offset that the given number, group or file requests for each partition.

        It may be outside the log. Errors: NoCommittedOffset for --shift-by, those of files.
        """
        request = self._request
        if request.to_offset is not None:
            return dict.fromkeys(partitions, request.to_offset)
        if request.shift_by is not None:
            for key in partitions:
                if key not in committed:
                    raise NoCommittedOffset(key)
            return {key: committed[key] + request.shift_by for key in partitions}
        if request.from_group is not None:
            of_other = committed_offsets(self._client, request.from_group)
            return {key: of_other[key] for key in partitions if key in of_other}
        path = request.from_file or ""
        text = bytes(self._files.read_bytes(path)).decode(errors="replace")
        return parse_offsets_file(text, path, self._group_id)

    def _offsets_for_times(
        self, times: Mapping[TopicPartition, int], note: str | None = None
    ) -> NewOffsets:
        """Return the offset that ListOffsets gives for each partition's timestamp, with `note`.

        The timestamp is in ms, EARLIEST or LATEST. The first partition's error is raised.
        """
        offsets: NewOffsets = {}
        if not times:
            return offsets
        for key, found in list_offsets(self._client, times).items():
            if isinstance(found, EngineError):
                raise _with_partition_name(key, found)
            offsets[key] = NewOffset(found.offset, note)
        return offsets

    def _offsets_at_time(self, partitions: Collection[TopicPartition], time_ms: int) -> NewOffsets:
        """Return each partition's first offset at or after a time, else its log end offset.

        `time_ms` is in ms since 1970; a negative one counts as 0, as negative times are special in
        ListOffsets.
        """
        found = self._offsets_for_times(dict.fromkeys(partitions, max(time_ms, 0)))
        late = [key for key, new in found.items() if new.offset == _NOTHING_FOUND]
        note = "no record as late: the end"
        return found | self._offsets_for_times(dict.fromkeys(late, LATEST), note=note)

    def _limit_to_log(self, requested: Mapping[TopicPartition, int]) -> NewOffsets:
        """Limit each offset to the range of its log, with a note where that changes it.

        A committed offset outside the log would make consumers apply auto.offset.reset.
        """
        starts = self._offsets_for_times(dict.fromkeys(requested, EARLIEST))
        ends = self._offsets_for_times(dict.fromkeys(requested, LATEST))
        offsets: NewOffsets = {}
        for key, offset in requested.items():
            start, end = starts[key].offset, ends[key].offset
            if offset > end:
                offsets[key] = NewOffset(end, f"{offset} is beyond the end")
            elif offset < start:
                offsets[key] = NewOffset(start, f"{offset} is before the start")
            else:
                offsets[key] = NewOffset(offset)
        return offsets


def _with_partition_name(partition: TopicPartition, error: EngineError) -> EngineError:
    """Return an API error with the partition's name before its message, unless it has it.

    Other errors are returned unchanged.
    """
    if isinstance(error, ApiError) and str(partition) not in error.detail:
        return api_error(error.code, f"{partition}: {error.detail}")
    return error


def parse_duration_ms(text: str) -> int:
    """Parse a duration such as `1h` or `P1DT2H` into ms; raises UnreadableArgument."""
    age = parse_age_ms(f"-{text}")
    if age is not None:
        return age
    try:
        return duration_ms_of(text)
    except ToolFailure:
        expected = "90s, 15m, 1h, 7d, 2w, or ISO 8601 as P1DT2H"
        raise UnreadableArgument("a duration", text, expected) from None


def parse_offsets_file(text: str, path: str, group_id: str) -> dict[TopicPartition, int]:
    """Return the offsets of one group in a CSV file by partition; raises UnreadablePlan.

    Lines are GROUP,TOPIC,PARTITION,OFFSET; one without a group applies to every group. A heading is
    skipped; the heading of this command's `-o csv` selects the column `new_offset`.
    """
    offsets: dict[TopicPartition, int] = {}
    offset_index: int | None = None
    for number, fields in enumerate(csv.reader(text.splitlines()), 1):
        if not fields:
            continue
        if "topic" in [field.lower() for field in fields]:
            names = [field.lower() for field in fields]
            offset_index = names.index("new_offset") if "new_offset" in names else None
            continue
        has_group = len(fields) > _FIELDS_OF_ONE_GROUP
        # A line of one field gets an empty partition, which is refused below.
        topic, partition = (fields[1:3] if has_group else fields[0:2]) + [""] * (len(fields) < 2)
        at = offset_index if offset_index is not None else (3 if has_group else 2)
        index = read_whole(partition)
        offset = read_whole(fields[at]) if at < len(fields) else None
        if index is None or index < 0 or offset is None or offset < 0 or not topic:
            raise UnreadablePlan(path, number, ",".join(fields))
        if not has_group or fields[0] == group_id:
            offsets[TopicPartition(topic, index)] = offset
    return offsets
