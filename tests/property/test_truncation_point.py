"""A truncation takes what reaches its offset and nothing else, or refuses because of damage."""

from __future__ import annotations

from contextlib import suppress
from itertools import product
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import CorruptRecord
from engine.host.memory import MemoryFiles
from engine.log.log_config import LogConfig
from engine.log.segment import Segment
from engine.naming import FileKind
from engine.records.batch import BatchView
from engine.records.codec import Codec
from engine.records.legacy_builder import LegacySettings, build_messages
from engine.records.record import Record, TimestampType
from tests.unit.log.test_segment import segment
from tests.unit.log.writing import NOW_MS, end_of_transaction, sent

BASE = 1000


class Known(NamedTuple):
    """A batch that was appended: its first byte and the byte after it, its last offset."""

    position: int
    end: int
    last_offset: int


#: How many records, of which kind, and how many offsets are missing before them.
_batches = st.lists(
    st.tuples(
        st.sampled_from((1, 2, 3, 40)),
        st.sampled_from(("plain", "plain", "message", "wrapper", "marker")),
        st.sampled_from((0, 0, 0, 1, 7)),
    ),
    max_size=8,
)
_intervals = st.sampled_from((0, 150, 1 << 20))
#: Which batch is damaged, at which byte of it, and which bit. The header's bytes are the worst.
_damages = st.lists(
    st.tuples(st.integers(0, 7), st.integers(0, 70), st.integers(0, 7)), min_size=1, max_size=2
)


def _built(count: int, kind: str, offset: int) -> memoryview:
    if kind in {"message", "wrapper"}:
        codec = Codec.GZIP if kind == "wrapper" else Codec.NONE
        records = [
            Record(offset + n, NOW_MS, TimestampType.CREATE_TIME, None, b"v") for n in range(count)
        ]
        return memoryview(build_messages(records, LegacySettings(codec=codec, base_offset=offset)))
    data = end_of_transaction(7) if kind == "marker" else sent(count)
    BatchView(data).patch(base_offset=offset)
    return data


def _filled(
    drawn: list[tuple[int, str, int]], interval_bytes: int, *, is_closed: bool
) -> tuple[MemoryFiles, Segment, list[Known]]:
    files, found = segment(BASE, LogConfig(index_interval_bytes=interval_bytes))
    known: list[Known] = []
    offset = BASE
    for drawn_count, kind, gap in drawn:
        count = drawn_count if kind in {"plain", "wrapper"} else 1
        data = _built(count, kind, offset + gap)
        offset += gap + count
        found.append((data,), len(data), offset - 1, (NOW_MS, offset - 1))
        known.append(Known(found.size_bytes - len(data), found.size_bytes, offset - 1))
    if is_closed:
        found.become_inactive()
        found = Segment(files, "/d", BASE, found.config, now_ms=NOW_MS)
    return files, found, known


@given(_batches, _intervals, st.booleans(), st.integers(0, 60))
def test_without_damage_all_that_reaches_the_offset_goes(
    drawn: list[tuple[int, str, int]], interval_bytes: int, is_closed: bool, beyond: int
) -> None:
    _, found, known = _filled(drawn, interval_bytes, is_closed=is_closed)
    found.truncate_at(found.find_first_truncated(BASE + beyond), BASE + beyond, NOW_MS)
    kept = [batch.end for batch in known if batch.last_offset < BASE + beyond]
    assert max(kept, default=0) == found.size_bytes


@settings(max_examples=400)
@given(_batches, _intervals, st.booleans(), st.integers(0, 60), _damages)
def test_with_damage_no_good_batch_is_lost_or_left(
    drawn: list[tuple[int, str, int]],
    interval_bytes: int,
    is_closed: bool,
    beyond: int,
    damages: list[tuple[int, int, int]],
) -> None:
    files, found, known = _filled(drawn, interval_bytes, is_closed=is_closed)
    damaged = set()
    for number, byte, bit in damages:
        if number < len(known):
            batch = known[number]
            damaged.add(batch)
            at = batch.position + byte % (batch.end - batch.position)
            files.flip(found.path(FileKind.LOG), at, 1 << bit)
    offset = BASE + beyond
    try:
        place = found.find_first_truncated(offset)
    except CorruptRecord:
        assert damaged
        return
    size_bytes = found.size_bytes if place is None else place.position
    assert size_bytes in {0, *(batch.end for batch in known)}
    for batch in known:
        is_kept = batch.end <= size_bytes
        if batch.last_offset >= offset:
            assert not is_kept
        elif batch not in damaged:
            assert is_kept


@pytest.mark.parametrize("byte", range(27))
def test_no_wrong_bit_of_a_header_loses_a_good_batch(byte: int) -> None:
    files, found, known = _filled([(3, "plain", 0)] * 5, 1 << 20, is_closed=False)
    for number, bit in product(range(5), range(8)):
        at = known[number].position + byte
        files.flip(found.path(FileKind.LOG), at, 1 << bit)
        for offset in range(BASE + 1, BASE + 15):
            kept = [batch.end for batch in known if batch.last_offset < offset]
            with suppress(CorruptRecord):
                place = found.find_first_truncated(offset)
                assert place is not None
                assert max(kept, default=0) == place.position
        files.flip_back()
