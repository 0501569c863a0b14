"""The other ways to do what kctl does of log directories, each in a process of its own.

    python -m tests.perf.spark_peers one-process DIR OUT    export by one process, without Spark
    python -m tests.perf.spark_peers spark-writer DIR OUT   export by Spark's own Parquet writer
    python -m tests.perf.spark_peers spark-keys DIR         bytes of keys by Spark's groupBy

The first is the export's own loop from segments to Parquet files without planning of tasks, JVM,
workers and a summary. The others read by `spark.read.format("kafka-log")`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from engine.analysis.columns import VIEWS
from engine.analysis.export_task import ExportJob, run_export_task
from engine.analysis.logs import register
from engine.analysis.spark_session import start_session
from engine.analysis.spark_target import SparkTarget
from engine.analysis.splits import Selection, plan_splits
from engine.host.real import RealFiles


def one_process(folder: str, out: str) -> None:
    """Export all columns."""
    Path(out).mkdir(parents=True)
    columns = tuple(column.name for column in VIEWS["records"])
    splits = plan_splits(RealFiles(), [folder], Selection())
    run_export_task(ExportJob(out, columns, include_control=False), splits, "part")


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


def main() -> None:
    """Run the way of the command line."""
    way, *arguments = sys.argv[1:]
    {"one-process": one_process, "spark-writer": spark_writer, "spark-keys": spark_keys}[way](
        *arguments
    )


if __name__ == "__main__":
    main()
