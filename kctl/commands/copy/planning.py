"""From the options of `kctl copy` to a plan: a new one, or that of a copy that is not over."""

from __future__ import annotations

from typing import Final

from engine.client.blocking import KafkaClient
from engine.client.groups import commits, describe_group
from engine.copying.copy_plan import CopiedTopic, CopyRange, GroupOffset, TopicCopy
from engine.copying.topic_preparation import Destination, destination_topics, require_empty
from engine.errors import EngineError
from engine.model import TopicPartition
from kctl import exits
from kctl.arguments import UnreadableArgument
from kctl.commands.copy.request import CopyRequest
from kctl.console import say
from kctl.offset_points import OffsetLookup, parse_point
from kctl.selection import select_topics

_ID_BYTES: Final = 6
_INACTIVE: Final = ("Empty", "Dead")


class SameTopics(EngineError):
    """A topic would be copied into itself."""

    exit_code = exits.USAGE
    hint = "--prefix TEXT gives the copies other names"

    def __init__(self) -> None:
        super().__init__(
            "source and destination are one cluster: topics would be copied to themselves"
        )


class GroupHasMembers(EngineError):
    """A group that is to be translated has members at the destination, which commit themselves."""

    hint = "stop them, or leave the group out of --groups"

    def __init__(self, group_id: str, state: str) -> None:
        super().__init__(f"the group {group_id} is {state} at the destination")
        self.group_id = group_id


class AnotherCopy(EngineError):
    """A journal that is named is that of a copy with other options, which is not over."""

    exit_code = exits.USAGE
    hint = "give the options of that copy to go on with it, or another file"

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} is the journal of another copy, which is not over")
        self.path = path


def new_plan(
    source: KafkaClient, destination: KafkaClient, request: CopyRequest, identity: str
) -> TopicCopy:
    """Return what is to be copied, by where the source is now.

    Errors: those of asking, of topics that are not there, of points that cannot be read.
    """
    view, chosen, errors = select_topics(source, request.topics, request.match)
    if errors:
        raise errors[0]
    internal = [topic.name for topic in chosen if topic.is_internal]
    if named := [name for name in internal if name in request.topics]:
        raise UnreadableArgument("topics to copy", " ".join(named), "others than internal")
    topics = tuple(
        CopiedTopic(topic.name, f"{request.prefix}{topic.name}", len(topic.partitions))
        for topic in chosen
        if not topic.is_internal
    )
    if not topics:
        raise UnreadableArgument("topics to copy", request.match or "", "others than internal")
    destination_id = destination.view([]).cluster_id
    if view.cluster_id is not None and view.cluster_id == destination_id and not request.prefix:
        raise SameTopics
    ranges = _ranges(source, topics, request)
    return TopicCopy(
        source.entropy.random_bytes(_ID_BYTES).hex(),
        identity,
        view.cluster_id,
        destination_id,
        topics,
        ranges,
        _group_offsets(source, destination, request, ranges),
        request.delivery,
    )


def _ranges(
    source: KafkaClient, topics: tuple[CopiedTopic, ...], request: CopyRequest
) -> dict[TopicPartition, CopyRange]:
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
    ranges = {}
    for key in keys:
        found = [offsets[key] for offsets in (earliest, latest, starts, ends)]
        numbers = [one for one in found if isinstance(one, int)]
        for one in found:
            if isinstance(one, EngineError):
                raise one
        first, last, begin, end = numbers
        end = min(end, last)
        ranges[key] = CopyRange(min(max(begin, first), end), end)
    return ranges


def _group_offsets(
    source: KafkaClient,
    destination: KafkaClient,
    request: CopyRequest,
    ranges: dict[TopicPartition, CopyRange],
) -> tuple[GroupOffset, ...]:
    """Return what groups have committed of the partitions that are copied."""
    if request.groups and request.at_least_once:
        raise UnreadableArgument("options that go together", "--groups --at-least-once", "one")
    offsets: list[GroupOffset] = []
    for group_id in request.groups:
        there = describe_group(destination, group_id)
        if there.state not in _INACTIVE:
            raise GroupHasMembers(group_id, there.state)
        found = {key: one.offset for key, one in commits(source, group_id).items() if key in ranges}
        if not found:
            say(f"the group {group_id} has committed nothing of these topics")
        if describe_group(source, group_id).members:
            say(f"the group {group_id} has members at the source: it is translated as it is now")
        offsets += [GroupOffset(group_id, key, offset) for key, offset in sorted(found.items())]
    return tuple(offsets)


def prepared_topics(
    source: KafkaClient,
    destination: KafkaClient,
    request: CopyRequest,
    plan: TopicCopy,
    *,
    is_resumed: bool,
) -> Destination:
    """Return which topics the destination has and lacks.

    Errors: those of `destination_topics`, and for a new copy of `require_empty`.
    """
    found = destination_topics(
        source,
        destination,
        plan.topics,
        replication_factor=request.replication_factor,
        with_settings=request.with_settings,
    )
    if not is_resumed and not request.append:
        require_empty(destination, found.there)
    return found
