"""Produce: batches and messages that break one rule each, in their headers or in one record."""

from __future__ import annotations

import struct
import zlib
from typing import Any

from engine.records.codec import Codec
from engine.records.compression import compress
from engine.records.control import ControlType, EndTransactionMarker, build_marker
from engine.records.record import Record, TimestampType
from engine.records.varint import write_varint
from tests.compat.wire.batches import batch, messages, patched, produce_body, records, with_payload
from tests.compat.wire.fetch_cases import read_back
from tests.compat.wire.pair import Pair

_DAY_MS = 86_400_000


def _bad_batches(now_ms: int) -> dict[str, bytes | None]:
    good = batch(records(3, now_ms))
    gzip = batch(records(3, now_ms), codec=Codec.GZIP)
    transactional = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    two = batch(records(2, now_ms)) + batch(records(2, now_ms, first=2))
    found: dict[str, bytes | None] = {
        "empty": b"",
        "two batches": two,
        "two batches at 0": good + good,
        "v2 then v1": good + messages(records(1, now_ms), 1),
        "v1 then v2": messages(records(1, now_ms), 1) + good,
        "v0 then v1": messages(records(1, now_ms), 0) + messages(records(1, now_ms), 1),
        "one byte": b"\x00",
        "16 bytes": good[:16],
        "17 bytes": good[:17],
        "60 bytes": good[:60],
        "61 bytes": good[:61],
        "one byte short": good[:-1],
        "one byte more": good + b"\x00",
        "12 bytes more": good + bytes(12),
        "17 bytes more": good + bytes(17),
        "bad crc": patched(good, crc=1),
        "bad crc and count": patched(good, crc=1, record_count=9),
    }
    for key, values in {
        "magic": (3, -1, 127, 0, 1),
        "batch_length": (-1, 0, 10, 48, 49, 50, len(good) - 13, len(good) - 11, 2**31 - 1),
        "record_count": (-1, 0, 2, 4, 2**31 - 1),
        "base_offset": (1, 5, -1, 2**62),
        "last_offset_delta": (0, 1, 3, -1, 2**31 - 1),
        "base_timestamp": (0, -1, -2, now_ms + 10 * _DAY_MS, 2**62),
        "max_timestamp": (0, -1, now_ms - 1000, now_ms + 5, now_ms + 10 * _DAY_MS),
        "attributes": (5, 6, 7, 8, 16, 32, 64, 128, 48, 0x4000),
        "leader_epoch": (0, 5, -2),
        "producer_id": (5, -2, 0),
        "producer_epoch": (0, -2),
        "base_sequence": (0, -2),
    }.items():
        for value in values:
            found[f"{key} {value}"] = patched(good, **{key: value})
    found |= {
        "gzip count 2": patched(gzip, record_count=2),
        "gzip count 4": patched(gzip, record_count=4),
        "gzip count 0": patched(gzip, record_count=0),
        "gzip count -1": patched(gzip, record_count=-1),
        "gzip garbage": with_payload(gzip, b"garbage garbage"),
        "gzip nothing": with_payload(gzip, b""),
        "gzip cut": with_payload(gzip, gzip[61:-9]),
        "gzip as snappy": patched(gzip, attributes=2),
        "gzip as lz4": patched(gzip, attributes=3),
        "gzip as zstd": patched(gzip, attributes=4),
        "gzip as none": patched(gzip, attributes=0),
        "gzip last delta": patched(gzip, last_offset_delta=7),
        "gzip base offset": patched(gzip, base_offset=5),
        "gzip max timestamp": patched(gzip, max_timestamp=now_ms - 1),
        "gzip append time": patched(gzip, attributes=9),
        "transactional": batch(records(2, now_ms), is_transactional=True, **transactional),
        "transactional without producer": patched(good, attributes=16),
        "producer without epoch": patched(good, producer_id=5, base_sequence=0),
        "producer without sequence": patched(good, producer_id=5, producer_epoch=0),
        "epoch without producer": patched(good, producer_epoch=0, base_sequence=0),
        "marker": bytes(
            build_marker(
                EndTransactionMarker(ControlType.COMMIT, 0),
                producer_id=7,
                producer_epoch=0,
                timestamp_ms=now_ms,
            )
        ),
        "null key and value": batch([_record(now_ms, None, None)]),
        "headers": batch([_record(now_ms, b"k", b"v", (("h", b"x"), ("", None), ("h", b"")))]),
        "no time": batch([_record(-1, b"k", b"v")]),
        "time zero": batch([_record(0, b"k", b"v")]),
        "no records": with_payload(good, b"", record_count=0, last_offset_delta=0),
        "no records to delta 2": with_payload(good, b"", record_count=0, last_offset_delta=2),
    }
    found |= {f"record {key}": raw for key, raw in _bad_records(good).items()}
    return found


