"""Spark's data source `kafka-log`: log directories in notebooks and jobs, at rest and as they grow.

| option | meaning |
|---|---|
| path | a log directory, an archive or an address, or several: `load([…])` |
| view | the view that is read, `records` by default; a stream is of `records` |
| topics, partitions | a regular expression for whole names; numbers such as 0,2,5-9 |
| includeControl | `true`: markers of transactions are records too |
| mode | `PERMISSIVE`: damage is passed over; `FAILFAST`: the first one ends the job |
| parallelism | how many tasks at least share much data; 8 by default |
| failOnDataLoss | of a stream: `false` goes on where records were deleted before it read them |

Spark gives filters to a source where `spark.sql.python.filterPushdown.enabled` is set, and refuses
a reader that takes them elsewhere: `register` of `logs.py` sets it and registers PushingLogSource.
With FAILFAST everything is read.

A stream starts at the beginning of each log. Its offsets are the positions of `following.py`, so
that a batch that is tried again has the same records.

Source: facts/spark.md §4. This module is imported only where PySpark is there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)

from engine.analysis.columns import VIEWS, chosen, spark_schema
from engine.analysis.damage import HARMLESS_CODES, DamagedData
from engine.analysis.following import log_positions, splits_between
from engine.analysis.narrowing import Narrowing
from engine.analysis.partition_numbers import numbers_in
from engine.analysis.pruning import ValueRange, bounds_of_ranges, compared, listed, within
from engine.analysis.record_batches import SplitRecords, ViewReader
from engine.analysis.sources import log_dirs_in
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

FORMAT = "kafka-log"
_MODES = ("PERMISSIVE", "FAILFAST")
_OPERATORS = {
    "EqualTo": "=", "EqualNullSafe": "=", "GreaterThan": ">", "GreaterThanOrEqual": ">=",
    "LessThan": "<", "LessThanOrEqual": "<=",
}  # fmt: skip


class WrongOption(EngineError):
    """An option of the data source is missing or was not understood."""

    exit_code = 2

    def __init__(self, name: str, rule: str) -> None:
        super().__init__(f"option {name}: {rule}")
        self.name = name


class _Options:
    """The options of one read; names are taken in any case of letters, as Spark does."""

    def __init__(self, options: Mapping[str, str]) -> None:
        """Read and check the options. Raises WrongOption."""
        given = {name.lower(): value for name, value in options.items()}
        self.paths = json.loads(given["paths"]) if "paths" in given else [given.get("path", "")]
        if not all(self.paths):
            raise WrongOption("path", "load(PATH) says which log directory is read")
        self.view = given.get("view", "records")
        if self.view not in VIEWS:
            raise WrongOption("view", f"{self.view}: expected one of {', '.join(VIEWS)}")
        mode = given.get("mode", "PERMISSIVE").upper()
        if mode not in _MODES:
            raise WrongOption("mode", f"{mode}: expected one of {', '.join(_MODES)}")
        self.fails_fast = mode == "FAILFAST"
        self.control = _truth(given, "includeControl", default=False)
        self.fails_on_loss = _truth(given, "failOnDataLoss", default=True)
        try:
            self.topics = re.compile(given["topics"]) if "topics" in given else None
            self.partitions = numbers_in(given["partitions"]) if "partitions" in given else None
            self.parallelism = int(given.get("parallelism", "8"))
        except (ValueError, re.error) as error:
            raise WrongOption("topics, partitions, parallelism", str(error)) from error

    def splits(self, split_bytes: int = SPLIT_BYTES) -> list[Split]:
        """Return the pieces of the logs as they are now."""
        files = SourceFiles()
        paths = log_dirs_in(files, self.paths)
        selection = Selection(self.topics, self.partitions)
        plan = plan_reading(files, paths, selection, split_bytes)
        return [*plan.splits, *(plan.spares if self.view == "replicas" else ())]


def _truth(given: Mapping[str, str], name: str, *, default: bool) -> bool:
    """Return a boolean option; raises WrongOption unless it is true or false in any case."""
    text = given.get(name.lower(), str(default)).lower()
    if text not in ("true", "false"):
        raise WrongOption(name, f"{text}: expected true or false")
    return text == "true"


class LogPartition(InputPartition):  # type: ignore[misc]
    """The splits that one task reads."""

    def __init__(self, splits: list[Split]) -> None:
        super().__init__(encode_splits(splits))


class _Reading:
    """Reads partitions of a view, in any process."""

    def __init__(self, options: _Options, columns: tuple[ViewColumn, ...]) -> None:
        self._options = options
        self._columns = columns
        #: The columns that filters compare with constants.
        self.ranges: list[tuple[str, ValueRange]] = []

    def packed(self, splits: list[Split]) -> list[LogPartition]:
        """Return splits in groups, one per Spark task, without those out of the ranges."""
        from engine.analysis.view_pieces import OF_THE_LOG, pieces_of

        pieces = pieces_of(self._options.view, splits)
        if self._options.view in OF_THE_LOG:
            pieces = within(pieces, bounds_of_ranges(self.ranges))
        groups = pack_splits(pieces, self._options.parallelism)
        return [LogPartition(group) for group in groups if group]

    def rows(self, partition: Any) -> Iterator[pa.RecordBatch]:
        # Without partitions Spark makes one, of nothing.
        for split in decode_splits(partition.value) if partition is not None else []:
            yield from self._of_split(split)

    def _of_split(self, split: Split) -> Iterator[pa.RecordBatch]:
        """Yield the Arrow batches of one split of the view.

        Raises DamagedData after it if records are damaged and the mode is FAILFAST.
        """
        files, options = SourceFiles(), self._options
        if options.view != "records":
            reader = ViewReader(files, options.view, self._columns, control=options.control)
            yield from reader.batches_of(split)
            return
        wanted = bounds_of_ranges(self.ranges).records
        records = SplitRecords(files, self._columns, include_control=options.control, wanted=wanted)
        narrowed = Narrowing(files, wanted).narrowed(split)
        yield from () if narrowed is None else records.batches_of(narrowed)
        serious = [p for p in records.problems if p.code not in HARMLESS_CODES]
        if serious and options.fails_fast:
            first = serious[0]
            where = f"{first.segment} at position {first.position}: {first.message}"
            raise DamagedData(len(serious), where)


class KafkaLogReader(DataSourceReader):  # type: ignore[misc]
    """Reads log directories as they are when the query starts."""

    def __init__(self, options: _Options, columns: tuple[ViewColumn, ...]) -> None:
        self._options = options
        self._reading = _Reading(options, columns)

    def partitions(self) -> list[LogPartition]:
        """Return the partitions of the scan, one for each task."""
        return self._reading.packed(self._options.splits())

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Yield one task's rows."""
        return self._reading.rows(partition)


