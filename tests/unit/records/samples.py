"""Records, golden batches and strategies that the tests of the records room share."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from hypothesis import strategies as st

from engine.records.batch import BatchView
from engine.records.builder import BatchBuilder, BatchSettings
from engine.records.codec import Codec
from engine.records.record import Record, TimestampType
from engine.records.view import RecordBatch, batches_in
from tests.golden_cases import GOLDEN

NOW = 1_700_000_000_000
LEGACY_CODECS = (Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4)

#: Text that a codec finds the same work in all along: 390 kB, twelve snappy blocks.
LONG_TEXT = b"".join(b"order %d of %d\n" % (i, i * i) for i in range(18_000))[: 12 * 32 * 1024 + 5]

#: Cases kept as plain folders, every log of which is whole.
WHOLE_CASES = ("codecs", "epochs", "formats", "groups", "plain", "stamps", "txn")


def view_of(batch: bytes | bytearray) -> BatchView:
    """Return a view of one batch."""
    return BatchView(memoryview(batch))


def simple_batch(count: int = 3, settings: BatchSettings | None = None) -> bytearray:
    """Return a batch of small records with keys, headers and rising times."""
    builder = BatchBuilder(settings)
    for index in range(count):
        headers = (("h", b"v"),) if index % 2 else ()
        builder.append(NOW + index, b"key-%d" % index, b"value-%d" % index * 3, headers)
    return builder.build()


def simple_records(count: int = 3, *, magic: int = 1, base_offset: int = 0) -> list[Record]:
    """Return records as magic 0 and 1 can hold them."""
    kind = TimestampType.CREATE_TIME if magic else TimestampType.NONE
    return [
        Record(base_offset + i, NOW + i if magic else -1, kind, b"k%d" % i, b"v%d" % i * 20)
        for i in range(count)
    ]


@cache
def golden_logs(case: str) -> tuple[Path, ...]:
    """Return the log files of a case kept as plain folders."""
    return tuple(sorted(path for path in (GOLDEN / case).rglob("*.log") if path.stat().st_size))


def golden_batches(case: str) -> Iterator[tuple[Path, RecordBatch]]:
    """Yield every batch of a case with its file."""
    for path in golden_logs(case):
        for batch in batches_in(memoryview(path.read_bytes()), allow_partial_tail=False):
            yield path, batch


def legacy_view(record: Record) -> tuple[object, ...]:
    """Return what magic 0 and 1 keep of a record."""
    return record.offset, record.timestamp_ms, record.timestamp_type, record.key, record.value


int64s = st.integers(-(1 << 63), (1 << 63) - 1)
times = st.one_of(st.integers(-1, 1 << 20), st.integers(0, (1 << 62) - 1), st.just(NOW))
contents = st.one_of(st.none(), st.binary(max_size=40), st.just(b"x" * 300))
header_lists = st.lists(
    st.tuples(st.text(max_size=8), st.one_of(st.none(), st.binary(max_size=8))), max_size=3
).map(tuple)
gaps = st.one_of(st.just(1), st.integers(1, 300))
record_fields = st.tuples(gaps, times, contents, contents, header_lists)
