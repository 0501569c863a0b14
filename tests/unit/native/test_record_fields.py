"""What the compiled reader of fields calls usual, and when it is used at all."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.native import compiled_fields
from engine.native.compiled_fields import load_or_compile_fields
from engine.native.record_fields import (
    FIELDS,
    Fields,
    FieldTier,
    is_right_about_samples,
    use_fields,
)
from engine.records.batch import BatchView
from engine.records.builder import BatchBuilder, BatchSettings
from tests.compiled_walk import compiled_fields_here
from tests.unit.records.test_record_walk import SLOW_PATH, record

READER = compiled_fields_here()
needs_code = pytest.mark.skipif(READER is None, reason="no compiled code on this machine")


@pytest.fixture(autouse=True)
def own_tier(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FieldTier, "read", None)


@needs_code
# Offsets that do not rise by one are usual here: compaction leaves such.
@pytest.mark.parametrize(
    "block", [*(block for block in SLOW_PATH if block != record(1)), record(-1)]
)
def test_anything_else_than_the_format_is_unfast(block: bytes) -> None:
    assert READER is not None
    assert READER(block, 1) is None


@needs_code
def test_more_records_said_than_bytes_there_make_no_array() -> None:
    assert READER is not None
    assert READER(record(), (1 << 31) - 1) is None


@needs_code
@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200), st.integers(1, 5))
def test_no_bytes_send_it_outside_of_them(block: bytes, count: int) -> None:
    assert READER is not None
    fields = READER(block, count)
    if fields is not None:
        places = [n for i, n in enumerate(fields.numbers) if i % FIELDS > 1]
        assert all(-1 <= place <= len(block) for place in places)


@needs_code
def test_a_large_batch_is_read_to_its_end() -> None:
    builder = BatchBuilder(BatchSettings())
    for number in range(20_000):
        builder.append(number, b"k%d" % number, b"v" * (number % 300))
    payload = bytes(BatchView(memoryview(bytes(builder.build()))).payload)
    assert READER is not None
    fields = READER(payload, 20_000)
    assert fields is not None
    last = fields.numbers[-FIELDS:]
    assert (19_999, b"k19999") == (last[0], payload[last[2] : last[3]])


def test_a_reader_that_errs_is_not_used() -> None:
    assert not use_fields(lambda data, count: None)
    assert FieldTier.read is None
    assert not is_right_about_samples(lambda data, count: Fields(array("q"), 0))


@needs_code
def test_kept_code_is_taken_up_at_once() -> None:
    assert load_or_compile_fields()
    assert FieldTier.read is not None


def test_without_kept_code_a_compiler_is_started_for_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[bool] = []
    monkeypatch.setattr(compiled_fields, "kept_fields_path", lambda: "/nowhere/x.flat")
    monkeypatch.setattr(compiled_fields, "start_compiler", lambda: started.append(True))
    assert not load_or_compile_fields()
    assert [True] == started
    monkeypatch.setattr(compiled_fields, "kept_fields_path", lambda: None)
    assert not load_or_compile_fields()
    assert [True] == started
