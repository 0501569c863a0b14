"""The order in which responses to commits of offsets list partitions.

Kafka first lists its refusals (a topic that is denied, a partition that does not exist), then
the codes of the group's coordinator for the others: with their topic, where that is listed already.
The others were keys of a hash map, so that each is listed once and in the order of hashes; a topic
without requested partitions is listed only where the topic itself is refused.

Differs: of more than four partitions, which are in another kind of map, the order is the same.
Source: OffsetCommitResponse.Builder, TxnOffsetCommitResponse.Builder, GroupCoordinatorAdapter of 3.9.1.
"""  # noqa: E501 - prose

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, Protocol, TypeVar

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


def answered_rows(
    topics: Sequence[CommittedTopic[T]],
    refused: Mapping[TopicPartition, int],
    written: Mapping[TopicPartition, int],
    refused_topics: Collection[str] = (),
    *,
    is_hashed: bool = True,
) -> list[tuple[str, list[tuple[int, int]]]]:
    """Return topics with an index and a code for each partition.

    `refused` are the codes of partitions that the group did not see, `written` the group's codes;
    they stay in their order if `is_hashed` is false.
    """
    out: dict[str, list[tuple[int, int]]] = {}
    for topic in topics:
        if topic.name in refused_topics:
            out.setdefault(topic.name, [])
        for row in topic.partitions:
            code = refused.get(TopicPartition(topic.name, row.partition_index))
            if code is not None:
                out.setdefault(topic.name, []).append((row.partition_index, code))
    for key in _in_order(written) if is_hashed else written:
        out.setdefault(key.topic, []).append((key.partition, written[key]))
    return list(out.items())


def _in_order(partitions: Collection[TopicPartition]) -> Collection[TopicPartition]:
    """Return partitions as a hash map lists them whose keys have topic ids too, all zero.

    Their hash is that of a partition whose number is larger by 31. Source: TopicIdPartition.
    """
    if len(partitions) < 2:
        return partitions
    placed = [[TopicPartition(topic, index + _ID_PLACE)] for topic, index in partitions]
    return [TopicPartition(topic, index - _ID_PLACE) for topic, index in scala_order(placed)]
