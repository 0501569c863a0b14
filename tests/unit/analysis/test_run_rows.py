"""Columns by compiled code are those that records give, in every format and with any column."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.analysis.columns import RECORDS, arrow_schema
from engine.analysis.isolation import hide_uncommitted
from engine.analysis.problem import Problem
from engine.analysis.record_batches import SplitRecords
from engine.analysis.record_columns import RecordColumns
from engine.analysis.row_memory import RowMemory
from engine.analysis.splits import Selection, Split, plan_splits
from engine.analysis.view_column import ViewColumn
from engine.host.memory import MemoryFiles
from engine.host.real import RealFiles
from engine.limits import ARROW_BATCH_BYTES
from engine.native.batch_runs import RunCode, RunTier
from engine.records.batch import BatchView
from engine.records.batch_header import CHECKED_FROM, HEADER_BYTES, set_crc
from engine.records.builder import BatchBuilder, BatchSettings, build_batch
from engine.records.codec import Codec
from engine.records.control import ControlType
from engine.records.crc import crc32c
from engine.records.record import SEQUENCE_MAX, Record, TimestampType
from engine.records.view import batches_in
from tests.compiled_walk import compiled_runs_here
from tests.golden_cases import CASES, GOLDEN, case_dir
from tests.unit.log.logs import batch as log_batch
from tests.unit.log.logs import log_of, marker_of, name_of, put
from tests.unit.records.test_record_run import KIND, batch_of, rows

_CHOICES = {
    "all": RECORDS,
    "without headers": tuple(c for c in RECORDS if c.name != "headers"),
    "numbers": tuple(
        c for c in RECORDS if c.name in ("offset", "value_size", "is_tombstone", "timestamp")
    ),
}


@contextmanager
def _tier(code: RunCode | None) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunTier, "code", code)
        yield


def _read(
    splits: list[Split], columns: tuple[ViewColumn, ...], code: RunCode | None
) -> tuple[pa.Table, list[Problem]]:
    with _tier(code):
        records = SplitRecords(RealFiles(), columns, include_control=True)
        batches = [batch for split in splits for batch in records.batches_of(split)]
    return pa.Table.from_batches(batches, arrow_schema(columns)), records.problems


@pytest.mark.parametrize("chosen", _CHOICES)
@pytest.mark.parametrize("case", [name for name in CASES if (GOLDEN / name / "data").is_dir()])
def test_golden_logs_give_the_same_columns(case: str, chosen: str) -> None:
    splits = plan_splits(RealFiles(), [str(case_dir(case) / "data")], Selection(), 4000)
    columns = _CHOICES[chosen]
    expected, problems = _read(splits, columns, None)
    found, same_problems = _read(splits, columns, compiled_runs_here())
    assert problems == same_problems
    assert expected.equals(found)


def _split(log_start_offset: int) -> Split:
    return Split(
        path="d/t-0/00000000000000000000.log", dir="d", topic="t", partition=0, base_offset=0,
        start=0, end=1, is_last=True, log_start_offset=log_start_offset,
    )  # fmt: skip


def _table(
    batches: list[BatchView], columns: tuple[ViewColumn, ...], log_start: int, code: RunCode | None
) -> pa.Table:
    with _tier(code):
        collected = RecordColumns(columns, arrow_schema(columns), _split(log_start))
        for number, batch in enumerate(batches):
            collected.add(number * 1000, batch)
        return pa.Table.from_batches(list(collected.take()), arrow_schema(columns))


_SETTINGS = st.fixed_dictionaries(
    {
        "codec": st.sampled_from((Codec.NONE, Codec.GZIP)),
        "timestamp_type": st.sampled_from(
            (TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME)
        ),
        "append_time_ms": st.integers(0, 10**12),
        "producer_id": st.just(7),
        "producer_epoch": st.just(1),
        "base_sequence": st.sampled_from((0, SEQUENCE_MAX - 2)),
        "leader_epoch": st.integers(-1, 9),
    }
)
_ENVELOPES = st.binary(max_size=3).map(lambda text: b"\x00\xff\x01\x02\x03" + text)


@given(
    st.lists(st.tuples(st.lists(rows, min_size=1, max_size=4), _SETTINGS), min_size=1, max_size=4),
    st.lists(_ENVELOPES, max_size=2),
    st.sampled_from(list(_CHOICES)),
    st.integers(0, 12),
)
def test_drawn_batches_give_the_same_columns(
    drawn: list[tuple[list[tuple[object, ...]], dict[str, object]]],
    envelopes: list[bytes],
    chosen: str,
    log_start: int,
) -> None:
    batches = [batch_of(records, **settings) for records, settings in drawn]
    batches += [batch_of([(0, 5, None, value, ())]) for value in envelopes]
    columns = _CHOICES[chosen]
    expected = _table(batches, columns, log_start, None)
    assert expected.equals(_table(batches, columns, log_start, compiled_runs_here()))


class _Logs:
    """A log of all kinds of batches, with the chance that made it."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.raw = b"".join(self._batches())

    def _batches(self) -> Iterator[bytes]:
        chance, offset, epoch = self.chance, 0, 0
        for _ in range(60):
            count = chance.choice((1, 1, 3, 20))
            epoch += chance.random() < 0.05
            flags = {"is_transactional": True} if chance.random() < 0.3 else {}
            builder = BatchBuilder(
                BatchSettings(
                    base_offset=offset,
                    leader_epoch=epoch,
                    producer_id=chance.choice((7, 8)),
                    producer_epoch=0,
                    base_sequence=0,
                    codec=chance.choice((Codec.NONE,) * 5 + (Codec.GZIP, Codec.LZ4)),
                    **flags,
                )
            )
            for number in range(count):
                headers = (("h", b"x"), ("", None)) if chance.random() < 0.1 else ()
                key = chance.choice((None, b"", b"key", b"k" * 40))
                value = chance.choice((None, b"", b"\0\0\0\0\1json", b"v" * 300))
                builder.append(1000 + offset + number, key, value, headers)
            batch = bytes(builder.build())
            offset += count
            if chance.random() < 0.05:
                # As a batch that the log's own version cannot have: a gap, or an overlap.
                batch = (offset - count + chance.choice((-2, 3))).to_bytes(8) + batch[8:]
            yield batch
            if flags and chance.random() < 0.5:
                commits = chance.choice((ControlType.COMMIT, ControlType.ABORT))
                yield marker_of(chance.choice((7, 8)), offset, commits)
                offset += 1

    def damaged(self, damages: int) -> bytes:
        """Return the log with bytes that were changed, and perhaps cut."""
        raw = bytearray(self.raw)
        for _ in range(damages):
            raw[self.chance.randrange(len(raw))] ^= 1 << self.chance.randrange(8)
        return bytes(raw[: self.chance.choice((len(raw), self.chance.randrange(len(raw))))])


