"""Value types that every package of the engine may use."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple


class TopicPartition(NamedTuple):
    """One partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        """Return "topic-partition", as Kafka writes a TopicPartition."""
        return f"{self.topic}-{self.partition}"


#: Creates a named tuple from a tuple of all its fields: `new_tuple(TopicPartition, ("t", 0))`. A
#: named tuple's own constructor is Python code and takes twice as long, which matters if one is
#: created per record or request.
new_tuple: Final = tuple.__new__


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[TopicPartition]]:
    """Return partitions grouped by topic, both in the given order.

    Kafka's requests list partitions in this form.
    """
    grouped: dict[str, list[TopicPartition]] = {}
    for partition in partitions:
        grouped.setdefault(partition.topic, []).append(partition)
    return grouped
