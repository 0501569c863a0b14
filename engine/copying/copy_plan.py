"""The plan of a copy: topics with their names on both sides, offsets of partitions, groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from engine.model import TopicPartition

EXACTLY_ONCE: Final = "exactly-once"
AT_LEAST_ONCE: Final = "at-least-once"
#: Prefix of the transactional id and of the group of a copy.
NAME_PREFIX: Final = "kctl-copy-"


class CopiedTopic(NamedTuple):
    """A topic: its names at both clusters, its number of partitions, and its id as text.

    `source_id` is None if the source has no topic ids (before 2.8).
    """

    source: str
    destination: str
    partition_count: int
    source_id: str | None = None


class CopyRange(NamedTuple):
    """The offsets of a source partition that are copied; `end` is exclusive."""

    start: int
    end: int


class GroupOffset(NamedTuple):
    """The committed offset of a group at the source when the copy began."""

    group_id: str
    partition: TopicPartition
    offset: int


class TopicCopy(NamedTuple):
    """A copy. `request` is the text of its arguments, by which the same command finds it again.

    The ranges of the partitions in `continued` start where an earlier copy ended.
    """

    copy_id: str
    request: str
    source_cluster_id: str | None
    destination_cluster_id: str | None
    topics: tuple[CopiedTopic, ...]
    ranges: Mapping[TopicPartition, CopyRange]
    group_offsets: tuple[GroupOffset, ...]
    delivery: str
    continued: frozenset[TopicPartition] = frozenset()

    @property
    def name(self) -> str:
        """Return the name of the copy.

        It is the transactional id of its producer, and the group that its progress is committed
        for.
        """
        return f"{NAME_PREFIX}{self.copy_id}"

    def destinations(self) -> dict[TopicPartition, TopicPartition]:
        """Return the destination partition of each source partition."""
        names = {topic.source: topic.destination for topic in self.topics}
        return {key: TopicPartition(names[key.topic], key.partition) for key in self.ranges}

    def translated_offsets(self) -> list[GroupOffset]:
        """Return the committed group offsets to translate to the destination, as source offsets.

        An offset before the copied range becomes the range's start: records before it are not
        copied, so the group's next record is the first copied one. Offsets before a range that
        continues an earlier copy are left out: the earlier copy has translated them.
        """
        return [
            one._replace(offset=max(one.offset, self.ranges[one.partition].start))
            for one in self.group_offsets
            if one.partition not in self.continued or one.offset >= self.ranges[one.partition].start
        ]
