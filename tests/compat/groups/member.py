"""A member of one of Python's clients.

    python -m tests.compat.groups.member CLIENT BOOTSTRAP GROUP TOPIC ASSIGNOR NAME [INSTANCE]

It prints `NAME PARTITION OFFSET VALUE` for each record, and commits after each poll, until SIGTERM.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Iterable
from typing import Any, NamedTuple

_SESSION_MS = 10_000
_HEARTBEAT_MS = 1_000
_POLL_MS = 300


class Membership(NamedTuple):
    """What a member joins, and how."""

    bootstrap: str
    group: str
    topic: str
    assignor: str
    name: str
    instance: str | None = None

    @property
    def python_settings(self) -> dict[str, Any]:
        """Return the settings by the names of kafka-python and aiokafka."""
        settings: dict[str, Any] = {
            "bootstrap_servers": self.bootstrap.split(","),
            "group_id": self.group,
            "client_id": self.name,
            "enable_auto_commit": False,
            "auto_offset_reset": "earliest",
            "session_timeout_ms": _SESSION_MS,
            "heartbeat_interval_ms": _HEARTBEAT_MS,
        }
        return (
            settings if self.instance is None else settings | {"group_instance_id": self.instance}
        )

    def write(self, rows: Iterable[tuple[int, int, bytes]]) -> bool:
        """Print partitions, offsets and values; returns whether there were any."""
        lines = [
            f"{self.name} {partition} {offset} {v.decode()}\n" for partition, offset, v in rows
        ]
        sys.stdout.write("".join(lines))
        sys.stdout.flush()
        return bool(lines)


class _End:
    """Whether SIGTERM has come."""

    def __init__(self) -> None:
        self.has_come = False
        signal.signal(signal.SIGTERM, self._note)

    def _note(self, *_: object) -> None:
        self.has_come = True


def _confluent(member: Membership, end: _End) -> None:
    from confluent_kafka import Consumer, KafkaException

    settings: dict[str, Any] = {
        "bootstrap.servers": member.bootstrap,
        "group.id": member.group,
        "client.id": member.name,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "session.timeout.ms": _SESSION_MS,
        "heartbeat.interval.ms": _HEARTBEAT_MS,
        "partition.assignment.strategy": member.assignor,
    }
    if member.instance is not None:
        settings["group.instance.id"] = member.instance
    consumer = Consumer(settings)
    consumer.subscribe([member.topic])
    while not end.has_come:
        messages = [m for m in consumer.consume(500, _POLL_MS / 1000) if m.error() is None]
        if member.write((m.partition(), m.offset(), m.value()) for m in messages):
            try:
                consumer.commit(asynchronous=False)
            except KafkaException as error:
                print(error, file=sys.stderr, flush=True)
    consumer.close()


def _kafka_python(member: Membership, end: _End) -> None:
    from kafka import KafkaConsumer
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
    from kafka.errors import KafkaError

    assignor = {
        "range": RangePartitionAssignor,
        "roundrobin": RoundRobinPartitionAssignor,
        "sticky": StickyPartitionAssignor,
        "cooperative-sticky": CooperativeStickyAssignor,
    }[member.assignor]
    settings = member.python_settings
    consumer = KafkaConsumer(member.topic, partition_assignment_strategy=[assignor], **settings)
    while not end.has_come:
        batches = consumer.poll(_POLL_MS)
        rows = ((r.partition, r.offset, r.value) for batch in batches.values() for r in batch)
        if member.write(rows):
            try:
                consumer.commit()
            except KafkaError as error:
                print(repr(error), file=sys.stderr, flush=True)
    consumer.close()


async def _aiokafka(member: Membership, end: _End) -> None:
    from aiokafka import AIOKafkaConsumer
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor
    from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
    from aiokafka.errors import KafkaError

    assignor = {
        "range": RangePartitionAssignor,
        "roundrobin": RoundRobinPartitionAssignor,
        "sticky": StickyPartitionAssignor,
    }[member.assignor]
    settings = member.python_settings
    consumer = AIOKafkaConsumer(member.topic, partition_assignment_strategy=[assignor], **settings)
    await consumer.start()
    while not end.has_come:
        batches = await consumer.getmany(timeout_ms=_POLL_MS)
        rows = ((r.partition, r.offset, r.value) for batch in batches.values() for r in batch)
        if member.write(rows):
            try:
                await consumer.commit()
            except KafkaError as error:
                print(repr(error), file=sys.stderr, flush=True)
    await consumer.stop()


def main() -> None:
    """Run the member of the command line."""
    client, *arguments = sys.argv[1:]
    member, end = Membership(*arguments), _End()
    if client == "aiokafka":
        asyncio.run(_aiokafka(member, end))
    else:
        {"confluent": _confluent, "kafka-python": _kafka_python}[client](member, end)


if __name__ == "__main__":
    main()
