"""Reading what the indexes show to be wanted gives the records that reading all of it gives."""

from __future__ import annotations

import random
from typing import Any

import pytest

from engine.analysis.columns import RECORDS, choose_columns
from engine.analysis.narrowing import Narrowing, can_have
from engine.analysis.pruning import ALL_RECORDS, Bounds, RecordRange, within
from engine.analysis.record_batches import SplitRecords
from engine.analysis.splits import Selection, plan_splits
from engine.host.memory import MemoryFiles
from engine.naming import FileKind
from engine.native.batch_runs import RunTier
from engine.records.batch import BatchView
from engine.records.builder import BatchBuilder, BatchSettings
from engine.records.codec import Codec
from engine.records.crc import crc32c
from engine.records.record import TimestampType
from tests.compiled_walk import compiled_runs_here
from tests.unit.log.logs import DIR, get, log_of, name_of, put

COLUMNS = choose_columns(RECORDS, ["offset", "timestampMs", "key", "value"])
Row = tuple[int, int, bytes]


def _batch(offset: int, times: list[int], *, step: int = 1, **more: Any) -> bytes:
    """Return a batch of records at some times, `step` offsets apart."""
    builder = BatchBuilder(BatchSettings(base_offset=offset, leader_epoch=0, **more))
    for number, time_ms in enumerate(times):
        builder.append(time_ms, b"%d" % (offset + number * step), b"v" * 30)
    return bytes(builder.build())


def _rows(
    files: MemoryFiles, wanted: RecordRange, read: RecordRange, split_bytes: int
) -> list[Row]:
    """Return the wanted rows of what is read of a log; nothing else is made of it."""
    splits = within(plan_splits(files, [DIR], Selection(), split_bytes), Bounds(records=read))
    records = SplitRecords(files, COLUMNS, include_control=False, wanted=read)
    narrowing = Narrowing(files, read, segment_bytes_min=0)
    found = [
        (row["offset"], row["timestampMs"], row["key"])
        for split in map(narrowing.narrow, splits)
        if split is not None
        for part in records.batches_of(split)
        for row in part.to_pylist()
    ]
    rows = [
        row
        for row in found
        if wanted.first_offset <= row[0] <= wanted.last_offset
        and wanted.first_ms <= row[1] <= wanted.last_ms
    ]
    assert read != wanted or rows == found
    return rows


