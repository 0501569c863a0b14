"""One task of an export: it reads its splits, writes files and returns a report.

File names contain the attempt, so that a task that is retried, or runs twice at the same time,
never writes to another attempt's file. Only files that a finished attempt reports are published.

Source: D17.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from engine.analysis.anonymise import Anonymised, anonymise, left_columns
from engine.analysis.batch_order import OffsetSpan
from engine.analysis.columns import arrow_schema, choose_columns
from engine.analysis.partitioned_files import (
    FileEntry,
    PartitionedFiles,
    columns_in_files,
    columns_of_folders,
    require_columns_of_folders,
)
from engine.analysis.problem import Problem
from engine.analysis.record_batches import SplitRecords
from engine.analysis.row_condition import RowCondition, RowFilter
from engine.analysis.splits import Split, decode_splits
from engine.analysis.value_decoding import ValueDecoding, views_of
from engine.analysis.view_column import ViewColumn
from engine.host.real import RealFiles
from engine.host.source_files import SourceFiles

if TYPE_CHECKING:
    import pyarrow as pa


class ExportShape(NamedTuple):
    """The records to export, their anonymisation, and the format and partitioning of the files."""

    condition: RowCondition | None = None
    anonymised: tuple[Anonymised, ...] = ()
    file_format: str = "parquet"
    decoding: ValueDecoding | None = None
    #: Key of the hashes (HMAC), None for plain hashes; never written to the manifest.
    hash_key: bytes | None = None
    #: Names of the folder levels that files are partitioned by, the outermost first.
    partition_by: tuple[str, ...] = ()
    #: The maximum size of a file in bytes, None for no limit.
    file_max_bytes: int | None = None

    @property
    def records(self) -> tuple[ViewColumn, ...]:
        """Return all columns of the view `records` with the export's decoding."""
        return views_of(self.decoding)["records"]

    def written_columns(self, names: tuple[str, ...]) -> tuple[ViewColumn, ...]:
        """Return the columns that the export's files contain, given the names of all columns.

        Dropped columns, and those that only folder names have, are left out.
        """
        columns = left_columns(choose_columns(self.records, list(names)), self.anonymised)
        if self.file_format == "iceberg":
            # The table's own partitions come from the columns of the files.
            return require_columns_of_folders(columns, self.partition_by)
        return columns_in_files(columns, self.partition_by)


class ExportJob(NamedTuple):
    """The input that all tasks of one export share; it is pickled for Spark's tasks."""

    staging_dir: str
    columns: tuple[str, ...]
    include_control: bool
    shape: ExportShape = ExportShape()
    #: Prefix of the names of the files, after `part-`.
    prefix: str = ""


class TaskReport(NamedTuple):
    """The files, problems and offsets of one task; Spark's tasks return it as JSON."""

    files: list[FileEntry]
    read_bytes: int
    bad_batch_count: int
    problems: list[Problem]
    spans: list[OffsetSpan]

    def to_json(self) -> str:
        """Return the report as JSON, in which a Spark task returns it."""
        return json.dumps(self)

    @staticmethod
    def from_json(text: str) -> TaskReport:
        """Return the report that `to_json` made the text from."""
        files, *fields, problems, spans = json.loads(text)
        written = [FileEntry._make(entry) for entry in files]
        found = [Problem._make(problem) for problem in problems]
        return TaskReport._make(
            [written, *fields, found, [OffsetSpan._make(span) for span in spans]]
        )

    @property
    def record_count(self) -> int:
        """Return the number of records in the files."""
        return sum(entry.record_count for entry in self.files)


def run_export_task(job: ExportJob, splits: list[Split], name: str) -> TaskReport:
    """Write the records of splits to `<staging>/<name>.<format>`; return a report.

    Without records no file is written. With `partition_by` one file is written to the folder of
    each value.
    """
    shape = job.shape
    condition = shape.condition
    schema = arrow_schema(shape.written_columns(job.columns))
    needed = [*columns_of_folders(shape.partition_by), *(condition.columns if condition else ())]
    read = choose_columns(shape.records, [*schema.names, *needed])
    records = SplitRecords(
        SourceFiles(), read, include_control=job.include_control, decoding=shape.decoding
    )
    files = PartitionedFiles(
        RealFiles(),
        job.staging_dir,
        name,
        schema,
        shape.file_format,
        shape.partition_by,
        shape.file_max_bytes,
    )
    row_filter = RowFilter(condition, shape.records) if condition else None
    try:
        for split in splits:
            for batch in records.batches_of(split):
                kept = row_filter.kept(batch) if row_filter else batch
                written = anonymise(kept.select(schema.names), shape.anonymised, shape.hash_key)
                files.add(kept, written)
        entries = files.close()
    except BaseException:
        files.discard()
        raise
    finally:
        if row_filter is not None:
            row_filter.close()
    return TaskReport(
        files=entries,
        read_bytes=sum(split.end - split.start for split in splits),
        bad_batch_count=records.bad_batch_count,
        problems=records.problems,
        spans=records.spans,
    )


def map_export(job: ExportJob, groups: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Export in a Spark task (`mapInArrow`), and yield its reports.

    `groups` has rows (number, splits); the number makes the names of files unique.
    """
    import pyarrow as pa

    from engine.analysis.worker import attempt_name, calm_worker

    calm_worker()
    for batch in groups:
        for row in batch.to_pylist():
            name = f"part-{job.prefix}{row['number']:05d}-{attempt_name()}"
            report = run_export_task(job, decode_splits(row["splits"]), name)
            yield pa.RecordBatch.from_pydict({"report": [report.to_json()]})