def _record(
    time_ms: int, key: bytes | None, value: bytes | None, headers: tuple[Any, ...] = ()
) -> Record:
    return Record(0, time_ms, TimestampType.CREATE_TIME, key, value, headers)


def _varints(*values: int) -> bytes:
    out = bytearray()
    for value in values:
        write_varint(out, value)
    return bytes(out)


def _one(good: bytes, inner: bytes, *, length: int | None = None, count: int = 1) -> bytes:
    payload = _varints(len(inner) if length is None else length) + inner
    return with_payload(good, payload, record_count=count, last_offset_delta=count - 1)


def _bad_records(good: bytes) -> dict[str, bytes]:
    plain = b"\x00" + _varints(0, 0, 1) + b"k" + _varints(1) + b"v" + _varints(0)
    return {
        "plain": _one(good, plain),
        "attributes 7": _one(good, b"\x07" + plain[1:]),
        "delta 1": _one(good, b"\x00" + _varints(0, 1, 1) + b"k" + _varints(1) + b"v\x00"),
        "delta -1": _one(good, b"\x00" + _varints(0, -1, 1) + b"k" + _varints(1) + b"v\x00"),
        "time delta 5": _one(good, b"\x00" + _varints(5, 0, 1) + b"k" + _varints(1) + b"v\x00"),
        "time delta -5": _one(good, b"\x00" + _varints(-5, 0, 1) + b"k" + _varints(1) + b"v\x00"),
        "key size -2": _one(good, b"\x00" + _varints(0, 0, -2, 1) + b"v\x00"),
        "key size large": _one(
            good, b"\x00" + _varints(0, 0, 1000) + b"k" + _varints(1) + b"v\x00"
        ),
        "value size large": _one(
            good, b"\x00" + _varints(0, 0, 1) + b"k" + _varints(1000) + b"v\x00"
        ),
        "length long": _one(good, plain, length=len(plain) + 1),
        "length short": _one(good, plain, length=len(plain) - 1),
        "length 0": _one(good, plain, length=0),
        "length -1": _one(good, plain, length=-1),
        "headers -1": _one(good, plain[:-1] + _varints(-1)),
        "headers 1 missing": _one(good, plain[:-1] + _varints(1)),
        "headers many": _one(good, plain[:-1] + _varints(1_000_000)),
        "header key null": _one(good, plain[:-1] + _varints(1, -1, 0)),
        "header key not utf-8": _one(good, plain[:-1] + _varints(1, 1) + b"\xff" + _varints(0)),
        "bytes left in it": _one(good, plain + b"x"),
        "bytes left behind": with_payload(
            good, _varints(len(plain)) + plain + b"xyz", record_count=1, last_offset_delta=0
        ),
        "varint too long": with_payload(
            good, b"\xff\xff\xff\xff\xff\x01" + plain, record_count=1, last_offset_delta=0
        ),
        "deltas 0 0": with_payload(
            good, 2 * (_varints(len(plain)) + plain), record_count=2, last_offset_delta=1
        ),
    }


def bad_batches(pair: Pair) -> None:
    """Each fault in every version that takes magic 2, and in one that does not."""
    for version in (2, 3, 7, 8, 11):
        topic = pair.topic(f"bad{version}")
        for what, raw in _bad_batches(pair.now_ms).items():
            pair.ask(what, "Produce", version, produce_body(topic, raw))
        read_back(pair, topic)


def bad_batches_with_rules(pair: Pair) -> None:
    """The same faults where topics have rules of their own."""
    for suffix, configs in {
        "append": {"message.timestamp.type": "LogAppendTime"},
        "snappy": {"compression.type": "snappy"},
        "plain": {"compression.type": "uncompressed"},
        "compact": {"cleanup.policy": "compact"},
    }.items():
        topic = pair.topic(f"badrules-{suffix}", configs=configs)
        for what, raw in _bad_batches(pair.now_ms).items():
            pair.ask(f"{suffix} {what}", "Produce", 9, produce_body(topic, raw))
        read_back(pair, topic)


def message(
    magic: int, attributes: int, time_ms: int, value: bytes | None, *, offset: int = 0
) -> bytes:
    checked = struct.pack(">bb", magic, attributes)
    if magic:
        checked += struct.pack(">q", time_ms)
    checked += struct.pack(">i", -1)
    checked += struct.pack(">i", -1 if value is None else len(value)) + (value or b"")
    return struct.pack(">qiI", offset, 4 + len(checked), zlib.crc32(checked)) + checked


