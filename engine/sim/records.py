"""What producers of a simulation send, and how it is known again.

A record's value is `producer:number`; the numbers of one producer and partition rise by one. A
batch in a log is known by where it stands, its leader's epoch and its checksum.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from engine.records.batch import BatchView
from engine.records.builder import BatchBuilder, BatchSettings


class BatchId(NamedTuple):
    """One batch of one log; offsets are inclusive."""

    base_offset: int
    last_offset: int
    leader_epoch: int
    crc: int


class Sender(NamedTuple):
    """Who a producer is to brokers; without an id it is not idempotent."""

    name: str
    producer_id: int = -1
    producer_epoch: int = -1
    #: Whether each record has a key that no other one has: then cleaning may drop none.
    is_keyed: bool = False


def build(sender: Sender, first_number: int, count: int, now_ms: int) -> bytes:
    """Return a batch of records with the numbers from `first_number` on."""
    settings = BatchSettings()
    if sender.producer_id >= 0:
        settings = BatchSettings(
            producer_id=sender.producer_id,
            producer_epoch=sender.producer_epoch,
            base_sequence=first_number,
        )
    builder = BatchBuilder(settings)
    for number in range(first_number, first_number + count):
        value = f"{sender.name}:{number}".encode()
        # What is sent again, and comes twice, is another record.
        key = b"%b:%d" % (value, now_ms) if sender.is_keyed else None
        builder.append(now_ms, key, value)
    return bytes(builder.build())


def batches(content: bytes) -> Iterator[BatchView]:
    """Yield the whole batches of a log."""
    view, position = memoryview(content), 0
    while len(view) - position >= 61:
        batch = BatchView(view, position)
        if position + batch.size_bytes > len(view):
            return
        yield batch
        position += batch.size_bytes


def batch_ids(content: bytes) -> list[BatchId]:
    """Return the identities of the whole batches of a log."""
    return [
        BatchId(batch.base_offset, batch.last_offset, batch.leader_epoch, batch.crc)
        for batch in batches(content)
    ]


def numbers(content: bytes) -> Iterator[tuple[int, str, int]]:
    """Yield offset, producer and number of each record."""
    for batch in batches(content):
        for record in batch.records():
            name, number = bytes(record.value or b"").decode().split(":")
            yield record.offset, name, int(number)
