"""Which fetcher follows which partition."""

from __future__ import annotations

import pytest

from engine.broker.replica_fetching import fetcher_number
from engine.model import TopicPartition


@pytest.mark.parametrize(
    ("topic", "partition", "count", "number"),
    [
        # "t".hashCode() is 116: 31 * 116 + partition.
        ("t", 0, 4, 3596 % 4),
        ("t", 3, 4, 3599 % 4),
        ("t", 9, 1, 0),
        # "polygenelubricants".hashCode() is Java's least int; 31 times it is the same.
        ("polygenelubricants", 0, 7, 0),
        ("polygenelubricants", 1, 1 << 31, (1 << 31) - 1),
    ],
)
def test_a_partitions_number_is_that_of_javas_hash(
    topic: str, partition: int, count: int, number: int
) -> None:
    assert number == fetcher_number(TopicPartition(topic, partition), count)
