"""Totals of records by group, as tasks make them of Arrow batches."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pyarrow as pa
import pytest

from engine.analysis.reports import REPORTS, totals
from engine.analysis.reports.report import Report
from engine.analysis.reports.totals import (
    KEY,
    RECORD_BYTES,
    RECORD_COUNT,
    TOPIC,
    Totals,
    sum_by_group,
)
from engine.limits import ARROW_BATCH_BYTES

_OF_KEYS = Totals((TOPIC, KEY), (RECORD_COUNT, RECORD_BYTES), has_key=True)


def _batch(keys: list[bytes | None], value_sizes: list[int]) -> pa.RecordBatch:
    sizes = [-1 if key is None else len(key) for key in keys]
    return pa.record_batch(
        {
            "topic": ["t"] * len(keys),
            "key": pa.array(keys, pa.binary()),
            "key_size": pa.array(sizes, pa.int32()),
            "value_size": pa.array(value_sizes, pa.int32()),
        }
    )


def _sums(batches: Iterator[pa.RecordBatch]) -> dict[bytes, tuple[int, int]]:
    """Add up the rows of each key."""
    records, byte_counts = Counter[bytes](), Counter[bytes]()
    for batch in batches:
        for row in batch.to_pylist():
            records[row["key"]] += row["records"]
            byte_counts[row["key"]] += row["bytes"]
    return {key: (count, byte_counts[key]) for key, count in records.items()}


def test_records_of_a_key_are_counted_with_their_bytes_and_those_without_a_key_are_not() -> None:
    batch = _batch([b"a", None, b"bb", b"a", b"", b"a"], [5, 7, 0, -1, 3, 2_000_000_000])
    more = _batch([b"a"], [2_000_000_000])
    rows = list(sum_by_group(_OF_KEYS, [batch, more]))
    assert 1 == len(rows) and 3 == rows[0].num_rows
    assert {
        b"a": (4, 4 + 5 + 4_000_000_000), b"bb": (1, 2), b"": (1, 3),
    } == _sums(iter(rows))  # fmt: skip


def test_no_records_have_no_totals() -> None:
    assert [] == list(sum_by_group(_OF_KEYS, []))
    assert 0 == sum(batch.num_rows for batch in sum_by_group(_OF_KEYS, [_batch([None], [1])]))


@pytest.mark.parametrize("key_count", [5, 50, 60, 100_000])
def test_groups_are_kept_up_to_the_limit_and_sent_on_above(
    key_count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(totals, "ARROW_BATCH_RECORDS_MAX", 100)
    chance = random.Random(key_count)
    keys = [b"%d" % chance.randrange(key_count) for _ in range(2_000)]
    read: list[int] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(0, len(keys), 40):
            read.append(start)
            yield _batch([*keys[start : start + 40]], [10] * 40)

    sent, begun = list[pa.RecordBatch](), list[int]()
    for batch in sum_by_group(_OF_KEYS, batches()):
        sent.append(batch)
        begun.append(len(read))
    counted = Counter(keys)
    assert {key: (n, n * (10 + len(key))) for key, n in counted.items()} == _sums(iter(sent))
    if key_count <= 50:
        # As many as half of what may be kept are worth waiting for.
        assert (1, key_count, [50]) == (len(sent), len(counted), begun)
    else:
        # Nothing waits for the end where groups are many, and no more are kept than two batches.
        assert begun[0] in (3, 4)
        assert max(batch.num_rows for batch in sent) <= 140
    if key_count == 60:
        # What is kept is summed up before it is sent on.
        assert all(batch.num_rows <= 60 for batch in sent)


def test_large_keys_are_sent_on_by_their_bytes() -> None:
    # A hundred thousand keys of this size are a gigabyte.
    keys = [b"%05d" % number * 2_000 for number in range(4_000)]
    unsent = most = 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal unsent, most
        for start in range(0, len(keys), 400):
            unsent += 400
            most = max(most, unsent)
            yield _batch([*keys[start : start + 400]], [-1] * 400)

    sent = list[pa.RecordBatch]()
    for batch in sum_by_group(_OF_KEYS, batches()):
        sent.append(batch)
        unsent -= batch.num_rows
    assert {key: (1, len(key)) for key in keys} == _sums(iter(sent))
    assert most * len(keys[0]) <= 4 * ARROW_BATCH_BYTES


def test_a_large_key_that_comes_again_is_kept_once() -> None:
    key = b"k" * 100_000
    (batch,) = sum_by_group(_OF_KEYS, (_batch([key] * 40, [-1] * 40) for _ in range(200)))
    assert [{"topic": "t", "key": key, "records": 8_000, "bytes": 800_000_000}] == batch.to_pylist()


@pytest.mark.parametrize(
    "report", [report for report in REPORTS if report.totals], ids=lambda report: report.name
)
def test_a_report_reads_no_values_for_its_totals(report: Report) -> None:
    assert report.totals is not None
    assert "value" not in report.totals.columns
    assert report.whole_query.startswith("with record_totals as (select ")
