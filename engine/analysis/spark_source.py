"""Spark's data source `kafka-log`: read log directories in notebooks and jobs, also as a stream.

| option | meaning |
|---|---|
| path | a log directory, an archive or an address, or several: `load([…])` |
| view | the view to read, `records` by default; a stream always reads `records` |
| topics, partitions | a regular expression for complete names; numbers such as 0,2,5-9 |
| includeControl | `true`: transaction markers are records too |
| mode | `PERMISSIVE`: damaged batches are skipped; `FAILFAST`: the first one fails the job |
| parallelism | the smallest number of tasks for large inputs; 8 by default |
| failOnDataLoss | of a stream: `false` continues if records were deleted before it read them |

Spark passes filters to a source if `spark.sql.python.filterPushdown.enabled` is set, and without
the setting refuses a reader that accepts filters: `register` of `logs.py` sets it and registers
PushingLogSource. With FAILFAST everything is read.

A stream starts at the beginning of each log. Its offsets are the positions of `following.py`, so
that a retried batch has the same records.

Source: facts/spark.md §4. Import this module only if PySpark is installed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)

from engine.analysis.columns import VIEWS, choose_columns, spark_schema
from engine.analysis.damage import HARMLESS_CODES, DamagedData
from engine.analysis.following import read_log_positions, splits_between
from engine.analysis.narrowing import Narrowing
from engine.analysis.partition_numbers import parse_numbers
from engine.analysis.pruning import (
    ValueRange,
    bounds_of_ranges,
    range_of_comparison,
    range_of_list,
    within,
)
from engine.analysis.record_batches import SplitRecords, ViewReader
from engine.analysis.sources import find_log_dirs_in
from engine.analysis.splits import (
    Selection,
    Split,
    decode_splits,
    encode_splits,
    pack_splits,
    plan_reading,
)
from engine.analysis.view_column import ViewColumn
from engine.errors import EngineError
from engine.host.source_files import SourceFiles
from engine.limits import FOLLOWED_TAIL_BYTES, SPLIT_BYTES

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import Filter
    from pyspark.sql.types import StructType

FORMAT = "kafka-log"
_MODES = ("PERMISSIVE", "FAILFAST")
_OPERATORS = {
    "EqualTo": "=", "EqualNullSafe": "=", "GreaterThan": ">", "GreaterThanOrEqual": ">=",
    "LessThan": "<", "LessThanOrEqual": "<=",
}  # fmt: skip


class WrongOption(EngineError):
    """An option of the data source is missing or malformed."""

    exit_code = 2

    def __init__(self, name: str, rule: str) -> None:
        super().__init__(f"option {name}: {rule}")
        self.name = name


class _Options:
    """The options of one read; option names are case-insensitive, as in Spark."""

    def __init__(self, options: Mapping[str, str]) -> None:
        """Parse the options of `spark.read.format("kafka-log")`; raises WrongOption."""
        given = {name.lower(): value for name, value in options.items()}
        self.paths = json.loads(given["paths"]) if "paths" in given else [given.get("path", "")]
        if not all(self.paths):
            raise WrongOption("path", "load(PATH) names the log directory that is read")
        self.view = given.get("view", "records")
        if self.view not in VIEWS:
            raise WrongOption("view", f"{self.view}: expected one of {', '.join(VIEWS)}")
        mode = given.get("mode", "PERMISSIVE").upper()
        if mode not in _MODES:
            raise WrongOption("mode", f"{mode}: expected one of {', '.join(_MODES)}")
        self.fails_fast = mode == "FAILFAST"
        self.control = _boolean_option(given, "includeControl", default=False)
        self.fails_on_loss = _boolean_option(given, "failOnDataLoss", default=True)
        try:
            self.topics = re.compile(given["topics"]) if "topics" in given else None
            self.partitions = parse_numbers(given["partitions"]) if "partitions" in given else None
            self.parallelism = int(given.get("parallelism", "8"))
        except (ValueError, re.error) as error:
            raise WrongOption("topics, partitions, parallelism", str(error)) from error

    def splits(self, split_bytes: int = SPLIT_BYTES) -> list[Split]:
        """Return the splits to read, by the current sizes of the logs."""
        files = SourceFiles()
        paths = find_log_dirs_in(files, self.paths)
        selection = Selection(self.topics, self.partitions)
        plan = plan_reading(files, paths, selection, split_bytes)
        return [*plan.splits, *(plan.spares if self.view == "replicas" else ())]


def _boolean_option(given: Mapping[str, str], name: str, *, default: bool) -> bool:
    """Return a boolean option of the source, `default` if not given.

    Raises WrongOption unless it is true or false.
    """
    text = given.get(name.lower(), str(default)).lower()
    if text not in ("true", "false"):
        raise WrongOption(name, f"{text}: expected true or false")
    return text == "true"


class LogPartition(InputPartition):  # type: ignore[misc]
    """The splits that one task reads."""

    def __init__(self, splits: list[Split]) -> None:
        super().__init__(encode_splits(splits))


class _Reading:
    """Reads partitions of a view; pickled to the tasks."""

    def __init__(self, options: _Options, columns: tuple[ViewColumn, ...]) -> None:
        self._options = options
        self._columns = columns
        #: Columns that filters compare with constants, and the values that the filters allow.
        self.ranges: list[tuple[str, ValueRange]] = []

    def pack_for_tasks(self, splits: list[Split]) -> list[LogPartition]:
        """Return the splits that can have rows in the pushed ranges, a group for each task."""
        from engine.analysis.view_pieces import OF_THE_LOG, pieces_of

        pieces = pieces_of(self._options.view, splits)
        if self._options.view in OF_THE_LOG:
            pieces = within(pieces, bounds_of_ranges(self.ranges))
        groups = pack_splits(pieces, self._options.parallelism)
        return [LogPartition(group) for group in groups if group]

    def rows(self, partition: LogPartition | None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a task's splits; `partition` is None for a scan without partitions."""
        # Without partitions Spark calls this once, with None.
        for split in decode_splits(partition.value) if partition is not None else []:
            yield from self._read_split(split)

    def _read_split(self, split: Split) -> Iterator[pa.RecordBatch]:
        """Yield the Arrow batches of one split of the view.

        In the mode FAILFAST raises DamagedData after the last batch if the split is damaged.
        """
        files, options = SourceFiles(), self._options
        if options.view != "records":
            reader = ViewReader(files, options.view, self._columns, control=options.control)
            yield from reader.batches_of(split)
            return
        wanted = bounds_of_ranges(self.ranges).records
        records = SplitRecords(files, self._columns, include_control=options.control, wanted=wanted)
        narrowed = Narrowing(files, wanted).narrow(split)
        yield from () if narrowed is None else records.batches_of(narrowed)
        serious = [p for p in records.problems if p.code not in HARMLESS_CODES]
        if serious and options.fails_fast:
            first = serious[0]
            where = f"{first.segment} at position {first.position}: {first.message}"
            raise DamagedData(len(serious), where)


