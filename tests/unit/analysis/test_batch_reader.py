"""Damage in a log costs what is damaged, and is said."""

from __future__ import annotations

import random

from engine.analysis.batch_reader import SplitReader
from engine.analysis.splits import Split
from engine.host.memory import MemoryFiles
from engine.records.builder import BatchBuilder, BatchSettings

PATH = "/logs/t-0/00000000000000000000.log"


def _batches(count: int = 6) -> list[bytes]:
    found = []
    for n in range(count):
        builder = BatchBuilder(BatchSettings(base_offset=10 * n))
        for k in range(10):
            builder.append(1_700_000_000_000, b"k%d" % k, b"v" * 50)
        found.append(bytes(builder.build()))
    return found


def _reader(raw: bytes, *, is_last: bool = True, end: int | None = None) -> SplitReader:
    files = MemoryFiles()
    files.make_dir("/logs/t-0")
    files.replace_file(PATH, raw)
    size = len(raw) if end is None else end
    split = Split(PATH, "/logs", "t", 0, 0, 0, size, is_last, 0)
    return SplitReader(files.open(PATH), split)


def _offsets(reader: SplitReader) -> list[int]:
    return [batch.base_offset for _, batch, _ in reader.batches()]


def test_a_wrong_crc_costs_its_batch_only() -> None:
    batches = _batches()
    batches[2] = batches[2][:-3] + b"xyz"
    reader = _reader(b"".join(batches))
    assert [0, 10, 30, 40, 50] == _offsets(reader)
    assert ["bad_crc"] == [p.code for p in reader.problems]
    assert len(batches[0]) * 2 == reader.problems[0].position


def test_a_wrong_size_costs_its_batch_only() -> None:
    for length in (0, 13, -5, 1 << 30, 200):
        batches = _batches()
        batches[2] = batches[2][:8] + length.to_bytes(4, "big", signed=True) + batches[2][12:]
        reader = _reader(b"".join(batches))
        found = _offsets(reader)
        assert {0, 10, 30, 40, 50} <= set(found)
        assert 20 not in found
        assert reader.problems


def test_a_cut_off_batch_at_the_end_is_a_torn_tail() -> None:
    reader = _reader(b"".join(_batches())[:-7])
    assert [0, 10, 20, 30, 40] == _offsets(reader)
    assert ["torn_tail"] == [p.code for p in reader.problems]


def test_zeroes_at_the_end_are_a_torn_tail() -> None:
    reader = _reader(b"".join(_batches()) + bytes(5000))
    assert 6 == len(_offsets(reader))
    assert [("torn_tail", 5000)] == [(p.code, p.bytes) for p in reader.problems]


def test_a_batch_belongs_to_the_split_in_which_it_starts() -> None:
    batches = _batches()
    raw = b"".join(batches)
    reader = _reader(raw, is_last=False, end=len(batches[0]) + 5)
    assert [0, 10] == _offsets(reader)
    assert [] == reader.problems


def test_any_damage_ends_in_batches_and_problems() -> None:
    source = random.Random(3)
    raw = b"".join(_batches())
    for _ in range(300):
        damaged = bytearray(raw)
        for _ in range(source.randint(1, 4)):
            damaged[source.randrange(len(damaged))] = source.randrange(256)
        cut = bytes(damaged[: source.choice([len(raw), source.randrange(len(raw))])])
        reader = _reader(cut)
        offsets = _offsets(reader)
        assert len(offsets) + len(reader.problems) >= 1 or not cut
        assert len(offsets) <= 6
