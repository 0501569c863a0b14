"""Encoding of the records of simulated producers, and the identity of their batches in logs.

A record's value is `producer:number`; the numbers of one producer in one partition are consecutive.
In compacted topics its key is one of a few that all producers share, and a tombstone has
`producer:number` in a header. A batch is identified by its offsets, leader epoch and checksum.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from engine.records.batch import BatchView
from engine.records.batch_header import HEADER_BYTES
from engine.records.builder import BatchBuilder, BatchSettings
from engine.records.codec import Codec

_ID = "id"
_KEYS = 13
_TOMBSTONE_EACH = 5
#: An odd multiplier that gives consecutive numbers different keys.
_SCATTER = 0x9E3779B1


class BatchId(NamedTuple):
    """The identity of a batch in a log; offsets are inclusive."""

    base_offset: int
    last_offset: int
    leader_epoch: int
    crc: int


class Sender(NamedTuple):
    """A producer's name, producer id and epoch; without an id it is not idempotent."""

    name: str
    producer_id: int = -1
    producer_epoch: int = -1
    #: Whether records have keys, and some are tombstones.
    is_keyed: bool = False
    is_compressed: bool = False


class KeyedRecord(NamedTuple):
    """One record of a compacted log."""

    offset: int
    key: bytes
    producer: str
    number: int
    is_tombstone: bool


def build(sender: Sender, first_number: int, count: int, now_ms: int) -> bytes:
    """Return a batch of records whose numbers rise from `first_number`, in their values.

    An idempotent sender's number is also the sequence of the record.
    """
    codec = Codec.GZIP if sender.is_compressed else Codec.NONE
    settings = BatchSettings(codec=codec)
    if sender.producer_id >= 0:
        settings = BatchSettings(
            codec=codec,
            producer_id=sender.producer_id,
            producer_epoch=sender.producer_epoch,
            base_sequence=first_number,
        )
    builder = BatchBuilder(settings)
    for number in range(first_number, first_number + count):
        value = f"{sender.name}:{number}".encode()
        if not sender.is_keyed:
            builder.append(now_ms, None, value)
            continue
        # A retried record has the same key; consecutive records have different ones.
        draw = number * _SCATTER >> 16
        key = b"k%d" % (draw % _KEYS)
        if draw % _TOMBSTONE_EACH:
            builder.append(now_ms, key, value)
        else:
            builder.append(now_ms, key, None, ((_ID, value),))
    return bytes(builder.build())


def batches(content: bytes) -> Iterator[BatchView]:
    """Yield the complete batches of a log; stop at a damaged length or an incomplete batch."""
    view, position = memoryview(content), 0
    while len(view) - position >= HEADER_BYTES:
        batch = BatchView(view, position)
        if batch.size_bytes < HEADER_BYTES or position + batch.size_bytes > len(view):
            return
        yield batch
        position += batch.size_bytes


def id_of(batch: BatchView) -> BatchId:
    """Return the identity of a batch: its offsets, leader epoch and CRC."""
    return BatchId(batch.base_offset, batch.last_offset, batch.leader_epoch, batch.crc)


def batch_ids(content: bytes) -> list[BatchId]:
    """Return the identities of the complete batches in a log's bytes, in order."""
    return [id_of(batch) for batch in batches(content)]


def keyed_records(batch: BatchView) -> Iterator[KeyedRecord]:
    """Yield the records of a batch of a compacted log, in order."""
    for record in batch.records():
        value, is_tombstone = record.value, record.value is None
        if is_tombstone:
            ((_, value),) = record.headers
        name, number = bytes(value or b"").decode().split(":")
        key = bytes(record.key or b"")
        yield KeyedRecord(record.offset, key, name, int(number), is_tombstone)


def numbers(content: bytes) -> Iterator[tuple[int, str, int]]:
    """Yield (offset, producer, number) of each record, without transaction markers."""
    for batch in batches(content):
        for record in () if batch.is_control else batch.records():
            value = record.value if record.value is not None else record.headers[0][1]
            name, number = bytes(value or b"").decode().split(":")
            yield record.offset, name, int(number)