class KafkaLogReader(DataSourceReader):  # type: ignore[misc]
    """Reads log directories with their sizes at the start of the query."""

    def __init__(self, options: _Options, columns: tuple[ViewColumn, ...]) -> None:
        self._options = options
        self._reading = _Reading(options, columns)

    def partitions(self) -> list[LogPartition]:
        """Return the partitions of the scan, one for each task; Spark calls it on the driver."""
        return self._reading.pack_for_tasks(self._options.splits())

    def read(self, partition: LogPartition | None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one task's partition; Spark calls it in the task."""
        return self._reading.rows(partition)


class PushingLogReader(KafkaLogReader):
    """Reads only splits that filters on topic, partition, offset and time do not exclude."""

    def pushFilters(self, filters: list[Filter]) -> Iterator[Filter]:  # noqa: N802
        """Note which values the filters of the query allow, so that other splits are not read.

        All filters are yielded, so that Spark applies them too.
        """
        for pushed in filters:
            if (found := range_of_filter(pushed)) is not None:
                self._reading.ranges.append(found)
            yield pushed


def range_of_filter(pushed: Filter) -> tuple[str, ValueRange] | None:
    """Return column and allowed values of a filter that Spark pushes down.

    None for an unsupported filter.
    """
    kind = type(pushed).__name__
    if kind != "In" and kind not in _OPERATORS:
        return None
    if len(pushed.attribute) != 1 or isinstance(pushed.value, bool | float):
        return None
    values = (
        range_of_list(pushed.value)
        if kind == "In"
        else range_of_comparison(_OPERATORS[kind], pushed.value)
    )
    return None if values is None else (pushed.attribute[0], values)


class KafkaLogStreamReader(DataSourceStreamReader):  # type: ignore[misc]
    """Reads the records that were appended to log directories since the last micro-batch."""

    def __init__(self, options: _Options, columns: tuple[ViewColumn, ...]) -> None:
        self._options = options
        self._reading = _Reading(options, columns)

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        """Return where a new stream starts: no positions, so each log is read from its start."""
        return {}

    def latestOffset(self, *limits: object) -> dict[str, int]:  # noqa: N802
        """Return the offset after the last whole batch of each partition.

        Spark calls it before each micro-batch; `limits` is unused.
        """
        return read_log_positions(SourceFiles(), self._options.splits(FOLLOWED_TAIL_BYTES))

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[LogPartition]:
        """Return what the tasks of a micro-batch read, one partition for each task.

        That is the records from `start` (inclusive) to `end` (exclusive). Raises RecordsGone if
        some were deleted and failOnDataLoss is true.
        """
        splits = splits_between(
            self._options.splits(), start, end, fail_on_loss=self._options.fails_on_loss
        )
        return self._reading.pack_for_tasks(splits)

    def read(self, partition: LogPartition | None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one task's partition; Spark calls it in the task."""
        return self._reading.rows(partition)


class KafkaLogSource(DataSource):  # type: ignore[misc]
    """The data source; `spark.dataSource.register(KafkaLogSource)` registers its format."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format, for `spark.read.format`."""
        return FORMAT

    def schema(self) -> str:
        """Return all columns of the chosen view as Spark's schema text."""
        return spark_schema(VIEWS[_Options(self.options).view])

    def reader(self, schema: StructType) -> KafkaLogReader:
        """Return a reader of the columns in `schema`."""
        options = _Options(self.options)
        return KafkaLogReader(options, _columns(options, schema))

    def streamReader(self, schema: StructType) -> KafkaLogStreamReader:  # noqa: N802
        """Return a reader of the records that are appended while a stream runs.

        Raises WrongOption for a view other than `records`.
        """
        options = _Options(self.options)
        if options.view != "records":
            raise WrongOption("view", "a stream is of records")
        return KafkaLogStreamReader(options, _columns(options, schema))


class PushingLogSource(KafkaLogSource):
    """The data source for a session with `spark.sql.python.filterPushdown.enabled`."""

    def reader(self, schema: StructType) -> KafkaLogReader:
        """Return a reader that uses the query's filters.

        With FAILFAST it reads everything, so that all damage is found.
        """
        options = _Options(self.options)
        if options.fails_fast:
            return super().reader(schema)
        return PushingLogReader(options, _columns(options, schema))


def _columns(options: _Options, schema: StructType) -> tuple[ViewColumn, ...]:
    """Return the view's columns of the schema that Spark requests.

    They are nullable if the schema has them so, since Spark compares that, too. Raises WrongOption
    for another order.
    """
    columns = choose_columns(VIEWS[options.view], list(schema.names))
    if [column.name for column in columns] != list(schema.names):
        raise WrongOption("schema", "its columns are to come in the order of the view")
    return tuple(
        column._replace(nullable=column.nullable or field.nullable)
        for column, field in zip(columns, schema.fields, strict=True)
    )
