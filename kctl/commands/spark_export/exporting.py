"""Implementation of `kctl spark-export`: make a plan from the options, and run it on Spark."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from kctl.value_options import WantedValues, create_decoding

if TYPE_CHECKING:
    from engine.analysis.export_task import ExportShape
    from engine.analysis.parquet_export import ExportSummary
    from engine.analysis.spark_target import SparkTarget
    from engine.analysis.splits import ReadingPlan
    from engine.analysis.statements import QueryResult
    from engine.analysis.value_decoding import ValueDecoding
    from kctl.render.progress import ProgressBar


class ExportOptions(NamedTuple):
    """The options of an export, parsed."""

    out: str
    columns: list[str] | None
    where: str | None
    anonymised: tuple[str, ...]
    hash_key: bytes | None
    file_format: str
    values: WantedValues | None
    is_committed: bool
    include_control: bool
    strict: bool
    append: bool
    partition_by: list[str] | None = None
    file_max_bytes: int | None = None

    @property
    def task_packages(self) -> tuple[str, ...]:
        """Return the Python packages that Spark's tasks need for these options.

        They are sent to a cluster in addition to those of every query.
        """
        from engine.analysis.shipping import CONDITION_PACKAGES, SCHEMA_PACKAGES

        by_schemas = self.values is not None and self.values.by_schemas
        return (
            *(() if self.where is None else CONDITION_PACKAGES),
            *(SCHEMA_PACKAGES if by_schemas else ()),
        )

    def check(self) -> None:
        """Raise the errors of options that can be found before Spark is started.

        These are wrong conditions, columns and schemas, and a table that has files although it
        should be new.
        """
        from engine.analysis.table_export import check_empty
        from engine.analysis.table_format import TABLE_FORMATS
        from engine.analysis.table_library import open_table

        if self.file_format in TABLE_FORMATS:
            out = os.path.realpath(self.out)
            table = open_table(self.file_format, out)
            if not self.append:
                check_empty(table, out)
        if self.values is None or self.values.value_format != "schema":
            self.export_shape(create_decoding(self.values, _no_logs))

    def export_shape(self, decoding: ValueDecoding | None) -> ExportShape:
        """Return which records, columns and folders the exported files have.

        `decoding` decodes values; None leaves them as bytes. Raises QueryFailed, StatementRefused,
        WrongAnonymising, WrongPartitioning, UnknownColumn.
        """
        from engine.analysis.anonymise import parse_anonymised_columns
        from engine.analysis.columns import choose_columns
        from engine.analysis.export_task import ExportShape
        from engine.analysis.partitioned_files import check_partitioning
        from engine.analysis.row_condition import translate_condition
        from engine.analysis.value_decoding import views_of

        views = views_of(decoding)
        anonymised = parse_anonymised_columns(self.anonymised, views["records"])
        shape = ExportShape(
            None if self.where is None else translate_condition(self.where, views),
            anonymised,
            self.file_format,
            decoding,
            self.hash_key,
            check_partitioning(self.partition_by or (), [entry.column for entry in anonymised]),
            self.file_max_bytes,
        )
        # For its errors: columns that only the folders' names would have.
        shape.written_columns(tuple(c.name for c in choose_columns(views["records"], self.columns)))
        return shape


def largest_file(text: str | None) -> int | None:
    """Return the maximum size in bytes of exported files, None if the option is not given.

    Raises UnreadableArgument, FilesTooSmall.
    """
    from engine.analysis.export_files import check_file_size
    from kctl.sizes import parse_bytes

    return None if text is None else check_file_size(parse_bytes(text))


def _no_logs(query: str) -> QueryResult:
    """Raise AssertionError: without the format `schema`, decoding must not query the logs."""
    raise AssertionError(f"no schema is asked for, and {query} is not run")


def export_logs(
    reading: ReadingPlan, options: ExportOptions, target: SparkTarget | None, bar: ProgressBar
) -> ExportSummary:
    """Export the records of logs to files or a table by Spark; return the summary.

    `target` is the Spark cluster, None for a local one; `bar` shows the progress. Raises the errors
    of `parquet_export.export` and `ExportOptions.export_shape`.
    """
    from engine.analysis.columns import choose_columns
    from engine.analysis.isolation import hide_uncommitted_on_spark
    from engine.analysis.parquet_export import ExportPlan, export, plan_to_append, run_tasks
    from engine.analysis.row_condition import splits_to_read
    from engine.analysis.shipping import ship
    from engine.analysis.spark_query import run_query
    from engine.analysis.spark_session import start_session, stop_session_after
    from engine.analysis.spark_target import SparkTarget
    from engine.analysis.table_export import export_into_table, plan_for_table
    from engine.analysis.table_format import TABLE_FORMATS
    from engine.analysis.table_library import open_table
    from engine.analysis.value_decoding import views_of
    from engine.host.held_file import RealHeldFiles
    from engine.host.real import RealEntropy

    bar.show("starting Spark")
    target = target or SparkTarget()
    session = start_session(target)
    with stop_session_after(session, bar.show):
        if not target.is_local:
            ship(session, options.task_packages)
        splits = reading.splits
        if options.values is not None:
            bar.show("looking for schemas")
        decoding = create_decoding(
            options.values,
            lambda query: run_query(session, query, splits, control=False, max_rows=0),
        )
        shape = options.export_shape(decoding)
        wanted = choose_columns(shape.records, options.columns)
        if shape.condition is not None:
            splits = splits_to_read(splits, shape.condition, views_of(decoding))
        problems = reading.problems
        if options.is_committed:
            bar.show("looking for transactions")
            splits, undecided = hide_uncommitted_on_spark(session, splits)
            problems = [*problems, *undecided]
        plan = ExportPlan(
            splits,
            options.out,
            tuple(column.name for column in wanted),
            options.include_control,
            options.strict,
            tuple(problems),
            shape,
            "read_committed" if options.is_committed else "read_uncommitted",
        )
        files = RealHeldFiles()
        job_id = RealEntropy().random_bytes(8).hex()
        if options.file_format in TABLE_FORMATS:
            table = open_table(options.file_format, os.path.realpath(options.out))
            plan = plan_for_table(table, plan, append=options.append)
            run = partial(run_tasks, session, splits=plan.splits, on_progress=bar.update)
            summary = export_into_table(run, files, plan, job_id, table)
        else:
            plan = plan_to_append(files, plan) if options.append else plan
            summary = export(session, files, plan, job_id, bar.update)
    return summary
