"""The other ways to do what kctl does of log directories, each in a process of its own.

    python -m tests.perf.spark_peers one-process DIR OUT    export by one process, without Spark
    python -m tests.perf.spark_peers spark-writer DIR OUT   export by Spark's own Parquet writer
    python -m tests.perf.spark_peers spark-keys DIR         bytes of keys by Spark's groupBy
    python -m tests.perf.spark_peers two-processes DIR OUT  export by two, each of half the splits
    python -m tests.perf.spark_peers nothing                one row through one task of Python
    python -m tests.perf.spark_peers stock-nothing          the same by PySpark's own start

The first is the export's own loop from segments to Parquet files without planning of tasks, JVM,
workers and a summary: two such processes are the most that two cores give. The next two read by
`spark.read.format("kafka-log")`. No command on Spark starts and ends for less than the last two.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from multiprocessing import Process
from pathlib import Path
from typing import TYPE_CHECKING

from engine.analysis.columns import VIEWS
from engine.analysis.export_task import ExportJob, run_export_task
from engine.analysis.logs import register
from engine.analysis.spark_session import start_session
from engine.analysis.spark_target import SparkTarget
from engine.analysis.splits import Selection, Split, plan_splits
from engine.host.real import RealFiles

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


def one_process(folder: str, out: str) -> None:
    """Export all columns."""
    Path(out).mkdir(parents=True)
    _export(plan_splits(RealFiles(), [folder], Selection()), out, "part")


def two_processes(folder: str, out: str) -> None:
    """Export all columns by two processes, each of every other split."""
    Path(out).mkdir(parents=True)
    splits = plan_splits(RealFiles(), [folder], Selection())
    halves = [Process(target=_export, args=(splits[n::2], out, f"part{n}")) for n in (0, 1)]
    for half in halves:
        half.start()
    for half in halves:
        half.join()


def _export(splits: list[Split], out: str, name: str) -> None:
    columns = tuple(column.name for column in VIEWS["records"])
    run_export_task(ExportJob(out, columns, include_control=False), splits, name)


def spark_writer(folder: str, out: str) -> None:
    """Export all columns by Spark's writer."""
    session = start_session(SparkTarget())
    register(session)
    frame = session.read.format("kafka-log").load(folder)
    frame.write.option("compression", "zstd").parquet(out)
    session.stop()


def spark_keys(folder: str) -> None:
    """Print the keys with the most bytes, grouped by Spark alone."""
    session = start_session(SparkTarget())
    register(session)
    session.read.format("kafka-log").schema(
        "key binary, topic string, key_size int, value_size int"
    ).load(folder).createOrReplaceTempView("logs")
    session.sql(
        "select topic, key, count(*) records, sum(key_size + greatest(value_size, 0)) bytes"
        " from logs where key is not null group by topic, key"
        " order by bytes desc, topic, key limit 20"
    ).show()
    session.stop()


def nothing() -> None:
    """Start Spark as kctl does, send one row through Python, and stop."""
    _send_one_row(start_session(SparkTarget()))


def stock_nothing() -> None:
    """Start Spark as PySpark does by itself, send one row through Python, and stop."""
    from pyspark.sql import SparkSession

    _send_one_row(SparkSession.builder.master("local[2]").getOrCreate())


def _send_one_row(session: SparkSession) -> None:
    session.range(1).mapInArrow(_unchanged, "id bigint").collect()
    session.stop()


def _unchanged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return batches


def main() -> None:
    """Run the way of the command line."""
    way, *arguments = sys.argv[1:]
    {
        "one-process": one_process,
        "two-processes": two_processes,
        "spark-writer": spark_writer,
        "spark-keys": spark_keys,
        "nothing": nothing,
        "stock-nothing": stock_nothing,
    }[way](*arguments)


if __name__ == "__main__":
    main()