class Logs:
    """Logs of all kinds, by one source of chance."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.end = 0
        self.last_ms = 1000

    def log(self) -> MemoryFiles:
        """Return a partition of a few segments, some of its head gone."""
        chance = self.chance
        times, gaps = chance.choice(["rising", "any", "append"]), chance.random() < 0.3
        self.end = chance.choice([0, 0, 70])
        segments: dict[int, bytes] = {}
        for _ in range(chance.randint(1, 3)):
            base, content = self.end, b""
            for _ in range(chance.randint(1, 12)):
                content += self._batch(times)
                self.end += chance.choice([0, 0, 1, 9]) if gaps else 0
            segments[base] = content
        return log_of(segments, interval_bytes=chance.choice([1, 100, 300, 2000]))

    def _batch(self, times: str) -> bytes:
        chance, count = self.chance, self.chance.randint(1, 5)
        codec = chance.choice([Codec.NONE, Codec.GZIP])
        offset, self.end = self.end, self.end + count
        if times == "append":
            self.last_ms += chance.randint(0, 3)
            kind = TimestampType.LOG_APPEND_TIME
            stamps = [0] * count
            return _batch(
                offset, stamps, codec=codec, timestamp_type=kind, append_time_ms=self.last_ms
            )
        stamps = [self._time(times) for _ in range(count)]
        return _batch(offset, stamps, codec=codec)

    def _time(self, times: str) -> int:
        if times == "any":
            return self.chance.randint(-1, 1100)
        self.last_ms += self.chance.randint(0, 3)
        return self.last_ms

    def damage(self, files: MemoryFiles) -> None:
        """Flip a bit of some file, or cut it off."""
        chance = self.chance
        name = chance.choice([n for n in files.list_dir(DIR) if not n.startswith("leader")])
        content = bytearray(get(files, name))
        if not content:
            return
        place = chance.randrange(len(content))
        if chance.random() < 0.5:
            content[place] ^= 1 << chance.randrange(8)
        elif name.endswith("index"):
            # At the end of an entry, so that what is left looks whole.
            size = 8 if name.endswith(".index") else 12
            del content[place // size * size :]
        else:
            del content[place:]
        put(files, name, bytes(content))

    def wanted(self) -> RecordRange:
        """Return some range of offsets, of times, or of both."""
        chance = self.chance
        wanted = ALL_RECORDS
        if chance.random() < 0.6:
            first, last = sorted(chance.randint(0, self.end) for _ in range(2))
            wanted = wanted._replace(first_offset=first, last_offset=last)
        if chance.random() < 0.6:
            top = max(self.last_ms, 1100)
            first, last = sorted(chance.randint(top - 120, top) for _ in range(2))
            wanted = wanted._replace(first_ms=first)
            if chance.random() < 0.7:
                wanted = wanted._replace(last_ms=last)
        return wanted


@pytest.mark.parametrize("damages", [0, 1, 3])
@pytest.mark.parametrize("group", range(2))
@pytest.mark.parametrize("tier", ["python", "compiled"])
def test_the_rows_are_those_of_reading_everything(
    tier: str, group: int, damages: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = compiled_runs_here() if tier == "compiled" else None
    monkeypatch.setattr(RunTier, "code", code)
    for seed in range(group * 15, group * 15 + 15):
        logs = Logs(seed)
        files = logs.log()
        for _ in range(damages):
            logs.damage(files)
        split_bytes = logs.chance.choice([1, 400, 10**6])
        for _ in range(6):
            wanted = logs.wanted()
            expected = _rows(files, wanted, ALL_RECORDS, split_bytes)
            assert expected == _rows(files, wanted, wanted, split_bytes), (seed, wanted)


def _regular(count: int = 100, **more: Any) -> bytes:
    """Return batches of one record each, a millisecond apart, all of one size."""
    return b"".join(_batch(1000 + n, [1000 + n], **more) for n in range(count))


SIZE = len(_regular(1))


def _part(files: MemoryFiles, wanted: RecordRange) -> tuple[int, int] | None:
    """Return which batches are read of a log of one segment, by their numbers."""
    (split,) = plan_splits(files, [DIR], Selection())
    assert split == Narrowing(files, wanted).narrow(split)
    found = Narrowing(files, wanted, segment_bytes_min=0).narrow(split)
    return None if found is None else (found.start // SIZE, found.end // SIZE)


OFFSETS = ALL_RECORDS._replace(first_offset=1050, last_offset=1059)
FROM_50 = ALL_RECORDS._replace(first_ms=1050)


@pytest.mark.parametrize(
    ("wanted", "part"),
    [
        (ALL_RECORDS, (0, 100)),
        # The indexes have each second batch; the first one that is read is not wanted.
        (OFFSETS, (48, 62)),
        (ALL_RECORDS._replace(first_offset=1098), (96, 100)),
        (ALL_RECORDS._replace(last_offset=1003), (0, 6)),
        (FROM_50, (48, 100)),
        (ALL_RECORDS._replace(first_ms=1050, last_offset=1059), (48, 62)),
        (ALL_RECORDS._replace(last_ms=1050), (0, 100)),
        (ALL_RECORDS._replace(first_ms=5000), (98, 100)),
    ],
)
def test_a_segment_is_read_from_and_up_to_what_is_wanted(
    wanted: RecordRange, part: tuple[int, int]
) -> None:
    files = log_of({1000: _regular()}, interval_bytes=SIZE + 1)
    assert part == _part(files, wanted)


@pytest.mark.parametrize("kind", [FileKind.INDEX, FileKind.TIMEINDEX])
def test_without_an_index_everything_is_read(kind: FileKind) -> None:
    for content in (None, b"", b"x" * 7, b"\xff" * 24):
        files = log_of({1000: _regular()}, interval_bytes=SIZE + 1)
        if content is None:
            files.remove(f"{DIR}/{name_of(1000, kind)}")
        else:
            put(files, name_of(1000, kind), content)
        assert (0, 100) == _part(files, FROM_50)


def test_an_entry_that_the_log_does_not_bear_out_counts_for_nothing() -> None:
    files = log_of({1000: _regular()}, interval_bytes=SIZE + 1)
    name = name_of(1000, FileKind.TIMEINDEX)
    content = bytearray(get(files, name))
    # The entries rise still, with 1049 for the batch that has 1050.
    number = next(n for n in range(0, len(content), 12) if content[n + 11] == 50)
    content[number + 7] -= 1
    put(files, name, bytes(content))
    assert (0, 100) == _part(files, FROM_50)
    # What a time index that was cut does not speak of is read.
    put(files, name, bytes(content[: number - 60]))
    assert (38, 100) == _part(files, FROM_50)


def test_a_batch_is_decoded_for_what_its_header_says() -> None:
    def can(content: bytes, **wanted: int) -> bool:
        return can_have(BatchView(memoryview(content)), ALL_RECORDS._replace(**wanted))

    created = _batch(10, [500, 300])
    assert can(created, first_offset=11)
    assert not can(created, first_offset=12)
    assert not can(created, last_offset=9)
    assert can(created, first_ms=500)
    assert not can(created, first_ms=501)
    # A record of it may have an earlier time.
    assert can(created, last_ms=10)
    assert not can(_batch(10, [500]), last_ms=499)
    assert can(_batch(10, [500]), last_ms=500)
    kind = TimestampType.LOG_APPEND_TIME
    assert not can(_batch(10, [0, 1], timestamp_type=kind, append_time_ms=400), last_ms=399)


def test_a_time_below_that_of_none_is_found_by_the_header_that_a_leader_writes() -> None:
    batch = bytearray(_batch(0, [0]))
    for place, time_ms in ((27, -5), (35, -1)):
        batch[place : place + 8] = time_ms.to_bytes(8, "big", signed=True)
    batch[17:21] = crc32c(bytes(batch[21:])).to_bytes(4, "big")
    files = log_of({0: bytes(batch)}, interval_bytes=1)
    wanted = ALL_RECORDS._replace(first_ms=-10, last_ms=-2)
    assert [(0, -5, b"0")] == _rows(files, wanted, wanted, 10**6)


@pytest.mark.parametrize(
    "late",
    [
        # A later segment, a later batch, and a later record in a batch whose first and largest
        # times are both too late.
        {0: [[2000, 2001]], 2: [[3000, 3001]], 4: [[4000, 10]]},
        {0: [[2000, 2001], [3000, 3001], [4000, 10]]},
        {0: [[2000, 3001, 10, 3000]]},
    ],
)
def test_no_header_and_no_index_says_that_records_are_too_late(
    late: dict[int, list[list[int]]],
) -> None:
    segments = {}
    for base, batches in late.items():
        content, offset = b"", base
        for times in batches:
            content += _batch(offset, times)
            offset += len(times)
        segments[base] = content
    files = log_of(segments, interval_bytes=1)
    early = ALL_RECORDS._replace(last_ms=100)
    splits = within(plan_splits(files, [DIR], Selection()), Bounds(records=early))
    narrowing = Narrowing(files, early, segment_bytes_min=0)
    assert splits == [narrowing.narrow(split) for split in splits]
    assert [10] == [time_ms for _, time_ms, _ in _rows(files, early, early, 10**6)]
