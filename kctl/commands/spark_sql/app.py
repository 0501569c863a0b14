"""`kctl spark-sql`: SQL over log directories."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kctl import exits
from kctl.options.cluster import FORMATS_HELP, one_command
from kctl.spark_input import Inputs, partition_numbers, quiet_py4j

if TYPE_CHECKING:
    from engine.analysis.batch_reader import Problem

app = one_command()


@app.command()
def spark_sql(
    query: Annotated[
        str, typer.Argument(metavar="SQL", help="SQL over the views records, batches, segments.")
    ],
    logdirs: Annotated[
        list[str],
        typer.Argument(metavar="DIR...", help="Log directories, or single partition directories."),
    ],
    topics: Annotated[
        str | None, typer.Option(metavar="REGEX", help="Regular expression for whole topic names.")
    ] = None,
    partitions: Annotated[
        str | None, typer.Option(metavar="NUMBERS", help="Partition numbers, such as 0,2,5-9.")
    ] = None,
    master: Annotated[str, typer.Option(metavar="MASTER", help="Spark master.")] = "local[*]",
    include_control: Annotated[
        bool, typer.Option("--include-control", help="Transaction markers are records too.")
    ] = False,
    isolation: Annotated[
        str,
        typer.Option(
            metavar="LEVEL", help="read_uncommitted, or read_committed: without aborted records."
        ),
    ] = "read_uncommitted",
    max_rows: Annotated[
        int, typer.Option(metavar="N", help="Rows to print at most, 0 for all.")
    ] = 1000,
    output: Annotated[
        str,
        typer.Option("-o", "--output", metavar="FORMAT", help=FORMATS_HELP),
    ] = "table",
) -> int:
    """Ask SQL of log directories, such as

    kctl spark-sql "select topic, count(*) from records group by topic" /var/lib/kafka/data
    """
    from engine.analysis.isolation import check_isolation, committed_on_spark
    from engine.analysis.spark_query import check_statement, run_query
    from engine.analysis.spark_session import require_spark, start_session
    from kctl.render import Column, RowWriter, check_format
    from kctl.render.progress import ProgressBar

    check_format(output)
    check_isolation(isolation)
    check_statement(query)
    require_spark()
    splits = Inputs(logdirs, topics, partition_numbers(partitions)).splits()
    undecided: list[Problem] = []
    with quiet_py4j(), ProgressBar("asking") as bar:
        bar.say("starting Spark")
        session = start_session(master)
        if isolation == "read_committed":
            bar.say("looking for transactions")
            splits, undecided = committed_on_spark(session, splits)
        bar.say("running the query")
        result = run_query(session, query, splits, control=include_control, max_rows=max_rows)
    writer = RowWriter([Column(name, name) for name in result.columns], output)
    for row in result.rows:
        writer.write({name: _plain(value) for name, value in row.items()})
    writer.close()
    session.stop()
    for problem in undecided:
        sys.stderr.write(
            f"warning: {problem.segment} at position {problem.position}: {problem.message}\n"
        )
    if result.is_cut:
        sys.stderr.write(f"note: only the first {max_rows} rows; --max-rows 0 prints all\n")
    return exits.OK


def _plain(value: Any) -> Any:
    """Return a value that every output format can show: times as ISO 8601, bytes as text."""
    if isinstance(value, bytes | bytearray):
        from engine.dump.rows import text_form

        text, _ = text_form(bytes(value))
        return text
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if type(value).__name__ == "Decimal":
        return int(value) if value == value.to_integral_value() else float(value)
    return value
