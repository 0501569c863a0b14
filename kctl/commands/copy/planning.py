"""Turn the options of `kctl copy` into a plan, new or continuing an earlier copy."""

from __future__ import annotations

from typing import Final

from engine.client.blocking import KafkaClient
from engine.client.groups import describe_group, request_commits
from engine.client.metadata import TopicView
from engine.copying.copy_continuation import (
    PartitionEnds,
    check_same_topics,
    continue_group_offsets,
    continue_range,
    new_range,
)
from engine.copying.copy_plan import CopiedTopic, CopyRange, GroupOffset, TopicCopy
from engine.copying.copy_resumption import find_never_written
from engine.copying.topic_preparation import (
    Destination,
    DestinationNotEmpty,
    check_empty,
    compare_topics,
)
from engine.errors import EngineError
from engine.ids import uuid_text
from engine.model import TopicPartition
from kctl import exits
from kctl.arguments import UnreadableArgument
from kctl.commands.copy.request import CopyRequest
from kctl.console import notify
from kctl.offset_points import OffsetLookup, parse_point
from kctl.selection import select_topics

_ID_BYTES: Final = 6
_INACTIVE: Final = ("Empty", "Dead")


class SameTopics(EngineError):
    """Source and destination are the same cluster and the topic names are equal."""

    exit_code = exits.USAGE
    hint = "--prefix TEXT gives the copies other names"

    def __init__(self) -> None:
        super().__init__(
            "source and destination are one cluster: topics would be copied to themselves"
        )


class GroupHasMembers(EngineError):
    """A group to translate has members at the destination, which commit their own offsets."""

    hint = "stop them, or leave the group out of --groups"

    def __init__(self, group_id: str, state: str) -> None:
        super().__init__(f"the group {group_id} is {state} at the destination")
        self.group_id = group_id


class AnotherCopy(EngineError):
    """The named journal belongs to an unfinished copy with other options."""

    exit_code = exits.USAGE
    hint = "give the options of that copy to go on with it, or another file"

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} is the journal of another copy, which is not over")
        self.path = path


def create_plan(
    source: KafkaClient,
    destination: KafkaClient,
    request: CopyRequest,
    identity: str,
    earlier: TopicCopy | None,
) -> TopicCopy:
    """Return the plan of a new copy: topics, ranges of offsets, groups' committed offsets.

    The ranges end at the source's current ends, unless --until is given. `earlier` is the last copy
    by the same command, which --append continues; None without. Errors: those of requests, of
    topics that do not exist, of malformed points, and those of `continue_range`,
    `check_same_topics` and `continue_group_offsets`.
    """
    view, chosen, errors = select_topics(source, request.topics, request.match)
    if errors:
        raise errors[0]
    internal = [topic.name for topic in chosen if topic.is_internal]
    if named := [name for name in internal if name in request.topics]:
        raise UnreadableArgument("topics to copy", " ".join(named), "others than internal")
    topics = tuple(
        CopiedTopic(
            topic.name, f"{request.prefix}{topic.name}", len(topic.partitions), _id_text(topic)
        )
        for topic in chosen
        if not topic.is_internal
    )
    if not topics:
        raise UnreadableArgument("topics to copy", request.match or "", "others than internal")
    destination_id = destination.view([]).cluster_id
    if view.cluster_id is not None and view.cluster_id == destination_id and not request.prefix:
        raise SameTopics
    ends = _resolve_offsets(source, topics, request)
    plan = TopicCopy(
        source.entropy.random_bytes(_ID_BYTES).hex(),
        identity,
        view.cluster_id,
        destination_id,
        topics,
        {key: new_range(found) for key, found in ends.items()},
        (),
        request.delivery,
    )
    if earlier is not None:
        plan = _continue_earlier(destination, plan, earlier, ends)
    if plan.continued:
        notify("begins where the last copy by the same command has ended")
    offsets = _read_group_offsets(source, destination, request, plan)
    if earlier is not None:
        offsets = continue_group_offsets(offsets, plan, earlier)
    return plan._replace(group_offsets=tuple(offsets))


