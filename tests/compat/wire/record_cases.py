"""Produce: what lies behind a good checksum, right or wrong in one place, in every codec.

Each fault has a partition of its own, which is read back: what one broker takes and the other does
not must not hide the next fault.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from engine.records.codec import Codec
from engine.records.compression import compress
from engine.records.varint import write_varint
from tests.compat.wire.batches import batch, messages, patched, produce_body, records, with_payload
from tests.compat.wire.fault_cases import message
from tests.compat.wire.fetch_cases import fetch
from tests.compat.wire.pair import Pair

_INT32, _INT64 = (1 << 31) - 1, (1 << 63) - 1
#: A broker takes its time to make partitions.
_PARTITIONS = 32


def number(*values: int) -> bytes:
    """Return zig-zag numbers."""
    out = bytearray()
    for value in values:
        write_varint(out, value)
    return bytes(out)


def sized(content: bytes | None) -> bytes:
    """Return content behind its size."""
    return number(-1) if content is None else number(len(content)) + content


def record(
    offset: int = 0,
    *,
    time: bytes = b"\x00",
    key: bytes = b"\x02k",
    value: bytes = b"\x0avalue",
    headers: bytes = b"\x00",
    attributes: int = 0,
    delta: bytes | None = None,
    behind: bytes = b"",
    length: int | None = None,
    longer: int = 0,
) -> bytes:
    """Return one record; every part may be given as the bytes that stand in its place."""
    inner = bytes((attributes,)) + time + (number(offset) if delta is None else delta)
    inner += key + value + headers + behind
    return number(len(inner) + longer if length is None else length) + inner


def _three(**changed: Any) -> bytes:
    """Return three records of which the second is changed."""
    return record(0) + record(1, **changed) + record(2)


def faults() -> dict[str, tuple[bytes, int]]:
    """Return blocks of records by what is said of them, with the count of their batch."""
    more = b"\x04" + sized(b"h") + sized(b"v") + sized(b"") + sized(None)
    parts: dict[str, dict[str, Any]] = {
        "plain": {},
        "attributes 1": {"attributes": 1},
        "attributes 255": {"attributes": 255},
        "headers": {"headers": more},
        "null key": {"key": number(-1)},
        "null value": {"value": number(-1)},
        "empty key and value": {"key": b"\x00", "value": b"\x00"},
        "key size -2": {"key": number(-2)},
        "value size -2": {"value": number(-2)},
        "key size min": {"key": number(-_INT32 - 1)},
        "key beyond record": {"key": number(20) + b"k"},
        "key beyond all": {"key": number(2000) + b"k"},
        "key size max": {"key": number(_INT32) + b"k"},
        "value beyond record": {"value": number(20) + b"value"},
        "value beyond all": {"value": number(2000) + b"value"},
        "value one short": {"value": number(4) + b"value"},
        "value one long": {"value": number(6) + b"value"},
        "length one more": {"longer": 1},
        "length one less": {"longer": -1},
        "length 5 more": {"longer": 5},
        "length 0": {"length": 0},
        "length -1": {"length": -1},
        "length min": {"length": -_INT32 - 1},
        "length beyond all": {"length": 5000},
        "length max": {"length": _INT32},
        "bytes left in it": {"behind": b"xyz"},
        "a record left in it": {"behind": record(2)},
        "header count -1": {"headers": number(-1)},
        "header count 1, none there": {"headers": number(1)},
        "header count large": {"headers": number(100_000)},
        "header count max": {"headers": number(_INT32)},
        "header key null": {"headers": number(1, -1, -1)},
        "header key -2": {"headers": number(1, -2, -1)},
        "header key beyond": {"headers": number(1, 3000) + b"h"},
        "header value -2": {"headers": number(1) + sized(b"h") + number(-2)},
        "header value beyond": {"headers": number(1) + sized(b"h") + number(3000)},
        "header key not utf-8": {"headers": number(1) + sized(b"\xff\xc0") + sized(b"")},
        "header more than said": {"headers": number(1) + more[1:]},
        "header fewer than said": {"headers": number(3) + more[1:]},
        "offset again": {"delta": number(0)},
        "offset gap": {"delta": number(5)},
        "offset negative": {"delta": number(-1)},
        "offset max": {"delta": number(_INT32)},
        "offset min": {"delta": number(-_INT32 - 1)},
        "time later": {"time": number(1000)},
        "time earlier": {"time": number(-1000)},
        "time hours later": {"time": number(40_000_000)},
        "time hours earlier": {"time": number(-40_000_000)},
        "time far later": {"time": number(1 << 60)},
        "time far earlier": {"time": number(-(1 << 60))},
        "time wraps": {"time": number(_INT64)},
        "time long form": {"time": b"\x80\x80\x80\x80\x00"},
        "time ten bytes": {"time": b"\x80" * 9 + b"\x00"},
        "time eleven bytes": {"time": b"\x80" * 10 + b"\x00"},
        "offset long form": {"delta": b"\x82\x80\x80\x80\x00"},
        "offset beyond 32 bits": {"delta": b"\x82\x80\x80\x80\x70"},
        "offset six bytes": {"delta": b"\x82\x80\x80\x80\x80\x00"},
        "key size long form": {"key": b"\x82\x80\x00k"},
        "key size six bytes": {"key": b"\x82\x80\x80\x80\x80\x00k"},
        "header count six bytes": {"headers": b"\x80" * 5 + b"\x00"},
    }
    found = {what: (_three(**changed), 3) for what, changed in parts.items()}
    one = record()
    long_form = b"\x9a\x80\x00" + one[1:]
    return found | {
        "one": (one, 1),
        "time -1 in all": (record(time=b"\x01"), 1),
        "count 2 of 3": (_three(), 2),
        "count 4 of 3": (_three(), 4),
        "count 1000 of 3": (_three(), 1000),
        "count max": (_three(), _INT32),
        "nothing": (b"", 1),
        "one zero": (b"\x00", 1),
        "one byte": (b"\x02", 1),
        "one byte behind": (one + b"\x00", 1),
        "a record behind": (one + record(1), 1),
        "cut in the length": (one + b"\x80", 2),
        "cut in the time": (one + b"\x0c\x00\x80", 2),
        "cut in the key": (one + record(1)[:5], 2),
        "cut in the value": (one + record(1)[:-3], 2),
        "cut before the headers": (one + record(1)[:-1], 2),
        "length long form": (long_form, 1),
        "length six bytes": (b"\x9a\x80\x80\x80\x80\x00" + one[1:], 1),
        "length six bytes later": (one + b"\x9a\x80\x80\x80\x80\x00" + record(1)[1:], 2),
        "all ones": (b"\xff" * 60, 3),
        "zeroes": (bytes(60), 3),
        "offsets fall": (record(2) + record(1) + record(0), 3),
        "offsets from 1": (record(1) + record(2), 2),
        "many": (b"".join(record(n, time=number(n % 7)) for n in range(500)), 500),
        "many, one without key": (
            b"".join(record(n, **({"key": b"\x01"} if n == 321 else {})) for n in range(500)),
            500,
        ),
        "many, no keys": (b"".join(record(n, key=b"\x01") for n in range(50)), 50),
        "many, one early": (
            b"".join(record(n, time=number(-5000 if n == 3 else 0)) for n in range(50)),
            50,
        ),
        "many, last offset wrong": (b"".join(record(min(n, 98)) for n in range(100)), 100),
        "large": (record(value=sized(bytes(40_000))) + record(1, value=sized(bytes(9))), 2),
        "large, wrong behind": (record(value=sized(bytes(40_000))) + record(1, longer=2), 2),
    }


def _blocks(codec: Codec, now_ms: int) -> Iterator[tuple[str, bytes]]:
    """Yield all faults as batches of a codec, with the largest time that fits the first record."""
    base = batch(records(1, now_ms))
    for what, (block, count) in faults().items():
        payload = compress(codec, block)
        yield (
            what,
            with_payload(
                base, payload, record_count=count, last_offset_delta=count - 1, attributes=codec
            ),
        )
    good = batch(records(4, now_ms), codec=codec)
    yield "max time low", patched(good, max_timestamp=now_ms - 1)
    yield "max time -1", patched(good, max_timestamp=-1)
    yield "max time high", patched(good, max_timestamp=now_ms + 1)
    yield "base time -1", patched(good, base_timestamp=-1)
    yield "base time -5", patched(good, base_timestamp=-5)
    yield "base time max", patched(good, base_timestamp=_INT64)
    yield "base time min", patched(good, base_timestamp=-_INT64 - 1)
    yield "append time", patched(good, attributes=codec | 8)
    yield "append time -1", patched(good, attributes=codec | 8, max_timestamp=-1)
    yield "delete horizon", patched(good, attributes=codec | 0x40)
    yield "unknown attribute", patched(good, attributes=codec | 0x180)
    yield "epoch 7", patched(good, leader_epoch=7)
    if codec is not Codec.NONE:
        yield from _damage(good, codec)


def _damage(good: bytes, codec: Codec) -> Iterator[tuple[str, bytes]]:
    """Yield batches whose compressed block is not what it should be."""
    block = good[61:]
    for size in (0, 1, 4, 8, len(block) // 2, len(block) - 5, len(block) - 1):
        yield f"cut at {size}", with_payload(good, block[:size])
    yield "more behind", with_payload(good, block + b"more")
    yield "twice", with_payload(good, block + block)
    yield "count of twice", with_payload(good, block + block, record_count=8, last_offset_delta=7)
    for at in range(0, len(block), max(len(block) // 24, 1)):
        changed = bytearray(block)
        changed[at] ^= 0x55
        yield f"byte {at} of {len(block)}", with_payload(good, bytes(changed))
    for other in Codec:
        if other is not codec:
            yield f"said to be {other.name}", patched(good, attributes=other)


_RULES: dict[str, dict[str, str]] = {
    "plain": {},
    "compact": {"cleanup.policy": "compact"},
    "append": {"message.timestamp.type": "LogAppendTime"},
    "bounds": {
        "message.timestamp.before.max.ms": "7200000",
        "message.timestamp.after.max.ms": "9000000",
    },
    "none": {"compression.type": "uncompressed"},
    "zstd": {"compression.type": "zstd"},
}


def _play(pair: Pair, name: str, rule: str, version: int, cases: dict[str, bytes]) -> None:
    """Send each to a partition of its own between two good batches, and read that back."""
    good = batch(records(2, pair.now_ms)) if version > 2 else messages(records(2, pair.now_ms), 1)
    left = list(cases.items())
    while left:
        some, left = left[:_PARTITIONS], left[_PARTITIONS:]
        configs = _RULES[rule]
        topic = pair.topic(f"{name}{len(left)}", partitions=len(some), configs=configs)
        for index, (what, raw) in enumerate(some):
            for sent in (good, raw, good):
                pair.ask(
                    f"{name} {what}", "Produce", version, produce_body(topic, sent, index=index)
                )
            pair.ask(f"{name} {what} kept", "Fetch", 12, fetch(topic, partition=index))


def _of_codec(codec: Codec, rule: str) -> Callable[[Pair], None]:
    def case(pair: Pair) -> None:
        cases = dict(_blocks(codec, pair.now_ms))
        _play(pair, f"{rule}-{codec.name.lower()}", rule, 9, cases)

    return case


def _inner_faults(now_ms: int) -> Iterator[tuple[str, bytes]]:
    """Yield wrappers of magic 0 and 1 with something wrong in them."""
    for magic, codec in itertools.product((0, 1), (Codec.GZIP, Codec.SNAPPY, Codec.LZ4)):
        single = [message(magic, 0, now_ms + n, b"i%d" % n, offset=n) for n in range(3)]
        inner = b"".join(single)
        bad_crc = bytearray(inner)
        bad_crc[-1] ^= 1
        other = message(1 - magic, 0, now_ms, b"o", offset=1)
        small = single[0][:8] + (5).to_bytes(4, "big") + single[0][12:]
        nested = message(magic, codec, now_ms, compress(codec, inner, None, magic), offset=2)
        blocks = {
            "good": inner,
            "crc": bytes(bad_crc),
            "another magic": single[0] + other + single[2],
            "cut": inner[:-3],
            "cut in a head": inner + single[0][:7],
            "bytes behind": inner + b"\x00",
            "size small": small,
            "size large": single[0][:8] + (5000).to_bytes(4, "big") + single[0][12:],
            "size negative": single[0][:8] + b"\xff\xff\xff\xff" + single[0][12:],
            "nested": nested,
            "offsets fall": single[2] + single[1] + single[0],
            "offsets absolute": b"".join(
                message(magic, 0, now_ms, b"v", offset=70 + n) for n in range(3)
            ),
            "append time": single[0] + message(magic, 8, now_ms, b"v", offset=1) + single[2],
            "null value": single[0] + message(magic, 0, now_ms, None, offset=1) + single[2],
            "magic 2 in it": single[0] + batch(records(1, now_ms)),
            "magic 9 in it": single[0] + _with_magic(single[1], 9),
            "key beyond": single[0] + _with_key_size(single[1], magic, 900),
            "key -2": single[0] + _with_key_size(single[1], magic, -2),
            "value short": single[0] + _with_value_size(single[1], magic, 1),
            "nothing": b"",
        }
        for what, block in blocks.items():
            raw = message(magic, codec, now_ms, compress(codec, block, None, magic), offset=2)
            yield f"magic {magic} {codec.name} {what}", raw


def _single_faults(now_ms: int) -> Iterator[tuple[str, bytes]]:
    """Yield messages that are wrong in themselves."""
    for magic in (0, 1):
        one = message(magic, 0, now_ms, b"value")
        for what, raw in {
            "good": one,
            "null": message(magic, 0, now_ms, None),
            "key beyond": _with_key_size(one, magic, 900),
            "key to the end": _with_key_size(one, magic, 9),
            "key -2": _with_key_size(one, magic, -2),
            "value beyond": _with_value_size(one, magic, 900),
            "value short": _with_value_size(one, magic, 1),
            "value -2": _with_value_size(one, magic, -2),
            "append time": message(magic, 8, now_ms, b"v"),
            "attribute 16": message(magic, 16, now_ms, b"v"),
            "codec 5": message(magic, 5, now_ms, b"v"),
            "time -1": message(magic, 0, -1, b"v"),
            "time -2": message(magic, 0, -2, b"v"),
            "time far": message(magic, 0, 1 << 62, b"v"),
            "two": one + message(magic, 0, now_ms - 9, b"later", offset=1),
            "two, one with key beyond": one + _with_key_size(one, magic, 900),
        }.items():
            yield f"magic {magic} {what}", raw


def _with_magic(raw: bytes, magic: int) -> bytes:
    return _with_crc(raw[:16] + bytes((magic,)) + raw[17:])


def _with_key_size(raw: bytes, magic: int, size: int) -> bytes:
    at = 26 if magic else 18
    return _with_crc(raw[:at] + size.to_bytes(4, "big", signed=True) + raw[at + 4 :])


def _with_value_size(raw: bytes, magic: int, size: int) -> bytes:
    at = 30 if magic else 22
    return _with_crc(raw[:at] + size.to_bytes(4, "big", signed=True) + raw[at + 4 :])


def _with_crc(raw: bytes) -> bytes:
    return raw[:12] + zlib.crc32(raw[16:]).to_bytes(4, "big") + raw[16:]


def inner_faults(pair: Pair) -> None:
    """Faults in the messages of a wrapper, where records stay and where they are written again."""
    for rule in ("plain", "compact", "none", "bounds", "append"):
        cases = dict(_inner_faults(pair.now_ms)) | dict(_single_faults(pair.now_ms))
        _play(pair, f"{rule}-old", rule, 2, cases)


CASES = {
    f"records.{rule}.{codec.name.lower()}": _of_codec(codec, rule)
    for rule in _RULES
    for codec in Codec
} | {"records.old": inner_faults}
