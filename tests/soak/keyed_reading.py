"""Keyed partitions read from the first record on: by a consumer, and in a replica's files."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition

from engine.records.batch import BatchView
from engine.records.control import ControlType, control_type
from engine.records.record import Record
from engine.sim.records import batches
from tests.soak.keyed_partition import Read
from tests.soak.keyed_writer import NUMBER
from tests.soak.writers import Place

_DEADLINE_S = 60.0


def consume(address: str, ends: Mapping[Place, int]) -> dict[Place, list[Read]]:
    """Return the committed records of partitions, each read to an end offset at least."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "unused",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "check.crcs": True,
            "fetch.wait.max.ms": 50,
            "log_level": 0,
        }
    )
    found: dict[Place, list[Read]] = {place: [] for place in ends}
    positions = dict.fromkeys(ends, 0)
    consumer.assign([TopicPartition(*place, OFFSET_BEGINNING) for place in ends])
    deadline_s = time.monotonic() + _DEADLINE_S
    try:
        while behind := {p: (positions[p], end) for p, end in ends.items() if positions[p] < end}:
            assert time.monotonic() < deadline_s, f"not read to the end: {behind}"
            for message in consumer.consume(5000, 0.2):
                _take(message, found, positions)
    finally:
        consumer.close()
    return found


def _take(message: Message, found: dict[Place, list[Read]], positions: dict[Place, int]) -> None:
    place = Place(str(message.topic()), int(message.partition() or 0))
    offset = message.offset() or 0
    if message.error() is None:
        found[place].append(_read_of(message))
        positions[place] = offset + 1
    elif message.error().code() == KafkaError._PARTITION_EOF:
        positions[place] = max(positions[place], offset)


def _read_of(message: Message) -> Read:
    number = int(dict(message.headers() or ())[NUMBER])
    return Read(message.offset() or 0, bytes(message.key() or b""), number, message.value())


def start_offsets(address: str, places: Iterable[Place]) -> dict[Place, int]:
    """Return the log start offsets that leaders have now."""
    return {place: start for place, (start, _) in _watermarks(address, places).items()}


def high_watermarks(address: str, places: Iterable[Place]) -> dict[Place, int]:
    """Return the high watermarks that leaders have now."""
    return {place: high for place, (_, high) in _watermarks(address, places).items()}


def _watermarks(address: str, places: Iterable[Place]) -> dict[Place, tuple[int, int]]:
    consumer = Consumer({"bootstrap.servers": address, "group.id": "unused", "log_level": 0})
    try:
        return {
            place: consumer.get_watermark_offsets(TopicPartition(*place), timeout=30)
            for place in places
        }
    finally:
        consumer.close()


def read_files(partition: Path) -> list[Read]:
    """Return the committed records in a replica's files, in the order of the log.

    What is behind the first record of a transaction without an end counts as well: a check of
    folds is made when there is none.
    """
    content = b"".join(path.read_bytes() for path in sorted(partition.glob("*.log")))
    open_: dict[int, list[Record]] = {}
    committed: list[Record] = []
    for batch in batches(content):
        records = list(batch.records())
        if batch.is_control:
            ended = open_.pop(batch.producer_id, [])
            committed += ended if _is_commit(batch, records) else ()
        elif batch.is_transactional:
            open_.setdefault(batch.producer_id, []).extend(records)
        else:
            committed += records
    committed += [record for records in open_.values() for record in records]
    return [_read(record) for record in sorted(committed, key=lambda record: record.offset)]


def _is_commit(batch: BatchView, records: list[Record]) -> bool:
    return bool(records) and control_type(records[0]) is ControlType.COMMIT


def _read(record: Record) -> Read:
    number = int(dict(record.headers)[NUMBER] or 0)
    value = None if record.value is None else bytes(record.value)
    return Read(record.offset, bytes(record.key or b""), number, value)
