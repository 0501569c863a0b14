"""A member of a group that keeps a line of each record it has processed, then commits.

    python -m tests.soak.group_member CLIENT BOOTSTRAP GROUP TOPIC FILE [INSTANCE]

CLIENT is `librdkafka`, `librdkafka-cooperative`, `own`, `own-cooperative` or `kafka-python`;
INSTANCE makes it a static member. A line is `partition number`, written at once: what is committed
was written before, also if the process is killed in between.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple

import confluent_kafka
import kafka
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.errors import KafkaError

from engine.client.blocking import KafkaClient
from engine.client.consumer import Consumer
from engine.client.consumer_settings import ConsumerSettings
from engine.client.member_session import MemberSettings
from engine.client.settings import parse_addresses
from engine.errors import EngineError
from engine.host.real import RealClock, RealEntropy
from engine.host.real_streams import RealStreams

SESSION_TIMEOUT_MS: Final = 6_000
_HEARTBEAT_MS: Final = 500
_BATCH_MAX: Final = 200
_COOPERATIVE: Final = "cooperative-sticky"


class MemberNames(NamedTuple):
    """Which group a member joins to read which topic."""

    client: str
    address: str
    group_id: str
    topic: str
    instance_id: str | None


class ProcessedFile:
    """The file of one member; a line is in it as soon as `add` returns."""

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def add(self, records: Iterable[tuple[int, int]]) -> None:
        """Append records as pairs of partition and number."""
        text = "".join(f"{partition} {number}\n" for partition, number in records)
        os.write(self._descriptor, text.encode())


def processed(paths: Iterable[Path]) -> dict[int, list[int]]:
    """Return the numbers that members have processed, by partition; repeated ones more than once.

    A last line without its end was not written whole: its record was not committed.
    """
    numbers: dict[int, list[int]] = {}
    for path in paths:
        for line in path.read_text().split("\n")[:-1]:
            partition, number = line.split()
            numbers.setdefault(int(partition), []).append(int(number))
    return numbers


def consume_by_librdkafka(names: MemberNames, done: ProcessedFile) -> None:
    """Process and commit until the process ends."""
    settings: dict[str, Any] = {
        "bootstrap.servers": names.address,
        "group.id": names.group_id,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "session.timeout.ms": SESSION_TIMEOUT_MS,
        "heartbeat.interval.ms": _HEARTBEAT_MS,
        "partition.assignment.strategy": _strategy(names.client),
        "log_level": 0,
    }
    if names.instance_id is not None:
        settings["group.instance.id"] = names.instance_id
    consumer = confluent_kafka.Consumer(settings)
    consumer.subscribe([names.topic])
    while True:
        consumed = consumer.consume(_BATCH_MAX, 0.2)
        errors = [message.error() for message in consumed if message.error() is not None]
        # As an error of a message a fatal one is known by its code alone.
        if fatal := [
            error for error in errors if error.code() == confluent_kafka.KafkaError._FATAL
        ]:
            raise confluent_kafka.KafkaException(fatal[0])
        messages = [message for message in consumed if message.error() is None]
        if not messages:
            continue
        done.add((int(m.partition() or 0), int(m.value() or b"")) for m in messages)
        try:
            consumer.commit(asynchronous=False)
        except confluent_kafka.KafkaException as failure:
            if failure.args[0].fatal():
                raise


def _strategy(client: str) -> str:
    return _COOPERATIVE if client.endswith("cooperative") else "range"


def consume_by_own_client(names: MemberNames, done: ProcessedFile) -> None:
    """Process and commit until the process ends."""
    client = KafkaClient(
        parse_addresses(names.address),
        streams=RealStreams.create_wakeable(),
        clock=RealClock(),
        entropy=RealEntropy(),
    )
    member = MemberSettings(
        names.group_id,
        names.instance_id,
        session_timeout_ms=SESSION_TIMEOUT_MS,
        heartbeat_interval_ms=_HEARTBEAT_MS,
        assignors=(_strategy(names.client),),
    )
    settings = ConsumerSettings(member, "earliest", enable_auto_commit=False)
    consumer = Consumer(client, settings)
    consumer.subscribe([names.topic])
    while True:
        records = consumer.poll(200)
        done.add((record.partition, int(record.value or b"")) for record in records)
        if records:
            try:
                consumer.commit()
            except EngineError as error:
                print(f"not committed: {error}", file=sys.stderr, flush=True)


def consume_by_kafka_python(names: MemberNames, done: ProcessedFile) -> None:
    """Process and commit until the process ends."""
    consumer = kafka.KafkaConsumer(
        names.topic,
        bootstrap_servers=names.address,
        group_id=names.group_id,
        group_instance_id=names.instance_id,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        session_timeout_ms=SESSION_TIMEOUT_MS,
        heartbeat_interval_ms=_HEARTBEAT_MS,
        max_poll_records=_BATCH_MAX,
        partition_assignment_strategy=(RangePartitionAssignor,),
    )
    while True:
        for batch in consumer.poll(200).values():
            done.add((record.partition, int(record.value)) for record in batch)
        try:
            consumer.commit()
        except KafkaError as error:
            print(f"not committed: {error!r}", file=sys.stderr, flush=True)


def main() -> int:
    """Consume until the process is killed."""
    client, address, group_id, topic, path, *instance = sys.argv[1:]
    names = MemberNames(client, address, group_id, topic, instance[0] if instance else None)
    done = ProcessedFile(path)
    try:
        if client.startswith("librdkafka"):
            consume_by_librdkafka(names, done)
        elif client.startswith("own"):
            consume_by_own_client(names, done)
        else:
            consume_by_kafka_python(names, done)
    except (EngineError, KafkaError, confluent_kafka.KafkaException) as error:
        print(f"{client}: {error!r}", file=sys.stderr, flush=True)
    return 1


if __name__ == "__main__":
    sys.exit(main())