class PushingLogReader(KafkaLogReader):
    """Reads only splits that filters of topic, partition, offset and time can let through."""

    def pushFilters(self, filters: list[Any]) -> Iterator[Any]:  # noqa: N802
        """Keep the ranges that filters imply; yield all filters, so that Spark applies them too."""
        for pushed in filters:
            if (found := range_of_filter(pushed)) is not None:
                self._reading.ranges.append(found)
            yield pushed


def range_of_filter(pushed: Any) -> tuple[str, ValueRange] | None:
    """Return the column and values of Spark's pushed filter, None if it excludes nothing."""
    kind = type(pushed).__name__
    if kind != "In" and kind not in _OPERATORS:
        return None
    if len(pushed.attribute) != 1 or isinstance(pushed.value, bool | float):
        return None
    values = listed(pushed.value) if kind == "In" else compared(_OPERATORS[kind], pushed.value)
    return None if values is None else (pushed.attribute[0], values)


class KafkaLogStreamReader(DataSourceStreamReader):  # type: ignore[misc]
    """Reads the records that log directories have gained since the last time."""

    def __init__(self, options: _Options, columns: tuple[ViewColumn, ...]) -> None:
        self._options = options
        self._reading = _Reading(options, columns)

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        """Return the positions before all records."""
        return {}

    def latestOffset(self, *limits: Any) -> dict[str, int]:  # noqa: N802
        """Return how far the logs are whole now."""
        return log_positions(SourceFiles(), self._options.splits(FOLLOWED_TAIL_BYTES))

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[LogPartition]:
        """Return the splits that tasks read between two positions of the stream."""
        splits = splits_between(
            self._options.splits(), start, end, fail_on_loss=self._options.fails_on_loss
        )
        return self._reading.packed(splits)

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Yield one task's rows."""
        return self._reading.rows(partition)


class KafkaLogSource(DataSource):  # type: ignore[misc]
    """The data source; `spark.dataSource.register(KafkaLogSource)` makes its format known."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return FORMAT

    def schema(self) -> str:
        """Return all columns of the view."""
        return spark_schema(VIEWS[_Options(self.options).view])

    def reader(self, schema: Any) -> KafkaLogReader:
        """Return a reader of the requested columns, all of them by default."""
        options = _Options(self.options)
        return KafkaLogReader(options, _columns(options, schema))

    def streamReader(self, schema: Any) -> KafkaLogStreamReader:  # noqa: N802
        """Return a reader of the records that are appended while the stream runs."""
        options = _Options(self.options)
        if options.view != "records":
            raise WrongOption("view", "a stream is of records")
        return KafkaLogStreamReader(options, _columns(options, schema))


class PushingLogSource(KafkaLogSource):
    """The data source for a session with `spark.sql.python.filterPushdown.enabled`."""

    def reader(self, schema: Any) -> KafkaLogReader:
        """Return a reader that takes filters, unless damage that it would pass over must fail."""
        options = _Options(self.options)
        if options.fails_fast:
            return super().reader(schema)
        return PushingLogReader(options, _columns(options, schema))


def _columns(options: _Options, schema: Any) -> tuple[ViewColumn, ...]:
    """Return the columns of a schema, null where that allows it: Spark compares both."""
    columns = chosen(VIEWS[options.view], list(schema.names))
    if [column.name for column in columns] != list(schema.names):
        raise WrongOption("schema", "its columns are to come in the order of the view")
    return tuple(
        column._replace(nullable=column.nullable or field.nullable)
        for column, field in zip(columns, schema.fields, strict=True)
    )
