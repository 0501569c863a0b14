"""Parse the argument for a single partition in commands of `kctl transactions`."""

from __future__ import annotations

from engine.model import TopicPartition
from kctl.arguments import UnreadableArgument
from kctl.selection import parse_partitions


def one_partition(argument: str) -> TopicPartition:
    """Parse TOPIC:PARTITION; raises UnreadableArgument."""
    topic, numbers = parse_partitions(argument)
    if numbers is None or len(numbers) != 1:
        raise UnreadableArgument("a partition", argument, "TOPIC:PARTITION")
    return TopicPartition(topic, *numbers)