def bad_messages(pair: Pair) -> None:
    """Faults of magic 0 and 1."""
    now = pair.now_ms
    inner = b"".join(message(1, 0, now + n, b"i%d" % n, offset=n) for n in range(3))
    inner0 = b"".join(message(0, 0, 0, b"i%d" % n, offset=n) for n in range(3))
    gzip, gzip0 = compress(Codec.GZIP, inner, None, 1), compress(Codec.GZIP, inner0, None, 0)
    good = messages(records(2, now), 1)
    cases: dict[str, bytes] = {
        "v1 attributes 5": message(1, 5, now, b"v"),
        "v1 attributes 4 garbage": message(1, 4, now, b"v"),
        "v1 zstd": message(1, 4, now, compress(Codec.ZSTD, inner)),
        "v1 append time": message(1, 8, now, b"v"),
        "v1 wrapper append time": message(1, 9, now, gzip, offset=2),
        "v1 wrapper": message(1, 1, now + 2, gzip, offset=2),
        "v1 wrapper offset 0": message(1, 1, now + 2, gzip),
        "v1 wrapper offset 9": message(1, 1, now + 2, gzip, offset=9),
        "v1 wrapper old time": message(1, 1, now - 5, gzip, offset=2),
        "v1 wrapper -1 time": message(1, 1, -1, gzip, offset=2),
        "v1 two wrappers": 2 * message(1, 1, now + 2, gzip, offset=2),
        "v1 null value in gzip": message(1, 1, now, None),
        "v1 empty value in gzip": message(1, 1, now, b""),
        "v1 garbage in gzip": message(1, 1, now, b"garbage"),
        "v1 empty gzip": message(1, 1, now, compress(Codec.GZIP, b"", None, 1)),
        "v1 wraps v0": message(1, 1, now, gzip0, offset=2),
        "v0 wraps v1": message(0, 1, now, gzip, offset=2),
        "v0 wrapper": message(0, 1, now, gzip0, offset=2),
        "v0 two wrappers": 2 * message(0, 1, now, gzip0, offset=2),
        "v1 nested": message(
            1, 1, now, compress(Codec.GZIP, message(1, 1, now, gzip), None, 1), offset=2
        ),
        "v1 offsets fall": message(1, 0, now, b"a", offset=5) + message(1, 0, now, b"b"),
        "v1 wrapper offsets fall": message(
            1,
            1,
            now,
            compress(
                Codec.GZIP,
                message(1, 0, now, b"a", offset=5) + message(1, 0, now, b"b"),
                None,
                1,
            ),
            offset=5,
        ),
        "v1 wrapper inner gap": message(
            1,
            1,
            now,
            compress(
                Codec.GZIP,
                message(1, 0, now, b"a", offset=0) + message(1, 0, now, b"b", offset=4),
                None,
                1,
            ),
            offset=4,
        ),
        "v1 wrapper inner cut": message(1, 1, now, compress(Codec.GZIP, inner[:-3], None, 1)),
        "v1 time -1": message(1, 0, -1, b"v"),
        "v1 time -2": message(1, 0, -2, b"v"),
        "v1 time far": message(1, 0, now + 10 * _DAY_MS, b"v"),
        "v1 cut": good[:-1],
        "v1 bad crc": good[:12] + b"\x00\x00\x00\x01" + good[16:],
        "v1 size 13": struct.pack(">qi", 0, 13) + bytes(13),
        "v1 size 14": struct.pack(">qi", 0, 14) + bytes(14),
        "v1 size -1": struct.pack(">qi", 0, -1) + good[12:],
        "v0": message(0, 0, 0, b"v"),
        "v0 append time": message(0, 8, 0, b"v"),
        "v0 and v1": message(0, 0, 0, b"v") + message(1, 0, now, b"v", offset=1),
        "v1 then 5 bytes": good + b"12345",
    }
    for version in (0, 1, 2, 3, 9):
        topic = pair.topic(f"badold{version}")
        for what, raw in cases.items():
            pair.ask(what, "Produce", version, produce_body(topic, raw))
        read_back(pair, topic)
    topic = pair.topic("badold-append", configs={"message.timestamp.type": "LogAppendTime"})
    for what, raw in cases.items():
        pair.ask(f"append {what}", "Produce", 2, produce_body(topic, raw))
    read_back(pair, topic)


CASES = {
    "produce.bad": bad_batches,
    "produce.bad_rules": bad_batches_with_rules,
    "produce.bad_old": bad_messages,
}
