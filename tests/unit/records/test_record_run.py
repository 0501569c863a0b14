"""Runs say of their records what the records say of themselves."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.native.record_fields import FieldTier
from engine.records.batch import BatchView
from engine.records.builder import BatchSettings, build_batch
from engine.records.codec import Codec
from engine.records.legacy_builder import LegacySettings, build_messages
from engine.records.record import Record, TimestampType
from engine.records.record_run import RecordRun, read_run_fast, read_runs
from engine.records.view import batches_in
from tests.compiled_walk import compiled_fields_here
from tests.runs import run_of
from tests.unit.records.samples import simple_records

KIND = TimestampType.CREATE_TIME
contents = st.none() | st.binary(max_size=12)
rows = st.tuples(
    st.integers(0, 9),
    st.integers(-(10**9), 10**12),
    contents,
    contents,
    st.lists(st.tuples(st.text(max_size=4), contents), max_size=3).map(tuple),
)


def batch_of(drawn: list[tuple], **more: object) -> BatchView:  # type: ignore[type-arg]
    offset, records = 5, []
    for gap, time, key, value, headers in drawn:
        records.append(Record(offset, max(time, 0), KIND, key, value, headers))
        offset += 1 + gap
    return BatchView(memoryview(bytearray(build_batch(records, BatchSettings(**more)))))  # type: ignore[arg-type]


@settings(max_examples=150, deadline=None)
@given(st.lists(rows, min_size=1, max_size=6), st.sampled_from((Codec.NONE, Codec.GZIP)))
def test_both_ways_give_the_records(drawn: list[tuple], codec: Codec) -> None:  # type: ignore[type-arg]
    batch = batch_of(drawn, codec=codec)
    expected = batch.read_records()
    with pytest.MonkeyPatch.context() as patch:
        for reader in (None, compiled_fields_here()):
            patch.setattr(FieldTier, "read", None if reader is None else staticmethod(reader))
            found = [record for run in read_runs(batch) for record in run.records()]
            assert [record[:6] for record in expected] == [record[:6] for record in found]
        if compiled_fields_here() is not None:
            assert read_run_fast(batch, batch.decompress_records()) is not None


def test_append_time_stands_for_all_records() -> None:
    batch = batch_of([(0, 7, b"k", b"v", ()), (0, 8, b"k", b"v", ())])
    batch.patch(timestamp_type=TimestampType.LOG_APPEND_TIME, max_timestamp_ms=99)
    for reader in (None, compiled_fields_here()):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(FieldTier, "read", None if reader is None else staticmethod(reader))
            (run,) = read_runs(batch)
            assert (TimestampType.LOG_APPEND_TIME, [99, 99]) == (
                run.timestamp_type,
                list(run.timestamps_ms),
            )


def test_old_formats_have_runs_without_an_epoch() -> None:
    data = build_messages(simple_records(), LegacySettings(magic=1))
    batches = batches_in(memoryview(data), allow_partial_tail=False)
    found = [run for batch in batches for run in read_runs(batch)]
    assert {-1} == {run.leader_epoch for run in found}
    assert [r.value for r in simple_records()] == [v for run in found for v in run.values]


THREE = run_of(*(Record(offset, 1, KIND, None, b"%d" % offset) for offset in (4, 7, 9)))


@pytest.mark.parametrize(
    ("start", "end", "offsets"),
    [
        (0, None, [4, 7, 9]),
        (4, 10, [4, 7, 9]),
        (5, None, [7, 9]),
        (5, 9, [7]),
        (4, 9, [4, 7]),
        (10, None, []),
        (0, 4, []),
    ],
)
def test_a_run_is_cut_by_offsets(start: int, end: int | None, offsets: list[int]) -> None:
    cut = THREE.select_offsets(start, end)
    assert offsets == list(cut.offsets)
    assert [b"%d" % offset for offset in offsets] == list(cut.values)


def test_a_run_is_cut_by_places() -> None:
    assert ([7, 9], 2) == (list(THREE.slice(1, 5).offsets), THREE.slice(1, 5).record_count)
    assert [4, 9] == list(THREE.at_places([0, 2]).offsets)
    assert isinstance(THREE.at_places([]), RecordRun)
