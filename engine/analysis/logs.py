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

The SQL is Spark's; it runs in this process, on DuckDB. Damaged batches are skipped, with a warning
of DamageFound at the end and each place in `logs.damage`; with `strict=True` they end the read. The
view `batches` and `kctl logs verify` show them. The options of `kafka-log` are described in
`spark_source.py`.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

from engine.analysis.columns import VIEWS, arrow_schema, choose_columns
from engine.analysis.damage import DamagedData, ReadDamage, refuse_damage
from engine.analysis.local_query import query_table
from engine.analysis.partition_numbers import parse_numbers
from engine.analysis.problem import Problem
from engine.analysis.record_batches import ViewReader
from engine.analysis.sources import find_log_dirs_in
from engine.analysis.splits import ReadingPlan, Selection, Split, plan_reading
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


class DamageFound(UserWarning):
    """Logs that were read have damaged batches or missing offsets; `Logs.damage` lists them."""


class Logs:
    """Log directories with the segments they had when they were opened."""

    def __init__(self, plan: ReadingPlan, *, include_control: bool) -> None:
        self._plan = plan
        self._control = include_control
        #: What the last query or stream met.
        self._damage: list[Problem] = []

    @property
    def problems(self) -> list[Problem]:
        """Return the problems that planning found: differences between replicas."""
        return list(self._plan.problems)

    @property
    def damage(self) -> list[Problem]:
        """Return the problems that the last complete query or stream met, by partition.

        Unfinished last writes are in it too, though nothing warns of them.
        """
        return list(self._damage)

    def sql(self, query: str, *, strict: bool = False) -> pa.Table:
        """Return the rows of a query as an Arrow table; raises StatementRefused, QueryFailed.

        Damaged batches have no rows: warns of them (DamageFound), or raises DamagedData if
        `strict`, which also computes the checksums of batches whose headers would be enough.
        """
        damage = ReadDamage(is_strict=strict)
        table = query_table(query, self._splits(), control=self._control, damage=damage)
        self._report(damage)
        return table

    def read(
        self, view: str = "records", columns: list[str] | None = None, *, strict: bool = False
    ) -> pa.RecordBatchReader:
        """Return a view's rows as a stream of Arrow batches; raises NoSuchView, UnknownColumn.

        The end of the stream warns of damage or raises DamagedData, as `sql` does.
        """
        import pyarrow as pa

        if view not in VIEWS:
            raise NoSuchView(view)
        wanted = choose_columns(VIEWS[view], columns)
        splits = pieces_of(view, self._splits())
        damage = ReadDamage(is_strict=strict)
        damage.expect(view, splits)
        reader = ViewReader(SourceFiles(), view, wanted, control=self._control)
        reader.seen = damage.seen
        if strict:
            reader.compute_checksums()

        def batches() -> Iterator[pa.RecordBatch]:
            """Yield the view's rows, split by split."""
            for split in splits:
                yield from reader.batches_of(split)
            self._report(damage)

        return pa.RecordBatchReader.from_batches(arrow_schema(wanted), batches())

    def _splits(self) -> list[Split]:
        """Return the splits of the chosen copies, then those of the copies beside them."""
        return [*self._plan.splits, *self._plan.spares]

    def _report(self, damage: ReadDamage) -> None:
        """Store the damage that a read met; warn of it, or raise DamagedData if it is strict."""
        self._damage = damage.problems(SourceFiles())
        try:
            refuse_damage(self._damage)
        except DamagedData as refused:
            if damage.is_strict:
                raise
            _warn(f"{refused}; Logs.damage has each")


def _warn(text: str) -> None:
    """Warn of damage at the line that called `sql`, or that read the end of a stream.

    Python warns of the same text at the same line only once, and all cells of a notebook count as
    one file: a registry of its own makes each read warn. A stream may be read by a thread of Arrow,
    which no Python code called.
    """
    caller = read = sys._getframe(2)
    if read.f_back is not None:
        caller = read.f_back
    warnings.warn_explicit(
        text,
        DamageFound,
        caller.f_code.co_filename,
        caller.f_lineno,
        module=caller.f_globals.get("__name__"),
        registry={},
    )


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
