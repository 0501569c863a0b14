"""With any content of a log, cleaning loses no last value."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from engine.host.memory import MemoryFiles
from engine.log.cleaner.batch_filter import BatchFilter, CleaningTime
from engine.log.cleaner.cleaning_facts import CleaningSettings
from engine.log.cleaner.offset_map import SLOT_BYTES, OffsetMap
from engine.log.cleaner.transactions import CleanedTransactions
from engine.log.local_log import LocalLog
from engine.native.clean_records import CompiledCleaner
from engine.records.batch import BatchView
from engine.records.builder import BatchBuilder, BatchSettings
from engine.records.codec import Codec
from engine.records.control import ControlType
from engine.records.record import Record
from engine.records.record_spans import find_spans_fast
from tests.compiled_walk import compiled_cleaner_here
from tests.unit.log.cleaner.cleaned_logs import (
    CONFIG,
    append_raw,
    batch_of,
    clean,
    compacted_log,
    last_values,
    records_of_log,
)
from tests.unit.log.writing import NOW_MS, batches_of, end_of_transaction

DAY_MS = 86_400_000

_keys = st.sampled_from([b"", b"a", b"b", b"c", b"k" * 40, b"\xff\x00"])
_values = st.one_of(st.none(), st.binary(max_size=4), st.just(b"v" * 50))
_pairs = st.lists(st.tuples(_keys, _values), min_size=1, max_size=5)


class Written(NamedTuple):
    """A batch: its records, its codec, and how its producer goes on (None for no producer)."""

    pairs: Sequence[tuple[bytes, bytes | None]]
    codec: Codec
    producer_id: int | None
    ends: ControlType | None
    rolls: bool
    age_ms: int


_batches = st.builds(
    Written,
    _pairs,
    st.sampled_from([Codec.NONE, Codec.NONE, Codec.LZ4, Codec.GZIP]),
    st.sampled_from([None, None, 1, 2]),
    st.sampled_from([None, ControlType.COMMIT, ControlType.ABORT]),
    st.booleans(),
    st.integers(0, 1000),
)
written_logs = st.lists(_batches, min_size=1, max_size=15)


class Story:
    """A log with transactions of two producers, and which of its records count."""

    def __init__(self) -> None:
        self.files = MemoryFiles()
        self.log: LocalLog = compacted_log(self.files, CONFIG)
        self._sequences = {1: 0, 2: 0}
        self._open: dict[int, list[int]] = {}
        self.aborted: set[int] = set()

    def write(self, batches: Sequence[Written]) -> None:
        for batch in batches:
            self._append(batch)
            if batch.rolls:
                self.log.roll(NOW_MS)

    def _append(self, batch: Written) -> None:
        settings: dict[str, object] = {"codec": batch.codec}
        key = batch.producer_id
        if key is not None:
            settings |= {
                "producer_id": key,
                "producer_epoch": 0,
                "base_sequence": self._sequences[key],
                "is_transactional": True,
            }
            self._sequences[key] += len(batch.pairs)
        first = append_raw(self.log, batch_of(batch.pairs, NOW_MS - batch.age_ms, **settings))
        if key is None:
            return
        self._open.setdefault(key, []).extend(range(first, first + len(batch.pairs)))
        if batch.ends is not None:
            append_raw(self.log, end_of_transaction(key, batch.ends))
            offsets = self._open.pop(key)
            if batch.ends is ControlType.ABORT:
                self.aborted |= set(offsets)

    def committed(self) -> list[Record]:
        """Return the records that count, of transactions that are open too."""
        return [r for r in records_of_log(self.log) if r.offset not in self.aborted]


@given(written_logs, written_logs, st.integers(0, 40), st.sampled_from([1, 2, 1000]))
def test_cleaning_keeps_the_last_value_of_each_key(
    first: list[Written], then: list[Written], watermark: int, slots: int
) -> None:
    story = Story()
    story.write(first)
    log, files = story.log, story.files
    settings = CleaningSettings(map_bytes=slots * SLOT_BYTES, load_factor=1.0)
    clean_to = 0
    for now_ms in (NOW_MS, NOW_MS + 2 * DAY_MS):
        before = story.committed()
        high_watermark = min(watermark, log.log_end_offset) if now_ms == NOW_MS else 1 << 60
        stable = log.last_stable_offset(min(high_watermark, log.log_end_offset))
        untouched = [(base, raw) for base, raw in batches_of(log) if base >= stable]
        clean_to = max(
            clean_to,
            clean(
                log, files, checkpoint=clean_to, now_ms=now_ms, watermark=high_watermark,
                settings=settings,
            ),
        )  # fmt: skip
        after = story.committed()
        assert last_values(before) == last_values(after)
        assert [r for r in before if r.offset in {r.offset for r in after}] == after
        assert untouched == [(base, raw) for base, raw in batches_of(log) if base >= stable]
        if clean_to >= log.active_segment.base_offset:
            # Markers may find only now that their records are gone: they get a delete horizon.
            clean(log, files, now_ms=now_ms, watermark=high_watermark)
            assert after == story.committed()
        story.write(then if now_ms == NOW_MS else ())


@given(_pairs, st.integers(0, 1 << 40))
def test_spans_say_of_records_what_their_readers_say(
    pairs: list[tuple[bytes, bytes | None]], at_ms: int
) -> None:
    batch = BatchView(batch_of(pairs, at_ms, base_offset=3))
    spans = find_spans_fast(batch.decompress_records(), batch.record_count)
    assert spans is not None
    assert [
        (r.offset, r.timestamp_ms, r.key, r.value is not None) for r in batch.read_records()
    ] == [
        (3 + s.offset_delta, batch.base_timestamp_ms + s.time_delta, s.key, s.has_value)
        for s in spans
    ]


@given(st.binary(max_size=60), st.integers(1, 5))
def test_bytes_that_are_no_records_have_no_spans_or_fill_the_block(data: bytes, count: int) -> None:
    spans = find_spans_fast(data, count)
    assert spans is None or (spans[-1].end == len(data) and len(spans) == count)


_records = st.lists(
    st.tuples(_keys | st.none(), _values, st.integers(0, 5)), min_size=1, max_size=12
)


def _block(drawn: Sequence[tuple[bytes | None, bytes | None, int]]) -> tuple[bytes, int]:
    """Return records with gaps between their offsets, and how many."""
    builder, offset = BatchBuilder(), 0
    for number, (key, value, gap) in enumerate(drawn):
        builder.append(NOW_MS + 7 * number % 5, key, value, [("h", b"x")] * gap, offset=offset)
        offset += 1 + gap
    return bytes(BatchView(memoryview(builder.build())).payload), len(drawn)


@given(_records, st.integers(0, 1 << 32), st.integers(0, 3), st.integers(0, 40))
def test_compiled_code_finds_fast_what_plain_code_does_and_notes_the_same(
    drawn: list[tuple[bytes | None, bytes | None, int]], seed: int, damages: int, limit: int
) -> None:
    code = compiled_cleaner_here()
    if code is None:
        return
    block, count = _block(drawn)
    chance = random.Random(seed)
    damaged = bytearray(block)
    for _ in range(damages):
        damaged[chance.randrange(len(damaged))] = chance.choice((0, 1, 2, 0x7F, 0x80, 0xFF))
    data: bytes | bytearray = chance.choice((bytes, bytearray))(damaged)
    spans = find_spans_fast(bytes(data), count)
    here, there = OffsetMap(SLOT_BYTES * 40, 1.0), OffsetMap(SLOT_BYTES * 40, 1.0)
    noted = CompiledCleaner(code, there.memory).note_keys(
        data, count, base_offset=10, start_offset=12, size=0, limit=limit
    )
    assert (spans is None) == (noted is None)
    if spans is None or noted is None:
        assert {0} == set(there.memory.offsets)
        return
    is_full, gone_over = False, 0
    for span in spans:
        if span.key is not None and span.offset_delta >= 2:
            is_full = here.size >= limit
            if is_full:
                break
            here.put(span.key, 10 + span.offset_delta)
        gone_over += 1
    assert (is_full, here.size, gone_over) == (noted.is_full, noted.size, noted.record_count)
    if here.size:
        assert here.latest_offset == noted.latest_offset
    assert here.memory.digests == there.memory.digests
    assert here.memory.offsets == there.memory.offsets


@given(_records, _records, st.integers(0, 30), st.booleans(), st.none() | st.integers(0, 1 << 41))
def test_compiled_code_keeps_what_plain_code_does(
    drawn: list[tuple[bytes | None, bytes | None, int]],
    later: list[tuple[bytes | None, bytes | None, int]],
    latest: int,
    is_late: bool,
    horizon_ms: int | None,
) -> None:
    code = compiled_cleaner_here()
    if code is None:
        return
    offsets = OffsetMap(SLOT_BYTES * 50, 1.0)
    for number, (key, _, _) in enumerate(later):
        if key is not None:
            offsets.put(key, number)
    offsets.latest_offset = latest
    builder = BatchBuilder(BatchSettings(base_offset=3, delete_horizon_ms=horizon_ms))
    for number, (key, value, gap) in enumerate(drawn):
        builder.append(NOW_MS + 11 * number % 7, key, value, [("h", b"x")] * gap)
    batch = BatchView(memoryview(builder.build()))
    moment = CleaningTime((horizon_ms or 0) + (1 if is_late else -1), DAY_MS)
    kept = [
        BatchFilter(
            offsets, CleanedTransactions(), {}, moment, compiled, config=CONFIG
        ).filter_batch(batch)
        for compiled in (None, CompiledCleaner(code, offsets.memory))
    ]
    assert kept[0] == kept[1]
