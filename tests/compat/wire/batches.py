"""Record data to send, right or wrong in one place, and the request that it is sent in."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from engine.records.builder import BatchSettings, build_batch
from engine.records.codec import Codec
from engine.records.crc import crc32c
from engine.records.legacy_builder import LegacySettings, build_messages
from engine.records.record import Record, TimestampType

#: Fields of a batch of magic 2: position and format.
FIELDS = {
    "base_offset": (0, ">q"),
    "batch_length": (8, ">i"),
    "leader_epoch": (12, ">i"),
    "magic": (16, ">b"),
    "crc": (17, ">I"),
    "attributes": (21, ">h"),
    "last_offset_delta": (23, ">i"),
    "base_timestamp": (27, ">q"),
    "max_timestamp": (35, ">q"),
    "producer_id": (43, ">q"),
    "producer_epoch": (51, ">h"),
    "base_sequence": (53, ">i"),
    "record_count": (57, ">i"),
}
_CRC_FROM = 21


def records(
    count: int, time_ms: int, *, first: int = 0, key: bytes | None = b"k", size: int = 10
) -> list[Record]:
    """Return records with offsets from `first` and one time."""
    return [
        Record(n, time_ms, TimestampType.CREATE_TIME, key, b"%05d" % n + b"v" * size)
        for n in range(first, first + count)
    ]


def batch(found: Sequence[Record], **settings: Any) -> bytes:
    """Return one batch of magic 2."""
    return bytes(build_batch(found, BatchSettings(**settings)))


def messages(found: Sequence[Record], magic: int, codec: Codec = Codec.NONE) -> bytes:
    """Return messages of magic 0 or 1."""
    kind = TimestampType.CREATE_TIME if magic else TimestampType.NONE
    plain = [one._replace(timestamp_ms=one.timestamp_ms if magic else -1) for one in found]
    return bytes(build_messages(plain, LegacySettings(magic, codec, timestamp_type=kind)))


def data(magic: int, codec: Codec, found: Sequence[Record]) -> bytes:
    """Return records of any magic."""
    return batch(found, codec=codec) if magic == 2 else messages(found, magic, codec)


def patched(raw: bytes, *, fix_crc: bool = True, **fields: int) -> bytes:
    """Return a batch with other header fields; its checksum is right again unless told not to."""
    out = bytearray(raw)
    for name, value in fields.items():
        at, form = FIELDS[name]
        struct.pack_into(form, out, at, value)
    if fix_crc and "crc" not in fields:
        struct.pack_into(">I", out, 17, crc32c(bytes(out[_CRC_FROM:])))
    return bytes(out)


def with_payload(raw: bytes, payload: bytes, **fields: int) -> bytes:
    """Return a batch with other bytes behind its header, its length and checksum right."""
    out = raw[:61] + payload
    return patched(out, batch_length=len(out) - 12, **fields)


def produce_body(topic: str, raw: bytes | None, **more: Any) -> dict[str, Any]:
    """Return a Produce request of one partition."""
    index = more.pop("index", 0)
    found = {
        "acks": -1,
        "timeout_ms": 3000,
        "topic_data": [{"name": topic, "partition_data": [{"index": index, "records": raw}]}],
    }
    return found | more
