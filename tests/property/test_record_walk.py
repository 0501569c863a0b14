"""Both tiers of the walk over records say the same, and never more than the strict reader."""

from __future__ import annotations

import random
from typing import TypeAlias

from hypothesis import given
from hypothesis import strategies as st

from engine.errors import CorruptRecord
from engine.native.record_walk import RecordWalk, Walked, walk_plainly
from engine.records.batch import BatchView
from engine.records.builder import BatchSettings, build_batch
from engine.records.decode import Origin, decode_records
from engine.records.record import Header, Record, TimestampType
from tests.compiled_walk import compiled_walk_here

Drawn: TypeAlias = tuple[int, bytes | None, bytes | None, tuple[Header, ...]]
_content = st.none() | st.binary(max_size=200)
_headers = st.lists(st.tuples(st.text(max_size=5), _content), max_size=3).map(tuple)
_records = st.lists(
    st.tuples(st.integers(0, 1 << 40), _content, _content, _headers), min_size=1, max_size=80
)


#: How many, what the times rise by, keys and values: records of one kind, all but one perhaps.
_alike = st.tuples(
    st.integers(20, 400),
    st.sampled_from((0, 1, 5, 40, -1, 1000)),
    st.sampled_from((None, b"", b"key", bytes(64))),
    st.sampled_from((None, b"", b"value", bytes(100))),
    st.integers(0, 400),
)


def _drawn_alike(
    count: int, step: int, key: bytes | None, value: bytes | None, odd: int
) -> list[Drawn]:
    drawn: list[Drawn] = [((1 << 20) + n * step, key, value, ()) for n in range(count)]
    if odd < count:
        drawn[odd] = (drawn[odd][0], key, (value or b"") + b"!", (("h", None),))
    return drawn


def _block(drawn: list[Drawn]) -> tuple[bytes, int]:
    records = [
        Record(n, time, TimestampType.CREATE_TIME, key, value, headers)
        for n, (time, key, value, headers) in enumerate(drawn)
    ]
    batch = BatchView(memoryview(build_batch(records, BatchSettings())))
    return bytes(batch.payload), batch.base_timestamp_ms


def _damaged(block: bytes, chance: random.Random) -> bytes:
    out = bytearray(block)
    for _ in range(chance.choice((1, 1, 1, 2, 5))):
        at = chance.randrange(len(out) + 1)
        kind = chance.randrange(4)
        if kind == 0 and out:
            out[at % len(out)] ^= 1 << chance.randrange(8)
        elif kind == 1 and out:
            out[at % len(out)] = chance.choice((0, 1, 2, 0x7F, 0x80, 0xFF))
        elif kind == 2:
            out[at:at] = chance.randbytes(chance.randrange(1, 4))
        else:
            del out[at : at + chance.randrange(1, 4)]
    return bytes(out)


def _by_both(block: bytes, count: int) -> Walked:
    found = walk_plainly(block, 0, count)
    compiled: RecordWalk | None = compiled_walk_here()
    if compiled is not None:
        assert compiled(block, 0, count) == found
        behind = memoryview(bytearray(b"\x00\x7f\xff") + block)
        assert compiled(behind, 3, count) == found
        assert compiled(behind.toreadonly(), 3, count) == found
    return found


def _strictly(block: bytes, count: int) -> list[Record] | None:
    origin = Origin(count, 0, 0, -1, None, 0, is_decompressed=False)
    try:
        return list(decode_records(block, origin))
    except CorruptRecord:
        return None


@given(_records)
def test_what_a_builder_builds_is_fast(drawn: list[Drawn]) -> None:
    block, base_ms = _block(drawn)
    times = [time - base_ms for time, *_ in drawn]
    has_null_key = any(key is None for _, key, *_ in drawn)
    assert _by_both(block, len(drawn)) == (min(times), max(times), has_null_key)


@given(_records, st.integers(0, 1 << 32), st.integers(-1, 1))
def test_damaged_records_are_fast_only_if_the_strict_reader_takes_them(
    drawn: list[Drawn], seed: int, more: int
) -> None:
    block, _ = _block(drawn)
    chance = random.Random(seed)
    count = max(len(drawn) + more, 1)
    for _ in range(20):
        bytes_sent = _damaged(block, chance)
        walked = _by_both(bytes_sent, count)
        if walked is None:
            continue
        read = _strictly(bytes_sent, count)
        assert read is not None
        assert [record.offset for record in read] == list(range(count))
        times = [record.timestamp_ms for record in read]
        assert walked == (min(times), max(times), any(record.key is None for record in read))


@given(_alike)
def test_records_of_one_kind_are_fast(alike: tuple[int, int, bytes, bytes, int]) -> None:
    drawn = _drawn_alike(*alike)
    block, base_ms = _block(drawn)
    times = [time - base_ms for time, *_ in drawn]
    assert _by_both(block, len(drawn)) == (min(times), max(times), alike[2] is None)


@given(_alike, st.integers(0, 1 << 32), st.integers(-1, 1))
def test_so_they_are_read_alike_when_they_are_damaged(
    alike: tuple[int, int, bytes, bytes, int], seed: int, more: int
) -> None:
    drawn = _drawn_alike(*alike)
    block, _ = _block(drawn)
    chance = random.Random(seed)
    for _ in range(10):
        bytes_sent = _damaged(block, chance)
        if _by_both(bytes_sent, len(drawn) + more) is not None:
            assert _strictly(bytes_sent, len(drawn) + more) is not None


@given(st.binary(max_size=60), st.integers(1, 9))
def test_any_bytes_are_answered_alike(block: bytes, count: int) -> None:
    if _by_both(block, count) is not None:
        assert _strictly(block, count) is not None
