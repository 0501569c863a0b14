"""What one task of an export does: read its splits, write one Parquet file, report.

The file's name has the attempt in it, so that a task that is tried again, or run twice at once,
never writes into another's file; only files that a finished attempt reports are published.

Source: D17.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from engine.analysis.batch_order import OffsetSpan
from engine.analysis.columns import RECORDS, arrow_schema, chosen
from engine.analysis.problem import Problem
from engine.analysis.record_batches import SplitRecords
from engine.analysis.splits import Split, decode_splits
from engine.host.real import RealFiles
from engine.host.source_files import SourceFiles
from engine.limits import PARQUET_ROW_GROUP_BYTES

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

#: Few values, many repeats: worth a dictionary. Keys and values are not.
_REPEATING = ("topic", "partition", "timestampType", "codec", "segment", "leaderEpoch",
              "producerEpoch", "producerId", "baseOffset", "batchPosition")  # fmt: skip
_UNORDERED = ("key", "value", "headers", "value_hash")


class ExportJob(NamedTuple):
    """What every task of one export needs; travels to it pickled."""

    staging_dir: str
    columns: tuple[str, ...]
    include_control: bool


class TaskReport(NamedTuple):
    """What one task did; travels back as JSON."""

    file: str | None
    record_count: int
    file_bytes: int
    read_bytes: int
    bad_batch_count: int
    problems: list[Problem]
    spans: list[OffsetSpan]

    def to_json(self) -> str:
        """Return the report as text."""
        return json.dumps(self)

    @staticmethod
    def from_json(text: str) -> TaskReport:
        """Return the report behind a text."""
        *fields, problems, spans = json.loads(text)
        found = [Problem._make(problem) for problem in problems]
        return TaskReport._make([*fields, found, [OffsetSpan._make(span) for span in spans]])


def run_export_task(job: ExportJob, splits: list[Split], name: str) -> TaskReport:
    """Write the records of some splits to `<staging>/<name>.parquet`; no file without records."""
    columns = chosen(RECORDS, list(job.columns))
    records = SplitRecords(SourceFiles(), columns, include_control=job.include_control)
    path = f"{job.staging_dir}/{name}.parquet"
    writer = _RowGroups(path, arrow_schema(columns))
    try:
        for split in splits:
            for batch in records.batches_of(split):
                writer.add(batch)
        count = writer.close()
    except BaseException:
        writer.discard()
        raise
    return TaskReport(
        file=f"{name}.parquet" if count else None,
        record_count=count,
        file_bytes=RealFiles().size_bytes(path) if count else 0,
        read_bytes=sum(split.end - split.start for split in splits),
        bad_batch_count=records.bad_batch_count,
        problems=records.problems,
        spans=records.spans,
    )


class _RowGroups:
    """Gathers batches into row groups of a good size; opens the file with the first."""

    def __init__(self, path: str, schema: pa.Schema) -> None:
        self._path = path
        self._schema = schema
        self._writer: pq.ParquetWriter | None = None
        self._held: list[pa.RecordBatch] = []
        self._held_bytes = 0
        self._count = 0

    def add(self, batch: pa.RecordBatch) -> None:
        self._held.append(batch)
        self._held_bytes += batch.nbytes
        self._count += batch.num_rows
        if self._held_bytes >= PARQUET_ROW_GROUP_BYTES:
            self._write()

    def _write(self) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        if self._writer is None:
            names = self._schema.names
            self._writer = pq.ParquetWriter(
                self._path,
                self._schema,
                compression="zstd",
                compression_level=1,
                use_dictionary=[n for n in _REPEATING if n in names],
                write_statistics=[n for n in names if n not in _UNORDERED],
            )
        if self._held:
            self._writer.write_table(pa.Table.from_batches(self._held, self._schema))
        self._held.clear()
        self._held_bytes = 0

    def close(self) -> int:
        if self._held:
            self._write()
        if self._writer is not None:
            self._writer.close()
            # The driver publishes only what is on the disk of the machine that wrote it.
            with closing(RealFiles().open(self._path, write=True)) as file:
                file.sync()
        return self._count

    def discard(self) -> None:
        if self._writer is not None:
            self._writer.close()
            RealFiles().remove(self._path)


def map_export(job: ExportJob, groups: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Run as a Spark task: Arrow batches of (number, splits) in, reports out."""
    import pyarrow as pa

    from engine.analysis.worker import attempt_name, calm_worker

    calm_worker()
    for batch in groups:
        for row in batch.to_pylist():
            name = f"part-{row['number']:05d}-{attempt_name()}"
            report = run_export_task(job, decode_splits(row["splits"]), name)
            yield pa.RecordBatch.from_pydict({"report": [report.to_json()]})
