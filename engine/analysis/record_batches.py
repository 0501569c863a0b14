"""Read splits as Arrow record batches: the only path from files to tables, in every process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

from engine.analysis.batch_order import OffsetSpan
from engine.analysis.batch_reader import BAD_BATCH_CODES, SplitReader
from engine.analysis.columns import arrow_schema
from engine.analysis.damage import Seen, SplitDamage, kept, split_key
from engine.analysis.decoded_rows import decoded_rows
from engine.analysis.header_rows import HeaderRows, are_of_split, dictionary_schema
from engine.analysis.isolation import HiddenRecords
from engine.analysis.narrowing import Narrowing, can_have
from engine.analysis.problem import Problem
from engine.analysis.pruning import ALL_RECORDS, RecordRange
from engine.analysis.record_columns import RecordColumns
from engine.analysis.row_memory import RowMemory
from engine.analysis.side_rows import CheckpointFiles, epoch_rows, index_rows, producer_rows
from engine.analysis.splits import Split
from engine.analysis.table_columns import batch_rows, read_segment_row, replica_rows
from engine.analysis.table_values import Row
from engine.analysis.value_decoding import ValueDecoder, ValueDecoding
from engine.analysis.view_column import ViewColumn
from engine.errors import CorruptRecord
from engine.host.ports import Files
from engine.limits import ARROW_BATCH_RECORDS_MAX
from engine.native.batch_runs import BatchRun, RunFinder, RunTier
from engine.native.bulk_reading import BulkReading
from engine.native.compiled_runs import load_or_compile_runs

if TYPE_CHECKING:
    import pyarrow as pa


#: Counts the records that this process has read; above a limit compiled code is loaded.
_READING = BulkReading(load_or_compile_runs)


class SplitRecords:
    """Reads the records of splits as Arrow batches, and collects the problems found."""

    def __init__(
        self,
        files: Files,
        columns: tuple[ViewColumn, ...],
        *,
        include_control: bool,
        decoding: ValueDecoding | None = None,
        wanted: RecordRange = ALL_RECORDS,
    ) -> None:
        """Prepare to read columns of the records in the range `wanted`, split by split.

        Batches that cannot have such a record are not decoded.
        """
        self._files = files
        self._wanted = wanted
        #: Whether `wanted` excludes records, so that each batch header is checked.
        self._wants_some = wanted != ALL_RECORDS
        self._decoder = ValueDecoder(decoding, columns) if decoding is not None else None
        #: Columns to read, including those that only the decoder needs.
        self._columns = columns if self._decoder is None else self._decoder.read
        self._schema = arrow_schema(self._columns)
        self._include_control = include_control
        self._memory = RowMemory({column.name for column in self._columns})
        #: Compiled code that finds runs of batches. None until it is loaded.
        self._run_finder: RunFinder | None = None
        #: Problems, offset ranges and bad batches of all splits read since `forget_problems`.
        self.problems: list[Problem] = []
        self.spans: list[OffsetSpan] = []
        self.bad_batch_count = 0

    def forget_problems(self) -> None:
        """Clear the problems and spans that were collected since the last call."""
        self.problems, self.spans, self.bad_batch_count = [], [], 0

    def batches_of(self, split: Split) -> Iterator[pa.RecordBatch]:
        """Yield the records of one split as Arrow batches.

        The iterator must be finished before the next call, as splits share buffers.
        """
        for batch in self._read(split):
            yield batch if self._decoder is None else self._decoder.decode_batch(batch)

    def _read(self, split: Split) -> Iterator[pa.RecordBatch]:
        """Yield a split's records, without hidden ones and those below the log start offset.

        Records that cannot be decoded become a problem, and reading continues after their batch.
        """
        with closing(self._files.open(split.path)) as file:
            reader = SplitReader(file, split)
            hidden = HiddenRecords(split)
            columns = RecordColumns(self._columns, self._schema, split, self._wanted, self._memory)
            try:
                yield from self._rows_of(reader, hidden, columns)
            finally:
                self.problems += reader.problems
                self.bad_batch_count += sum(p.code in BAD_BATCH_CODES for p in reader.problems)
            self.spans.append(reader.span)

    def _rows_of(
        self, reader: SplitReader, hidden: HiddenRecords, columns: RecordColumns
    ) -> Iterator[pa.RecordBatch]:
        """Yield the wanted records of a reader's batches, as Arrow batches.

        Damaged records become problems of the reader.
        """
        for piece in reader.runs(self._finder):
            if isinstance(piece, BatchRun):
                _READING.count(piece.record_count)
                hidden.pass_over(piece)
                yield from columns.add_run(piece, reader.note)
                continue
            position, batch, _ = piece
            if batch.last_offset < reader.split.log_start_offset:
                continue
            if batch.is_control and not self._include_control:
                continue
            transactional = batch.is_transactional and not batch.is_control
            if hidden.has(batch.producer_id, batch.last_offset, is_transactional=transactional):
                continue
            if self._wants_some and not can_have(batch, self._wanted):
                continue
            _READING.count(batch.record_count or 0)
            try:
                columns.add(position, batch)
            except CorruptRecord as error:
                reader.note(position, batch.size_bytes, "bad_records", str(error))
            if columns.is_full:
                yield from columns.take()
        yield from columns.take()

    def _finder(self) -> RunFinder | None:
        """Return the compiled code that finds runs of batches, None while it is not loaded."""
        if self._run_finder is None and RunTier.code is not None:
            self._run_finder = RunFinder(RunTier.code, passes_control=not self._include_control)
        return self._run_finder


class ViewReader:
    """Reads the rows of one view.

    Files that several splits need, such as checkpoints, are read once.
    """

    def __init__(
        self,
        files: Files,
        view: str,
        columns: tuple[ViewColumn, ...],
        *,
        control: bool,
        decoding: ValueDecoding | None = None,
        wanted: RecordRange = ALL_RECORDS,
        encodes_texts: bool = False,
    ) -> None:
        """Prepare to read columns of a view, split by split.

        `control` includes control records; `wanted` limits the view `records` to offsets and times.
        With `encodes_texts`, rows made from headers have dictionary-encoded strings.
        """
        self._files = files
        self._wanted = wanted
        self._narrowing = Narrowing(files, wanted)
        self._decoding = decoding
        self._view = view
        self._columns = columns
        self._control = control
        self._checkpoints = CheckpointFiles(files)
        self._encodes_texts = encodes_texts
        #: Makes rows from batch headers. None if the columns need the records.
        self._headers: HeaderRows | None = None
        #: Damage of the splits that were read.
        self.seen: Seen = {}
        if view == "records" and are_of_split(columns, decoding, wanted):
            self._headers = HeaderRows(files, include_control=control)

    def compute_checksums(self) -> None:
        """Read the records of all batches, even where headers would be enough for the columns.

        So that a wrong CRC is found.
        """
        self._headers = None

    @cached_property
    def _row_schema(self) -> pa.Schema:
        """Return the schema of rows that are made from batch headers."""
        schema = arrow_schema(self._columns)
        return dictionary_schema(schema) if self._encodes_texts else schema

    @cached_property
    def _record_reader(self) -> SplitRecords:
        """Return the reader of records with this reader's columns and filters.

        It is made at the first use.
        """
        return SplitRecords(
            self._files,
            self._columns,
            include_control=self._control,
            decoding=self._decoding,
            wanted=self._wanted,
        )

    def batches_of(self, split: Split) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one split as Arrow batches of the columns."""
        if self._view == "records":
            yield from self._record_batches(split)
            return
        import pyarrow as pa

        schema = arrow_schema(self._columns)
        rows = iter(self._rows_of_split(split))
        while some := list(islice(rows, ARROW_BATCH_RECORDS_MAX)):
            yield pa.RecordBatch.from_pylist(some, schema=schema)

    def _record_batches(self, split: Split) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one split of `records`: from headers if possible, then from records."""
        left: Split | None = split
        counted: OffsetSpan | None = None
        if self._headers is not None:
            count, left = self._headers.count(split)
            counted = self._headers.span
            yield from self._headers.rows(split, count, self._row_schema)
        narrowed = None if left is None else self._narrowing.narrow(left)
        records = self._record_reader if narrowed is not None else None
        try:
            if records is not None and narrowed is not None:
                yield from records.batches_of(narrowed)
        finally:
            problems = records.problems if records is not None else []
            spans = [] if counted is None else [counted]
            is_whole = narrowed == left
            if records is not None:
                is_whole = is_whole and bool(records.spans)
                spans += records.spans
                records.forget_problems()
            self._store_damage(split, problems, spans, is_whole=is_whole)

    def _store_damage(
        self, split: Split, problems: list[Problem], spans: list[OffsetSpan], *, is_whole: bool
    ) -> None:
        """Keep what was damaged in a split in `seen`.

        A split may be read several times: a complete read replaces the result of an incomplete one.
        """
        found = SplitDamage(kept(problems), tuple(spans), is_whole)
        key = split_key(self._view, split)
        if is_whole or key not in self.seen:
            self.seen[key] = found

    def _rows_of_split(self, split: Split) -> Iterable[Row]:
        """Return the rows of one split for any view other than `records`.

        The damage of the split is kept in `seen`.
        """
        files, view = self._files, self._view

        def note(reader: SplitReader) -> None:
            """Keep the damage that a reader of the split has met."""
            # Spans of several replicas of a partition would read as repeated offsets.
            spans = [] if view == "replicas" else [reader.span]
            self._store_damage(split, reader.problems, spans, is_whole=reader.is_whole)

        if view == "batches":
            names = frozenset(column.name for column in self._columns)
            return batch_rows(files, split, note, names)
        if view == "replicas":
            return replica_rows(files, split, note)
        if view == "segments":
            # A segment is described by the split that starts at its beginning.
            has_rule = any(column.name == "rolledBy" for column in self._columns)
            of_split = split.start == 0
            return [read_segment_row(files, split, note, has_rule=has_rule)] if of_split else []
        if view == "indexes":
            checked = any(column.name == "problem" for column in self._columns)
            return index_rows(files, split, checked=checked)
        if view == "checkpoints":
            return self._checkpoints.rows(split)
        if view == "epochs":
            return epoch_rows(files, split)
        if view == "producers":
            return producer_rows(files, split)
        return decoded_rows(files, view, split, note)


def view_batches(
    files: Files, view: str, columns: tuple[ViewColumn, ...], split: Split, *, control: bool
) -> Iterator[pa.RecordBatch]:
    """Yield one split's rows of a view as Arrow batches of the given columns."""
    yield from ViewReader(files, view, columns, control=control).batches_of(split)
