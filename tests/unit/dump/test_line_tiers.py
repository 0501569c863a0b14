"""The compiled tier and the plain tier print the same bytes, and both those of the slow path."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from engine.dump.batch_line import batch_numbers, parse_v2_header
from engine.dump.compiled_lines import Level, load_compiled_lines
from engine.dump.log_dump import LogDump
from engine.dump.options import DumpOptions
from engine.dump.output import Output
from engine.dump.plain_lines import Lines, LineTier, PlainLines
from engine.dump.problems import Problems
from engine.errors import StorageError
from engine.host.memory import MemoryFiles
from engine.records.batch import BatchView
from engine.records.batch_header import HEADER_BYTES
from engine.records.builder import BatchBuilder, BatchSettings
from engine.records.compression import decompress
from engine.records.view import batches_in
from tests.golden_cases import case_dir


@pytest.fixture(scope="module", params=[True, False], ids=["data", "no data"])
def tiers(request: pytest.FixtureRequest) -> tuple[Any, PlainLines]:
    level = Level.DATA if request.param else Level.RECORDS
    fast = load_compiled_lines(level=level, check_first_gap=True, compile=True)
    assert fast is not None
    return fast, PlainLines(print_data=request.param, check_first_gap=True)


def _golden_batches(case: str) -> Iterator[BatchView]:
    for path in sorted(case_dir(case).rglob("*.log")):
        raw = path.read_bytes()
        try:
            for batch in batches_in(memoryview(raw), allow_partial_tail=True):
                if isinstance(batch, BatchView) and batch.record_count and not batch.is_control:
                    yield batch
        except StorageError:
            continue


def _outcome(tier: LineTier, *args: Any) -> tuple[bytes, Lines] | None:
    shown: list[bytes] = []
    out = Output(lambda block: shown.append(bytes(block)))
    lines = tier.write(out, *args)
    out.flush()
    assert lines is not None or not shown
    return None if lines is None else (b"".join(shown), lines)


@pytest.mark.parametrize("case", ["plain", "codecs", "compact", "txn", "kraft-391"])
def test_tiers_agree_on_every_golden_batch(case: str, tiers: tuple[Any, PlainLines]) -> None:
    fast, plain = tiers
    seen = 0
    for batch in _golden_batches(case):
        raw = bytes(batch.raw)
        data = decompress(batch.codec, raw[HEADER_BYTES:])
        numbers = batch_numbers(parse_v2_header(memoryview(raw))[0])
        expected = _outcome(plain, numbers, data, 0, seen)
        assert expected is not None
        assert expected == _outcome(fast, numbers, data, 0, seen)
        seen += 1
    assert seen > 20


def test_tiers_agree_on_damaged_records(tiers: tuple[Any, PlainLines]) -> None:
    fast, plain = tiers
    source = random.Random(7)
    builder = BatchBuilder(BatchSettings(producer_id=1, producer_epoch=0, base_sequence=5))
    for n in range(12):
        value = bytes(source.choice([65, 195, 169, 237, 160, 128, 240]) for _ in range(n * 7))
        builder.append(1_700_000_000_000 + n, b"k%d" % n, value, [("h\u00e9", None), ("x", b"y")])
    raw = bytes(builder.build())
    numbers = batch_numbers(parse_v2_header(memoryview(raw))[0])
    unusual = 0
    for _ in range(3000):
        damaged = bytearray(raw[HEADER_BYTES:])
        for _ in range(source.randint(0, 3)):
            damaged[source.randrange(len(damaged))] = source.randrange(256)
        cut = bytes(damaged[: source.choice([len(damaged), source.randrange(len(damaged))])])
        expected = _outcome(plain, numbers, cut, 0, -1)
        assert expected == _outcome(fast, numbers, cut, 0, -1)
        unusual += expected is None
    assert 500 < unusual < 3000


def test_numbers_of_every_length_are_written_right(tiers: tuple[Any, PlainLines]) -> None:
    fast, plain = tiers
    for digits in range(19):
        for offset in (10**digits - 1, 10**digits, -(10**digits)):
            builder = BatchBuilder()
            builder.append(0, None, b"")
            batch = builder.build()
            BatchView(memoryview(batch)).patch(base_offset=offset)
            numbers = batch_numbers(parse_v2_header(memoryview(batch))[0])
            args = (numbers, bytes(batch[HEADER_BYTES:]), 0, -1)
            assert _outcome(plain, *args) == _outcome(fast, *args)


def test_a_count_that_the_bytes_cannot_hold_is_left_alone(tiers: tuple[Any, PlainLines]) -> None:
    builder = BatchBuilder()
    builder.append(0, b"k", b"v")
    raw = bytes(builder.build())
    numbers = batch_numbers(parse_v2_header(memoryview(raw))[0])._replace(
        record_count=2_000_000_000
    )
    assert [None, None] == [_outcome(t, numbers, raw[HEADER_BYTES:], 0, -1) for t in tiers]


class _Collected:
    """A whole dump of one file, by the tier that is asked for."""

    def __init__(self, raw: bytes, options: DumpOptions, tier: LineTier | None) -> None:
        files = MemoryFiles()
        files.make_dir("/t-0")
        path = "/t-0/00000000000000000000.log"
        files.replace_file(path, raw)
        shown: list[bytes] = []
        out = Output(lambda block: shown.append(bytes(block)))
        problems = Problems("3.9.1")
        dump = LogDump(files.open(path), path, options, out, problems)
        dump.use_tier(tier)
        try:
            dump.run()
        except StorageError as error:
            shown.append(str(error).encode())
        out.flush()
        self.all = b"".join(shown), problems.format_lines(), dump.bad_batch_count


@pytest.mark.parametrize("level", list(Level))
@pytest.mark.parametrize("case", ["plain", "codecs", "compact", "txn", "stamps", "kraft-391"])
def test_whole_logs_are_the_same_with_and_without_compiled_code(case: str, level: Level) -> None:
    fast = load_compiled_lines(level=level, check_first_gap=False, compile=True)
    assert fast is not None
    options = DumpOptions(deep=level is not Level.BATCHES, print_data=level is Level.DATA)
    for path in sorted(case_dir(case).rglob("*.log")):
        raw = path.read_bytes()
        assert _Collected(raw, options, None).all == _Collected(raw, options, fast).all


@pytest.mark.parametrize("level", list(Level))
def test_whole_damaged_logs_are_the_same_too(level: Level) -> None:
    fast = load_compiled_lines(level=level, check_first_gap=False, compile=True)
    assert fast is not None
    source = random.Random(11)
    options = DumpOptions(deep=level is not Level.BATCHES, print_data=level is Level.DATA)
    raw = (case_dir("plain") / "data/clicks-0/00000000000000000000.log").read_bytes()
    for _ in range(150):
        damaged = bytearray(raw)
        for _ in range(source.randint(1, 4)):
            damaged[source.randrange(len(damaged))] = source.randrange(256)
        content = bytes(damaged)
        assert _Collected(content, options, None).all == _Collected(content, options, fast).all
