"""`kctl spark-export`: write log directories as Parquet, ORC, JSON, Delta or Iceberg."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from kctl import exits
from kctl.options.cluster import FORMATS_HELP, one_command
from kctl.options.spark import (
    ConfOption,
    IsolationOption,
    KeySchemaOption,
    KeysOption,
    MasterOption,
    PartitionsOption,
    RegistryOption,
    RemoteOption,
    SchemasOption,
    TopicsOption,
    ValuesOption,
)
from kctl.spark_input import (
    LOGDIRS_HELP,
    Inputs,
    column_names,
    parse_partition_numbers,
    parse_target,
)
from kctl.value_options import (
    parse_wanted_values,
    read_hash_key,
)

app = one_command()


@app.command()
def spark_export(
    logdirs: Annotated[
        list[str],
        typer.Argument(metavar="DIR...", help=LOGDIRS_HELP),
    ],
    out: Annotated[
        str,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Folder to write; an earlier export there is"
            " replaced when the new one is complete.",
        ),
    ],
    file_format: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="parquet, orc, json (gzipped lines); or a table: delta, iceberg.",
        ),
    ] = "parquet",
    where: Annotated[
        str | None,
        typer.Option(
            metavar="SQL", help='Only records that meet a condition, such as "offset > 9".'
        ),
    ] = None,
    anonymised: Annotated[
        list[str] | None,
        typer.Option(
            "--anonymise",
            metavar="COLUMN=HOW",
            help="hash, mask or drop a column, or a field such as decoded_value.user.name; can be"
            " given several times.",
        ),
    ] = None,
    anonymise_key: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Hash by HMAC-SHA-256 with the bytes of a file as key."),
    ] = None,
    values: ValuesOption = None,
    keys: KeysOption = None,
    key_schema: KeySchemaOption = None,
    schema_registry: RegistryOption = None,
    schemas: SchemasOption = None,
    topics: TopicsOption = None,
    partitions: PartitionsOption = None,
    columns: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="Comma-separated columns; all of the view by default."),
    ] = None,
    partition_by: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Folders by topic, partition, date (UTC, of the timestamp), named as in Hive.",
        ),
    ] = None,
    files_max_size: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Largest size of a file, such as 256MB."),
    ] = None,
    append: Annotated[
        bool,
        typer.Option("--append", help="Add the records that an earlier export in OUT lacks."),
    ] = False,
    master: MasterOption = None,
    remote: RemoteOption = None,
    conf: ConfOption = None,
    include_control: Annotated[
        bool, typer.Option("--include-control", help="Export transaction markers too.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Publish nothing if a batch is damaged (exit 4).")
    ] = False,
    isolation: IsolationOption = "read_uncommitted",
    output: Annotated[
        str,
        typer.Option(
            "-o", "--output", metavar="FORMAT", help=f"Form of the summary: {FORMATS_HELP}"
        ),
    ] = "table",
) -> int:
    """Export the records of log directories to files on Spark.

    Damaged batches are skipped, counted and listed in OUT/_problems. The folder appears complete or
    not at all, so a run can be repeated after any failure. A table gets all records of a run in one
    commit; a table that has records already needs --append.
    """
    from engine.analysis.export_files import check_file_format
    from engine.analysis.isolation import check_isolation
    from engine.analysis.spark_session import require_spark
    from kctl.commands.spark_export.exporting import ExportOptions, export_logs, largest_file
    from kctl.commands.spark_export.summary import SUMMARY_COLUMNS
    from kctl.destinations import check_destination, check_writable
    from kctl.render import check_format, write_rows
    from kctl.render.progress import ProgressBar
    from kctl.spark_input import silence_py4j

    check_format(output)
    check_destination(out, logdirs)
    check_writable(out, is_file=False)
    check_isolation(isolation)
    target = parse_target(master, remote, conf)
    options = ExportOptions(
        out=out,
        columns=column_names(columns),
        where=where,
        anonymised=tuple(anonymised or ()),
        hash_key=None if anonymise_key is None else read_hash_key(anonymise_key),
        file_format=check_file_format(file_format),
        values=parse_wanted_values(values, schema_registry, schemas, keys, key_schema),
        is_committed=isolation == "read_committed",
        include_control=include_control,
        strict=strict,
        append=append,
        partition_by=column_names(partition_by),
        file_max_bytes=largest_file(files_max_size),
    )
    options.check()
    require_spark()
    reading = Inputs(logdirs, topics, parse_partition_numbers(partitions)).plan()
    with silence_py4j(), ProgressBar("exporting") as bar:
        summary = export_logs(reading, options, target, bar)
    write_rows(SUMMARY_COLUMNS, [summary._asdict()], output)
    if summary.problem_count:
        sys.stderr.write(
            f"warning: {summary.problem_count} problems with the data;"
            f" see {summary.out}/_problems\n"
        )
    for path in summary.leftovers:
        sys.stderr.write(f"warning: {path} could not be removed; the next export tries again\n")
    return exits.OK