def _all_of(
    files: MemoryFiles, splits: list[Split], code: RunCode | None, *, control: bool
) -> tuple[list[object], list[Problem], list[object]]:
    with _tier(code):
        records = SplitRecords(files, RECORDS, include_control=control)
        rows = [
            r for split in splits for part in records.batches_of(split) for r in part.to_pylist()
        ]
    return rows, records.problems, list(records.spans)


@pytest.mark.parametrize("damages", [0, 1, 4])
@pytest.mark.parametrize("seed", range(12))
def test_logs_with_damage_give_the_same_rows_and_problems(seed: int, damages: int) -> None:
    logs = _Logs(seed)
    for _ in range(5):
        files = log_of({0: logs.raw})
        put(files, name_of(0), logs.damaged(damages))
        splits = plan_splits(files, ["/data"], Selection(), logs.chance.choice((300, 2000, 10**6)))
        committed = hide_uncommitted(files, splits).splits
        for read, control in ((splits, True), (committed, False)):
            expected = _all_of(files, read, None, control=control)
            assert expected == _all_of(files, read, compiled_runs_here(), control=control)


def test_a_log_without_damage_is_read_in_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    if compiled_runs_here() is None:
        pytest.skip("no compiled code can run here")
    added: list[int] = []
    add = RecordColumns.add
    monkeypatch.setattr(
        RecordColumns, "add", lambda self, at, batch: (added.append(at), add(self, at, batch))[1]
    )
    files = log_of({0: b"".join(log_batch(n) for n in range(100))})
    rows, problems, _ = _all_of(
        files, plan_splits(files, ["/data"], Selection()), compiled_runs_here(), control=False
    )
    assert (100, []) == (len(rows), problems)
    # The epoch of the log is that of its first batch.
    assert [0] == added