def _continue_earlier(
    destination: KafkaClient,
    plan: TopicCopy,
    earlier: TopicCopy,
    ends: dict[TopicPartition, PartitionEnds],
) -> TopicCopy:
    """Return the plan with ranges that start where the earlier copy ended (--append).

    Partitions that the destination never received start at the plan's own start. Prints which
    offsets the source has deleted since.
    """
    check_same_topics(plan.topics, earlier.topics)
    known = earlier.ranges.keys() & plan.ranges.keys()
    absent = find_never_written(destination, plan, known)
    ranges = dict(plan.ranges)
    for key in known - absent:
        copied_to = earlier.ranges[key].end
        ranges[key] = continue_range(key, ends[key], copied_to)
        if ranges[key].start > copied_to:
            notify(f"{key}: the source has deleted offsets {copied_to} to {ranges[key].start - 1}")
    for key in absent:
        start = max(min(ranges[key].start, earlier.ranges[key].end), ends[key].first)
        ranges[key] = CopyRange(start, max(ranges[key].end, start))
    return plan._replace(ranges=ranges, continued=frozenset(known - absent))


def _id_text(topic: TopicView) -> str | None:
    """Return a topic's id as text, None if the cluster has no topic ids."""
    return uuid_text(topic.topic_id) if topic.has_id else None


def require_same_source(source: KafkaClient, plan: TopicCopy) -> None:
    """Raise SourceReplaced if a source topic was recreated since the plan was made.

    Its offsets would then count other records.
    """
    view = source.view({topic.source for topic in plan.topics})
    now = [topic._replace(source_id=_id_text(view.topics[topic.source])) for topic in plan.topics]
    check_same_topics(now, plan.topics)


def _resolve_offsets(
    source: KafkaClient, topics: tuple[CopiedTopic, ...], request: CopyRequest
) -> dict[TopicPartition, PartitionEnds]:
    """Return the earliest, latest, start and stop offset of each source partition.

    Raises the first error of a partition.
    """
    now_ms = source.clock.wall_ms()
    start, until = parse_point(request.start, now_ms), parse_point(request.until, now_ms)
    keys = [
        TopicPartition(topic.source, number)
        for topic in topics
        for number in range(topic.partition_count)
    ]
    lookup = OffsetLookup(source, keys, read_committed=True)
    earliest, latest = (lookup.resolve(parse_point(word, now_ms)) for word in ("start", "end"))
    starts, ends = lookup.resolve(start), lookup.resolve(until)
    found = {}
    for key in keys:
        numbers = []
        for offsets in (earliest, latest, starts, ends):
            offset = offsets[key]
            if isinstance(offset, EngineError):
                raise offset
            numbers.append(offset)
        found[key] = PartitionEnds(*numbers)
    return found


def _read_group_offsets(
    source: KafkaClient,
    destination: KafkaClient,
    request: CopyRequest,
    plan: TopicCopy,
) -> list[GroupOffset]:
    """Return the groups' committed offsets in copied partitions, sorted by group and partition.

    Raises GroupHasMembers if a group is active at the destination, as its members would overwrite
    the translated offsets.
    """
    if request.groups and request.at_least_once:
        raise UnreadableArgument("options that go together", "--groups --at-least-once", "one")
    offsets: list[GroupOffset] = []
    for group_id in request.groups:
        there = describe_group(destination, group_id)
        if there.state not in _INACTIVE:
            raise GroupHasMembers(group_id, there.state)
        found = {
            key: one.offset
            for key, one in request_commits(source, group_id).items()
            if key in plan.ranges
        }
        if not found:
            notify(f"the group {group_id} has committed nothing of these topics")
        if describe_group(source, group_id).members:
            notify(f"the group {group_id} has members at the source: it is translated as it is now")
        for key, offset in sorted(found.items()):
            offsets.append(GroupOffset(group_id, key, offset))
            start = plan.ranges[key].start
            if offset < start:
                is_known = key in plan.continued
                goes_on = "stays where that copy has put it" if is_known else f"goes on at {start}"
                notify(f"the group {group_id} is at offset {offset} of {key}: it {goes_on}")
    return offsets


def check_destination_topics(
    source: KafkaClient,
    destination: KafkaClient,
    request: CopyRequest,
    plan: TopicCopy,
    *,
    is_resumed: bool,
    earlier: TopicCopy | None,
) -> Destination:
    """Return which topics the destination has, and which ones it lacks.

    A new copy requires that the existing ones are empty, unless --append is given. `earlier` is a
    completed copy by the same command, for the hint. Errors: those of `compare_topics` and
    `check_empty`.
    """
    found = compare_topics(
        source,
        destination,
        plan.topics,
        replication_factor=request.replication_factor,
        with_settings=request.with_settings,
    )
    if not is_resumed and not request.append:
        try:
            check_empty(destination, found.there)
        except DestinationNotEmpty as error:
            if earlier is not None:
                error.hint = "--append copies what has come since this copy has ended"
            raise
    return found
