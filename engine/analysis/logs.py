"""Read log directories from Python: SQL, Arrow tables and streams, Spark data frames.

```
logs = open_logs("/var/lib/kafka/data", topics="orders.*")
logs.problems                                      differences between replicas
logs.sql("select topic, count(*) n from records group by topic")      a pyarrow.Table
logs.read("records", ["topic", "offset", "key"])   a pyarrow.RecordBatchReader, batch by batch

register(spark)                                    once a session
spark.read.format("kafka-log").load("/var/lib/kafka/data")
spark.readStream.format("kafka-log").load("/var/lib/kafka/data")
```

The SQL is Spark's; it runs in this process, on DuckDB. Damaged batches are skipped, as in all
views: the view `batches` and `kctl logs verify` show them. The options of `kafka-log` are described
in `spark_source.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from engine.analysis.columns import VIEWS, arrow_schema, choose_columns
from engine.analysis.local_query import query_table
from engine.analysis.partition_numbers import parse_numbers
from engine.analysis.problem import Problem
from engine.analysis.record_batches import ViewReader
from engine.analysis.sources import find_log_dirs_in
from engine.analysis.splits import ReadingPlan, Selection, plan_reading
from engine.analysis.view_pieces import pieces_of
from engine.errors import EngineError
from engine.host.source_files import SourceFiles

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


class NoSuchView(EngineError):
    """A view was requested that does not exist."""

    def __init__(self, name: str) -> None:
        super().__init__(f"no view {name!r}: {', '.join(VIEWS)}")
        self.name = name


class Logs:
    """Log directories with the segments they had when they were opened."""

    def __init__(self, plan: ReadingPlan, *, include_control: bool) -> None:
        self._plan = plan
        self._control = include_control

    @property
    def problems(self) -> list[Problem]:
        """Return the problems that planning found: differences between replicas."""
        return list(self._plan.problems)

    def sql(self, query: str) -> pa.Table:
        """Return the rows of a query over the logs as an Arrow table.

        Raises StatementRefused, QueryFailed.
        """
        splits = [*self._plan.splits, *self._plan.spares]
        return query_table(query, splits, control=self._control)

    def read(self, view: str = "records", columns: list[str] | None = None) -> pa.RecordBatchReader:
        """Return a view's rows as a stream of Arrow batches; raises NoSuchView, UnknownColumn."""
        import pyarrow as pa

        if view not in VIEWS:
            raise NoSuchView(view)
        wanted = choose_columns(VIEWS[view], columns)
        splits = pieces_of(view, [*self._plan.splits, *self._plan.spares])
        reader = ViewReader(SourceFiles(), view, wanted, control=self._control)

        def batches() -> Iterator[pa.RecordBatch]:
            """Yield the view's rows, split by split."""
            for split in splits:
                yield from reader.batches_of(split)

        return pa.RecordBatchReader.from_batches(arrow_schema(wanted), batches())


def open_logs(
    *paths: str,
    topics: str | None = None,
    partitions: str | None = None,
    include_control: bool = False,
) -> Logs:
    """Open log directories for queries from Python; they may also be archives or addresses.

    `topics` is a regular expression for complete names, `partitions` are numbers such as 0,2,5-9.
    Raises the planner's errors, ValueError for wrong numbers, re.error for a wrong expression.
    """
    files = SourceFiles()
    found = find_log_dirs_in(files, paths)
    selection = Selection(
        None if topics is None else re.compile(topics),
        None if partitions is None else parse_numbers(partitions),
    )
    return Logs(plan_reading(files, found, selection), include_control=include_control)


def register(session: SparkSession) -> None:
    """Register the format `kafka-log` in a Spark session, so that `spark.read.format` reads logs.

    kctl is shipped to its executors. Raises SparkMissing.
    """
    from engine.analysis.shipping import TASK_PACKAGES, runs_elsewhere, ship
    from engine.analysis.spark_session import require_spark

    require_spark()
    from pyspark.sql.datasource import DataSourceReader

    from engine.analysis.spark_source import KafkaLogSource, PushingLogSource

    if runs_elsewhere(session):
        ship(session, TASK_PACKAGES)
    if not hasattr(DataSourceReader, "pushFilters"):
        session.dataSource.register(KafkaLogSource)
        return
    session.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    session.dataSource.register(PushingLogSource)