def test_a_batch_larger_than_arrow_batches_is_taken_whole() -> None:
    large = [(0, 5, b"k", b"v" * ARROW_BATCH_BYTES, ()), (0, 5, None, b"w", ())]
    small = [(0, 5, b"k", b"v", ())]
    batches = [batch_of(small), batch_of(large), batch_of(small), batch_of(large)]
    columns = _CHOICES["without headers"]
    expected = _table(batches, columns, 0, None)
    assert expected.equals(_table(batches, columns, 0, compiled_runs_here()))


def test_names_of_headers_that_are_no_utf8_keep_their_bytes_visible() -> None:
    raw = bytearray(
        build_batch([Record(5, 1, KIND, b"k", b"v", (("NAME", b"x"),))], BatchSettings())
    )
    raw[raw.index(b"NAME") + 1] = 0xFF
    batches = [BatchView(memoryview(raw))]
    expected = _table(batches, RECORDS, 0, None)
    assert expected.equals(_table(batches, RECORDS, 0, compiled_runs_here()))
    assert "N\ufffdME" == expected["headers"][0].as_py()[0]["key"]


def test_small_results_do_not_share_memory_with_later_ones() -> None:
    with _tier(compiled_runs_here()):
        memory = RowMemory({column.name for column in RECORDS})
        found = []
        for value in (b"first", b"second"):
            columns = RecordColumns(RECORDS, arrow_schema(RECORDS), _split(0), memory=memory)
            columns.add(0, batch_of([(0, 5, value, value, (("h", value),))]))
            found += list(columns.take())
    assert [[b"first"], [b"second"]] == [batch["value"].to_pylist() for batch in found]
    assert ["first", "second"] == [b["headers"][0].as_py()[0]["value"].decode() for b in found]


@pytest.mark.parametrize("seed", range(10))
def test_wrong_records_under_right_checksums_give_the_same_rows_and_problems(seed: int) -> None:
    logs = _Logs(seed)
    for _ in range(4):
        raw = bytearray(logs.raw)
        for view in batches_in(memoryview(logs.raw), allow_partial_tail=False):
            start, end = view.position, view.position + view.size_bytes
            for _ in range(logs.chance.choice((0, 0, 1, 3))):
                at = logs.chance.randrange(start + HEADER_BYTES, end)
                raw[at] = logs.chance.choice((0, 1, 2, raw[at] ^ 1, raw[at] + 2 & 255, 128, 255))
            set_crc(raw, start, crc32c(raw[start + CHECKED_FROM : end]))
        files = log_of({0: logs.raw})
        put(files, name_of(0), bytes(raw))
        splits = plan_splits(files, ["/data"], Selection())
        expected = _all_of(files, splits, None, control=True)
        assert expected == _all_of(files, splits, compiled_runs_here(), control=True)
        assert {"bad_records"} <= {problem.code for problem in expected[1]}


def test_a_split_that_was_given_up_leaves_no_rows_to_the_next() -> None:
    files = log_of({0: b"".join(log_batch(n) for n in range(20))})
    (split,) = plan_splits(files, ["/data"], Selection())
    large = build_batch(
        [Record(20 + n, 1, KIND, b"k", b"v" * (ARROW_BATCH_BYTES // 3), ()) for n in range(5)],
        BatchSettings(base_offset=20, leader_epoch=0),
    )
    put(
        files,
        name_of(0),
        b"".join([*(log_batch(n) for n in range(20)), bytes(large), log_batch(25)]),
    )
    with _tier(compiled_runs_here()):
        records = SplitRecords(files, RECORDS, include_control=False)
        split = split._replace(end=files.size_bytes(split.path))
        given_up = records.batches_of(split)
        assert list(range(20)) == next(given_up)["offset"].to_pylist()
        given_up.close()
        again = [n for part in records.batches_of(split) for n in part["offset"].to_pylist()]
    assert list(range(26)) == again


def test_memory_is_not_used_again_while_rows_are_in_it() -> None:
    batches = [batch_of([(0, n, b"k", b"%03d" % n * 400_000, ())]) for n in range(60)]
    columns = _CHOICES["without headers"]
    with _tier(compiled_runs_here()):
        collected = RecordColumns(columns, arrow_schema(columns), _split(0))
        held = []
        for number, one in enumerate(batches):
            collected.add(number, one)
            held += list(collected.take()) if collected.is_full else []
        held += list(collected.take())
    assert len(held) > 5
    values = [value for part in held for value in part["value"].to_pylist()]
    assert [b"%03d" % n * 400_000 for n in range(60)] == values
