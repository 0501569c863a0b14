"""The order in which responses to commits of offsets list partitions.

Kafka first lists what it refuses itself (a topic that is denied, a partition that is not there), then what
the group's coordinator says of the others: with their topic, where that is listed already.

Source: OffsetCommitResponse.Builder, TxnOffsetCommitResponse.Builder of 3.9.1.
"""  # noqa: E501 - prose

from __future__ import annotations

from collections.abc import Container, Sequence
from functools import partial
from typing import Protocol, TypeVar

from engine.model import TopicPartition


class CommittedRow(Protocol):
    """A partition of a request."""

    partition_index: int


R = TypeVar("R", bound=CommittedRow)


class CommittedTopic(Protocol[R]):
    """A topic of a request."""

    name: str
    partitions: list[R]


T = TypeVar("T", bound=CommittedRow)


def refused_first(
    topics: Sequence[CommittedTopic[T]], refused: Container[TopicPartition]
) -> list[tuple[str, list[T]]]:
    """Return topics with their rows, those that were refused before the group was asked first."""

    def is_left(topic: str, row: T) -> bool:
        return TopicPartition(topic, row.partition_index) not in refused

    ordered = [
        (topic.name, sorted(topic.partitions, key=partial(is_left, topic.name))) for topic in topics
    ]
    return sorted(ordered, key=lambda one: all(is_left(one[0], row) for row in one[1]))
