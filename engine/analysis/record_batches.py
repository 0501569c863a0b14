"""Splits to Arrow record batches: the one way from files to tables, in any process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING

from engine.analysis.batch_order import OffsetSpan
from engine.analysis.batch_reader import BAD_BATCH_CODES, Problem, SplitReader
from engine.analysis.columns import ViewColumn, arrow_schema
from engine.analysis.isolation import HiddenRecords
from engine.analysis.record_columns import RecordColumns
from engine.analysis.splits import Split
from engine.analysis.table_columns import batch_rows, segment_row
from engine.analysis.table_values import Row
from engine.errors import CorruptRecord
from engine.host.ports import Files
from engine.limits import ARROW_BATCH_RECORDS_MAX
from engine.native.bulk_reading import BulkReading

if TYPE_CHECKING:
    import pyarrow as pa


#: What this process has read: compiled code is taken up once that is much.
_READING = BulkReading()


class SplitRecords:
    """The records of splits as Arrow batches; `problems` grows while they are read."""

    def __init__(
        self, files: Files, columns: tuple[ViewColumn, ...], *, include_control: bool
    ) -> None:
        self._files = files
        self._columns = columns
        self._schema = arrow_schema(columns)
        self._include_control = include_control
        self.problems: list[Problem] = []
        self.spans: list[OffsetSpan] = []
        self.bad_batch_count = 0

    def batches_of(self, split: Split) -> Iterator[pa.RecordBatch]:
        """Yield the records of one split."""
        with closing(self._files.open(split.path)) as file:
            reader = SplitReader(file, split)
            hidden = HiddenRecords(split)
            columns = RecordColumns(self._columns, self._schema, split)
            for position, batch, _ in reader.batches():
                if batch.last_offset < split.log_start_offset:
                    continue
                if batch.is_control and not self._include_control:
                    continue
                transactional = batch.is_transactional and not batch.is_control
                if hidden.has(batch.producer_id, batch.last_offset, is_transactional=transactional):
                    continue
                _READING.count(batch.record_count or 0)
                try:
                    columns.add(position, batch)
                except CorruptRecord as error:
                    reader.note(position, batch.size_bytes, "bad_records", str(error))
                if columns.is_full:
                    yield from columns.take()
            yield from columns.take()
        self.problems += reader.problems
        self.spans.append(reader.span)
        self.bad_batch_count += sum(p.code in BAD_BATCH_CODES for p in reader.problems)


def view_batches(
    files: Files, view: str, columns: tuple[ViewColumn, ...], split: Split, *, control: bool
) -> Iterator[pa.RecordBatch]:
    """Yield one split's rows of a view as Arrow batches of the given columns."""
    if view == "records":
        yield from SplitRecords(files, columns, include_control=control).batches_of(split)
        return
    import pyarrow as pa

    schema = arrow_schema(columns)
    rows: list[Row] = []
    if view == "segments":
        # A segment is described by the task that has its beginning.
        if split.start == 0:
            row, _ = segment_row(files, split)
            rows.append(row)
    else:
        for row in batch_rows(files, split):
            rows.append(row)
            if len(rows) == ARROW_BATCH_RECORDS_MAX:
                yield pa.RecordBatch.from_pylist(rows, schema=schema)
                rows = []
    if rows:
        yield pa.RecordBatch.from_pylist(rows, schema=schema)
