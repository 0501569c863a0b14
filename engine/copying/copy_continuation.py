"""Continues an earlier copy of the same topics: copies the records added since.

| partition of the destination | the range starts |
|---|---|
| has records, or had some | where the earlier copy ended |
| never had any, for instance of a topic that was created again | as in a new copy, or before |

A group whose offset at the source is before the range gets the offset that the earlier copy found
for it. If it has read on since, that is further back than at the source: the group then reads some
records again, and misses none.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from engine.copying.copy_plan import CopiedTopic, CopyRange, GroupOffset, TopicCopy
from engine.errors import EngineError
from engine.model import TopicPartition


class SourceReplaced(EngineError):
    """A topic of the source was deleted and created again since the copy began."""

    hint = (
        "its records are those of another copy: with another --journal, and --prefix for another "
        "name or --append after the copied records"
    )

    def __init__(self, topic: str) -> None:
        super().__init__(f"{topic} was deleted and made again at the source since the copy began")
        self.topic = topic


class SourceShorter(EngineError):
    """A partition of the source ends before the offset up to which it was copied."""

    hint = (
        "its last records are lost there, as by an unclean election: a copy with another --journal "
        "and --append begins where --from says"
    )

    def __init__(self, partition: TopicPartition, end: int, copied_to: int) -> None:
        super().__init__(
            f"{partition} ends at {end} at the source, and is copied up to {copied_to}"
        )
        self.partition = partition


class GroupNotTranslated(EngineError):
    """A group's offset is among records that an earlier copy copied without this group."""

    hint = (
        "leave it out of --groups, and commit its place at the destination by "
        "`kctl groups reset-offsets`"
    )

    def __init__(self, one: GroupOffset, start: int) -> None:
        super().__init__(
            f"the group {one.group_id} is at offset {one.offset} of {one.partition}, which an "
            f"earlier copy has copied up to {start} without translating it"
        )
        self.group_id = one.group_id


class PartitionEnds(NamedTuple):
    """Offsets of a source partition: its start and end, and the requested start and end."""

    first: int
    end: int
    start: int
    until: int


def new_range(ends: PartitionEnds) -> CopyRange:
    """Return the range to copy of a partition that was not copied before."""
    end = min(ends.until, ends.end)
    return CopyRange(min(max(ends.start, ends.first), end), end)


def continue_range(partition: TopicPartition, ends: PartitionEnds, copied_to: int) -> CopyRange:
    """Return the range of offsets to copy after an earlier copy that ended at `copied_to`.

    It is empty if the source has no newer records. Raises SourceShorter if the source ends before
    `copied_to`: its topic has lost records that were copied.
    """
    if ends.end < copied_to:
        raise SourceShorter(partition, ends.end, copied_to)
    start = max(copied_to, ends.first)
    return CopyRange(start, max(min(ends.until, ends.end), start))


def check_same_topics(topics: Iterable[CopiedTopic], earlier: Iterable[CopiedTopic]) -> None:
    """Raise SourceReplaced if a source topic has another id than at the earlier copy.

    It was deleted and created again: its offsets mean other records. An unknown id is accepted.
    """
    ids = {topic.source: topic.source_id for topic in earlier}
    for topic in topics:
        known = ids.get(topic.source)
        if None not in (known, topic.source_id) and known != topic.source_id:
            raise SourceReplaced(topic.source)


def continue_group_offsets(
    offsets: Iterable[GroupOffset], plan: TopicCopy, earlier: TopicCopy
) -> list[GroupOffset]:
    """Return the group offsets for a plan that continues an earlier copy.

    An offset before the plan's range was translated by the earlier copy, whose value is kept.
    Errors: GroupNotTranslated, also for a group whose offset has moved back since.
    """
    known = {(one.group_id, one.partition): one.offset for one in earlier.group_offsets}
    found = []
    for one in offsets:
        start = plan.ranges[one.partition].start
        if one.partition in plan.continued and one.offset < start:
            translated = known.get((one.group_id, one.partition))
            if translated is None or translated > one.offset:
                raise GroupNotTranslated(one, start)
            found.append(one._replace(offset=translated))
            continue
        found.append(one)
    return found
