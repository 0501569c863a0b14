"""An idempotent load on a replicated topic, and what must be true of it under any fault.

Each record says which it is of its partition: 0, 1, 2, … So a log is right if it is that sequence,
without a gap, a repetition or another order, up to the last one that was acknowledged at least.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

DEADLINE_S = 120.0
_PAUSE_S = 0.05


class ClusterLoad:
    """Produces on a thread of its own until `finish`, and checks what brokers have of it."""

    def __init__(self, address: str, topic: str, partitions: int, per_s: int) -> None:
        self.topic = topic
        self.partitions = partitions
        self.errors: list[str] = []
        #: The last record of each partition that was acknowledged, and how many were.
        self.acknowledged = [-1] * partitions
        self.acknowledged_count = 0
        #: The next record of each partition that a consumer is to see.
        self.seen = [0] * partitions
        self._address = address
        self._per_s = per_s
        self._sent = [0] * partitions
        self._is_over = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": address,
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 2,
                "message.timeout.ms": 600_000,
                "topic.metadata.refresh.interval.ms": 5000,
                "log_level": 0,
            }
        )
        self._thread = threading.Thread(target=self._run, daemon=True)

    def create_topic(self, admin: AdminClient, replicas: list[int]) -> None:
        """Make the topic, each partition led first by another broker."""
        rows = [
            [replicas[(first + step) % len(replicas)] for step in range(len(replicas))]
            for first in range(self.partitions)
        ]
        new = NewTopic(
            self.topic,
            self.partitions,
            replica_assignment=rows,
            config={"min.insync.replicas": "2", "segment.bytes": "4000000"},
        )
        admin.create_topics([new])[self.topic].result(DEADLINE_S)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def _run(self) -> None:
        while not self._is_over.wait(_PAUSE_S):
            for _ in range(max(1, round(self._per_s * _PAUSE_S))):
                partition = sum(self._sent) % self.partitions
                number = self._sent[partition]
                self._sent[partition] += 1
                try:
                    self._producer.produce(
                        self.topic, b"%d" % number, partition=partition, on_delivery=self._told
                    )
                except BufferError:
                    # The cluster is away for long: what waits is enough for now.
                    self._sent[partition] -= 1
                    break
            self._producer.poll(0)

    def _told(self, error: object, message: Any) -> None:
        if error is not None:
            self.errors.append(str(error))
            return
        number, partition = int(message.value()), message.partition()
        if message.offset() != number or number != self.acknowledged[partition] + 1:
            last = self.acknowledged[partition]
            self.errors.append(f"{partition}: {number} at {message.offset()} behind {last}")
        self.acknowledged[partition] = number
        self.acknowledged_count += 1

    def finish(self) -> None:
        """Produce nothing more, and see everything acknowledged."""
        self._is_over.set()
        self._thread.join()
        left = self._producer.flush(DEADLINE_S)
        assert (0, []) == (left, self.errors), (left, self.errors[:5])
        assert [sent - 1 for sent in self._sent] == self.acknowledged

    def check_seen(self, *, from_start: bool = False) -> None:
        """Consume what was acknowledged by now: from where the last check ended, or all of it."""
        if from_start:
            self.seen = [0] * self.partitions
        wanted = list(self.acknowledged)
        consumer = Consumer(
            {
                "bootstrap.servers": self._address,
                "group.id": "unused",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "log_level": 0,
            }
        )
        consumer.assign(
            [
                TopicPartition(self.topic, partition, seen or OFFSET_BEGINNING)
                for partition, seen in enumerate(self.seen)
            ]
        )
        end_s = time.monotonic() + DEADLINE_S
        try:
            while any(seen <= last for seen, last in zip(self.seen, wanted, strict=True)):
                assert time.monotonic() < end_s, (self.seen, wanted)
                for message in consumer.consume(2000, 1):
                    if message.error() is None:
                        self._see(message)
        finally:
            consumer.close()

    def _see(self, message: Any) -> None:
        partition, number = message.partition(), int(message.value())
        assert (self.seen[partition],) * 2 == (number, message.offset()), partition
        self.seen[partition] += 1


def in_sync(admin: AdminClient, topic: str) -> list[int]:
    """Return the number of in-sync replicas of each partition, none while nobody answers.

    A partition without a leader has none: it can be neither read nor written.
    """
    try:
        partitions = admin.list_topics(topic, timeout=5).topics[topic].partitions
    except Exception:
        return []
    led = {index: row for index, row in partitions.items() if row.leader >= 0}
    return [len(led[index].isrs) if index in led else 0 for index in sorted(partitions)]


def until_in_sync(admin: AdminClient, topic: str, replicas: int) -> None:
    """Return once all replicas of all partitions are in sync."""
    end_s = time.monotonic() + DEADLINE_S
    while True:
        found = in_sync(admin, topic)
        if found and set(found) == {replicas}:
            return
        assert time.monotonic() < end_s, found
        time.sleep(0.1)


def differing_replicas(log_dirs: list[Path], topic: str, partitions: int) -> list[int]:
    """Return the partitions whose logs are not the same bytes everywhere."""
    return [
        partition
        for partition in range(partitions)
        if len({_content(log_dir / f"{topic}-{partition}") for log_dir in log_dirs}) != 1
    ]


def _content(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.glob("*.log")))
