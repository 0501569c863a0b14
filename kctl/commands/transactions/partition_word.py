"""The word for one partition in commands of `kctl transactions`."""

from __future__ import annotations

from engine.model import TopicPartition
from kctl.arguments import UnreadableArgument
from kctl.selection import parse_partitions


def one_partition(word: str) -> TopicPartition:
    """Return the partition of TOPIC:PARTITION; raises UnreadableArgument."""
    topic, numbers = parse_partitions(word)
    if numbers is None or len(numbers) != 1:
        raise UnreadableArgument("a partition", word, "TOPIC:PARTITION")
    return TopicPartition(topic, *numbers)
