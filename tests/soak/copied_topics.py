"""What transactions copy in the soak of exactly-once, and what must be true of the copies.

Record n of an input partition is the number n. A transaction writes it to the same partition of
three topics, with the offsets behind it; a reader of committed records finds:

| topic | policy | what is there |
|---|---|---|
| copies | retention of nothing | each number once, in order |
| newest | compaction, key n modulo 97 | rising numbers, the newest of each key among them |
| recent | retention by time | the last numbers, in order and without a gap |
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from typing import Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

COPIES: Final = "copies"
NEWEST: Final = "newest"
RECENT: Final = "recent"
OUTPUTS: Final = (COPIES, NEWEST, RECENT)
KEY_COUNT: Final = 97
_DEADLINE_S: Final = 120.0
_CONFIGS: Final[dict[str, dict[str, str]]] = {
    COPIES: {"segment.bytes": "500000"},
    NEWEST: {
        "cleanup.policy": "compact",
        "segment.ms": "5000",
        "min.cleanable.dirty.ratio": "0.01",
        "delete.retention.ms": "10000",
    },
    RECENT: {"retention.ms": "120000", "segment.ms": "10000"},
}


def create_outputs(admin: AdminClient, rows: Sequence[Sequence[int]]) -> None:
    """Create the three topics, `rows` being the replicas of each partition."""
    topics = [
        NewTopic(
            name,
            len(rows),
            replica_assignment=[list(row) for row in rows],
            config={"min.insync.replicas": "2", **config},
        )
        for name, config in _CONFIGS.items()
    ]
    for created in admin.create_topics(topics).values():
        created.result(_DEADLINE_S)


def key_of(number: int) -> bytes:
    """Return the key that a record has in every output."""
    return b"%d" % (number % KEY_COUNT)


def check_copies(topic: str, numbers: Sequence[int], count: int) -> None:
    """Check the committed records of one output partition, whose input has `count` records."""
    everything = list(range(count))
    if topic == COPIES:
        assert everything == list(numbers), _first_difference(numbers)
    elif topic == RECENT:
        assert numbers or not count, "nothing is left"
        assert everything[count - len(numbers) :] == list(numbers), _first_difference(numbers)
    else:
        newest = {number % KEY_COUNT: number for number in everything}
        assert sorted(set(numbers)) == list(numbers), "numbers repeat or go back"
        assert set(newest.values()) <= set(numbers), sorted(set(newest.values()) - set(numbers))
        assert set(numbers) <= set(everything)


def _first_difference(numbers: Sequence[int]) -> str:
    steps = itertools.pairwise(numbers)
    place = next((place for place, (a, b) in enumerate(steps) if b != a + 1), None)
    if place is None:
        return f"{len(numbers)} from {list(numbers[:1])} to {list(numbers[-1:])}"
    return f"at {place} of {len(numbers)}: {list(numbers[max(0, place - 2) : place + 4])}"


def committed_numbers(address: str, topic: str, partition: int) -> list[int]:
    """Return what a reader of committed records finds in a partition, up to its end."""
    settings = {
        "bootstrap.servers": address,
        "group.id": "unused",
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "check.crcs": True,
        "log_level": 0,
    }
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
    numbers: list[int] = []
    end_s = time.monotonic() + _DEADLINE_S
    try:
        while time.monotonic() < end_s:
            for message in consumer.consume(5000, 1):
                if message.error() is None:
                    numbers.append(int(message.value() or b""))
                else:
                    assert message.error().name() == "_PARTITION_EOF", message.error()
                    return numbers
    finally:
        consumer.close()
    raise AssertionError(f"{topic}-{partition} has no end")
