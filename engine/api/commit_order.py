"""The order in which responses to commits of offsets list partitions.

Kafka lists refused partitions first (of a denied topic, or unknown), then the partitions that the
group's coordinator answered, under their topic if that is listed already. The latter are keys of a
map: so each is listed once and, if there are more than four, in the order of hashes. A topic
without requested partitions is listed only if the topic itself is refused.

Source: OffsetCommitResponse.Builder, TxnOffsetCommitResponse.Builder, GroupCoordinatorAdapter of
3.9.1.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, Protocol, TypeVar

from engine.hash_order import SMALL_MAP_MAX, partitions_in_immutable_order
from engine.model import TopicPartition
from engine.wire.scala_set import scala_order

_ID_PLACE: Final = 31


class CommittedRow(Protocol):
    """A partition of a request."""

    partition_index: int


R = TypeVar("R", bound=CommittedRow)


class CommittedTopic(Protocol[R]):
    """A topic of a request."""

    name: str
    partitions: list[R]


T = TypeVar("T", bound=CommittedRow)


def commit_result_rows(
    topics: Sequence[CommittedTopic[T]],
    refused: Mapping[TopicPartition, int],
    written: Mapping[TopicPartition, int],
    refused_topics: Collection[str] = (),
    *,
    have_topic_ids: bool = True,
) -> list[tuple[str, list[tuple[int, int]]]]:
    """Return by topic the index and code of each partition, in the order of Kafka's response.

    `refused` are codes of partitions that were refused before the group coordinator was called,
    `written` its codes. `have_topic_ids`: the keys of Kafka's map had topic ids too, as for
    commits.
    """
    out: dict[str, list[tuple[int, int]]] = {}
    for topic in topics:
        if topic.name in refused_topics:
            out.setdefault(topic.name, [])
        for row in topic.partitions:
            code = refused.get(TopicPartition(topic.name, row.partition_index))
            if code is not None:
                out.setdefault(topic.name, []).append((row.partition_index, code))
    ordered = (
        _in_commit_order(written) if have_topic_ids else partitions_in_immutable_order(written)
    )
    for key in ordered:
        out.setdefault(key.topic, []).append((key.partition, written[key]))
    return list(out.items())


def _in_commit_order(partitions: Collection[TopicPartition]) -> Collection[TopicPartition]:
    """Return partitions in the iteration order of the map in Kafka's response to a commit.

    The map's keys have the zero topic id, so that their hash equals that of a partition whose
    number is larger by 31. A small immutable map keeps the order of the mutable map that it was
    built from.

    Source: TopicIdPartition, GroupCoordinatorAdapter.commitOffsets.
    """
    if len(partitions) < 2:
        return partitions
    if len(partitions) > SMALL_MAP_MAX:
        return partitions_in_immutable_order(partitions, have_topic_ids=True)
    placed = [[TopicPartition(topic, index + _ID_PLACE)] for topic, index in partitions]
    return [TopicPartition(topic, index - _ID_PLACE) for topic, index in scala_order(placed)]
