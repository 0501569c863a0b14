"""Columns by compiled code are those that records give, in every format and with any column."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.analysis.columns import RECORDS, arrow_schema
from engine.analysis.problem import Problem
from engine.analysis.record_batches import SplitRecords
from engine.analysis.record_columns import RecordColumns
from engine.analysis.splits import Selection, Split, plan_splits
from engine.analysis.view_column import ViewColumn
from engine.host.real import RealFiles
from engine.native.record_fields import FieldReader, FieldTier
from engine.records.batch import BatchView
from engine.records.codec import Codec
from engine.records.record import SEQUENCE_MAX, TimestampType
from tests.compiled_walk import compiled_fields_here
from tests.golden_cases import CASES, GOLDEN, case_dir
from tests.unit.records.test_record_run import batch_of, rows

_CHOICES = {
    "all": RECORDS,
    "without headers": tuple(c for c in RECORDS if c.name != "headers"),
    "numbers": tuple(
        c for c in RECORDS if c.name in ("offset", "value_size", "is_tombstone", "timestamp")
    ),
}


@contextmanager
def _tier(reader: FieldReader | None) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FieldTier, "read", None if reader is None else staticmethod(reader))
        yield


def _read(
    splits: list[Split], columns: tuple[ViewColumn, ...], reader: FieldReader | None
) -> tuple[pa.Table, list[Problem]]:
    with _tier(reader):
        records = SplitRecords(RealFiles(), columns, include_control=True)
        batches = [batch for split in splits for batch in records.batches_of(split)]
    return pa.Table.from_batches(batches, arrow_schema(columns)), records.problems


@pytest.mark.parametrize("chosen", _CHOICES)
@pytest.mark.parametrize("case", [name for name in CASES if (GOLDEN / name / "data").is_dir()])
def test_golden_logs_give_the_same_columns(case: str, chosen: str) -> None:
    splits = plan_splits(RealFiles(), [str(case_dir(case) / "data")], Selection(), 4000)
    columns = _CHOICES[chosen]
    expected, problems = _read(splits, columns, None)
    found, same_problems = _read(splits, columns, compiled_fields_here())
    assert problems == same_problems
    assert expected.equals(found)


def _split(log_start_offset: int) -> Split:
    return Split(
        path="d/t-0/00000000000000000000.log", dir="d", topic="t", partition=0, base_offset=0,
        start=0, end=1, is_last=True, log_start_offset=log_start_offset,
    )  # fmt: skip


def _table(
    batches: list[BatchView], columns: tuple[ViewColumn, ...], log_start: int, reader: object
) -> pa.Table:
    with _tier(reader):  # type: ignore[arg-type]
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
    assert expected.equals(_table(batches, columns, log_start, compiled_fields_here()))


def test_most_batches_of_golden_logs_are_read_by_compiled_code() -> None:
    reader = compiled_fields_here()
    if reader is None:
        pytest.skip("no compiled code can run here")
    taken = []

    def noted(data: bytes, count: int) -> object:
        fields = reader(data, count)
        taken.append(fields is not None)
        return fields

    splits = plan_splits(RealFiles(), [str(case_dir("plain") / "data")], Selection(), 4000)
    _read(splits, _CHOICES["without headers"], noted)  # type: ignore[arg-type]
    assert taken.count(True) == len(taken) > 10
